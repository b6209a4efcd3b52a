//! The folders of images: which content is called how.
//!
//! ```text
//! metadata := security data, of as many bytes as its first word says; entries of folders
//! entry    := bytes u64, attributes u32, .., place of what is in the folder u64 (16), .., hash (64), ..,
//!             streams u16 (96), bytes of the short name u16, bytes of the name u16, name
//! stream   := bytes u64, .., hash (16), bytes of the name u16 (36), name
//! ```
//! An entry of no length ends a folder. Bounds: `directory_entries_max` entries, each with a path.

use std::collections::{BTreeMap, BTreeSet};

use stream::Limits;

use super::Hash;
use crate::frame::codec::{le16, le32, le64};
use crate::frame::name;

const ENTRY_BYTES: u64 = 102;
const STREAM_BYTES: u64 = 38;

pub(super) struct Names {
    paths: BTreeMap<Hash, Box<str>>,
    /// Paths of files without content, and further ones of contents.
    others: BTreeSet<Box<str>>,
    entries_left: u32,
    name_bytes_max: usize,
}

impl Names {
    pub fn new(limits: &Limits) -> Names {
        Names {
            paths: BTreeMap::new(),
            others: BTreeSet::new(),
            entries_left: limits.directory_entries_max,
            name_bytes_max: limits.name_bytes_max as usize,
        }
    }

    /// The path of the content with this hash.
    pub fn of(&self, hash: &Hash) -> Option<Box<str>> {
        self.paths.get(hash).cloned()
    }

    /// The next path that has no content of its own.
    pub fn next_other(&mut self) -> Option<Box<str>> {
        self.others.pop_first()
    }

    /// Reads the metadata of an image; whether there was room for all of it.
    pub fn add(&mut self, metadata: &[u8]) -> bool {
        let root = u64::from(le32(metadata, 0)).max(8).next_multiple_of(8);
        let mut folders = vec![(root, Box::from(""))];
        let mut met = BTreeSet::new();
        while let Some((at, path)) = folders.pop() {
            if met.insert(at) && !self.folder(metadata, at, &path, &mut folders) {
                return false;
            }
        }
        true
    }

    fn folder(&mut self, metadata: &[u8], at: u64, path: &str, folders: &mut Vec<(u64, Box<str>)>) -> bool {
        const FOLDER: u32 = 16;
        let mut next = Some(at);
        while let Some((at, entry)) = next.and_then(|at| Some((at, part(metadata, at, ENTRY_BYTES)?))) {
            let Some(left) = self.entries_left.checked_sub(1) else { return false };
            self.entries_left = left;
            let own = text(entry, ENTRY_BYTES as usize, le16(entry, 100));
            let path = if path.is_empty() { own } else { format!("{path}/{own}").into() };
            let path = name::cut(&path, self.name_bytes_max);
            let is_noted = self.note(entry, 64, &path);
            let is_stream_noted;
            (next, is_stream_noted) = self.streams(metadata, at, entry, &path);
            let is_folder = le32(entry, 8) & FOLDER != 0;
            if is_folder && le64(entry, 16) != 0 {
                folders.push((le64(entry, 16), path));
            } else if !is_folder && !is_noted && !is_stream_noted && !path.is_empty() {
                self.others.insert(path);
            }
        }
        true
    }

    /// Notes the streams behind an entry; where the next entry stands, and whether one of them has content under its name.
    fn streams(&mut self, metadata: &[u8], at: u64, entry: &[u8], path: &str) -> (Option<u64>, bool) {
        let (mut next, mut is_noted) = (behind(at, entry), false);
        for _ in 0..le16(entry, 96) {
            let Some((at, stream)) = next.and_then(|at| Some((at, part(metadata, at, STREAM_BYTES)?))) else {
                return (None, is_noted);
            };
            let own = text(stream, STREAM_BYTES as usize, le16(stream, 36));
            if own.is_empty() {
                is_noted |= self.note(stream, 16, path);
            } else {
                self.note(stream, 16, &name::cut(&format!("{path}:{own}"), self.name_bytes_max));
            }
            next = behind(at, stream);
        }
        (next, is_noted)
    }

    /// The first name of a content is its own, and there is room for as many as there are entries and streams. Returns whether there
    /// is content.
    fn note(&mut self, entry: &[u8], at: usize, path: &str) -> bool {
        let hash = entry.get(at..).and_then(<[u8]>::first_chunk::<20>).filter(|hash| **hash != [0; 20]);
        let Some(hash) = hash.filter(|_| !path.is_empty()) else { return false };
        let own = self.paths.entry(*hash).or_insert_with(|| path.into());
        if **own != *path {
            self.others.insert(path.into());
        }
        true
    }
}

/// The entry or stream here, if it has its fixed bytes.
fn part(metadata: &[u8], at: u64, fixed: u64) -> Option<&[u8]> {
    let from = metadata.get(usize::try_from(at).ok()?..)?;
    let bytes = le64(from, 0);
    (bytes >= fixed).then(|| from.get(..usize::try_from(bytes).ok()?)).flatten()
}

fn behind(at: u64, part: &[u8]) -> Option<u64> {
    at.checked_add(part.len() as u64)?.checked_next_multiple_of(8)
}

fn text(part: &[u8], at: usize, bytes: u16) -> Box<str> {
    name::utf16_le(part.get(at..at + usize::from(bytes)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, attributes: u32, folder: u64, hash: u8) -> Vec<u8> {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut entry = vec![0; ENTRY_BYTES as usize];
        entry.extend(&name);
        let bytes = entry.len() as u64;
        entry[..8].copy_from_slice(&bytes.to_le_bytes());
        entry[8..12].copy_from_slice(&attributes.to_le_bytes());
        entry[16..24].copy_from_slice(&folder.to_le_bytes());
        entry[64..84].fill(hash);
        entry[100..102].copy_from_slice(&(name.len() as u16).to_le_bytes());
        entry.resize(entry.len().next_multiple_of(8), 0);
        entry
    }

    #[test]
    fn further_names_of_a_content_and_those_of_empty_files_are_kept() {
        let entries =
            [entry("b", 0, 0, 7), entry("evil.exe", 0, 0, 7), entry("b", 0, 0, 7), entry("empty.exe", 0, 0, 0)];
        let root = entry("", 16, 120, 0);
        let metadata = [&[8, 0, 0, 0, 0, 0, 0, 0][..], &root, &[0; 8], &entries.concat(), &[0; 8]].concat();
        let mut names = Names::new(&Limits::default());
        assert!(names.add(&metadata));
        assert_eq!(names.of(&[7; 20]).as_deref(), Some("b"));
        let others: Vec<_> = std::iter::from_fn(|| names.next_other()).collect();
        assert_eq!(others, ["empty.exe".into(), "evil.exe".into()]);
    }

    #[test]
    fn a_folder_that_holds_itself_is_read_once() {
        let root = entry("", 16, 120, 0);
        let metadata =
            [&[8, 0, 0, 0, 0, 0, 0, 0][..], &root, &[0; 8], &entry("a", 16, 120, 0), &entry("b", 0, 0, 7), &[0; 8]];
        let metadata = metadata.concat();
        assert_eq!(8 + root.len() + 8, 120);
        let mut names = Names::new(&Limits::default());
        assert!(names.add(&metadata));
        assert_eq!(names.of(&[7; 20]).as_deref(), Some("b"));
        assert_eq!(names.next_other(), None);
        let mut few = Names::new(&Limits { directory_entries_max: 2, ..Limits::default() });
        assert!(!few.add(&metadata));
        for end in 0..metadata.len() {
            names.add(&metadata[..end]);
        }
    }
}
