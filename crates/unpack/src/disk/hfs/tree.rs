//! B-trees of HFS+: nodes of one size, whose records' places stand at their end, backwards.
//!
//! ```text
//! node   := next u32, previous u32, kind i8, height u8, records u16, u16, records, …, places u16
//! header := the first node: depth u16, root u32, records u32, first u32, last u32, node bytes u16 at 32
//! record := key length u16, key, value
//! ```

use super::{Disk, Fork, Range, TREE, TRUNCATED, read_ranges};
use crate::frame::codec::{Fault, be16};

const DESCRIPTOR_BYTES: usize = 14;
const LEAF: u8 = 0xff;
const NODE_BYTES_MAX: u16 = 32 << 10;
/// A tree is not read behind this: a million of records.
const TREE_BYTES_MAX: u64 = 256 << 20;

/// The nodes of a tree, one behind the other.
pub(super) struct Tree {
    pub id: u32,
    fork: Fork,
    ranges: Option<Vec<Range>>,
    node_bytes: usize,
    at: u64,
}

/// A node.
pub(super) struct Node(Vec<u8>);

impl Tree {
    pub const fn new(id: u32, fork: Fork) -> Tree {
        Tree { id, fork, ranges: None, node_bytes: 0, at: 0 }
    }

    pub const fn fork(&self) -> &Fork {
        &self.fork
    }

    /// Whether it is not known yet where it stands.
    pub const fn wants_ranges(&self) -> bool {
        self.ranges.is_none()
    }

    pub fn set_ranges(&mut self, ranges: Vec<Range>) {
        self.ranges = Some(ranges);
    }

    /// Returns the next node, or the fault in reading it; `None` at the end.
    pub fn next(&mut self, disk: &mut dyn Disk) -> Option<Result<Node, Fault>> {
        let ranges = self.ranges.as_deref().unwrap_or_default();
        let end = self.fork.bytes.min(TREE_BYTES_MAX);
        if self.at >= end {
            return None;
        }
        if self.node_bytes == 0 {
            let header = read_ranges(disk, ranges, 0, DESCRIPTOR_BYTES + 20);
            let bytes = be16(&header, DESCRIPTOR_BYTES + 18);
            if !(512..=NODE_BYTES_MAX).contains(&bytes) {
                return Some(Err(TREE));
            }
            self.node_bytes = bytes.into();
        }
        let node = read_ranges(disk, ranges, self.at, self.node_bytes);
        if node.len() < self.node_bytes {
            return Some(Err(TRUNCATED));
        }
        self.at += node.len() as u64;
        Some(Ok(Node(node)))
    }
}

impl Node {
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The records, if it is a leaf.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let count = if self.0[8] == LEAF { usize::from(be16(&self.0, 10)).min(self.0.len() / 2 - 1) } else { 0 };
        let place = |index: usize| usize::from(be16(&self.0, self.0.len() - 2 * (index + 1)));
        (0..count).filter_map(move |index| self.0.get(place(index)..place(index + 1)))
    }
}
