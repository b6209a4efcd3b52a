//! Links `stream`, `text`, `flow`, `mime`, `proto`, `store`, `sieve`, `index`, `digest`, `webmail`, `jmap` and `keep` into a program without std: what is missing is an error of the
//! linker.
//!
//! It parses a mail, decodes a word, hashes a line, stores a mail, finds it, runs a script of Sieve, and lets both halves of SMTP say one; its exit status is 0 if they did. The
//! host's C library is linked for what a bare machine brings itself: the call of `main`, `memcpy` and its like, `_exit`.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use digest::{Batch, Wanted};
use flow::{Out, wire};
use keep::find::{Finder, Key, NoIndex};
use keep::view::View;
use keep::volume::{Machine, Own};
use keep::{Keep, Messages};
use mime::{Decoder, Embedded, Parser, Utf16};
use proto::imap::acl::Rights;
use proto::smtp::{Client, Config, Protocol, Server};
use store::memory::Memory;
use store::{Arrival, Format, Options, Volume, paper};
use stream::{Coding, Event, Fuel, Limits, Nothing, Stage, Step, Window};

const MAIL: &[u8] = b"Subject: =?iso-8859-2?Q?=B1?=\r\nContent-Type: text/plain; name*=utf-8''%C3%A9\r\n\r\nHello\r\n";

/// Named by the library `alloc`, which is built to unwind: nothing here does.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The same.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    loop {}
}

/// Called by the C library's start files, with no runtime of Rust's before it.
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    let limits = Limits::default();
    let told = drain(&mut Parser::new(&limits), MAIL)
        + drain(&mut Decoder::new(Coding::Base64), b"SGVsbG8=")
        + drain(&mut Embedded::new(&limits), b"begin 644 a\n#0V%T\n`\nend\n")
        + drain(&mut Utf16::new("utf-16le"), b"a\0b\0");
    let mut server = Server::new(Config::default(), 0);
    let mut content = Window::with_capacity(64);
    server.step(0, b"QUIT\r\n", &mut content);
    let mut client = Client::new("client.test", Protocol::Smtp);
    client.step(server.outbox());
    client.hello();
    let cleared = wire::read(&wire::write(&Out::Cleared(7), Default::default())) == Ok(Out::Cleared(7));
    let mut batch = Batch::new(1, 64 << 10);
    let ticket = batch.open(Wanted { md5: true, sha1: true, sha256: true });
    batch.update(&ticket, MAIL);
    batch.run();
    let hashed = batch.finish(ticket).is_some_and(|sums| sums.sha256 == Some(digest::sha256::digest(MAIL)));
    // It ends in itself where what it asserts does not hold.
    sieve::fuzz_sieve(b"keep;\r\n");
    index::fuzz_segment(b"SlIx");
    webmail::fuzz_sanitise(b"<p>a");
    jmap::fuzz_request(b"{}");
    keep::digest::fuzz_digest(MAIL);
    let works = cleared
        && hashed
        && stores()
        && searches().is_some()
        && told > 10
        && server.is_closed()
        && !client.outbox().is_empty()
        && mime::looks_like_mail(MAIL);
    i32::from(!works)
}

/// A mail written to a volume in memory, as the paper has it, and read back.
fn stores() -> bool {
    let format = Format { identity: 1, uid_validity: 1, segment_bytes: 16 << 10, piece_bytes: 1024 };
    let device = Volume::format(Memory::new(8192 + (12 << 14)), &format);
    let Ok(mut volume) = device.and_then(|device| Volume::open(device, Options::default())) else { return false };
    let Ok(mut file) = paper::mail_open(&mut volume, b"INBOX") else { return false };
    paper::mail_nwrite(&mut volume, &[file], MAIL, None).is_ok()
        && paper::mail_read(&volume, &mut file).is_ok_and(|mail| mail.is_some_and(|mail| mail == MAIL))
}

/// The rest of a machine that has neither a clock nor accounts.
struct Still;

impl Machine for Still {
    fn now(&self) -> i64 {
        0
    }

    fn random(&mut self) -> [u8; 16] {
        [0; 16]
    }

    fn hostname(&self) -> &str {
        "mx.test"
    }

    fn owner(&self, _: &str) -> Option<(&str, u64)> {
        None
    }

    fn log(&self, _: &str, _: &dyn core::fmt::Display) {}
}

/// A mail that is stored, and found by its content.
fn searches() -> Option<()> {
    let format = Format { identity: 1, uid_validity: 1, segment_bytes: 16 << 10, piece_bytes: 1024 };
    let device = Volume::format(Memory::new(8192 + (12 << 14)), &format).ok()?;
    let mut server = Own::new(Volume::open(device, Options::default()).ok()?, Still);
    let deliver = server.deliver(MAIL.into(), alloc::vec::Vec::new(), |transaction, sealed| {
        let account = keep::ensure(transaction, "ann", 0)?;
        let inbox = transaction.state().mailbox_named(account, b"INBOX").map_or(0, |(number, _)| number);
        transaction.deliver(sealed, inbox, &Arrival::default()).map(|_| inbox)
    });
    let (inbox, state) = (deliver.ok()?, server.state());
    let view = View::open(inbox, state.mailbox(inbox)?.clone(), true, Rights::READ);
    let key = Key::Text(b"hello".into());
    let mut found = 0;
    let mut finder = Finder::new(&server, NoIndex, state, &view, &key, 0);
    let is_done = finder.go_on(|| false, |message| found = message.stored());
    (is_done && server.reader(found).is_some()).then_some(())
}

/// Drives a stage over `input`; how many events it told.
fn drain(stage: &mut dyn Stage, mut input: &[u8]) -> usize {
    let mut window = Window::with_capacity(256);
    let mut events = 0;
    while !input.is_empty() {
        let Step { taken, event } = stage.step(input, &mut window, &mut Fuel::unlimited());
        input = &input[taken..];
        window.clear();
        events += 1;
        if event == Event::End {
            return events;
        }
    }
    while stage.finish(&Nothing, &mut window, &mut Fuel::unlimited()) != Event::End {
        window.clear();
        events += 1;
    }
    events
}

#[link(name = "c")]
unsafe extern "C" {
    fn _exit(status: i32) -> !;
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: `_exit` takes any status and does not return.
    unsafe { _exit(2) }
}

/// Hands out memory from one array and takes none back.
struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

const ARENA_BYTES: usize = 4 << 20;

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; ARENA_BYTES]), used: AtomicUsize::new(0) };

// SAFETY: the bytes are only reached through `alloc`, which hands out each of them once.
unsafe impl Sync for Arena {}

// SAFETY: each allocation is a range of the array of its own, aligned as asked for.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        let place = |used: usize| {
            let start = (base as usize).checked_add(used)?.checked_next_multiple_of(layout.align())? - base as usize;
            let end = start.checked_add(layout.size())?;
            (end <= ARENA_BYTES).then_some((start, end))
        };
        match self.used.fetch_update(Relaxed, Relaxed, |used| place(used).map(|(_, end)| end)) {
            Err(_) => core::ptr::null_mut(),
            Ok(used) => {
                let (start, _) = place(used).expect("it fitted a moment ago");
                // SAFETY: `start` lies within the array.
                unsafe { base.add(start) }
            }
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
