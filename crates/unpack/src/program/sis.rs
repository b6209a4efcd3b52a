//! Installation files of Symbian before its version 9 (SIS): a header with places of records, and files packed by zlib.
//!
//! Files are told in the order of their places, under the names that they had when the file was made. Left out: files of
//! version 9 (another format), texts, conditions, signatures. Source: A. Thoukydides' description of the format. Bounds:
//! the data before the first file, up to `spool_bytes_max`; a name for each of `directory_entries_max` files.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use stream::{Class, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Decoder, Fault, Progress, Told, le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::stream::zlib::Zlib;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "SIS",
    methods: "stored, zlib; files of each language",
    not_read: "version 9",
    reads: Reads::Stream,
    memory: "the data before the first file, up to `spool_bytes_max`, a name for each of `directory_entries_max` files; \
             57 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_sis",
    compared_with: "the scan inputs of ClamAV",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Sis.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Sis.Data");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.SisRecords");

const HEADER_BYTES: usize = 84;

/// A reader of installation files.
pub(crate) struct Sis {
    limits: Limits,
    /// The files by place, once the records are read.
    files: Option<VecDeque<File>>,
    walk: Option<Walk>,
    decoder: Zlib,
    is_packed: bool,
}

struct File {
    place: u64,
    packed: u32,
    size: u32,
    name: Box<str>,
}

/// Whether a file with this head is one: the third of its identifiers.
pub(crate) fn is_header(head: &[u8]) -> bool {
    const INSTALLATION: u32 = 0x1000_0419;
    const SERIES: [u32; 2] = [0x1000_006d, 0x1000_3a12];
    head.len() >= HEADER_BYTES && le32(head, 8) == INSTALLATION && SERIES.contains(&le32(head, 4))
}

impl Sis {
    pub fn new(limits: &Limits) -> Sis {
        Sis { limits: limits.clone(), files: None, walk: None, decoder: Zlib::new(), is_packed: true }
    }

    fn header(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        const IS_STORED: u16 = 8;
        if head.len() < HEADER_BYTES {
            return Record::Need(HEADER_BYTES);
        }
        self.is_packed = le16(head, 36) & IS_STORED == 0;
        let walk = self.walk.get_or_insert_with(|| Walk::new(head));
        if let Some(bytes) = walk.read(head, &self.limits) {
            return Record::Need(bytes);
        }
        let mut files = std::mem::take(&mut walk.files);
        if walk.is_broken {
            faults.push(HEADER);
        }
        let max = self.limits.directory_entries_max as usize;
        if files.len() > max {
            faults.push(ENTRIES);
            files.truncate(max);
        }
        files.sort_by_key(|file| file.place);
        self.files = Some(files.into());
        Record::pass(HEADER_BYTES, 0)
    }

    fn file(&mut self, head: &[u8], at: u64) -> Record {
        while let Some(file) = self.files.as_mut().and_then(VecDeque::pop_front) {
            if file.place > at {
                let place = file.place;
                self.files.as_mut().expect("one was taken from them").push_front(file);
                return Record::pass_bytes(place.saturating_sub(at));
            }
            // Files with the same content share it.
            if file.place < at || file.packed == 0 {
                continue;
            }
            self.decoder = Zlib::new();
            let packed = u64::from(file.packed);
            let content = match self.is_packed {
                true => Content::Packed { packed: Some(packed), size: None },
                false => Content::Raw(packed),
            };
            let object = Object { name: Some(file.name), size: Some(file.size.into()), ..Object::default() };
            return Record::Member(0, Member { object, content, check: Check::None });
        }
        if head.is_empty() { Record::Need(1) } else { Record::Rest }
    }
}

/// The way through the records of files.
struct Walk {
    at: usize,
    left: u16,
    languages: usize,
    is_wide: bool,
    files: Vec<File>,
    is_broken: bool,
}

impl Walk {
    fn new(head: &[u8]) -> Walk {
        const IS_WIDE: u16 = 1;
        Walk {
            at: le32(head, 52) as usize,
            left: le16(head, 20),
            languages: le16(head, 18).max(1).into(),
            is_wide: le16(head, 36) & IS_WIDE != 0,
            files: Vec::new(),
            is_broken: false,
        }
    }

    /// Reads records; how many bytes of the head are needed for more, if there are.
    fn read(&mut self, head: &[u8], limits: &Limits) -> Option<usize> {
        const TYPE_BYTES: usize = 4;
        const FIXED_BYTES: usize = 28;
        const FILE: u32 = 0;
        const LANGUAGE_FILES: u32 = 1;
        let max = limits.directory_entries_max as usize;
        while self.left > 0 && self.files.len() <= max && !self.is_broken {
            let record = head.get(self.at..).unwrap_or_default();
            // Lengths, places and original lengths for each language; the length and place of a type.
            let each = if le32(record, 0) == LANGUAGE_FILES { self.languages } else { 1 };
            let bytes = each.saturating_mul(12).saturating_add(FIXED_BYTES + 8);
            if record.len() >= TYPE_BYTES && !matches!(le32(record, 0), FILE | LANGUAGE_FILES) {
                // Conditions and the like, of other lengths.
                self.is_broken = true;
            } else if record.len() < bytes {
                return Some(self.at.saturating_add(if record.len() < TYPE_BYTES { TYPE_BYTES } else { bytes }));
            } else {
                let (name_bytes, name_at) = (le32(record, 12) as usize, le32(record, 16) as usize);
                let name_end = name_at.saturating_add(name_bytes.min(limits.name_bytes_max as usize));
                if head.len() < name_end {
                    return Some(name_end);
                }
                let name = self.name(&head[name_at..name_end], limits.name_bytes_max as usize);
                for index in 0..each.min(max) {
                    let field = |row: usize| {
                        let column = row.saturating_mul(each).saturating_add(index);
                        le32(record, column.saturating_mul(4).saturating_add(FIXED_BYTES))
                    };
                    self.files.push(File {
                        packed: field(0),
                        place: field(1).into(),
                        size: field(2),
                        name: name.clone(),
                    });
                }
                self.at = self.at.saturating_add(bytes);
                self.left = self.left.saturating_sub(1);
            }
        }
        None
    }

    /// The last part of a path.
    fn name(&self, path: &[u8], bytes_max: usize) -> Box<str> {
        let path = if self.is_wide { name::utf16_le(path) } else { name::utf8_or_latin1(path) };
        name::cut(path.rsplit('\\').next().unwrap_or_default(), bytes_max)
    }
}

impl Records for Sis {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.Sis"),
        check: DATA,
        size: Fault::passing(Class::Malformed, "Heuristics.Malformed.Sis.Size"),
    };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        if self.files.is_none() { self.header(head, faults) } else { self.file(head, at) }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut progress = self.decoder.decode(input, output);
        if matches!(progress.told, Told::Begin(_)) {
            progress.told = Told::Nothing;
        }
        progress
    }

    fn surplus(&self) -> &[u8] {
        self.decoder.surplus()
    }

    fn may_end(&self) -> bool {
        self.files.as_ref().is_some_and(VecDeque::is_empty)
    }
}

/// Fuzz body: reads an installation file.
pub fn fuzz_sis(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(Sis::new(limits), limits)));
}
