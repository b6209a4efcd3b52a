//! Spans: the possible values of a meta while not all of its parts are known.
//!
//! Its steps are done with bounds in the place of numbers. Where both bounds are the same it is known, whatever the rest comes
//! to: `A && B` is 0 where A is. Where they are not, the bounds carry the cheapest question whose answer could move them.

use crate::spam::syntax::meta::{self, Comparison, Step};

/// Bounds of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span {
    low: f64,
    high: f64,
    ask: Question,
}

/// Something that can be found out; the one that costs less is the lesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Question(u64);

/// Subject of a question.
pub(super) enum Asked {
    /// A rule that waits, by its number.
    Rule(u32),
    /// A meta, by its place.
    Meta(u32),
}

impl Question {
    /// No question: all is known.
    const NONE: Question = Question(u64::MAX);
    /// One that is not put.
    const ANY: Question = Question(0);
    const META: u64 = 1 << 31;

    /// Question for the value of a rule.
    pub(super) fn rule(cost: u32, number: u32) -> Question {
        Question(u64::from(cost.min(u32::MAX - 1)) << 32 | u64::from(number))
    }

    /// Question for the value of a meta.
    pub(super) fn meta(cost: u32, place: u32) -> Question {
        Question(Question::rule(cost, place).0 | Question::META)
    }

    pub(super) fn cost(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) fn asked(self) -> Asked {
        let number = (self.0 & (Question::META - 1)) as u32;
        if self.0 & Question::META == 0 { Asked::Rule(number) } else { Asked::Meta(number) }
    }
}

impl Span {
    /// A known value. A division by zero is not a number, and so is all that depends on it.
    pub(super) fn known(value: f64) -> Span {
        Span { low: value, high: value, ask: Question::NONE }
    }

    /// How often something hits that has not been run, from 0 to `most`.
    pub(super) fn open(question: Question, most: f64) -> Span {
        Span { low: 0.0, high: most, ask: question }
    }

    /// From 0 to `most`, and nobody asks.
    pub(super) fn up_to(most: f64) -> Span {
        Span { low: 0.0, high: most, ask: Question::ANY }
    }

    /// Largest possible value.
    pub(super) fn high(&self) -> f64 {
        if self.high.is_nan() { f64::INFINITY } else { self.high }
    }

    /// The value, if it is known.
    pub(super) fn value(&self) -> Option<f64> {
        (self.ask == Question::NONE).then_some(self.low)
    }

    /// Next question, if the value is not known.
    pub(super) fn question(&self) -> Option<Question> {
        (self.ask != Question::NONE).then_some(self.ask)
    }

    /// The same bounds, with another question.
    pub(super) fn asking(self, ask: Question) -> Span {
        Span { ask, ..self }
    }

    /// Whether a bound is further out than that of another.
    pub(super) fn is_wider(&self, other: &Span) -> bool {
        self.low < other.low || self.high > other.high
    }

    /// True if every possible value hits.
    fn is_never_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The same of a meta, where what is infinite does not hit.
    pub(super) fn is_sure_to_hit(&self) -> bool {
        self.is_never_zero() && self.low.is_finite() && self.high.is_finite()
    }

    fn between(low: f64, high: f64, ask: Question) -> Span {
        if low == high { Span::known(low) } else { Span { low, high, ask } }
    }

    /// Nothing is known of it; it may be no number.
    fn unbounded(ask: Question) -> Span {
        Span { low: f64::NEG_INFINITY, high: f64::INFINITY, ask }
    }

    fn is_unbounded(&self) -> bool {
        self.low == f64::NEG_INFINITY && self.high == f64::INFINITY
    }

    fn is_no_number(&self) -> bool {
        self.low.is_nan()
    }

    fn is_zero(&self) -> bool {
        self.low == 0.0 && self.high == 0.0
    }

    /// 1 where it holds of all values, 0 where of none. Of what may be no number nothing holds: see [`Span::unbounded`].
    fn truth(always: bool, never: bool, ask: Question) -> Span {
        match () {
            () if always => Span::known(1.0),
            () if never => Span::known(0.0),
            () => Span { low: 0.0, high: 1.0, ask },
        }
    }

    /// Span of the meta with this value: see [`outcome`](super::outcome).
    fn outcome(self) -> Span {
        match self.value() {
            Some(value) => Span::known(super::counted(value)),
            None if self.high < 0.0 => Span::known(1.0),
            None if self.low < 0.0 => Span { low: 0.0, high: self.high.max(1.0), ..self },
            None => self,
        }
    }
}

/// Span of a meta, with the spans of rules from `rule`.
pub(super) fn weigh(steps: &[Step], stack: &mut Vec<Span>, rule: impl Fn(u32) -> Span) -> Span {
    stack.clear();
    // The top of the stack, which is at hand.
    let mut top = Span::known(0.0);
    for step in steps {
        let mut pop = || stack.pop().unwrap_or(Span::known(0.0));
        top = match *step {
            Step::Number(_) | Step::Rule(_) | Step::Matching(_) => {
                stack.push(top);
                match *step {
                    Step::Number(number) => Span::known(number),
                    Step::Rule(id) => rule(id),
                    _ => Span::known(0.0),
                }
            }
            Step::Not => not(top),
            Step::Negate => Span { low: -top.high, high: -top.low, ..top },
            Step::Choose => {
                let (yes, condition) = (pop(), pop());
                choose(condition, yes, top)
            }
            step => binary(step, pop(), top),
        };
    }
    top.outcome()
}

fn not(span: Span) -> Span {
    match () {
        () if span.is_no_number() || span.is_unbounded() => span,
        () => Span::truth(span.is_zero(), span.is_never_zero(), span.ask),
    }
}

fn choose(condition: Span, yes: Span, no: Span) -> Span {
    let ask = condition.ask.min(yes.ask).min(no.ask);
    match () {
        () if condition.is_no_number() => condition,
        () if condition.is_zero() => no,
        () if condition.is_never_zero() => yes,
        () if condition.is_unbounded() || yes.is_no_number() || no.is_no_number() => Span::unbounded(ask),
        () => Span::between(yes.low.min(no.low), yes.high.max(no.high), ask),
    }
}

fn binary(step: Step, left: Span, right: Span) -> Span {
    if let (Some(left), Some(right)) = (left.value(), right.value()) {
        return Span::known(meta::binary(step, left, right));
    }
    let ask = left.ask.min(right.ask);
    match step {
        Step::And => return and(left, right, ask),
        Step::Or => return or(left, right, ask),
        _ if left.is_no_number() || right.is_no_number() => return Span::known(f64::NAN),
        _ => {}
    }
    match step {
        Step::Add => Span::between(left.low + right.low, left.high + right.high, ask),
        Step::Subtract => Span::between(left.low - right.high, left.high - right.low, ask),
        Step::Multiply => {
            let corners = [left.low, left.high].map(|one| [one * right.low, one * right.high]);
            let corners = corners.as_flattened();
            match corners.iter().any(|corner| corner.is_nan()) {
                true => Span::unbounded(ask),
                false => {
                    let low = corners.iter().copied().fold(f64::INFINITY, f64::min);
                    Span::between(low, corners.iter().copied().fold(f64::NEG_INFINITY, f64::max), ask)
                }
            }
        }
        // Of integers of 0 or more it is at most their sum.
        Step::Xor if left.low >= 0.0 && right.low >= 0.0 => Span::between(0.0, left.high + right.high, ask),
        Step::Compare(comparison) => compare(comparison, left, right, ask),
        _ => Span::unbounded(ask),
    }
}

/// The left where that is 0, else the right.
fn and(left: Span, right: Span, ask: Question) -> Span {
    match () {
        () if left.is_no_number() || left.is_zero() => left,
        () if left.is_never_zero() => right,
        () if left.is_unbounded() || right.is_no_number() => Span::unbounded(ask),
        () => Span::between(right.low.min(0.0), right.high.max(0.0), ask),
    }
}

/// The left where that is not 0, else the right.
fn or(left: Span, right: Span, ask: Question) -> Span {
    // Where both are 0 or more, and one is more, so is what it comes to.
    let least = if left.low == 0.0 { f64::MIN_POSITIVE } else { left.low };
    match () {
        () if left.is_no_number() || left.is_never_zero() => left,
        () if left.is_zero() => right,
        () if left.is_unbounded() || right.is_no_number() => Span::unbounded(ask),
        () => Span::between(least.min(right.low), left.high.max(right.high), ask),
    }
}

fn compare(comparison: Comparison, left: Span, right: Span, ask: Question) -> Span {
    if left.is_unbounded() || right.is_unbounded() {
        return Span::unbounded(ask);
    }
    let (is_below, is_above) = (left.high < right.low, left.low > right.high);
    let (is_not_above, is_not_below) = (left.high <= right.low, left.low >= right.high);
    match comparison {
        Comparison::Less => Span::truth(is_below, is_not_below, ask),
        Comparison::LessOrEqual => Span::truth(is_not_above, is_above, ask),
        Comparison::Greater => Span::truth(is_above, is_not_above, ask),
        Comparison::GreaterOrEqual => Span::truth(is_not_below, is_below, ask),
        Comparison::Equal => Span::truth(false, is_below || is_above, ask),
        Comparison::Unequal => Span::truth(is_below || is_above, false, ask),
    }
}
