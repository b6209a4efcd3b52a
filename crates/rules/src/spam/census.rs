//! How many rules there are, by kind.

use std::collections::BTreeMap;

use super::rule::{Kind, Rules, Test};
use super::syntax::field::HeaderTest;

/// The rules that have a test, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// By kind.
    pub kinds: BTreeMap<Kind, usize>,
    /// Tests of the header that ask only whether a field is there.
    pub existence: usize,
    /// Functions that are called, and by how many rules.
    pub functions: BTreeMap<Box<str>, usize>,
    /// Rules that are `net`, themselves or by their parts.
    pub net: usize,
}

impl Census {
    /// Counts `rules`.
    pub fn new(rules: &Rules) -> Census {
        let mut census = Census::default();
        for rule in rules.live() {
            let Some(test) = &rule.test else { continue };
            *census.kinds.entry(test.kind()).or_default() += 1;
            census.net += usize::from(rule.is_net());
            match test {
                Test::Header(HeaderTest::Exists(_)) => census.existence += 1,
                Test::Eval(_, call) => *census.functions.entry(call.function.clone()).or_default() += 1,
                _ => {}
            }
        }
        census
    }

    /// How many there are of a kind.
    pub fn of(&self, kind: Kind) -> usize {
        self.kinds.get(&kind).copied().unwrap_or(0)
    }

    /// All of them.
    pub fn total(&self) -> usize {
        self.kinds.values().sum()
    }
}
