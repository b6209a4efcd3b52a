//! Metas with a score of 0, as conditions of what is made of them.
//!
//! As in SpamAssassin, such a meta does not hit, and a meta that is made of it waits for it: where it comes to 0 the other is
//! evaluated, and where it comes to something it never is. Nor is it where the one with a score of 0 is not known before all else
//! has run: it is made of a name that no rule has, of a rule that does not run, or of one that waits for others.

use crate::spam::eval::{self, Does};
use crate::spam::rule::{Rule, Rules, Test};
use crate::spam::schedule::Schedule;
use crate::spam::total::ScoreSet;

/// Metas that must be 0, and the metas that depend on them.
pub(super) struct Conditions {
    /// The metas with a score of 0 that are known in time.
    is_one: Vec<bool>,
    /// Metas that must be 0, for each rule.
    of: Vec<Vec<u32>>,
}

/// A meta that has more conditions is not run.
const CONDITIONS_MAX: usize = 16;

impl Conditions {
    /// Conditions of metas that have a score of 0 in each set.
    pub fn of(rules: &Rules, sets: &[ScoreSet], schedule: &Schedule) -> Conditions {
        let names = rules.names();
        let mut in_time: Vec<bool> = names.iter().map(|rule| sets.iter().all(|&set| is_in_time(rule, set))).collect();
        let mut conditions = Conditions { is_one: vec![false; names.len()], of: vec![Vec::new(); names.len()] };
        for (id, parts) in schedule.parts() {
            let rule = &names[id as usize];
            let mut of = Vec::new();
            let mut are_in_time = has_all(rule, rules);
            for part in parts {
                are_in_time &= in_time[part as usize];
                of.extend(conditions.is_one(part).then_some(part));
                of.extend_from_slice(conditions.of_meta(part));
            }
            of.sort_unstable();
            of.dedup();
            of.truncate(CONDITIONS_MAX + 1);
            let are_few = of.len() <= CONDITIONS_MAX;
            let is_off = sets.iter().all(|set| set.score(rule) == 0.0);
            let is_on = sets.iter().all(|set| set.score(rule) != 0.0);
            in_time[id as usize] = are_in_time && are_few && (is_off || is_on);
            conditions.is_one[id as usize] = is_off && in_time[id as usize];
            conditions.of[id as usize] = of;
        }
        conditions
    }

    /// Whether others are run only where this meta comes to 0.
    pub fn is_one(&self, rule: u32) -> bool {
        self.is_one[rule as usize]
    }

    /// The metas that have to come to 0 for this one.
    pub fn of_meta(&self, rule: u32) -> &[u32] {
        &self.of[rule as usize]
    }

    /// Rules that are not run: those with a score of 0, what is made of metas with one that are no conditions, and what asks what
    /// was learned where nothing is.
    pub fn silent(&self, rules: &Rules, set: ScoreSet, schedule: &Schedule) -> Vec<bool> {
        let mut out = vec![false; rules.names().len()];
        for (id, mut parts) in schedule.parts() {
            let rule = &rules.names()[id as usize];
            out[id as usize] = set.score(rule) == 0.0
                || self.of_meta(id).len() > CONDITIONS_MAX
                || parts.any(|part| out[part as usize] && !self.is_one(part));
        }
        for (out, rule) in out.iter_mut().zip(rules.names()) {
            // Tests of parts and addresses call functions in SpamAssassin.
            let calls = matches!(rule.test, Some(Test::Eval(..) | Test::MimeHeader(_) | Test::UriDetail(_)));
            let is_learned = calls && rule.flags.has("learn");
            *out |= set.score(rule) == 0.0 || (is_learned && !set.bayes);
        }
        out
    }
}

/// Whether what a rule that is no meta comes to is known before all has run.
fn is_in_time(rule: &Rule, set: ScoreSet) -> bool {
    let is_local = match &rule.test {
        Some(Test::Eval(view, call)) => {
            let does = eval::find(&call.function, *view).map(|function| function.does);
            matches!(does, Some(Does::Look(_) | Does::View(_))) && !call.is_rbl() && !rule.flags.has("net")
        }
        Some(Test::MimeHeader(_) | Test::UriDetail(_)) => !rule.flags.has("net"),
        Some(Test::Header(_) | Test::Pattern(..)) => true,
        Some(Test::AskDns(_) | Test::Meta(_) | Test::Placeholder) | None => false,
    };
    is_local && set.score(rule) != 0.0
}

/// Whether there is a rule for each name of a meta.
fn has_all(rule: &Rule, rules: &Rules) -> bool {
    let Some(Test::Meta(meta)) = &rule.test else { return false };
    let is_rule = |id: u32| rules.names().get(id as usize).is_some_and(|rule| rule.test.is_some());
    meta.names.iter().all(|name| rules.id(name).is_some_and(is_rule))
}
