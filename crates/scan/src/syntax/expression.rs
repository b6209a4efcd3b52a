//! Logical expressions over subsignatures.
//!
//! `0&(1|2)>3,2`: subsignature numbers, `&`, `|`, parentheses, and counts behind an operand: `=n`, `>n`, `<n`, each
//! with an optional `,m` for that many different subsignatures. A block counts the matches of its true branches.
//!
//! There is no precedence, and grouping is as clamscan 1.4 has it, found by trying all expressions of up to four
//! operands: in parentheses the last operator binds loosest, elsewhere the first (`0&1|2` is `0&(1|2)`, `(0&1|2)` is
//! `(0&1)|2`).

use crate::syntax::line::number;

/// The most subsignatures of a signature.
pub(crate) const SUBSIGNATURES_MAX: usize = 64;
/// The longest expression.
const TEXT_BYTES_MAX: usize = 2048;
/// The deepest nesting of parentheses and operators.
const DEPTH_MAX: usize = 128;

/// One step of an expression in postfix order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The matches of a subsignature.
    Sub(u8),
    And,
    Or,
    /// Compares the count, and how many different ones, of what stands before.
    Count {
        comparison: Comparison,
        count: u32,
        distinct: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    More,
    Less,
}

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expression {
    steps: Box<[Step]>,
}

/// Value of a part of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    holds: bool,
    count: u32,
    seen: u64,
}

impl Expression {
    /// Parses an expression.
    pub(crate) fn parse(text: &str) -> Result<Expression, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err("the expression is too long".to_owned());
        }
        let mut steps = Vec::new();
        parse(&without_blanks(text)?, false, 0, &mut steps)?;
        Ok(Expression { steps: steps.into_boxed_slice() })
    }

    /// How many subsignatures it speaks of: the highest number and one.
    pub(crate) fn subsignatures(&self) -> usize {
        let numbers = self.steps.iter().filter_map(|step| match step {
            Step::Sub(number) => Some(usize::from(*number) + 1),
            _ => None,
        });
        numbers.max().unwrap_or(0)
    }

    /// Whether, once true, it stays true with more matches.
    pub(crate) fn is_monotone(&self) -> bool {
        self.steps.iter().all(|step| match step {
            Step::Count { comparison, .. } => *comparison == Comparison::More,
            _ => true,
        })
    }

    /// Whether it holds with these counts.
    pub(crate) fn holds(&self, counts: impl Fn(u8) -> u32) -> bool {
        let mut stack = [Value::default(); DEPTH_MAX + 2];
        let mut depth = 0usize;
        for (index, step) in self.steps.iter().enumerate() {
            match *step {
                Step::Sub(number) => {
                    let Some(slot) = stack.get_mut(depth) else {
                        return false;
                    };
                    let count = counts(number);
                    *slot = Value { holds: count > 0, count, seen: u64::from(count > 0) << (number & 63) };
                    depth += 1;
                }
                Step::And | Step::Or => {
                    let [.., left, right] = &mut stack[..depth] else {
                        return false;
                    };
                    *left = left.join(*right, *step == Step::And);
                    depth -= 1;
                }
                Step::Count { comparison, count, distinct } => {
                    let single = match index.checked_sub(1).map(|before| self.steps[before]) {
                        Some(Step::Sub(number)) => Some(number),
                        _ => None,
                    };
                    if let Some(top) = stack[..depth].last_mut() {
                        *top = top.compared(comparison, count, distinct, single);
                    }
                }
            }
        }
        depth == 1 && stack[0].holds
    }
}

impl Value {
    fn join(self, other: Value, both: bool) -> Value {
        let holds = if both { self.holds && other.holds } else { self.holds || other.holds };
        if !holds {
            return Value::default();
        }
        let of = |value: Value| {
            if value.holds { (value.count, value.seen) } else { (0, 0) }
        };
        let ((one, seen_one), (two, seen_two)) = (of(self), of(other));
        Value { holds, count: one.saturating_add(two), seen: seen_one | seen_two }
    }

    /// Compares; a single subsignature counts as one that was seen even if it must not match.
    fn compared(self, comparison: Comparison, count: u32, distinct: u32, single: Option<u8>) -> Value {
        let fits = match comparison {
            Comparison::Equal => self.count == count,
            Comparison::More => self.count > count,
            Comparison::Less => self.count < count,
        };
        let enough = single.is_some() || self.seen.count_ones() >= distinct;
        if !fits || !enough {
            return Value::default();
        }
        Value { holds: true, count: self.count, seen: single.map_or(self.seen, |number| 1 << (number & 63)) }
    }
}

/// The expression without blanks, none of which stands between two digits.
fn without_blanks(text: &str) -> Result<Vec<u8>, String> {
    let words: Vec<&[u8]> = text.as_bytes().split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect();
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    if words.windows(2).any(|pair| is_digit(pair[0].last()) && is_digit(pair[1].first())) {
        return Err("two numbers in a row in the expression".to_owned());
    }
    Ok(words.concat())
}

/// Parses an expression and appends its steps. `enclosed` says that it stands in parentheses of its own.
fn parse(text: &[u8], enclosed: bool, depth: usize, steps: &mut Vec<Step>) -> Result<(), String> {
    if depth >= DEPTH_MAX {
        return Err("the expression is nested too deep".to_owned());
    }
    let Some((at, operator)) = loosest(text, enclosed)? else {
        return operand(text, depth, steps);
    };
    parse(&text[..at], false, depth + 1, steps)?;
    parse(&text[at + 1..], false, depth + 1, steps)?;
    steps.push(operator);
    Ok(())
}

/// The operator outside of all parentheses that binds loosest.
fn loosest(text: &[u8], enclosed: bool) -> Result<Option<(usize, Step)>, String> {
    let mut open = 0usize;
    let mut found = None;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' => open = open.checked_sub(1).ok_or("a closing parenthesis too many")?,
            b'&' | b'|' if open == 0 && (enclosed || found.is_none()) => {
                let operator = if *byte == b'&' { Step::And } else { Step::Or };
                found = Some((at, operator));
            }
            _ => {}
        }
    }
    if open > 0 {
        return Err("the expression lacks a closing parenthesis".to_owned());
    }
    Ok(found)
}

/// A subsignature or a block, with or without a count.
fn operand(text: &[u8], depth: usize, steps: &mut Vec<Step>) -> Result<(), String> {
    let rest = if text.first() == Some(&b'(') {
        let end = text.iter().rposition(|&byte| byte == b')').unwrap_or(0);
        let (block, rest) = (text.get(1..end).unwrap_or(&[]), &text[end + 1..]);
        parse(block, true, depth + 1, steps)?;
        rest
    } else {
        let (sub, rest) = digits::<u8>(text)?;
        if usize::from(sub) >= SUBSIGNATURES_MAX {
            return Err(format!("there is no subsignature {sub}"));
        }
        steps.push(Step::Sub(sub));
        rest
    };
    let comparison = match rest.first() {
        None => return Ok(()),
        Some(b'=') => Comparison::Equal,
        Some(b'>') => Comparison::More,
        Some(b'<') => Comparison::Less,
        Some(other) => return Err(format!("{:?} in the expression", char::from(*other))),
    };
    let (count, rest) = digits(&rest[1..])?;
    let (distinct, rest) = match rest {
        [b','] => (0, &[][..]),
        [b',', rest @ ..] => digits(rest)?,
        _ => (0, rest),
    };
    if !rest.is_empty() {
        return Err("the expression goes on after a count".to_owned());
    }
    steps.push(Step::Count { comparison, count, distinct });
    Ok(())
}

fn digits<T: std::str::FromStr>(text: &[u8]) -> Result<(T, &[u8]), String> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    let digits: String = digits.iter().map(|&byte| char::from(byte)).collect();
    let parsed = number(&digits).map_err(|error| format!("in the expression: {error}"))?;
    Ok((parsed, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `text` holds with as many matches of subsignature 0, 1, 2 as `matched` has letters A, B, C.
    fn holds(text: &str, matched: &str) -> bool {
        let expression = Expression::parse(text).expect(text);
        expression.holds(|sub| matched.bytes().filter(|&letter| letter == b'A' + sub).count() as u32)
    }

    /// Streams over which clamscan 1.4 is asked about each expression.
    const STREAMS: [&str; 11] = ["", "A", "B", "C", "AB", "AA", "AAB", "ABC", "AAA", "AC", "BBC"];

    #[test]
    fn expressions_hold_where_clamscan_says_so() {
        for (text, wanted) in [
            ("(0|1)=2", "AB AA ABC BBC"),
            ("(0|1)=0", " C"),
            ("(0&1)=2", "AB ABC"),
            ("(0|1)>1,2", "AB AAB ABC"),
            ("(0|1)<2,1", "A B AC"),
            ("0=0&1", "B BBC"),
            ("(0&1)>2", "AAB"),
            ("(0&1)<3", " A B C AB AA ABC AAA AC BBC"),
            ("(0|1)=1,2", ""),
            ("((0|1)=2)&2", "ABC BBC"),
            ("0&1|2", "AB AAB ABC AC"),
            ("0|1&2", "A AB AA AAB ABC AAA AC BBC"),
            ("0=1|2", "A C AB ABC AC BBC"),
            ("((0>1)|(1=1))=1", "B AB ABC"),
            ("((0=0)|1)=1", "B AB AAB ABC"),
            ("(0&(1|2))>2", "AAB ABC"),
            ("0=2,2", "AA AAB"),
            ("(0|1)>0,2&2", "ABC"),
            ("(0&1|2)", "C AB AAB ABC AC BBC"),
            ("(0|1&2)", "ABC AC BBC"),
            ("(0=0|1<2)<3,2", " B C"),
            (" ( 0 ) & 1 ", "AB AAB ABC"),
            ("0 = 1", "A AB ABC AC"),
            ("0>1,", "AA AAB AAA"),
        ] {
            let wanted: Vec<&str> = if wanted.is_empty() { vec![] } else { wanted.split(' ').collect() };
            for stream in STREAMS {
                assert_eq!(holds(text, stream), wanted.contains(&stream), "{text} over {stream:?}");
            }
        }
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for text in ["", "0&", "(0", "0)", "a", "0 1", "0=", "64", "0>=1", "0&&1"] {
            assert!(Expression::parse(text).is_err(), "{text:?}");
        }
        assert!(Expression::parse(&"(".repeat(1000)).is_err());
    }

    #[test]
    fn only_counts_from_below_can_be_told_early() {
        let monotone = |text| Expression::parse(text).expect(text).is_monotone();
        assert!(monotone("0&(1|2)>3"));
        assert!(!monotone("0&1=0"));
        assert!(!monotone("0<3"));
    }
}
