//! AppleSingle and AppleDouble: the forks of one file, listed in front.
//!
//! The data fork is emitted under the file's name, the resource fork under `name/rsrc`; the name itself is read, the other
//! entries (comments, icons, dates) are passed over. Source: RFC 1740, appendices A and B. Bounds: a list of
//! [`ENTRIES_MAX`].

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use stream::{Class, Limits, Object};

use crate::frame::archive::{Archive, Check, Content, Faults, Member, Record, Records};
use crate::frame::codec::{Fault, Progress, be16, be32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "AppleSingle, AppleDouble",
    methods: "data fork, resource fork, name",
    not_read: "",
    reads: Reads::Stream,
    memory: "a list of 256 entries",
    decoder: "own",
    fuzz: "unpack_appledouble",
    compared_with: "what was put into the seeds",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.AppleDouble.Header");
const OVERLAP: Fault = Fault::passing(Class::Ambiguous, "Heuristics.Ambiguous.AppleDouble.Overlap");

const ENTRIES_MAX: usize = 256;
const FIXED_BYTES: usize = 26;
const ENTRY_BYTES: usize = 12;

mod id {
    pub const DATA_FORK: u32 = 1;
    pub const RESOURCE_FORK: u32 = 2;
    pub const NAME: u32 = 3;
}

/// A reader of both formats.
pub(crate) struct AppleDouble {
    name_bytes_max: usize,
    name: Option<Box<str>>,
    /// The list, in the order of offsets, once it has been read.
    entries: Option<VecDeque<Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    id: u32,
    start: u64,
    length: u64,
}

impl AppleDouble {
    pub fn new(limits: &Limits) -> AppleDouble {
        AppleDouble { name_bytes_max: limits.name_bytes_max as usize, name: None, entries: None }
    }

    fn list(&mut self, head: &[u8], faults: &mut Vec<Fault>) -> Record {
        if head.len() < FIXED_BYTES {
            return Record::Need(FIXED_BYTES);
        }
        let told = usize::from(be16(head, 24));
        let count = told.min(ENTRIES_MAX);
        let length = ENTRY_BYTES.saturating_mul(count).saturating_add(FIXED_BYTES);
        if head.len() < length {
            return Record::Need(length);
        }
        if told > count {
            faults.push(HEADER);
        }
        let mut entries: Vec<Entry> = head[FIXED_BYTES..length].chunks_exact(ENTRY_BYTES).map(Entry::read).collect();
        entries.retain(|entry| entry.length > 0 || entry.id == id::DATA_FORK);
        entries.sort_by_key(|entry| (entry.start, entry.length));
        self.entries = Some(entries.into());
        Record::pass(length, 0)
    }

    fn entry(&mut self, entry: Entry, head: &[u8]) -> Record {
        const RESOURCE_FORK_NAME: &str = "rsrc";
        if entry.id == id::NAME {
            let length = usize::try_from(entry.length).unwrap_or(usize::MAX).min(self.name_bytes_max);
            if head.len() < length {
                return Record::Need(length);
            }
            self.name = Some(name::utf8_or_latin1(&head[..length]));
        }
        let name = match (entry.id, &self.name) {
            (id::DATA_FORK, name) => name.clone(),
            (id::RESOURCE_FORK, Some(name)) => Some(format!("{name}/{RESOURCE_FORK_NAME}").into()),
            (id::RESOURCE_FORK, None) => Some(RESOURCE_FORK_NAME.into()),
            _ => {
                self.next();
                return Record::pass_bytes(entry.length);
            }
        };
        self.next();
        let object = Object { name, size: Some(entry.length), ..Object::default() };
        Record::Member(0, Member { object, content: Content::Raw(entry.length), check: Check::None })
    }

    fn next(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.pop_front();
        }
    }
}

impl Entry {
    fn read(bytes: &[u8]) -> Entry {
        Entry { id: be32(bytes, 0), start: be32(bytes, 4).into(), length: be32(bytes, 8).into() }
    }
}

impl Records for AppleDouble {
    const FAULTS: Faults = Faults {
        truncated: Fault::passing(Class::Truncated, "Heuristics.Truncated.AppleDouble"),
        check: HEADER,
        size: HEADER,
    };

    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record {
        let Some(entries) = &self.entries else {
            return self.list(head, faults);
        };
        match entries.front() {
            None if head.is_empty() => Record::Need(1),
            None => Record::Rest,
            Some(entry) if entry.start < at => {
                self.next();
                faults.push(OVERLAP);
                self.record(head, at, faults)
            }
            Some(entry) if entry.start > at => Record::pass_bytes(entry.start.saturating_sub(at)),
            Some(&entry) => self.entry(entry, head),
        }
    }

    fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
        Progress::fault(0, HEADER)
    }

    fn may_end(&self) -> bool {
        self.entries.as_ref().is_some_and(VecDeque::is_empty)
    }
}

/// Fuzz body: reads the forks of a file.
pub fn fuzz_appledouble(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Archive::new(AppleDouble::new(limits), limits)));
}
