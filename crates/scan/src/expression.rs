//! Logical expressions over subsignatures.
//!
//! `0&(1|2)>3,2`: subsignature numbers, `&`, `|`, parentheses, and counts behind an operand: `=n`, `>n`, `<n`, each
//! with an optional `,m` for that many different subsignatures. There is no precedence: the leftmost operator binds
//! loosest (`0&1|2` is `0&(1|2)`), as clamscan has it. A block counts the matches of its true branches.

use crate::body::number;

/// The most subsignatures of a signature.
pub(crate) const SUBSIGNATURES_MAX: usize = 64;
/// The most steps of an expression.
const STEPS_MAX: usize = 512;
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

/// What a part of an expression amounts to.
#[derive(Debug, Clone, Copy, Default)]
struct Value {
    holds: bool,
    count: u32,
    seen: u64,
}

impl Expression {
    /// Parses an expression.
    pub(crate) fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser {
            rest: text.as_bytes(),
            steps: Vec::new(),
        };
        parser.expression(0)?;
        if !parser.rest.is_empty() {
            return Err(format!("the expression {text:?} goes on after its end"));
        }
        Ok(Expression {
            steps: parser.steps.into_boxed_slice(),
        })
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
                    *slot = Value {
                        holds: count > 0,
                        count,
                        seen: u64::from(count > 0) << (number & 63),
                    };
                    depth += 1;
                }
                Step::And | Step::Or => {
                    let [.., left, right] = &mut stack[..depth] else {
                        return false;
                    };
                    *left = left.join(*right, *step == Step::And);
                    depth -= 1;
                }
                Step::Count {
                    comparison,
                    count,
                    distinct,
                } => {
                    let single = index > 0 && matches!(self.steps[index - 1], Step::Sub(_));
                    if let Some(top) = stack[..depth].last_mut() {
                        *top = top.compared(comparison, count, if single { 0 } else { distinct });
                    }
                }
            }
        }
        depth == 1 && stack[0].holds
    }
}

impl Value {
    fn join(self, other: Value, both: bool) -> Value {
        let holds = if both {
            self.holds && other.holds
        } else {
            self.holds || other.holds
        };
        if !holds {
            return Value::default();
        }
        let of = |value: Value| {
            if value.holds {
                (value.count, value.seen)
            } else {
                (0, 0)
            }
        };
        let ((one, seen_one), (two, seen_two)) = (of(self), of(other));
        Value {
            holds,
            count: one.saturating_add(two),
            seen: seen_one | seen_two,
        }
    }

    fn compared(self, comparison: Comparison, count: u32, distinct: u32) -> Value {
        let fits = match comparison {
            Comparison::Equal => self.count == count,
            Comparison::More => self.count > count,
            Comparison::Less => self.count < count,
        };
        if !fits || self.seen.count_ones() < distinct {
            return Value::default();
        }
        Value {
            holds: true,
            ..self
        }
    }
}

struct Parser<'a> {
    rest: &'a [u8],
    steps: Vec<Step>,
}

impl Parser<'_> {
    fn expression(&mut self, depth: usize) -> Result<(), String> {
        if depth >= DEPTH_MAX {
            return Err("the expression is nested too deep".to_owned());
        }
        self.operand(depth)?;
        let operator = match self.rest.first() {
            Some(b'&') => Step::And,
            Some(b'|') => Step::Or,
            _ => return Ok(()),
        };
        self.rest = &self.rest[1..];
        self.expression(depth + 1)?;
        self.push(operator)
    }

    fn operand(&mut self, depth: usize) -> Result<(), String> {
        if let [b'(', rest @ ..] = self.rest {
            self.rest = rest;
            self.expression(depth + 1)?;
            let [b')', rest @ ..] = self.rest else {
                return Err("the expression lacks a closing parenthesis".to_owned());
            };
            self.rest = rest;
        } else {
            let sub: u8 = self.digits()?;
            if usize::from(sub) >= SUBSIGNATURES_MAX {
                return Err(format!("there is no subsignature {sub}"));
            }
            self.push(Step::Sub(sub))?;
        }
        self.count()
    }

    fn count(&mut self) -> Result<(), String> {
        let comparison = match self.rest.first() {
            Some(b'=') => Comparison::Equal,
            Some(b'>') => Comparison::More,
            Some(b'<') => Comparison::Less,
            _ => return Ok(()),
        };
        self.rest = &self.rest[1..];
        let count = self.digits()?;
        let mut distinct = 0;
        if let [b',', rest @ ..] = self.rest {
            self.rest = rest;
            distinct = self.digits()?;
        }
        self.push(Step::Count {
            comparison,
            count,
            distinct,
        })
    }

    fn digits<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let length = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        let digits: String = digits.iter().map(|&byte| char::from(byte)).collect();
        number(&digits).map_err(|error| format!("in the expression: {error}"))
    }

    fn push(&mut self, step: Step) -> Result<(), String> {
        if self.steps.len() >= STEPS_MAX {
            return Err("the expression is too long".to_owned());
        }
        self.steps.push(step);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `text` holds with as many matches of subsignature 0, 1, 2 as `matched` has letters A, B, C.
    fn holds(text: &str, matched: &str) -> bool {
        let expression = Expression::parse(text).expect(text);
        expression.holds(|sub| {
            matched
                .bytes()
                .filter(|&letter| letter == b'A' + sub)
                .count() as u32
        })
    }

    /// What clamscan 1.4 says of each expression, over these streams.
    const STREAMS: [&str; 11] = [
        "", "A", "B", "C", "AB", "AA", "AAB", "ABC", "AAA", "AC", "BBC",
    ];

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
        ] {
            let wanted: Vec<&str> = if wanted.is_empty() {
                vec![]
            } else {
                wanted.split(' ').collect()
            };
            for stream in STREAMS {
                assert_eq!(
                    holds(text, stream),
                    wanted.contains(&stream),
                    "{text} over {stream:?}"
                );
            }
        }
    }

    #[test]
    fn malformed_expressions_are_refused() {
        for text in [
            "", "0&", "(0", "0)", "a", "0 & 1", "0=", "64", "0>1,", "0&&1",
        ] {
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
