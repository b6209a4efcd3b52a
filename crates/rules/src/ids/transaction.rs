//! A transaction of a flow: buffers that rules look into together, and how far rules have matched in them.
//!
//! It holds at most two windows in bodies, four in whole buffers, and a bounded number of either.

use std::collections::{BTreeSet, HashSet};

use super::body::{Body, select};
use super::buffer::{Buffer, Direction};
use super::set::RuleSet;

/// A request and its response, a mail, a question: buffers that rules look at together.
#[derive(Debug, Default)]
pub struct Transaction {
    pub(super) values: Vec<(Buffer, Direction, Vec<u8>)>,
    /// How many of them have selected rules.
    selected: usize,
    pub(super) bodies: Vec<Body>,
    pub(super) trial: Trial,
    pub(super) ended: [bool; 2],
    lost: u64,
}

/// The state of rules that are being tried.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub pending: BTreeSet<u32>,
    pub matched: HashSet<(u32, usize)>,
    pub fired: HashSet<u32>,
}

impl Transaction {
    /// An empty one.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// Fills a buffer as a whole. Those beyond the bounds are counted and not looked at.
    pub fn fill(&mut self, rules: &RuleSet, direction: Direction, buffer: Buffer, bytes: &[u8]) {
        let held: usize = self.values.iter().map(|(.., bytes)| bytes.len()).sum();
        if self.values.len() >= rules.limits.buffers_max
            || held.saturating_add(bytes.len()) > 4 * rules.limits.window_bytes
        {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.values.push((buffer, direction, bytes.to_vec()));
    }

    /// How many buffers were not looked at because there were too many.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn select(&mut self, rules: &RuleSet) {
        for (buffer, _, bytes) in &self.values[self.selected..] {
            select(rules, *buffer, bytes, true, &mut self.trial.pending);
        }
        self.selected = self.values.len();
    }

    /// Forgets bodies that have ended, the oldest first, where they take too much.
    pub(super) fn shrink(&mut self, rules: &RuleSet) {
        let held = |bodies: &[Body]| bodies.iter().map(|body| body.bytes.len()).sum::<usize>();
        while held(&self.bodies) > 2 * rules.limits.window_bytes || self.bodies.len() > rules.limits.buffers_max {
            let Some(at) = self.bodies.iter().position(|body| body.is_ended) else { return };
            self.bodies.remove(at);
        }
    }
}
