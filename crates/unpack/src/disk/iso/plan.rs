//! Wanted places of an image: structures to be captured, files to be emitted.
//!
//! Places ahead wait; passed places, and files with several places, are late and read at the end from the kept bytes.
//! Bounds: `directory_entries_max` entries of a name each, [`ACTIVE_BYTES_MAX`] of structures that overlap,
//! [`STRUCTURE_BYTES_MAX`] of them in all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use stream::{Limits, ReadAt};

use super::{DIRECTORY, ENTRIES, NUMBERS, ORDER, Structure, TRUNCATED};
use crate::frame::codec::Fault;
use crate::frame::name;

/// Structures that are captured at the same time.
const ACTIVE_BYTES_MAX: u64 = 2 << 20;
/// Structures in all: the work that they may cause.
const STRUCTURE_BYTES_MAX: u64 = 32 << 20;

/// The longest run that is read: offsets stay far from overflow.
const OFFSET_MAX: u64 = 1 << 60;

/// Rank of a name; the name with the greatest is emitted.
pub(super) type Rank = u8;

/// A file to be emitted.
pub(super) struct File {
    pub name: Box<str>,
    rank: Rank,
    /// Names of another kind for the same bytes.
    pub links: Vec<Box<str>>,
}

/// A place to read from the kept bytes.
pub(super) enum Late {
    Structure(Structure, Vec<(u64, u64)>),
    File(File, Vec<(u64, u64)>),
}

struct Capture {
    start: u64,
    left: u64,
    bytes: Vec<u8>,
    structure: Structure,
}

pub(super) struct Plan {
    at: u64,
    entries_left: u32,
    name_bytes_max: usize,
    structure_bytes_left: u64,
    /// Directories, and the trees that they are in.
    seen: BTreeSet<(u64, u8)>,
    structures: BTreeMap<u64, Vec<(u64, Structure)>>,
    active: Vec<Capture>,
    /// By start, the longest first.
    files: BTreeMap<(u64, Reverse<u64>), File>,
    /// Runs that have been emitted, or are being emitted.
    told: BTreeMap<(u64, u64), Box<str>>,
    /// Names of files without content.
    empty: BTreeSet<String>,
    late: VecDeque<Late>,
    /// Structures among those.
    late_structures: usize,
    /// Where the last run that is late ends.
    late_end: u64,
    faults: Vec<Fault>,
    told_faults: BTreeSet<&'static str>,
}

impl Plan {
    pub fn new(limits: &Limits) -> Plan {
        Plan {
            at: 0,
            entries_left: limits.directory_entries_max,
            name_bytes_max: limits.name_bytes_max as usize,
            structure_bytes_left: STRUCTURE_BYTES_MAX,
            seen: BTreeSet::new(),
            structures: BTreeMap::new(),
            active: Vec::new(),
            files: BTreeMap::new(),
            told: BTreeMap::new(),
            empty: BTreeSet::new(),
            late: VecDeque::new(),
            late_structures: 0,
            late_end: 0,
            faults: Vec::new(),
            told_faults: BTreeSet::new(),
        }
    }

    /// Where the next byte stands.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// A fault to be emitted.
    pub fn fault(&mut self, fault: Fault) {
        if self.told_faults.insert(fault.name) {
            self.faults.push(fault);
        }
    }

    /// Faults to emit, each once.
    pub fn faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.faults)
    }

    /// Whether another entry may be noted.
    pub fn entry(&mut self) -> bool {
        let left = self.entries_left.checked_sub(1);
        if left.is_none() {
            self.fault(ENTRIES);
        }
        self.entries_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns whether this place is new in the tree of this number.
    pub fn is_new(&mut self, start: u64, tree: u8) -> bool {
        self.seen.insert((start, tree))
    }

    /// The path of an entry.
    pub fn path(&self, parent: &str, name: &str) -> Box<str> {
        let path = if parent.is_empty() { name.into() } else { format!("{parent}/{name}") };
        name::cut(&path, self.name_bytes_max)
    }

    /// A structure in one place.
    pub fn structure(&mut self, start: u64, length: u64, structure: Structure) {
        self.structure_in(vec![(start, length)], structure);
    }

    /// A structure that may lie in several places.
    pub fn structure_in(&mut self, extents: Vec<(u64, u64)>, structure: Structure) {
        let extents = self.sane(extents);
        let length: u64 = extents.iter().map(|extent| extent.1).sum();
        let Some(left) = self.structure_bytes_left.checked_sub(length).filter(|_| length <= ACTIVE_BYTES_MAX) else {
            return self.fault(ENTRIES);
        };
        self.structure_bytes_left = left;
        match extents[..] {
            [] => {}
            [(start, length)] if start >= self.at => {
                self.structures.entry(start).or_default().push((length, structure));
            }
            _ => self.structure_late(structure, extents),
        }
    }

    /// A file in these places, one behind the other.
    pub fn file(&mut self, extents: Vec<(u64, u64)>, name: Box<str>, rank: Rank) {
        let extents = self.sane(extents);
        let file = File { name, rank, links: Vec::new() };
        match extents[..] {
            [] => {
                // The views agree on most of them.
                if self.empty.insert(file.name.to_lowercase()) {
                    self.late.push_back(Late::File(file, extents));
                }
            }
            [(start, length)] if start >= self.at => self.file_ahead(start, length, file),
            [run] if self.told.contains_key(&run) => {
                if !same_kind(&self.told[&run], &file.name) {
                    self.late.push_back(Late::File(file, Vec::new()));
                }
            }
            _ => self.file_late(file, extents),
        }
    }

    fn file_ahead(&mut self, start: u64, length: u64, mut file: File) {
        let known = self.files.remove(&(start, Reverse(length)));
        if let Some(mut known) = known {
            if known.rank > file.rank {
                std::mem::swap(&mut known, &mut file);
            }
            file.links.append(&mut known.links);
            if !same_kind(&file.name, &known.name) || file.rank == known.rank && file.name != known.name {
                file.links.push(known.name);
            }
        }
        self.files.insert((start, Reverse(length)), file);
    }

    fn file_late(&mut self, file: File, extents: Vec<(u64, u64)>) {
        self.extend_late(&extents);
        self.late.push_back(Late::File(file, extents));
    }

    fn structure_late(&mut self, structure: Structure, extents: Vec<(u64, u64)>) {
        self.extend_late(&extents);
        self.late_structures += 1;
        self.late.push_front(Late::Structure(structure, extents));
    }

    fn extend_late(&mut self, extents: &[(u64, u64)]) {
        self.late_end = extents.iter().map(|extent| extent.0 + extent.1).fold(self.late_end, u64::max);
    }

    /// Runs that follow each other made one, empty ones dropped.
    fn sane(&mut self, extents: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let mut sane: Vec<(u64, u64)> = Vec::new();
        for (start, length) in extents {
            if length == 0 {
                continue;
            }
            if start.checked_add(length).is_none_or(|end| end > OFFSET_MAX) {
                self.fault(TRUNCATED);
                continue;
            }
            match sane.last_mut() {
                Some(last) if last.0 + last.1 == start && start + length <= OFFSET_MAX => last.1 += length,
                _ => sane.push((start, length)),
            }
        }
        sane
    }

    /// The file that begins here, and its length; where one is open it is late instead.
    pub fn file_at(&mut self, at: u64, open: bool) -> Option<(u64, File)> {
        let mut open = open;
        let mut found = None;
        while let Some((&(start, Reverse(length)), _)) = self.files.first_key_value() {
            if start > at {
                break;
            }
            let (_, file) = self.files.pop_first()?;
            if open {
                self.file_late(file, vec![(start, length)]);
                continue;
            }
            self.told.insert((start, length), file.name.clone());
            (open, found) = (true, Some((length, file)));
        }
        found
    }

    /// The next place where something begins or ends; structures that begin at `at` are active from now on.
    pub fn next_stop(&mut self, at: u64) -> u64 {
        while let Some(entry) = self.structures.first_entry().filter(|entry| *entry.key() <= at) {
            let start = *entry.key();
            for (length, structure) in entry.remove() {
                self.begin_capture(start, length, structure);
            }
        }
        let structure = self.structures.keys().next().copied().unwrap_or(u64::MAX);
        let file = self.files.keys().next().map_or(u64::MAX, |key| key.0);
        let ends = self.active.iter().map(|capture| at + capture.left);
        ends.fold(structure.min(file), u64::min)
    }

    fn begin_capture(&mut self, start: u64, length: u64, structure: Structure) {
        let active: u64 = self.active.iter().map(|capture| capture.left + capture.bytes.len() as u64).sum();
        if active + length > ACTIVE_BYTES_MAX {
            return self.structure_late(structure, vec![(start, length)]);
        }
        self.active.push(Capture { start, left: length, bytes: Vec::new(), structure });
    }

    /// Takes bytes that contain no stop.
    pub fn capture(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        for capture in &mut self.active {
            capture.bytes.extend_from_slice(bytes);
            capture.left -= bytes.len() as u64;
        }
    }

    /// Bytes pass that hold nothing.
    pub fn pass(&mut self, count: usize) {
        self.at += count as u64;
    }

    /// A structure that is whole now.
    pub fn captured(&mut self) -> Option<(u64, Structure, Vec<u8>)> {
        let index = self.active.iter().position(|capture| capture.left == 0)?;
        let Capture { start, bytes, structure, .. } = self.active.remove(index);
        Some((start, structure, bytes))
    }

    /// Returns whether a structure that is being captured begins like this.
    pub fn captures(&self, like: impl Fn(&[u8]) -> bool) -> bool {
        self.active.iter().any(|capture| like(&capture.bytes))
    }

    /// Returns whether the current bytes may be needed at the end.
    pub fn may_want_again(&self) -> bool {
        let unread = !self.structures.is_empty() || !self.active.is_empty() || self.late_structures > 0;
        unread || self.at < self.late_end
    }

    /// Whether nothing is wanted any more.
    pub fn is_done(&self) -> bool {
        self.structures.is_empty() && self.active.is_empty() && self.files.is_empty() && self.late.is_empty()
    }

    /// The image is over: whether something still lies ahead, which is given up.
    pub fn cut(&mut self) -> bool {
        let cut = !self.structures.is_empty() || !self.active.is_empty() || !self.files.is_empty();
        self.structures.clear();
        self.active.clear();
        self.files.clear();
        cut
    }

    /// The next file to read from kept input.
    pub fn late(&mut self) -> Option<Late> {
        let late = self.late.pop_front()?;
        self.late_structures -= usize::from(matches!(late, Late::Structure(..)));
        Some(late)
    }

    /// Whether names, sizes and places of an entry make sense.
    pub fn doubt(&mut self, agree: bool) {
        if !agree {
            self.fault(NUMBERS);
        }
    }

    /// A directory that makes no sense.
    pub fn broken(&mut self) {
        self.fault(DIRECTORY);
    }

    /// The bytes of a structure that were kept.
    pub fn read_kept(&mut self, extents: &[(u64, u64)], kept: &dyn ReadAt) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(start, length) in extents {
            let mut piece = vec![0; length as usize];
            let mut read = 0;
            while let count @ 1.. = kept.read_at(start + read as u64, &mut piece[read..]) {
                read += count;
            }
            bytes.extend_from_slice(&piece[..read]);
            if read < piece.len() {
                self.fault(if start + (read as u64) < self.at { ORDER } else { TRUNCATED });
                break;
            }
        }
        bytes
    }
}

/// Whether two names end in the same extension, as far as short names can tell.
fn same_kind(one: &str, other: &str) -> bool {
    fn extension(name: &str) -> String {
        let name = name.rsplit('/').next().unwrap_or_default();
        let extension =
            name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, extension)| extension);
        extension
            .chars()
            .take(3)
            .map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' })
            .collect()
    }
    extension(one) == extension(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_the_same_kind_where_short_ones_cannot_tell() {
        assert!(same_kind("a/README.HTM", "readme.html"));
        assert!(same_kind("FOO_TAR.GZ", "foo.tar.gz"));
        assert!(same_kind("_BASHRC", ".bashrc"));
        assert!(same_kind("a.b/C", "a.b/c"));
        assert!(!same_kind("README.TXT", "readme.exe"));
    }

    #[test]
    fn runs_that_follow_each_other_are_one() {
        let mut plan = Plan::new(&Limits::default());
        assert_eq!(plan.sane(vec![(10, 5), (15, 0), (15, 5), (30, 1)]), [(10, 10), (30, 1)]);
        assert_eq!(plan.sane(vec![(u64::MAX, 5)]), []);
        assert_eq!(plan.faults(), [TRUNCATED]);
    }

    #[test]
    fn the_name_of_the_highest_rank_is_told_and_one_of_another_kind_follows() {
        let mut plan = Plan::new(&Limits::default());
        plan.file(vec![(10, 5)], "A.TXT".into(), 0);
        plan.file(vec![(10, 5)], "a long name.txt".into(), 2);
        plan.file(vec![(10, 5)], "a.exe".into(), 1);
        let (length, file) = plan.file_at(10, false).expect("it begins there");
        assert_eq!((length, &*file.name, &*file.links), (5, "a long name.txt", &["a.exe".into()][..]));
    }
}
