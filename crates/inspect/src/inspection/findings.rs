//! Findings, and what is overwritten because of them.

use stream::{Class, FileType, Finding, Kind};

use super::{Inspection, Unit};
use crate::node::{Node, Open};
use flow::{Action, Blank, Out, Spotted};
use unpack::{Doubt, is_accusation};

/// Findings of one reader that wait until they count; further ones are dropped.
const WITHHELD_MAX: usize = 16;

impl Inspection {
    /// A reader's own finding. It waits while the reader is doubted.
    pub(super) fn said(&mut self, node: &mut Node, slot: usize, index: usize, finding: Finding, at_end: bool) {
        let reader = &mut node.readers[index];
        if reader.doubt != Doubt::UntilContent || !is_accusation(finding.class) {
            return self.found(node, slot, index, finding, at_end);
        }
        if reader.withheld.len() < WITHHELD_MAX {
            reader.withheld.push(finding);
        }
    }

    /// Whether an object that is closed shows that its reader is right: a member with content.
    pub(super) fn is_proof(&self, open: Option<&Open>) -> bool {
        let Some(Open::Node(slot)) = open else { return false };
        self.nodes[*slot].as_ref().is_some_and(|node| node.object.kind != Kind::Rest && node.bytes > 0)
    }

    /// The findings of a reader count from now on.
    pub(super) fn trust(&mut self, node: &mut Node, slot: usize, index: usize, at_end: bool) {
        let reader = &mut node.readers[index];
        if reader.doubt != Doubt::UntilContent {
            return;
        }
        reader.doubt = Doubt::None;
        for finding in std::mem::take(&mut reader.withheld) {
            self.found(node, slot, index, finding, at_end);
        }
    }

    /// A finding of a reader, or about one.
    pub(super) fn found(&mut self, node: &mut Node, slot: usize, index: usize, mut finding: Finding, at_end: bool) {
        let is_about_it = is_accusation(finding.class) || finding.class == Class::Encrypted;
        if node.readers[index].doubt == Doubt::Always && is_about_it {
            return;
        }
        finding.offset += node.readers[index].began;
        self.spotted(node, slot, finding, at_end);
    }

    /// Writes down what was found in `node`, at an offset that counts from its first byte.
    pub(super) fn spotted(&mut self, node: &mut Node, slot: usize, finding: Finding, at_end: bool) {
        let action = self.context.policy.action(&finding);
        if action == Action::Blank && !self.blank(node, slot, finding.offset, at_end) {
            self.ledger.unblankable = true;
        }
        let spotted = Spotted { finding, path: node.path.clone(), object: node.id };
        if self.ledger.note(&spotted, &self.context.policy) {
            self.out.push_back(Out::Finding(spotted));
        }
    }

    /// Asks the door to overwrite the part that `node` comes from; whether there is one.
    fn blank(&mut self, node: &mut Node, slot: usize, offset: u64, late: bool) -> bool {
        if let Some(unit) = self.unit_at(node, slot, offset) {
            return self.blank_unit(unit, late);
        }
        let mut above = node.source;
        if node.raw_start.is_some() && above.is_some() {
            self.blank_node(node, late);
            return true;
        }
        while let Some(slot) = above {
            let Some(mut ancestor) = self.nodes[slot].take() else { return false };
            above = ancestor.source;
            let found = ancestor.raw_start.is_some() && above.is_some();
            if found {
                self.blank_node(&mut ancestor, late);
            }
            self.nodes[slot] = Some(ancestor);
            if found {
                return true;
            }
        }
        false
    }

    fn blank_node(&mut self, node: &mut Node, late: bool) {
        let start = node.raw_start.expect("only raw parts are overwritten");
        let late = late || node.blanked == Some(true);
        node.blanked = Some(late);
        let blank = Blank { part: start, end: start + node.bytes, coding: node.object.coding, late };
        self.out.push_back(Out::Blank(blank));
    }

    /// For a match in the raw bytes of a mail: the part that it lies in.
    fn unit_at(&self, node: &Node, slot: usize, offset: u64) -> Option<UnitAt> {
        let raw = node.raw_start? + offset;
        if node.file_type != Some(FileType::Mail) {
            return None;
        }
        let live = self.order.iter().rev().filter(|&&other| other != slot).find_map(|&other| {
            let node = self.nodes[other].as_ref()?;
            let start = node.raw_start?;
            (node.source.is_some() && (start..start + node.bytes).contains(&raw)).then_some(UnitAt::Live(other))
        });
        let past = || self.units.iter().rev().find(|unit| (unit.start..unit.end).contains(&raw)).copied();
        live.or_else(|| past().map(UnitAt::Past))
    }

    fn blank_unit(&mut self, unit: UnitAt, late: bool) -> bool {
        match unit {
            UnitAt::Past(Unit { start, end, coding }) => {
                self.out.push_back(Out::Blank(Blank { part: start, end, coding, late: true }));
            }
            UnitAt::Live(slot) => {
                let mut node = self.nodes[slot].take().expect("just seen");
                self.blank_node(&mut node, late);
                self.nodes[slot] = Some(node);
            }
        }
        true
    }
}

enum UnitAt {
    Live(usize),
    Past(Unit),
}
