//! Conditions: `if (version >= 3.004000) && plugin(Mail::SpamAssassin::Plugin::DKIM)`.
//!
//! Numbers, parentheses, arithmetic and comparisons as in Perl, `version`, `perl_version`, `local_tests_only`, and the
//! calls `plugin()`, `has()` and `can()`. A word that is none of these counts as true, as it does in Perl, and is reported.

use crate::spam::problem::{Fault, shown};

/// Environment of conditions.
pub trait World {
    /// The value of a word, if there is such a word.
    fn word(&self, word: &str) -> Option<f64>;
    /// Result of a call, if there is such a function.
    fn call(&self, function: &str, argument: &str) -> Option<bool>;
}

/// Result of a condition.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the lines below are read.
    pub holds: bool,
    /// A word that nobody knows.
    pub unknown: Option<String>,
}

const FORM: &str = "write plugin(...), has(...), can(...) or a comparison of version with a number";

/// Reads a condition.
pub fn read(text: &[u8], nesting_max: usize, world: &dyn World) -> Result<Outcome, Fault> {
    let mut parser = Parser { text, nesting_max, world, unknown: None };
    let value = parser.level(0, 0)?;
    match parser.rest() {
        [] => Ok(Outcome { holds: value != 0.0, unknown: parser.unknown }),
        rest => Err(Fault::new(format!("{:?} cannot stand in a condition", shown(rest)), FORM)),
    }
}

struct Parser<'a> {
    text: &'a [u8],
    nesting_max: usize,
    world: &'a dyn World,
    unknown: Option<String>,
}

/// Operators from the loosest to the tightest; longer ones first.
const LEVELS: [&[&[u8]]; 6] =
    [&[b"||"], &[b"&&"], &[b"==", b"!="], &[b"<=", b">=", b"<", b">"], &[b"+", b"-"], &[b"*", b"/"]];

impl<'a> Parser<'a> {
    fn level(&mut self, level: usize, nesting: usize) -> Result<f64, Fault> {
        let Some(operators) = LEVELS.get(level) else { return self.unary(nesting) };
        let mut left = self.level(level + 1, nesting)?;
        while let Some(operator) = operators.iter().find(|operator| self.rest().starts_with(operator)) {
            self.skip(operator.len());
            let right = self.level(level + 1, nesting)?;
            left = applied(operator, left, right);
        }
        Ok(left)
    }

    fn unary(&mut self, nesting: usize) -> Result<f64, Fault> {
        if nesting > self.nesting_max {
            return Err(Fault::new(format!("a condition is more than {} deep", self.nesting_max), FORM));
        }
        match self.rest() {
            [b'!', ..] => {
                self.skip(1);
                Ok(truth(self.unary(nesting + 1)? == 0.0))
            }
            [b'-', ..] => {
                self.skip(1);
                Ok(-self.unary(nesting + 1)?)
            }
            // All bits but these: never zero for a number of a condition.
            [b'~', ..] => {
                self.skip(1);
                self.unary(nesting + 1).map(|_| 1.0)
            }
            [b'(', ..] => {
                self.skip(1);
                let value = self.level(0, nesting + 1)?;
                self.close()?;
                Ok(value)
            }
            [first, ..] if first.is_ascii_digit() => self.number(),
            [first, ..] if first.is_ascii_alphabetic() || *first == b'_' => self.word(),
            [] => Err(Fault::new("the condition ends too early", FORM)),
            rest => Err(Fault::new(format!("{:?} cannot stand in a condition", shown(rest)), FORM)),
        }
    }

    fn number(&mut self) -> Result<f64, Fault> {
        let word = self.take(|byte| byte.is_ascii_digit() || byte == b'.');
        let number = core::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        number.ok_or_else(|| Fault::new(format!("{} is no number", shown(word)), FORM))
    }

    fn word(&mut self) -> Result<f64, Fault> {
        let word = self.take(is_word);
        let word = String::from_utf8_lossy(word).into_owned();
        if self.rest().first() != Some(&b'(') {
            return Ok(self.world.word(&word).unwrap_or_else(|| self.not_known(word)));
        }
        self.skip(1);
        let argument = String::from_utf8_lossy(self.take(is_word)).into_owned();
        self.close()?;
        Ok(self.world.call(&word, &argument).map_or_else(|| self.not_known(word), truth))
    }

    fn not_known(&mut self, word: String) -> f64 {
        self.unknown.get_or_insert(word);
        1.0
    }

    fn close(&mut self) -> Result<(), Fault> {
        if self.rest().first() != Some(&b')') {
            return Err(Fault::new("a parenthesis is not closed", FORM));
        }
        self.skip(1);
        Ok(())
    }

    fn take(&mut self, fits: impl Fn(u8) -> bool) -> &'a [u8] {
        let text = self.rest();
        let end = text.iter().position(|&byte| !fits(byte)).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.text = rest;
        word
    }

    fn rest(&self) -> &'a [u8] {
        self.text.trim_ascii_start()
    }

    fn skip(&mut self, bytes: usize) {
        self.text = self.rest().get(bytes..).unwrap_or_default();
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_:".contains(&byte)
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn applied(operator: &[u8], left: f64, right: f64) -> f64 {
    match operator {
        b"||" => {
            if left == 0.0 {
                right
            } else {
                left
            }
        }
        b"&&" => {
            if left == 0.0 {
                left
            } else {
                right
            }
        }
        b"==" => truth(left == right),
        b"!=" => truth(left != right),
        b"<=" => truth(left <= right),
        b">=" => truth(left >= right),
        b"<" => truth(left < right),
        b">" => truth(left > right),
        b"+" => left + right,
        b"-" => left - right,
        b"*" => left * right,
        // Where Perl would stop.
        _ if right == 0.0 => 0.0,
        _ => left / right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Test;

    impl World for Test {
        fn word(&self, word: &str) -> Option<f64> {
            (word == "version").then_some(4.000_001)
        }

        fn call(&self, function: &str, argument: &str) -> Option<bool> {
            (function == "plugin").then(|| argument == "A::B")
        }
    }

    fn holds(text: &str) -> Option<bool> {
        read(text.as_bytes(), 8, &Test).ok().map(|outcome| outcome.holds)
    }

    #[test]
    fn versions_and_plugins_are_asked_for() {
        for (text, expected) in [
            ("(version >= 3.004000)", true),
            ("version == 4.000001", true),
            ("!((version >= 3.004000))", false),
            ("version < 4.000000 || plugin(A::B)", true),
            ("plugin (A::B) && !plugin(C)", true),
            ("!plugin(A::B)", false),
            ("1 + 1 == 2", true),
            ("~1", true),
            ("0", false),
            ("5 - 2 - 3", false),
        ] {
            assert_eq!(holds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_and_unknown_words_are_named() {
        for text in ["", "(version >= 3", "version >", "version 3", "plugin(A::B", "@", "1.2.3"] {
            assert_eq!(holds(text), None, "{text}");
        }
        assert_eq!(holds(&"(".repeat(1000)), None);
        assert_eq!(read(b"nonsense", 8, &Test), Ok(Outcome { holds: true, unknown: Some("nonsense".into()) }));
    }
}
