//! Needs: rules that have to hit before a meta can be anything but 0.

use crate::spam::syntax::meta::{Comparison, Step};

/// At least so many of these rules have to hit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Need {
    pub(super) parts: Vec<u32>,
    pub(super) least: u32,
}

/// Facts about a value in a meta.
#[derive(Default)]
struct Value {
    need: Option<Need>,
    /// The rules of which it is the sum, where each adds 1 at most.
    sum: Option<Vec<u32>>,
    /// Its value, if it is always the same.
    number: Option<f64>,
}

impl Need {
    /// At least one of these parts has to hit.
    pub(super) fn any(parts: impl Iterator<Item = u32>) -> Need {
        let mut parts: Vec<u32> = parts.collect();
        parts.sort_unstable();
        parts.dedup();
        Need { parts, least: 1 }
    }

    /// Condition without which a meta is 0, if that is known: of several the one that is rarest met, where rules that many metas are made of
    /// hit often. `most` is what each rule comes to at most.
    pub(super) fn of(steps: &[Step], most: &[f64], made_of: &[u32]) -> Option<Need> {
        let mut stack: Vec<Value> = Vec::new();
        for step in steps {
            let mut pop = || stack.pop().unwrap_or_default();
            let value = match *step {
                Step::Number(number) => Value { number: Some(number), ..Value::default() },
                Step::Rule(rule) => Value {
                    need: Some(Need { parts: vec![rule], least: 1 }),
                    sum: (most[rule as usize] <= 1.0).then(|| vec![rule]),
                    number: None,
                },
                Step::Matching(_) => Value { number: Some(0.0), ..Value::default() },
                Step::Not | Step::Negate => {
                    pop();
                    Value::default()
                }
                Step::Choose => {
                    (0..3).for_each(|_| drop(pop()));
                    Value::default()
                }
                step => {
                    let (right, left) = (pop(), pop());
                    binary(step, left, right, made_of)
                }
            };
            stack.push(value);
        }
        stack.pop().and_then(|value| value.need)
    }

    /// Need without the rules that hit anyway, if anything is left.
    pub(super) fn beyond(mut self, hits: impl Fn(u32) -> bool) -> Option<Need> {
        let before = self.parts.len();
        self.parts.retain(|&part| !hits(part));
        let hit = (before - self.parts.len()) as u32;
        self.least = self.least.saturating_sub(hit);
        (self.least > 0).then_some(self)
    }

    /// One of both, the one that is met where the other is.
    fn either(self, other: Need) -> Need {
        let least = self.least.min(other.least);
        Need { least, ..Need::any(self.parts.into_iter().chain(other.parts)) }
    }

    fn rarer(self, other: Need, made_of: &[u32]) -> Need {
        // Each further rule that has to hit makes it several times rarer.
        const TIMES: f64 = 4.0;
        let rate = |need: &Need| {
            let rules: f64 = need.parts.iter().map(|&part| f64::from(made_of[part as usize])).sum();
            rules / TIMES.powi(need.least.min(100) as i32)
        };
        if rate(&self) <= rate(&other) { self } else { other }
    }
}

fn binary(step: Step, left: Value, right: Value, made_of: &[u32]) -> Value {
    let need = match (step, left.need, right.need, right.number) {
        (Step::And, Some(one), Some(other), _) => Some(one.rarer(other, made_of)),
        (Step::And, one, other, _) => one.or(other),
        (Step::Or | Step::Add | Step::Xor, Some(one), Some(other), _) => Some(one.either(other)),
        (Step::Or | Step::Add | Step::Xor, one, None, Some(0.0)) => one,
        (Step::Or | Step::Add | Step::Xor, None, other, _) if left.number == Some(0.0) => other,
        (Step::Compare(Comparison::Greater), need, _, Some(number)) if number >= 0.0 => {
            at_least(need, left.sum.as_deref(), number.floor() + 1.0)
        }
        (Step::Compare(Comparison::GreaterOrEqual | Comparison::Equal), need, _, Some(number)) if number > 0.0 => {
            at_least(need, left.sum.as_deref(), number.ceil())
        }
        _ => None,
    };
    let sum = match (step, left.sum, right.sum) {
        (Step::Add, Some(one), Some(other)) => Some([one, other].concat()),
        (Step::Add, one, None) if right.number == Some(0.0) => one,
        (Step::Add, None, other) if left.number == Some(0.0) => other,
        _ => None,
    };
    Value { need, sum, number: None }
}

/// Need of a value that has to be at least so large: of a sum of rules, so many of them, if none occurs twice.
fn at_least(need: Option<Need>, sum: Option<&[u32]>, value: f64) -> Option<Need> {
    let Some(sum) = sum else { return need };
    let parts = Need::any(sum.iter().copied()).parts;
    let least = if parts.len() == sum.len() { value.min(f64::from(u32::MAX)) as u32 } else { 1 };
    Some(Need { parts, least })
}

/// Rules without each of which a meta comes to 0, whatever all others come to.
pub(super) fn all(steps: &[Step]) -> Vec<u32> {
    // Of what is on the stack, the rules without each of which it is 0, and its value if it is always the same.
    let mut stack: Vec<(Vec<u32>, Option<f64>)> = Vec::new();
    let both = |one: Vec<u32>, other: &[u32]| one.into_iter().filter(|rule| other.contains(rule)).collect();
    for step in steps {
        let mut pop = || stack.pop().unwrap_or_default();
        let value = match *step {
            Step::Number(number) => (Vec::new(), Some(number)),
            Step::Rule(rule) => (vec![rule], None),
            Step::Matching(_) => (Vec::new(), None),
            Step::Not | Step::Negate => {
                pop();
                (Vec::new(), None)
            }
            Step::Choose => {
                (0..3).for_each(|_| drop(pop()));
                (Vec::new(), None)
            }
            step => {
                let (right, left) = (pop(), pop());
                let is = |value: Option<f64>, holds: fn(f64) -> bool| value.is_some_and(holds);
                let needed = match step {
                    Step::And => [left.0, right.0].concat(),
                    Step::Or | Step::Add | Step::Xor => both(left.0, &right.0),
                    Step::Compare(Comparison::Greater) if is(right.1, |value| value >= 0.0) => left.0,
                    Step::Compare(Comparison::GreaterOrEqual) if is(right.1, |value| value > 0.0) => left.0,
                    Step::Compare(Comparison::Equal) if is(right.1, |value| value != 0.0) => left.0,
                    _ => Vec::new(),
                };
                (needed, None)
            }
        };
        stack.push(value);
    }
    stack.pop().unwrap_or_default().0
}
