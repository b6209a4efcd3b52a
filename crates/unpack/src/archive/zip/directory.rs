//! The comparison of the central directory with the members that were seen.
//!
//! Most readers go by the directory, streaming readers by the local headers. Where the two tell different stories a
//! finding says so. Bounds: 56 bytes for each member seen, at most `directory_entries_max` of them.
//!
//! Offsets in the directory may be short by the length of what was put in front of the archive. The shift is taken from
//! the first entry and must then hold for all, and for the directory itself.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::Class::{self, Ambiguous, Limit, Malformed};

use super::entry::{Entry, Size};
use super::listed::{LISTED_MAX, Listed};
use super::record::{End, Header};
use super::tail::{NameDigest, Tail};

/// A finding without its place.
pub(super) type Remark = (Class, &'static str);

/// Entries seen in one archive.
pub(super) struct Directory {
    entries: Vec<Entry>,
    entries_max: usize,
    /// Whether there were more members than are remembered.
    overflow: bool,
    members: u64,
    listed: u64,
    /// Number added to the offsets in the directory.
    shift: Option<u64>,
    /// Where the first central header began and the last one ended.
    span: Option<(u64, u64)>,
    zip64: Option<End>,
    remarks: Vec<Remark>,
    /// Entries that differ in the directory, each with the place where it is by now.
    otherwise: Vec<(Box<Tail>, u64)>,
}

/// Summary at an end record.
pub(super) struct Summary {
    /// Remarks, each sort once.
    pub remarks: Vec<Remark>,
    /// Entries that differ in the directory.
    pub listed: Vec<Listed>,
    /// Values of both end records.
    pub end: End,
    /// Where the directory that was seen begins.
    pub began: Option<u64>,
}

const OVERLAP: Remark = (Limit, "Heuristics.Limits.Exceeded.ZipOverlap");
const FULL: Remark = (Limit, "Heuristics.Limits.Exceeded.ZipDirectory");
const CENTRAL_ONLY: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.CentralOnly");
const LOCAL_ONLY: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.LocalOnly");
const NAME: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Name");
const METHOD: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Method");
const ENCRYPTION: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Encryption");
const SIZE: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Size");
const OFFSET: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Offset");
const COUNT: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Count");
const SPAN: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Directory");
const ZIP64: Remark = (Ambiguous, "Heuristics.Ambiguous.Zip.Zip64");
const CRC: Remark = (Malformed, "Heuristics.Malformed.Zip.Crc");

impl Directory {
    pub const fn new(entries_max: usize) -> Directory {
        Directory {
            entries: Vec::new(),
            entries_max,
            overflow: false,
            members: 0,
            listed: 0,
            shift: None,
            span: None,
            zip64: None,
            remarks: Vec::new(),
            otherwise: Vec::new(),
        }
    }

    /// Whether nothing of an archive has been seen.
    pub const fn is_empty(&self) -> bool {
        self.members == 0 && self.span.is_none()
    }

    /// A member has been seen.
    pub fn member(&mut self, entry: Entry) {
        self.members = self.members.saturating_add(1);
        if self.entries.len() < self.entries_max {
            self.entries.push(entry);
        } else {
            self.overflow = true;
        }
    }

    /// A central header ends at `end`.
    pub fn central(&mut self, tail: Box<Tail>, end: u64) {
        let (header, name, at) = (&tail.header, tail.name_digest(), tail.at);
        self.listed = self.listed.saturating_add(1);
        self.span = Some((self.span.map_or(at, |(start, _)| start), end));
        let shift = match self.shift {
            Some(shift) => shift,
            None => *self.shift.insert(self.guess_shift(header.offset, name)),
        };
        let target = header.offset.wrapping_add(shift);
        let found = self.entries.binary_search_by_key(&target, |entry| entry.offset);
        let is_otherwise = match found {
            Ok(index) => self.compare(index, header, name),
            Err(_) if self.overflow => false,
            Err(index) => {
                let within = index.checked_sub(1).and_then(|before| self.entries.get(before));
                let overlaps = within.is_some_and(|entry| target < entry.end);
                self.remark(if overlaps { OVERLAP } else { CENTRAL_ONLY });
                true
            }
        };
        if is_otherwise && self.otherwise.len() < LISTED_MAX {
            self.otherwise.push((tail, target));
        }
    }

    /// Distance of the first listed member from its declared place.
    fn guess_shift(&self, offset: u64, name: NameDigest) -> u64 {
        let exact = self.entries.binary_search_by_key(&offset, |entry| entry.offset);
        if exact.is_ok_and(|index| self.entries[index].name == name) {
            return 0;
        }
        let named = self.entries.iter().find(|entry| entry.name == name);
        named.map_or(0, |entry| entry.offset.wrapping_sub(offset))
    }

    /// Compares a member with its directory entry. Returns whether they are two readings.
    fn compare(&mut self, index: usize, header: &Header, name: NameDigest) -> bool {
        let entry = &mut self.entries[index];
        let again = std::mem::replace(&mut entry.listed, true);
        let entry = &self.entries[index];
        let sizes_differ =
            entry.compressed.differs_from(header.compressed) || entry.uncompressed.differs_from(header.uncompressed);
        let crc_differs = entry.compressed != Size::UNKNOWN && entry.crc != header.crc;
        let remarks = [
            (again, OVERLAP),
            (entry.name != name && header.flags & Header::MASKED == 0, NAME),
            (entry.method != header.method, METHOD),
            (entry.encrypted != header.is_encrypted(), ENCRYPTION),
            (sizes_differ, SIZE),
            (crc_differs, CRC),
        ];
        for (_, remark) in remarks.into_iter().filter(|(holds, _)| *holds) {
            self.remark(remark);
        }
        remarks.iter().any(|&(holds, remark)| holds && [NAME, METHOD, ENCRYPTION, SIZE].contains(&remark))
    }

    /// The zip64 end record.
    pub fn zip64(&mut self, end: End) {
        self.zip64 = Some(end);
    }

    /// The end record: all is known, and summed up.
    pub fn end(mut self, end: End) -> Summary {
        let (end, consistent) = match self.zip64 {
            Some(wide) => end.with_zip64(wide),
            None => (end, true),
        };
        if !consistent {
            self.remark(ZIP64);
        }
        // Writers without zip64 count modulo 65536.
        let wraps = self.zip64.is_none() && self.listed & 0xffff == end.entries;
        if end.entries != self.listed && !wraps {
            self.remark(COUNT);
        }
        if let Some((start, last)) = self.span {
            if start.wrapping_add(end.directory_bytes) != last {
                self.remark(SPAN);
            }
            let shift = start.wrapping_sub(end.directory_offset);
            if self.shift.is_some_and(|guessed| guessed != shift) {
                self.remark(OFFSET);
            }
        }
        if self.overflow {
            self.remark(FULL);
        }
        if self.entries.iter().any(|entry| !entry.listed) {
            self.remark(LOCAL_ONLY);
        }
        let shift = self.span.map_or(0, |(start, _)| start.wrapping_sub(end.directory_offset));
        let listed = self.otherwise.into_iter().map(|(tail, target)| {
            let offset = tail.header.offset;
            Listed { tail, places: [target, offset.wrapping_add(shift), offset] }
        });
        Summary { remarks: self.remarks, listed: listed.collect(), end, began: self.span.map(|(start, _)| start) }
    }

    fn remark(&mut self, remark: Remark) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}
