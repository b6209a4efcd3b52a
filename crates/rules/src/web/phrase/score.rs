//! Score of the phrases of a page.

use std::sync::Arc;

use super::load::{Effect, Phrases, Rule};
use crate::web::moment::Moment;

/// Phrases that are told with a score.
const FOUND_MAX: usize = 1000;

/// Outcome of the phrases of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The page passes: no phrase decides.
    #[default]
    Passed,
    /// The page passes whatever else is in it, for this phrase.
    Exception {
        /// The phrase, or those of a combination with `, ` between them.
        phrase: String,
        /// It is a combination.
        is_together: bool,
    },
    /// The page is blocked for this phrase.
    Banned {
        /// The phrase, or those of a combination with `, ` between them.
        phrase: String,
        /// It is a combination.
        is_together: bool,
    },
    /// The page is blocked for its points.
    Weighted,
    /// The page is blocked since phrases stand in it more densely than they are counted: no page is so but to be slow.
    Dense,
}

impl Outcome {
    /// Whether nothing else can change it.
    pub(super) fn is_final(&self) -> bool {
        *self != Outcome::Passed
    }
}

/// A phrase or a combination that counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The phrase, or those of a combination with `, ` between them.
    pub phrase: String,
    /// How often it occurs; a combination, as often as its rarest phrase.
    pub count: u32,
    /// Points of one occurrence; none of a phrase that is banned.
    pub weight: Option<i32>,
}

/// The score of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Score {
    /// The sum of all points.
    pub points: i32,
    /// Outcome.
    pub outcome: Outcome,
    /// Phrases that counted, at most a thousand.
    pub found: Vec<Found>,
    /// The categories that points come from with the sums of those above 0, the highest first.
    pub categories: Vec<(Arc<str>, i32)>,
}

impl Score {
    /// Adds up the phrases that have occurred: their numbers in order, and how often each of all has.
    pub(super) fn of(phrases: &Phrases, occurred: &[u32], counts: &[u32], now: Moment) -> Score {
        let mut sum = Sum { phrases, sums: vec![0; phrases.categories.len()], score: Score::default() };
        let count = |member: &u32| counts.get(*member as usize).copied().unwrap_or(0);
        let mut led: Vec<u32> = occurred.iter().flat_map(|&phrase| phrases.led_by(phrase)).copied().collect();
        led.sort_unstable();
        let all = led.iter().filter_map(|&number| {
            let combination = phrases.combinations.get(number as usize)?;
            let rarest = combination.members.iter().map(count).min().filter(|&count| count > 0)?;
            Some((&*combination.members, combination.rule, rarest))
        });
        let holds = |rule: Rule| rule.window.is_none_or(|window| window.has(now));
        let combinations: Vec<_> = all.filter(|(_, rule, _)| holds(*rule)).collect();
        // Nothing is added up where a combination is an exception.
        if let Some((members, ..)) = combinations.iter().find(|(_, rule, _)| rule.effect == Effect::Exception) {
            let outcome = Outcome::Exception { phrase: sum.name(members), is_together: true };
            return Score { outcome, ..Score::default() };
        }
        combinations.iter().for_each(|(members, rule, count)| sum.add(members, *rule, *count));
        for phrase in occurred {
            let rules = phrases.rules.get(*phrase as usize).map(Vec::as_slice).unwrap_or_default();
            if let Some(rule) = rules.iter().filter(|rule| holds(**rule)).max_by_key(|rule| rule.rank()) {
                sum.add(&[*phrase], *rule, count(phrase));
            }
        }
        sum.finish()
    }
}

/// A score on its way.
struct Sum<'p> {
    phrases: &'p Phrases,
    sums: Vec<i32>,
    score: Score,
}

impl Sum<'_> {
    /// Counts a phrase or a combination that has occurred.
    fn add(&mut self, members: &[u32], rule: Rule, count: u32) {
        if let Effect::Weighted(weight) = rule.effect {
            return self.weigh(members, weight, rule.category, count);
        }
        let (name, is_together) = (self.name(members), members.len() > 1);
        self.note(name.clone(), count, None);
        match (rule.effect, &self.score.outcome) {
            (_, Outcome::Exception { .. }) => {}
            (Effect::Exception, _) => self.score.outcome = Outcome::Exception { phrase: name, is_together },
            (_, Outcome::Passed) => self.score.outcome = Outcome::Banned { phrase: name, is_together },
            _ => {}
        }
    }

    fn weigh(&mut self, members: &[u32], weight: i32, category: u32, count: u32) {
        let times = match self.phrases.settings.weighting {
            0 => return,
            1 => i32::try_from(count).unwrap_or(i32::MAX),
            _ => 1,
        };
        let points = weight.saturating_mul(times);
        self.score.points = self.score.points.saturating_add(points);
        if let Some(sum) = self.sums.get_mut(category as usize).filter(|_| points > 0) {
            *sum = sum.saturating_add(points);
        }
        self.note(self.name(members), count, Some(weight));
    }

    fn note(&mut self, phrase: String, count: u32, weight: Option<i32>) {
        if self.score.found.len() < FOUND_MAX {
            self.score.found.push(Found { phrase, count, weight });
        }
    }

    fn name(&self, members: &[u32]) -> String {
        let text = |member: &u32| self.phrases.texts.get(*member as usize).map(|text| String::from_utf8_lossy(text));
        members.iter().filter_map(text).collect::<Vec<_>>().join(", ")
    }

    fn finish(mut self) -> Score {
        if matches!(self.score.outcome, Outcome::Exception { .. }) {
            // Nothing is added up where the page passes whatever is in it.
            let exception = |found: &Found| found.weight.is_none();
            self.score.found.retain(exception);
            return Score { points: 0, ..self.score };
        }
        if self.score.outcome == Outcome::Passed && self.score.points > self.phrases.limit {
            self.score.outcome = Outcome::Weighted;
        }
        let named =
            self.phrases.categories.iter().cloned().zip(self.sums).filter(|(name, sum)| !name.is_empty() && *sum > 0);
        self.score.categories = named.collect();
        self.score.categories.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        self.score
    }
}
