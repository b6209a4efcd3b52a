//! Hits of rules, and what has ended a check.

use crate::spam::rule::Rules;
use crate::spam::total::ScoreSet;

/// A rule that hit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hit {
    /// Its id: its place in [`Rules::names`](crate::spam::Rules::names).
    pub rule: u32,
    /// How often its score counts.
    pub count: u32,
    /// Area of the hit: `BODY: `, `URI: ` and so on, or nothing.
    pub area: &'static str,
    /// Match of an expression, in the view that it looks at; the first match.
    pub matched: Option<Box<[u8]>>,
    /// Notes of functions.
    pub notes: Vec<Box<[u8]>>,
    /// Points that the hit has added, if they differ from the score of the rule.
    pub points: Option<f64>,
}

/// Rule or bound that has ended a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortcircuited {
    /// The rule; none where a bound of the score has.
    pub rule: Option<u32>,
    /// Whether the mail is classified as ham, and not as spam.
    pub is_ham: bool,
}

impl Hit {
    /// Points that it has added.
    pub fn points(&self, rules: &Rules, set: ScoreSet) -> f64 {
        let rule = &rules.names()[self.rule as usize];
        self.points.unwrap_or_else(|| set.score(rule) * f64::from(self.count.min(rule.flags.hits_max())))
    }

    /// The score that is shown of it, as often as it hit.
    pub(super) fn score(&self, rules: &Rules, set: ScoreSet) -> f64 {
        self.points.unwrap_or_else(|| set.score(&rules.names()[self.rule as usize]))
    }
}
