//! Where the time of a check goes: added up by kind of work and by rule, over all mails of a scratch.
//!
//! There is no clock here: the host hands one in. Reading it costs some tens of nanoseconds for each rule that is run.

use std::collections::HashMap;

/// A kind of work of which the time is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Work {
    /// Relays and fields, before any rule.
    Fields,
    /// The values of the header that rules ask for.
    Values,
    /// The pass for literals.
    Literals,
    /// The expression of a rule, by the rule's id.
    Expression(u32),
    /// The function that a rule calls, by the rule's id.
    Function(u32),
    /// Metas, and the sub-rules that they have run, whose own time is among that of expressions and functions too.
    Metas,
}

/// Time spent on a kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// The sum, in the unit of the clock.
    pub time: u64,
    /// How often it was done.
    pub times: u64,
}

/// Time by kind of work.
#[derive(Debug)]
pub struct Profile {
    clock: fn() -> u64,
    spent: HashMap<Work, Spent>,
}

impl Profile {
    pub(super) fn new(clock: fn() -> u64) -> Profile {
        Profile { clock, spent: HashMap::new() }
    }

    pub(super) fn now(&self) -> u64 {
        (self.clock)()
    }

    /// Adds what has passed since `begun`.
    pub(super) fn add(&mut self, work: Work, begun: u64) {
        let spent = self.spent.entry(work).or_default();
        spent.time = spent.time.saturating_add((self.clock)().saturating_sub(begun));
        spent.times += 1;
    }

    /// Time of each kind of work, the most first.
    pub fn table(&self) -> Vec<(Work, Spent)> {
        let mut table: Vec<(Work, Spent)> = self.spent.iter().map(|(work, spent)| (*work, *spent)).collect();
        table.sort_by_key(|&(work, spent)| (core::cmp::Reverse(spent.time), work));
        table
    }
}
