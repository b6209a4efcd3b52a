//! The directory of a compound file (MS-CFB 2.6): storages and streams, with their full names.
//!
//! The tree is walked from the root; entries that no branch leads to are listed too, for some readers look at them.
//!
//! Bounds: `directory_entries_max` entries of 104 bytes and their names.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::installer;
use crate::frame::codec::{le16, le32, le64};

pub(super) const ENTRY_BYTES: usize = 128;
const NONE: u32 = 0xffff_fffa;
/// Storages within one another that are told apart.
const DEPTH_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unused,
    Storage,
    Stream,
    Root,
}

/// A storage or stream.
#[derive(Debug)]
pub(super) struct Entry {
    pub name: String,
    pub kind: Kind,
    pub start: u32,
    pub size: u64,
    /// The storage that it lies in, once the tree has been walked.
    pub parent: Option<usize>,
    left: u32,
    right: u32,
    child: u32,
    visited: bool,
}

/// All entries, by number.
#[derive(Debug, Default)]
pub(super) struct Directory {
    pub entries: Vec<Entry>,
}

impl Directory {
    /// Adds the next entry.
    pub fn push(&mut self, bytes: &[u8; ENTRY_BYTES]) {
        // The declared length does not matter: the name ends with a NUL.
        let name: Vec<u16> = (0..64).step_by(2).map(|at| le16(bytes, at)).take_while(|&unit| unit != 0).collect();
        let kind = match bytes[66] {
            1 => Kind::Storage,
            2 => Kind::Stream,
            5 => Kind::Root,
            _ => Kind::Unused,
        };
        let links = [le32(bytes, 68), le32(bytes, 72), le32(bytes, 76)];
        self.entries.push(Entry {
            name: installer::plain(&name),
            kind,
            start: le32(bytes, 116),
            size: le64(bytes, 120),
            parent: None,
            left: links[0],
            right: links[1],
            child: links[2],
            visited: false,
        });
    }

    /// Finds out which storage each entry lies in.
    pub fn walk(&mut self) {
        let mut left = vec![(0, None)];
        while let Some((index, parent)) = left.pop() {
            let Some(entry) = self.entries.get_mut(index).filter(|entry| !entry.visited) else { continue };
            (entry.visited, entry.parent) = (true, parent);
            let links = [(entry.left, parent), (entry.right, parent), (entry.child, Some(index))];
            left.extend(
                links.into_iter().filter(|(link, _)| *link < NONE).map(|(link, parent)| (link as usize, parent)),
            );
        }
    }

    /// The name of an entry with the storages around it, outermost first.
    pub fn path(&self, index: usize) -> String {
        let mut names = Vec::new();
        let mut at = Some(index);
        while let Some(entry) = at.and_then(|index| self.entries.get(index)).filter(|_| names.len() < DEPTH_MAX) {
            if entry.kind != Kind::Root {
                names.push(entry.name.as_str());
            }
            at = entry.parent;
        }
        names.reverse();
        names.join("/")
    }

    /// The stream of this name in a storage.
    pub fn stream_in(&self, parent: Option<usize>, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| entry.kind == Kind::Stream && entry.parent == parent && is_it(&entry.name))
    }

    /// The name of the storage that an entry lies in.
    pub fn parent_name(&self, index: usize) -> &str {
        let parent = self.entries.get(index).and_then(|entry| entry.parent);
        parent.and_then(|parent| self.entries.get(parent)).map_or("", |entry| &entry.name)
    }
}
