//! Ar, and with it Debian packages: headers and contents that follow each other.
//!
//! Names have the forms of System V, GNU (a table of long names) and BSD (before the content). Bounds: a table of names
//! of [`NAMES_BYTES_MAX`]; with a longer table names stay undecoded.
//!
//! Source: ar(5).

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Class, Entry, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "ar, deb",
    methods: "System V, GNU and BSD names",
    not_read: "",
    reads: Reads::Stream,
    memory: "a table of names of 64 KiB",
    decoder: "own",
    fuzz: "unpack_ar",
    compared_with: "what was put into the seeds",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Ar.Header");

const MARK: &[u8] = b"!<arch>\n";
const HEADER_BYTES: usize = 60;
const NAMES_BYTES_MAX: u64 = 64 << 10;
/// The longest name in front of a content.
const BSD_NAME_BYTES_MAX: u64 = 4096;

/// A reader of ar archives.
pub(crate) struct Ar {
    name_bytes_max: usize,
    marked: bool,
    /// Whether a byte fills up the last content.
    padding: bool,
    /// The table of long names.
    names: Vec<u8>,
}

impl Ar {
    pub fn new(limits: &Limits) -> Ar {
        Ar { name_bytes_max: limits.name_bytes_max as usize, marked: false, padding: false, names: Vec::new() }
    }

    /// Reads a header; `None` if it makes no sense.
    fn header(&mut self, head: &[u8]) -> Option<Record> {
        let name = head[..16].trim_ascii_end();
        let size = number(&head[48..58]).filter(|_| &head[58..HEADER_BYTES] == b"`\n")?;
        if name == b"//" && size <= NAMES_BYTES_MAX {
            let length = HEADER_BYTES.saturating_add(size as usize);
            let Some(names) = head.get(HEADER_BYTES..length) else {
                return Some(Record::Need(length));
            };
            self.names = names.to_vec();
            self.padding = size % 2 == 1;
            return Some(Record::pass(length, 0));
        }
        let in_front = name.strip_prefix(b"#1/").and_then(number);
        if let Some(length) = in_front.filter(|length| *length <= size.min(BSD_NAME_BYTES_MAX)) {
            let end = HEADER_BYTES.saturating_add(length as usize);
            let Some(name) = head.get(HEADER_BYTES..end) else {
                return Some(Record::Need(end));
            };
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            return Some(self.member(end, name, size.saturating_sub(length), size));
        }
        let long =
            name.strip_prefix(b"/").and_then(number).and_then(|at| long_name(&self.names, at)).map(<[u8]>::to_vec);
        let plain = if name.len() > 1 { name.strip_suffix(b"/").unwrap_or(name) } else { name };
        Some(self.member(HEADER_BYTES, long.as_deref().unwrap_or(plain), size, size))
    }

    fn member(&mut self, length: usize, name: &[u8], left: u64, size: u64) -> Record {
        self.padding = size % 2 == 1;
        let name = name::utf8_lossy(&name[..name.len().min(self.name_bytes_max)]);
        let entry = Entry { packed: Some(left), size: Some(left), ..Entry::default() };
        let object = Object { name: Some(name), size: Some(left), entry: Some(Box::new(entry)), ..Object::default() };
        Record::Member(length, Member { object, content: Content::Raw(left), check: Check::None })
    }
}

/// The name at this place of the table, which ends with a slash and a line end.
fn long_name(names: &[u8], at: u64) -> Option<&[u8]> {
    let rest = names.get(usize::try_from(at).ok()?..)?;
    let line = rest.split(|&byte| byte == b'\n').next()?;
    Some(line.strip_suffix(b"/").unwrap_or(line))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.trim_end().parse().ok()
}

impl Records for Ar {
    const FAULTS: Faults =
        Faults { truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Ar"), check: HEADER, size: HEADER };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        if !self.marked {
            if head.len() < MARK.len() {
                return Record::Need(MARK.len());
            }
            self.marked = head.starts_with(MARK);
            return if self.marked { Record::pass(MARK.len(), 0) } else { Record::Rest };
        }
        if self.padding {
            if head.is_empty() {
                return Record::Need(1);
            }
            self.padding = false;
            // Some archives leave the filling out; it is a line end.
            return if head[0] == b'\n' { Record::pass_bytes(1) } else { Record::Need(HEADER_BYTES) };
        }
        if head.len() < HEADER_BYTES {
            return Record::Need(HEADER_BYTES);
        }
        self.header(head).unwrap_or_else(|| {
            faults.push(HEADER);
            Record::Rest
        })
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, HEADER)
    }
}

/// Fuzz body: reads an ar archive.
pub fn fuzz_ar(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Ar::new(limits), limits)));
}
