//! Scraps: short strings of a text that decode to nothing known, such as digests, tokens and paths.
//!
//! They are scanned like all objects. A lock file has one a line, so they do not use up `objects_max`; they have a bound
//! of their own, a multiple of it, beyond which they count.

use stream::{FileType, Kind};

use super::Inspection;
use crate::node::Node;

/// The longest scrap.
const SCRAP_BYTES_MAX: u64 = 4096;
/// Scraps that do not count, as a multiple of `objects_max`: each takes four bytes until the end.
const SCRAPS_RATIO: u32 = 32;
/// Later objects that are looked at for children of a scrap.
const LATER_MAX: usize = 64;

impl Inspection {
    /// Takes an object that turned out to be a scrap out of the count.
    pub(super) fn discount_scrap(&mut self, node: &Node) {
        let is_unknown = matches!(node.file_type, Some(FileType::Binary | FileType::Text | FileType::Empty));
        let is_short = node.object.kind == Kind::Embedded && node.object.name.is_none() && node.bytes < SCRAP_BYTES_MAX;
        let scraps_max = self.engine.limits.objects_max.saturating_mul(SCRAPS_RATIO);
        if node.form.is_none() && is_unknown && is_short && self.scraps < scraps_max && !self.has_children(node.id) {
            self.scraps += 1;
        }
    }

    fn has_children(&self, id: u32) -> bool {
        let later = self.ledger.parents.get(id as usize + 1..).unwrap_or_default();
        later.len() > LATER_MAX || later.contains(&id)
    }

    /// Whether there are more objects than an inspection has, scraps left out.
    pub(super) fn are_objects_spent(&self) -> bool {
        self.ledger.parents.len() - self.scraps as usize > self.engine.limits.objects_max as usize
    }
}
