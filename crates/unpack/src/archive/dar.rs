//! Dar: a slice of an archive, whose zlib-compressed files are emitted while it is read forward.
//!
//! The catalogue at the end, compressed too, is not needed, as by the tool when it reads a tape: the streams of files
//! follow each other and, with the default marks between them, each follows its name. The searches for archives find
//! files compressed with bzip2, xz or zstd. Left out: encryption, files that are stored, LZO and LZ4, which have a finding; so has a slice
//! of an archive that has more of them.
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
    not_read: "stored files, LZO, LZ4, encryption, slices of a split archive; the catalogue",
    reads: Reads::Stream,
    memory: "90 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_dar",
    compared_with: "dar, which made the seeds",
};

/// As of all files that are known and not opened.
const UNOPENED: &str = "Heuristics.Limits.Exceeded.Unopened";
const ENCRYPTED: &str = "Heuristics.Encrypted.Dar";
const SPLIT: &str = "Heuristics.Truncated.DarVolume";

/// Last bytes that were passed, in which the name of a file stands.
const BACK_BYTES: usize = 512;
/// The head of a slice, as far as its flags.
const FLAGS_END: usize = 16;
/// As far as the method of compression.
const HEAD_BYTES: usize = 512;
/// In front of the entry of a file.
const MARK: &[u8] = b"\xad\xfd\xea\x77\x21Ff";

/// A reader of slices.
pub(crate) fn reader() -> Chain<Slice> {
    Chain::new(Slice { back: Vec::new(), head: Vec::new(), fields: None, is_reported: false, state: State::Head })
}

/// The slice around the streams.
pub(crate) struct Slice {
    back: Vec<u8>,
    head: Vec<u8>,
    /// The fields of the head, once they are read.
    fields: Option<Fields>,
    /// Whether the finding of another slice is reported.
    is_reported: bool,
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
        if count > 0 && self.head.len() == HEAD_BYTES {
            self.report(outbox);
        }
        count
    }

    /// Reads the fields of the head, and reports what they tell.
    fn report(&mut self, outbox: &mut Outbox) {
        let fields = Fields::read(&self.head);
        if fields.edition.as_ref().is_some_and(|edition| edition.is_encrypted) {
            outbox.finding(Class::Encrypted, ENCRYPTED, 0);
        } else if fields.edition.as_ref().is_some_and(|edition| b"nljkq".contains(&edition.method)) {
            outbox.finding(Class::Unopened, UNOPENED, 0);
        }
        if fields.goes_on || fields.is_cut && fields.edition.is_none() {
            outbox.finding(Class::Truncated, SPLIT, 0);
            self.is_reported = true;
        }
        self.fields = Some(fields);
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

    fn end(&mut self, outbox: &mut Outbox) {
        if !self.is_open() {
            return;
        }
        if self.fields.is_none() {
            self.report(outbox);
        }
        let is_cut = self.fields.as_ref().is_some_and(|fields| fields.is_cut);
        if is_cut && !self.is_reported && self.back.last() == Some(&b'N') {
            outbox.finding(Class::Truncated, SPLIT, 0);
        }
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

/// The fields of the head.
#[derive(Default)]
struct Fields {
    /// Whether the archive is cut into slices of one size.
    is_cut: bool,
    /// Whether the head tells of a slice behind this one. Else the last byte of a slice does.
    goes_on: bool,
    /// The edition, which only the first slice has.
    edition: Option<Edition>,
}

/// The head of the archive.
struct Edition {
    method: u8,
    is_encrypted: bool,
}

impl Fields {
    fn read(head: &[u8]) -> Fields {
        let Some([flag, extension]) = head.get(FLAGS_END - 2..FLAGS_END) else { return Fields::default() };
        let goes_on = *flag == b'N';
        let behind = head.get(FLAGS_END..).unwrap_or_default();
        let read = match extension {
            b'T' => list(behind),
            b'S' => sized(behind),
            _ => Some((false, behind)),
        };
        let (is_cut, rest) = read.unwrap_or_default();
        Fields { is_cut: is_cut || goes_on, goes_on, edition: Edition::read(rest) }
    }
}

/// Passes the fields of the head: whether one of them is the size of slices, and what stands behind.
fn list(mut rest: &[u8]) -> Option<(bool, &[u8])> {
    const FIELDS_MAX: u64 = 8;
    const SIZE_OF_SLICES: u16 = 1;
    let mut is_cut = false;
    for _ in 0..number(&mut rest)?.min(FIELDS_MAX) {
        is_cut |= be16(rest, 0) == SIZE_OF_SLICES;
        rest = rest.get(2..)?;
        let length = number(&mut rest)?;
        rest = rest.get(usize::try_from(length).ok()?..)?;
    }
    Some((is_cut, rest))
}

/// Passes the size of slices, the only field of old archives.
fn sized(mut rest: &[u8]) -> Option<(bool, &[u8])> {
    number(&mut rest)?;
    Some((true, rest))
}

impl Edition {
    /// Reads the edition, the method of compression, the command and the flags.
    fn read(head: &[u8]) -> Option<Edition> {
        const EDITION_BYTES_MAX: usize = 8;
        const IS_ENCRYPTED: u8 = 0x20;
        const GOES_ON: u8 = 1;
        let end = memchr::memchr(0, head.get(..EDITION_BYTES_MAX).unwrap_or(head)).filter(|end| *end > 1)?;
        let (edition, rest) = head.split_at(end);
        let method = *rest.get(1)?;
        if !edition.iter().all(u8::is_ascii_graphic) || !method.is_ascii_alphabetic() {
            return None;
        }
        let command = rest.get(2..)?;
        let flags = command.get(memchr::memchr(0, command)? + 1..).unwrap_or_default();
        let last = flags.iter().find(|byte| **byte & GOES_ON == 0);
        Some(Edition { method, is_encrypted: last.is_some_and(|last| last & IS_ENCRYPTED != 0) })
    }
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
