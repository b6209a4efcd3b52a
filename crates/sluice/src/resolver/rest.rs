//! Lists that answer nobody: left alone for a while, so that no mail waits for them.
//!
//! A list is left alone after so many questions in a row that nobody has answered; then it is asked again, and one more without
//! an answer is enough. Bounds: `LISTS_MAX` lists; what others do is not kept.

use std::collections::HashMap;

/// Questions without an answer, in a row.
const FAILURES_MAX: u32 = 5;

/// How long a list is left alone, in milliseconds.
const REST_MS: u64 = 60_000;

/// Lists that are kept.
const LISTS_MAX: usize = 1_000;

/// The lists that have not answered lately.
#[derive(Debug, Default)]
pub struct Rests {
    silent: HashMap<Box<str>, Silent>,
}

#[derive(Debug, Default)]
struct Silent {
    failures: u32,
    /// In milliseconds.
    until: u64,
}

impl Rests {
    /// Whether a list is left alone at this time, in milliseconds.
    pub fn is_resting(&self, list: &str, now: u64) -> bool {
        self.silent.get(list).is_some_and(|silent| now < silent.until)
    }

    /// Takes note of whether a list has answered; the name of none is empty.
    pub fn hear(&mut self, list: Box<str>, has_answered: bool, now: u64) {
        if has_answered {
            self.silent.remove(&list);
            return;
        }
        if list.is_empty() || self.silent.len() >= LISTS_MAX && !self.silent.contains_key(&list) {
            return;
        }
        let silent = self.silent.entry(list).or_default();
        silent.failures = silent.failures.saturating_add(1);
        if silent.failures >= FAILURES_MAX {
            silent.until = now.saturating_add(REST_MS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_answers_nobody_is_left_alone_for_a_while() {
        let mut rests = Rests::default();
        let hear = |rests: &mut Rests, has_answered, now| rests.hear("a.test".into(), has_answered, now);
        for now in 0..4 {
            hear(&mut rests, false, now);
        }
        hear(&mut rests, true, 4);
        for now in 5..9 {
            hear(&mut rests, false, now);
            assert!(!rests.is_resting("a.test", now), "{now}: not five in a row");
        }
        hear(&mut rests, false, 10);
        assert!(rests.is_resting("a.test", 60_009) && !rests.is_resting("b.test", 11));
        assert!(!rests.is_resting("a.test", 60_010), "it is asked again");
        hear(&mut rests, false, 70_000);
        assert!(rests.is_resting("a.test", 129_999), "one more is enough");
        hear(&mut rests, true, 130_000);
        assert!(!rests.is_resting("a.test", 130_000));
    }

    #[test]
    fn what_is_no_list_never_rests_and_there_are_bounds() {
        let mut rests = Rests::default();
        (0..10).for_each(|now| rests.hear(Box::default(), false, now));
        assert!(!rests.is_resting("", 10));
        (0..2 * LISTS_MAX).for_each(|list| rests.hear(list.to_string().into(), false, 0));
        assert_eq!(rests.silent.len(), LISTS_MAX);
    }
}
