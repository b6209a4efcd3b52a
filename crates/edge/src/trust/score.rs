//! Score of a client's tests in a session.

use std::fmt;

use crate::settings::Scores;

/// A test that a client can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It spoke before it was greeted.
    Pregreet,
    /// It sent commands before it had the answer that it has to wait for.
    Pipelining,
    /// It ended a command by LF alone.
    BareNewline,
    /// It spoke another protocol.
    NonSmtp,
    /// Block lists, our own reputation among them, list it; or welcome lists.
    Listed,
}

impl Test {
    const ALL: [Test; 5] = [Test::Pregreet, Test::Pipelining, Test::BareNewline, Test::NonSmtp, Test::Listed];

    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Pregreet => "pregreet",
            Test::Pipelining => "pipelining",
            Test::BareNewline => "bare_newline",
            Test::NonSmtp => "non_smtp",
            Test::Listed => "listed",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Decision by a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Fine,
    /// Recipients are deferred.
    Deferred,
    /// Recipients are refused.
    Rejected,
}

/// The sum, and which tests have added to it; each does once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    sum: i32,
    failed: u8,
}

impl Score {
    /// A test was failed; whether for the first time.
    pub fn add(&mut self, test: Test, points: i32) -> bool {
        let is_new = self.failed & test.bit() == 0;
        if is_new {
            self.failed |= test.bit();
            self.sum = self.sum.saturating_add(points);
        }
        is_new
    }

    /// The sum.
    pub const fn sum(self) -> i32 {
        self.sum
    }

    /// Whether no test was failed.
    pub const fn is_clean(self) -> bool {
        self.failed == 0
    }

    /// Decision by this score.
    pub const fn standing(self, scores: &Scores) -> Standing {
        if self.sum >= scores.reject {
            Standing::Rejected
        } else if self.sum >= scores.defer {
            Standing::Deferred
        } else {
            Standing::Fine
        }
    }
}

/// The tests that were failed, between commas.
impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed = Test::ALL.into_iter().filter(|test| self.failed & test.bit() != 0);
        f.write_str(&failed.map(Test::name).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_counts_once_and_thresholds_are_reached_from_below() {
        let (mut score, scores) = (Score::default(), Scores { defer: 8, reject: 12, ..Scores::default() });
        assert!(score.is_clean());
        assert!(score.add(Test::Pregreet, 4) && !score.add(Test::Pregreet, 4));
        assert_eq!((score.sum(), score.standing(&scores)), (4, Standing::Fine));
        score.add(Test::Listed, 4);
        assert_eq!(score.standing(&scores), Standing::Deferred);
        score.add(Test::Pipelining, 4);
        assert_eq!(score.standing(&scores), Standing::Rejected);
        assert_eq!(score.to_string(), "pregreet,pipelining,listed");
    }

    #[test]
    fn welcome_lists_take_off() {
        let (mut score, scores) = (Score::default(), Scores { defer: 8, reject: 12, ..Scores::default() });
        score.add(Test::Pregreet, 12);
        score.add(Test::Listed, -20);
        assert_eq!(score.standing(&scores), Standing::Fine);
    }
}
