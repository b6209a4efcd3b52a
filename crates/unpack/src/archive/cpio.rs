//! Cpio: headers and contents one behind the other, in ASCII (`odc`, `newc`, `crc`) or binary of either byte order.
//!
//! Archives may follow each other, with zeros between them, as the first file systems of Linux have it. What else follows
//! the end is emitted as a member without name. Bounds: a header and a name of [`NAME_BYTES_MAX`].
//!
//! Source: cpio(5).

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Class, Entry, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "cpio",
    methods: "odc, newc, crc, binary of both byte orders; several archives",
    not_read: "",
    reads: Reads::Stream,
    memory: "a header and a name of 4 KiB",
    decoder: "own",
    fuzz: "unpack_cpio",
    compared_with: "what was put into the seeds",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cpio.Header");

/// Longer names are no names.
const NAME_BYTES_MAX: usize = 4096;
const TRAILER: &[u8] = b"TRAILER!!!";

/// A reader of cpio archives.
pub(crate) struct Cpio {
    name_bytes_max: usize,
    /// Bytes that fill up the last content.
    padding: u64,
    /// Records of folders since the last member.
    passed: u32,
    /// Whether the trailer has been read.
    ended: bool,
}

/// A header.
struct Header {
    /// Bytes of the header and of the name with its padding.
    length: usize,
    name_at: usize,
    name_bytes: usize,
    mode: u64,
    size: u64,
    /// Contents are filled up to a multiple of this.
    align: u64,
    /// The sum of the content's bytes.
    sum: Option<u32>,
}

impl Cpio {
    pub fn new(limits: &Limits) -> Cpio {
        Cpio { name_bytes_max: limits.name_bytes_max as usize, padding: 0, passed: 0, ended: false }
    }

    fn member(&mut self, header: &Header, head: &[u8]) -> Record {
        const TYPE: u64 = 0o170_000;
        const DIRECTORY: u64 = 0o040_000;
        const LINK: u64 = 0o120_000;
        let name = &head[header.name_at..header.name_at.saturating_add(header.name_bytes)];
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        self.ended = name == TRAILER;
        if header.size == 0 && (self.ended || header.mode & TYPE == DIRECTORY) {
            self.passed = self.passed.saturating_add(1);
            return Record::pass(header.length, 0);
        }
        self.padding = header.size.wrapping_neg().checked_rem(header.align).unwrap_or(0);
        let name = name::utf8_lossy(&name[..name.len().min(self.name_bytes_max)]);
        let empty_before = std::mem::take(&mut self.passed);
        let size = Some(header.size);
        let entry = Entry { packed: size, size, empty_before, ..Entry::default() };
        let object =
            Object { name: Some(name), size: Some(header.size), entry: Some(Box::new(entry)), ..Object::default() };
        // The sum of a link's target is 0.
        let sum = header.sum.filter(|_| header.mode & TYPE != LINK);
        let check = sum.map_or(Check::None, Check::sum);
        Record::Member(header.length, Member { object, content: Content::Raw(header.size), check })
    }
}

impl Header {
    /// Reads a header; `Err` has the number of bytes that it needs, or `None` for an invalid one.
    fn read(head: &[u8]) -> Result<Header, Option<usize>> {
        let Some(magic) = head.get(..6) else {
            return Err(Some(6));
        };
        match magic {
            b"070701" | b"070702" => Header::hexadecimal(head),
            b"070707" => Header::octal(head),
            [0xc7, 0x71, ..] => Header::binary(head, u16::from_le_bytes),
            [0x71, 0xc7, ..] => Header::binary(head, u16::from_be_bytes),
            _ => Err(None),
        }
    }

    fn hexadecimal(head: &[u8]) -> Result<Header, Option<usize>> {
        const FIXED: usize = 110;
        let fixed = head.get(..FIXED).ok_or(Some(FIXED))?;
        let field = |at: usize| number(&fixed[at..at.saturating_add(8)], 16);
        let sum = (fixed[5] == b'2').then_some(field(102)?).map(|sum| sum as u32);
        Header { length: FIXED, name_at: FIXED, name_bytes: 0, mode: field(14)?, size: field(54)?, align: 4, sum }
            .named(field(94)?, head)
    }

    fn octal(head: &[u8]) -> Result<Header, Option<usize>> {
        const FIXED: usize = 76;
        let fixed = head.get(..FIXED).ok_or(Some(FIXED))?;
        let (mode, size) = (number(&fixed[18..24], 8)?, number(&fixed[65..76], 8)?);
        Header { length: FIXED, name_at: FIXED, name_bytes: 0, mode, size, align: 1, sum: None }
            .named(number(&fixed[59..65], 8)?, head)
    }

    /// Long numbers have their upper half in front in both byte orders.
    fn binary(head: &[u8], word: fn([u8; 2]) -> u16) -> Result<Header, Option<usize>> {
        const FIXED: usize = 26;
        let fixed = head.get(..FIXED).ok_or(Some(FIXED))?;
        let field = |at: usize| u64::from(word([fixed[at], fixed[at.saturating_add(1)]]));
        let size = field(22) << 16 | field(24);
        Header { length: FIXED, name_at: FIXED, name_bytes: 0, mode: field(6), size, align: 2, sum: None }
            .named(field(20), head)
    }

    /// The header with its name, if that is here.
    fn named(mut self, name_bytes: u64, head: &[u8]) -> Result<Header, Option<usize>> {
        self.name_bytes = usize::try_from(name_bytes).ok().filter(|bytes| *bytes <= NAME_BYTES_MAX).ok_or(None)?;
        self.length = self.length.saturating_add(self.name_bytes).next_multiple_of(self.align as usize);
        if head.len() < self.length { Err(Some(self.length)) } else { Ok(self) }
    }
}

fn number(digits: &[u8], radix: u32) -> Result<u64, Option<usize>> {
    let digits = std::str::from_utf8(digits).map_err(|_| None)?;
    u64::from_str_radix(digits, radix).map_err(|_| None)
}

impl Records for Cpio {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Cpio"),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Cpio.Sum"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Cpio.Header"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        if self.padding > 0 {
            return Record::pass_bytes(std::mem::take(&mut self.padding));
        }
        match head.first() {
            None if self.ended => return Record::Need(1),
            Some(0) if self.ended => return Record::pass_bytes(1),
            Some(first) if self.ended && !matches!(first, b'0' | 0xc7 | 0x71) => return Record::Rest,
            _ => {}
        }
        match Header::read(head) {
            Ok(header) => self.member(&header, head),
            Err(Some(wanted)) => Record::Need(wanted),
            Err(None) => {
                if !self.ended {
                    faults.push(HEADER);
                }
                Record::Rest
            }
        }
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, HEADER)
    }

    fn may_end(&self) -> bool {
        self.ended
    }
}

/// Fuzz body: reads a cpio archive.
pub fn fuzz_cpio(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Cpio::new(limits), limits)));
}
