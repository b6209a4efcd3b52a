//! The memory of a parser stays below `Parser::worst_case_bytes`, whatever the mail does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use mime::Parser;
use stream::{Event, Fuel, Limits, Note, Nothing, Stage, Step, Window};

/// Counts allocations of all threads: this is the only test here.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is handed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's pointer and layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[test]
fn the_worst_mails_stay_below_the_worst_case() {
    let limits = Limits::default();
    let bound = Parser::worst_case_bytes(&limits);
    println!("worst case {bound} bytes");
    for (name, mail) in worst_mails() {
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        run(Parser::new(&limits), &mail);
        let peak = PEAK.load(Ordering::Relaxed) - before;
        println!("{name}: {peak} bytes");
        assert!(peak < bound, "{name}: {peak} of {bound}");
    }
}

/// Runs a parser, and each second reading as it is offered, without keeping events.
fn run(mut parser: Parser, mail: &[u8]) {
    let mut window = Window::with_capacity(4096);
    let mut at = 0;
    loop {
        window.clear();
        let mut fuel = Fuel::unlimited();
        let piece = &mail[at..mail.len().min(at + 4096)];
        let Step { taken, event } = match piece.is_empty() {
            false => parser.step(piece, &mut window, &mut fuel),
            true => Step::tell(0, parser.finish(&Nothing, &mut window, &mut fuel)),
        };
        at += taken;
        match event {
            Event::End => return,
            Event::Note(Note::Fork(_)) => drop(parser.alternative()),
            _ => {}
        }
    }
}

fn worst_mails() -> Vec<(&'static str, Vec<u8>)> {
    let long = "b".repeat(3_000);
    let multipart =
        |level: usize| format!("Content-Type: multipart/mixed; boundary={level}{long}\r\n\r\n--{level}{long}\r\n");
    let nested: String = (0..200).map(multipart).collect();
    let parameters: String = (0..2_000).map(|index| format!("; name*{index}=a")).collect();
    let type_field =
        format!("Content-Type: multipart/mixed; charset={long}; name={long}; boundary={long}{parameters}\r\n");
    let different: String = (0..9)
        .map(|index| {
            format!(
                "Content-Type: multipart/x; boundary={index}{long}; boundary=1{index}{long}; charset={long}; name={long}\r\n\
                 Content-Transfer-Encoding: base64 uu{index}\r\nContent-Disposition: x; filename={index}{long}\r\n"
            )
        })
        .collect();
    let junk = format!("{nested}{}", format!("--0{long}junk\r\n\r\n").repeat(100));
    vec![
        ("deeply nested, long boundaries", nested.clone().into_bytes()),
        ("long field", type_field.into_bytes()),
        ("one field that never ends", format!("Content-Type: {}", "x".repeat(1 << 20)).into_bytes()),
        ("a line that never ends", vec![b'x'; 1 << 20]),
        ("white space that never ends", [b"X: y\r\n".as_slice(), &[b' '; 1 << 20]].concat()),
        (
            "white space behind a boundary",
            format!("Content-Type: multipart/x; boundary=B\r\n\r\n--B{}", " ".repeat(1 << 20)).into_bytes(),
        ),
        ("CRs", vec![b'\r'; 1 << 20]),
        ("hyphens", format!("Content-Type: multipart/x; boundary=B\r\n\r\n{}", "-".repeat(1 << 20)).into_bytes()),
        ("many readings at the deepest place", format!("{nested}\r\n{different}garbage line\r\n").into_bytes()),
        ("many readings", format!("{different}garbage line\r\n").into_bytes()),
        (
            "many readings in the deepest part",
            [multipart_chain(30, &long), different, "garbage\r\n".into()].concat().into_bytes(),
        ),
        ("junk behind boundaries", junk.into_bytes()),
        ("many small fields", "a:\r\n".repeat(100_000).into_bytes()),
    ]
}

fn multipart_chain(depth: usize, long: &str) -> String {
    (0..depth)
        .map(|level| format!("Content-Type: multipart/mixed; boundary={level}{long}\r\n\r\n--{level}{long}\r\n"))
        .collect()
}
