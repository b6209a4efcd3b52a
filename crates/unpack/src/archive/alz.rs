//! ALZ archives of ALZip: headers and contents one behind the other.
//!
//! Recognised and emitted raw: encrypted members, members compressed by its own variant of bzip2, archives of several volumes.
//! Source: the description of the format by the author of unalz. Bounds: a header of 64 KiB.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Class, Limits, Object};

use crate::codec::deflate::Deflate;
use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Decoder, Fault, Progress, le16, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "ALZ",
    methods: "stored, deflate",
    not_read: "encryption, its own bzip2, several volumes",
    reads: Reads::Stream,
    memory: "a header of 64 KiB, 57 KiB",
    decoder: "own; zlib-rs for deflate",
    fuzz: "unpack_alz",
    compared_with: "unalz, over the scan inputs of ClamAV",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Alz.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Alz.Data");
const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Alz");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.AlzMethod");
const TRUNCATED: &str = "Heuristics.Truncated.Alz";

/// A reader of archives.
pub(crate) struct Alz {
    name_bytes_max: usize,
    deflate: Option<Deflate>,
    ended: bool,
}

impl Alz {
    pub fn new(limits: &Limits) -> Alz {
        Alz { name_bytes_max: limits.name_bytes_max as usize, deflate: None, ended: false }
    }

    /// A local header: fixed fields, sizes as wide as the descriptor says, the name.
    fn member(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        const FIXED: usize = 13;
        const IS_ENCRYPTED: u8 = 1;
        if head.len() < FIXED {
            return Record::Need(FIXED);
        }
        let descriptor = head[11];
        let width = usize::from(descriptor >> 4);
        let sizes_at = if width > 0 { FIXED + 6 } else { FIXED };
        let name_at = sizes_at.saturating_add(width).saturating_add(width);
        let length = name_at.saturating_add(le16(head, 4).into());
        if head.len() < length {
            return Record::Need(length);
        }
        let size = |at: usize| match width {
            1 => Some(head[at].into()),
            2 => Some(le16(head, at).into()),
            4 => Some(le32(head, at).into()),
            8 => Some(le64(head, at)),
            _ => None,
        };
        let (Some(packed), Some(size)) = (size(sizes_at), size(sizes_at.saturating_add(width))) else {
            if width != 0 {
                faults.push(HEADER);
                return Record::Rest;
            }
            return Record::pass(length, 0);
        };
        let name_end = name_at.saturating_add(usize::from(le16(head, 4)).min(self.name_bytes_max));
        let name = Some(name::utf8_or_latin1(&head[name_at..name_end]));
        let object = Object { name, size: Some(size), ..Object::default() };
        let (content, check) = match (descriptor & IS_ENCRYPTED != 0, head[FIXED]) {
            (false, 0) => (Content::Raw(packed), Check::crc32(le32(head, FIXED + 2))),
            (false, 2) => {
                self.deflate = Some(Deflate::new(DATA.name, TRUNCATED));
                (Content::Packed { packed: Some(packed), size: None }, Check::crc32(le32(head, FIXED + 2)))
            }
            (is_encrypted, _) => {
                faults.push(if is_encrypted { ENCRYPTED } else { METHOD });
                let key = if is_encrypted { 12 } else { 0 };
                (Content::Raw(packed.saturating_add(key)), Check::None)
            }
        };
        Record::Member(length, Member { object, content, check })
    }
}

impl Records for Alz {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, TRUNCATED),
        check: Fault::passing(Class::Malformed, "Heuristics.Malformed.Alz.Crc"),
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Alz.Size"),
    };

    fn record(&mut self, head: &[u8], _: u64, faults: &mut Vec<Fault>) -> Record {
        const ARCHIVE_BYTES: u64 = 8;
        const DIRECTORY_BYTES: u64 = 12;
        const END_BYTES: u64 = 4;
        if self.ended {
            return if head.is_empty() { Record::Need(1) } else { Record::Rest };
        }
        match head.first_chunk() {
            None => Record::Need(4),
            Some(b"ALZ\x01") => Record::pass_bytes(ARCHIVE_BYTES),
            Some(b"BLZ\x01") => self.member(head, faults),
            Some(b"CLZ\x01") => Record::pass_bytes(DIRECTORY_BYTES),
            Some(b"CLZ\x02") => {
                self.ended = true;
                Record::pass_bytes(END_BYTES)
            }
            Some(_) => {
                faults.push(HEADER);
                Record::Rest
            }
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.deflate {
            Some(deflate) => deflate.decode(input, output),
            None => Progress::fault(0, DATA),
        }
    }

    fn may_end(&self) -> bool {
        self.ended
    }
}

/// Fuzz body: reads an archive.
pub fn fuzz_alz(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Alz::new(limits), limits)));
}
