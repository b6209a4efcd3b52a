//! Sum of the scores of hits.

use std::fmt;

use super::rule::Rule;

/// Score set: the choice among a rule's four scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScoreSet {
    /// Rules that ask the network are run.
    pub net: bool,
    /// Mails are classified by learned words.
    pub bayes: bool,
}

impl ScoreSet {
    /// All four, in the order of a `score` line.
    pub const ALL: [ScoreSet; 4] = [
        ScoreSet { net: false, bayes: false },
        ScoreSet { net: true, bayes: false },
        ScoreSet { net: false, bayes: true },
        ScoreSet { net: true, bayes: true },
    ];

    /// Its place in a `score` line.
    pub fn index(self) -> usize {
        usize::from(self.net) + 2 * usize::from(self.bayes)
    }

    /// A rule's score. 0: the rule is not run.
    pub fn score(self, rule: &Rule) -> f64 {
        rule.scores()[self.index()]
    }
}

/// The sum of the scores of what hit. A rule that is `multiple` counts as often as it hit.
///
/// It is shown with two decimals; [`value`](Total::value) is rounded to three, and that is what is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    set: ScoreSet,
    sum: f64,
}

impl Total {
    /// Nothing hit yet.
    pub fn new(set: ScoreSet) -> Total {
        Total { set, sum: 0.0 }
    }

    /// The scores that count.
    pub fn set(&self) -> ScoreSet {
        self.set
    }

    /// A rule hit so often; sub-rules do not count.
    pub fn add(&mut self, rule: &Rule, hits: u32) {
        if !rule.is_subrule() {
            self.sum += self.set.score(rule) * f64::from(hits.min(rule.flags.hits_max()));
        }
    }

    /// So many points that are no rule's own.
    pub fn add_points(&mut self, points: f64) {
        self.sum += points;
    }

    /// The sum, to three decimals; no minus before 0.
    pub fn value(&self) -> f64 {
        (self.sum * 1000.0).round() / 1000.0 + 0.0
    }

    /// Whether the message is spam.
    pub fn is_spam(&self, required_score: f64) -> bool {
        self.value() >= required_score
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No minus before nothing.
        let value = self.value();
        write!(f, "{:.2}", if value.abs() < 0.005 { 0.0 } else { value })
    }
}

#[cfg(test)]
mod tests {
    use super::super::syntax::flags::Flags;
    use super::*;

    fn rule(name: &str, scores: [f64; 4]) -> Rule {
        Rule { name: name.into(), given_scores: Some(scores), ..Rule::default() }
    }

    #[test]
    fn scores_are_those_of_the_set() {
        let rule = rule("A", [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(ScoreSet::ALL.map(|set| set.score(&rule)), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_total_is_exact_to_its_decimals() {
        let mut total = Total::new(ScoreSet::default());
        (0..10).for_each(|_| total.add(&rule("A", [0.1; 4]), 1));
        total.add(&rule("B", [4.0; 4]), 1);
        total.add(&rule("__C", [9.0; 4]), 1);
        assert_eq!((total.to_string().as_str(), total.is_spam(5.0)), ("5.00", true));
        total.add(&rule("D", [-0.01; 4]), 1);
        assert_eq!((total.to_string().as_str(), total.is_spam(5.0)), ("4.99", false));
        assert_eq!(Total::new(ScoreSet::default()).to_string(), "0.00");
    }

    #[test]
    fn a_rule_counts_as_often_as_its_flags_let_it() {
        let mut total = Total::default();
        let flagged = |flags: &[u8]| Rule { flags: Flags::read(flags), ..rule("A", [1.0; 4]) };
        total.add(&flagged(b"multiple maxhits=3"), 7);
        total.add(&flagged(b""), 7);
        assert_eq!(total.value(), 4.0);
    }
}
