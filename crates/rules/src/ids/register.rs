//! Rules as a host knows them that is told which have matched: their names, their actions, and how often each may alert.
//!
//! A register is small beside its [`RuleSet`]; many processes try rules, and one counts.

use core::net::IpAddr;

use super::action::Action;
use super::rate::{Event, Rates};
use super::rule::{Rate, Rule, Threshold};
use super::set::RuleSet;

/// A rule without its tests.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The number of the rule.
    pub sid: u32,
    /// The generator.
    pub gid: u32,
    /// The revision.
    pub rev: u32,
    /// The text that an alert has.
    pub message: Box<str>,
    /// The description of its class.
    pub category: Box<str>,
    /// From 1, the worst.
    pub priority: u32,
    /// The action.
    pub action: Action,
    is_silent: bool,
    thresholds: Box<[Threshold]>,
}

/// The rules of a set, by their places in it.
#[derive(Debug, Default)]
pub struct Register {
    entries: Vec<Entry>,
    entries_max: usize,
}

/// The counts of rules that have matched. They outlive a register: rules are counted by their numbers.
#[derive(Debug, Default)]
pub struct Counts(Rates);

/// A match that a host is told of.
#[derive(Debug, Clone, Copy)]
pub struct Matched {
    /// The sender of the bytes.
    pub source: IpAddr,
    /// Their receiver.
    pub target: IpAddr,
    /// The number of the flow.
    pub flow: u64,
    /// The time, in milliseconds since any beginning.
    pub now_ms: u64,
}

/// The effect of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effect {
    /// It is written down.
    pub tells: bool,
    /// The flow is blocked.
    pub blocks: bool,
}

impl Register {
    /// The rules of a set.
    pub fn of(set: &RuleSet) -> Register {
        Register { entries: set.rules.iter().map(Entry::of).collect(), entries_max: set.limits.bits_max }
    }

    /// The rule at a place.
    pub fn get(&self, place: usize) -> Option<&Entry> {
        self.entries.get(place)
    }

    /// Counts a match of the rule at a place, and says what follows.
    pub fn effect(&self, place: usize, matched: Matched, counts: &mut Counts) -> Effect {
        let Some(entry) = self.entries.get(place) else { return Effect::default() };
        let Matched { source, target, flow, now_ms } = matched;
        let event = Event { rule: entry.sid, flow, source: (source, 0), target: (target, 0), now_ms };
        let is_allowed = counts.0.allow(&entry.thresholds, event, self.entries_max);
        let has_filter = entry.thresholds.iter().any(|threshold| threshold.rate == Rate::Filter);
        // What has to come often before it counts blocks nothing before; other thresholds hold for the log alone.
        let changed = counts.0.changed(&entry.thresholds, event, self.entries_max);
        let action = changed.unwrap_or(entry.action);
        let blocks = action.blocks() && (is_allowed || !has_filter);
        Effect { tells: is_allowed && !entry.is_silent && changed != Some(Action::Pass), blocks }
    }
}

impl Entry {
    fn of(rule: &Rule) -> Entry {
        Entry {
            sid: rule.sid,
            gid: rule.gid,
            rev: rule.rev,
            message: rule.message.as_str().into(),
            category: rule.category.as_str().into(),
            priority: rule.priority,
            action: rule.action,
            is_silent: rule.is_silent,
            thresholds: rule.thresholds.as_slice().into(),
        }
    }
}
