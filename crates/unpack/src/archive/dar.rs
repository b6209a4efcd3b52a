//! Dar: a slice of an archive, whose zlib-compressed files are emitted while it is read forward.
//!
//! The catalogue at the end, compressed too, is not needed, as by the tool when it reads a tape: the streams of files
//! follow each other and, with the default marks between them, each follows its name. The searches for archives find
//! files that are stored or compressed with bzip2, xz or zstd. Left out: encryption; LZO and LZ4, which have a finding.
//! Source: dar's "notes on the format of archives". Bounds: [`BACK_BYTES`], two states of zlib-rs.

use stream::Class;

use crate::frame::chain::{Around, Chain};
use crate::frame::codec::{be16, be32, be64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{Outbox, Reading};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "dar",
    methods: "zlib; with marks, the names of files",
    not_read: "LZO, LZ4, encryption; the catalogue",
    reads: Reads::Stream,
    memory: "90 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_dar",
    compared_with: "dar, which made the seeds",
};

/// As of all files that are known and not opened.
const UNOPENED: &str = "Heuristics.Limits.Exceeded.Unopened";

/// Last bytes that were passed, in which the name of a file stands.
const BACK_BYTES: usize = 512;
/// The head of a slice, as far as its flags.
const FLAGS_END: usize = 16;
/// As far as the method of compression.
const HEAD_BYTES: usize = 64;
/// In front of the entry of a file.
const MARK: &[u8] = b"\xad\xfd\xea\x77\x21Ff";

/// A reader of slices.
pub(crate) fn reader() -> Chain<Slice> {
    Chain::new(Slice { back: Vec::new(), head: Vec::new(), state: State::Head })
}

/// The slice around the streams.
pub(crate) struct Slice {
    back: Vec<u8>,
    head: Vec<u8>,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Head,
    Open,
    /// Not such an archive.
    Over,
}

impl Slice {
    /// Reads the head as far as it has arrived. Returns the number of its bytes.
    fn head(&mut self, bytes: &[u8], outbox: &mut Outbox) -> usize {
        let wanted = if self.state == State::Head { FLAGS_END } else { HEAD_BYTES };
        let count = bytes.len().min(wanted.saturating_sub(self.head.len()));
        self.head.extend_from_slice(&bytes[..count]);
        if count > 0 && self.head.len() == FLAGS_END {
            self.state = if is_slice(&self.head) { State::Open } else { State::Over };
        }
        if count > 0 && self.head.len() == HEAD_BYTES && is_unopened(&self.head) {
            outbox.finding(Class::Limit, UNOPENED, 0);
        }
        count
    }
}

impl Around for Slice {
    fn passed(&mut self, bytes: &[u8], outbox: &mut Outbox) -> usize {
        let was_open = self.is_open();
        let count = self.head(bytes, outbox);
        if !was_open {
            return count;
        }
        let last = &bytes[bytes.len().saturating_sub(BACK_BYTES)..];
        self.back.extend_from_slice(last);
        let surplus = self.back.len().saturating_sub(BACK_BYTES);
        self.back.drain(..surplus);
        bytes.len()
    }

    fn wants(&self) -> usize {
        if self.is_open() { usize::MAX } else { FLAGS_END.saturating_sub(self.head.len()) }
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    fn is_over(&self) -> bool {
        self.state == State::Over
    }

    fn name(&mut self) -> Option<Box<str>> {
        let back = std::mem::take(&mut self.back);
        let at = memchr::memmem::rfind(&back, MARK)?;
        let rest = &back[at + MARK.len()..];
        let end = memchr::memchr(0, rest)?;
        Some(name::utf8_or_latin1(&rest[..end]))
    }
}

/// The magic, a label, and the flags of the header.
fn is_slice(head: &[u8]) -> bool {
    const MAGIC: u32 = 123;
    let flags = head.get(FLAGS_END - 2..FLAGS_END);
    be32(head, 0) == MAGIC && matches!(flags, Some([b'T' | b'N' | b'E', b'T' | b'N' | b'S']))
}

/// Whether the header tells of a method that is not read.
fn is_unopened(head: &[u8]) -> bool {
    method(head).is_some_and(|method| matches!(method, b'l' | b'j' | b'k' | b'q'))
}

/// The method of compression: behind the fields of the header and the edition.
fn method(head: &[u8]) -> Option<u8> {
    const FIELDS_MAX: u64 = 8;
    let mut rest = head.get(FLAGS_END..)?;
    let count = number(&mut rest)?;
    for _ in 0..count.min(FIELDS_MAX) {
        let _kind = be16(rest, 0);
        rest = rest.get(2..)?;
        let length = number(&mut rest)?;
        rest = rest.get(usize::try_from(length).ok()?..)?;
    }
    let end = memchr::memchr(0, rest)?;
    rest.get(end + 1).copied()
}

/// A number of any length: a byte tells in its highest bit how many groups of four bytes follow. Of at most two groups.
fn number(rest: &mut &[u8]) -> Option<u64> {
    const GROUP: usize = 4;
    let groups = match rest.first()? {
        0x80 => 1,
        0x40 => 2,
        _ => return None,
    };
    let digits = rest.get(1..1 + groups * GROUP)?;
    *rest = rest.get(1 + groups * GROUP..)?;
    Some(if groups == 1 { be32(digits, 0).into() } else { be64(digits, 0) })
}

/// Fuzz body: reads a slice.
pub fn fuzz_dar(data: &[u8]) {
    cuts::compare(data, |_| Box::new(Reading::new(reader())));
}
