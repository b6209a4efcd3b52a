//! Sparse members: maps of what is stored of them, and their content, with its holes.
//!
//! The dialects are those of the manual of GNU tar, "Storing Sparse Files": old GNU (in the header and in blocks behind
//! it), pax 0.0 and 0.1 (in pax records), pax 1.0 (in front of the stored bytes, [`Listing`](super::listing::Listing)).
//!
//! A map must be in order, without overlaps, within the member's size, and speak of all that is stored and of no more.
//! Any other is a fault: such a member is emitted as it is stored. Where a region in front of another does not fill its last
//! block, GNU tar looks for the next one behind the block, and others (bsdtar, Go) behind the region: we do as those.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use stream::Class;

use super::header::{BLOCK, number};
use crate::frame::codec::Fault;

pub(super) const MALFORMED: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Tar.Sparse");
pub(super) const TOO_LONG: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.TarSparse");

/// The bytes of an entry of an old GNU map: an offset and a length.
const OLD_ENTRY_BYTES: usize = 24;

/// Where the stored bytes of a member belong. Regions without bytes take no room, adjacent ones are one.
pub(super) struct Map {
    regions: VecDeque<Region>,
    regions_max: usize,
    /// Where the last region ends.
    end: u64,
    /// Bytes of all regions.
    stored: u64,
    /// Whether a region begins within a stored block.
    is_uneven: bool,
    /// The offset of a region whose length is still to come.
    offset: Option<u64>,
    /// The number whose digits are being read.
    digits: Option<u64>,
    /// Whether an empty entry of an old GNU map was seen, which is its end.
    ended: bool,
    /// The first fault of the map.
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy)]
struct Region {
    start: u64,
    end: u64,
}

impl Map {
    pub const fn new(regions_max: usize) -> Map {
        Map {
            regions: VecDeque::new(),
            regions_max,
            end: 0,
            stored: 0,
            is_uneven: false,
            offset: None,
            digits: None,
            ended: false,
            fault: None,
        }
    }

    /// The entries of an old GNU header, or of a block behind it.
    pub fn add_old(&mut self, entries: &[u8]) {
        for entry in entries.chunks_exact(OLD_ENTRY_BYTES) {
            let (offset, length) = entry.split_at(OLD_ENTRY_BYTES / 2);
            if offset[0] == 0 && length[0] == 0 {
                self.ended = true;
            } else if self.ended {
                self.fail(MALFORMED);
            } else {
                self.add_offset(number(offset));
                self.add_length(number(length));
            }
        }
    }

    /// A piece of a list of offsets and lengths in turn, with commas between them and a newline at the end.
    pub fn add_list(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(number) = self.read_digit(if byte == b',' { b'\n' } else { byte }) {
                self.add_number(number);
            }
        }
    }

    /// A digit of a number or the newline behind it; returns a number that is complete.
    pub fn read_digit(&mut self, byte: u8) -> Option<u64> {
        let digits = self.digits.take();
        if byte == b'\n' {
            if digits.is_none() {
                self.fail(MALFORMED);
            }
            return digits;
        }
        let digit = char::from(byte).to_digit(10).map(u64::from);
        self.digits = digit.and_then(|digit| digits.unwrap_or(0).checked_mul(10)?.checked_add(digit));
        if self.digits.is_none() {
            self.fail(MALFORMED);
        }
        None
    }

    pub const fn is_in_number(&self) -> bool {
        self.digits.is_some()
    }

    /// An offset or a length, whichever is due.
    pub fn add_number(&mut self, number: u64) {
        match self.offset {
            None => self.add_offset(Some(number)),
            Some(_) => self.add_length(Some(number)),
        }
    }

    /// The offset of the next region; `None` is no number.
    pub fn add_offset(&mut self, offset: Option<u64>) {
        if offset.is_none() || self.offset.is_some() {
            self.fail(MALFORMED);
        }
        self.offset = offset;
    }

    /// The length of the region whose offset came before; `None` is no number.
    pub fn add_length(&mut self, length: Option<u64>) {
        let (Some(start), Some(length)) = (self.offset.take(), length) else {
            return self.fail(MALFORMED);
        };
        let (Some(end), true) = (start.checked_add(length), start >= self.end) else {
            return self.fail(MALFORMED);
        };
        self.is_uneven |= length > 0 && !self.stored.is_multiple_of(BLOCK as u64);
        self.stored = self.stored.saturating_add(length);
        self.end = end;
        let is_full = self.regions.len() >= self.regions_max;
        match self.regions.back_mut() {
            _ if length == 0 => {}
            Some(last) if last.end == start => last.end = end,
            _ if is_full => self.fail(TOO_LONG),
            _ => self.regions.push_back(Region { start, end }),
        }
    }

    pub fn fail(&mut self, fault: Fault) {
        self.fault = self.fault.or(Some(fault));
    }

    /// Makes the content of a member of `size` bytes, `stored` of which are in the archive.
    pub fn content(self, stored: u64, size: u64) -> Result<Content, Fault> {
        let is_whole = self.offset.is_none() && self.digits.is_none();
        match self.fault {
            Some(fault) => Err(fault),
            None if is_whole && self.stored == stored && self.end <= size => {
                Ok(Content { regions: self.regions, told: 0, size, is_uneven: self.is_uneven })
            }
            None => Err(MALFORMED),
        }
    }
}

/// Content on its way out.
pub(super) struct Content {
    /// Regions that are not emitted to their end.
    regions: VecDeque<Region>,
    told: u64,
    /// The bytes of all of it, holes included.
    pub size: u64,
    /// Whether readers differ about where its regions are stored.
    pub is_uneven: bool,
}

/// Next piece of the content.
pub(super) enum Next {
    /// So many NULs that are not in the archive.
    Hole(u64),
    /// So many bytes of the archive.
    Stored(u64),
    Over,
}

impl Content {
    pub fn next(&self) -> Next {
        match self.regions.front() {
            Some(region) if self.told < region.start => Next::Hole(region.start.saturating_sub(self.told)),
            Some(region) => Next::Stored(region.end.saturating_sub(self.told)),
            None if self.told < self.size => Next::Hole(self.size.saturating_sub(self.told)),
            None => Next::Over,
        }
    }

    /// Notes that so many further bytes were emitted.
    pub fn advance(&mut self, count: usize) {
        self.told = self.told.saturating_add(count as u64);
        if self.regions.front().is_some_and(|region| region.end <= self.told) {
            self.regions.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(list: &[u8], stored: u64, size: u64) -> Result<Content, Fault> {
        let mut map = Map::new(3);
        map.add_list(list);
        map.content(stored, size)
    }

    #[test]
    fn a_map_that_readers_take_differently_is_none() {
        assert!(content(b"2,3,9,1\n", 4, 10).is_ok());
        for (what, list, stored, size) in [
            ("out of order", &b"9,1,2,3\n"[..], 4, 10),
            ("overlap", b"2,3,4,1\n", 4, 10),
            ("beyond the size", b"2,3,9,2\n", 5, 10),
            ("beyond all sizes", b"2,18446744073709551615\n", 4, u64::MAX),
            ("a number too large", b"2,3,18446744073709551616,0\n", 3, 10),
            ("more than is stored", b"2,3\n", 2, 10),
            ("less than is stored", b"2,3\n", 4, 10),
            ("an offset alone", b"2,3,9\n", 3, 10),
            ("no number", b"2,,9,1\n", 1, 10),
            ("cut short", b"2,3", 3, 10),
        ] {
            assert_eq!(content(list, stored, size).err(), Some(MALFORMED), "{what}");
        }
    }

    #[test]
    fn only_regions_with_a_hole_in_front_count() {
        assert!(content(b"0,0,1,1,2,1,3,1,5,1,6,0,6,0,7,1,9,0\n", 5, 10).is_ok());
        assert_eq!(content(b"1,1,3,1,5,1,7,1\n", 4, 10).err(), Some(TOO_LONG));
    }
}
