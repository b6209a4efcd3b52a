//! Metas: arithmetic over what other rules came to, parsed to steps for a stack machine.
//!
//! Operators are those of Perl with Perl's precedence: `! -`, `* /`, `+ -`, `< > <= >=`, `== !=`, `^`, `&&`, `||`, `? :`.
//! Comparisons can be chained, as in Perl 5.32. `&&` and `||` give one of their operands and not a truth value. What
//! SpamAssassin's reader lets through by accident (`.`, `&`, `~`, quotes) is refused.

use crate::spam::limits::Limits;
use crate::spam::problem::{Fault, shown};

/// Step of a meta; operands are taken from the stack and the result is put there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Puts a number on the stack.
    Number(f64),
    /// Puts what a rule came to on the stack: the index of its name, or in a schedule its id.
    Rule(u32),
    /// Puts the sum of what the rules of a glob came to on the stack: the index of the glob.
    Matching(u32),
    /// 1 of 0, 0 of all else.
    Not,
    /// The negative.
    Negate,
    /// The product.
    Multiply,
    /// The quotient; of a division by zero there is none, and the meta comes to 0 unless `&&` or `||` does not look at it.
    Divide,
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// 1 where it holds, else 0.
    Compare(Comparison),
    /// The bits that are set in one operand alone, of the integers that they are cut to.
    Xor,
    /// The first operand where that is 0, else the second.
    And,
    /// The first operand where that is not 0, else the second.
    Or,
    /// The second operand where the first is not 0, else the third.
    Choose,
}

/// How two numbers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

/// A meta as it was read. Names and globs are not looked up yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Meta {
    /// In the order in which they are done.
    pub steps: Vec<Step>,
    /// The rules that it names, each once, in the order of the text.
    pub names: Vec<Box<str>>,
    /// The globs of `rules_matching(...)`.
    pub globs: Vec<Box<str>>,
}

const FORM: &str = "write it with rules' names, numbers, ( ) ! && || + - * / and comparisons";

impl Meta {
    /// Reads an expression.
    pub fn read(text: &[u8], limits: &Limits) -> Result<Meta, Fault> {
        let meta = Meta { steps: Vec::new(), names: Vec::new(), globs: Vec::new() };
        let mut parser = Parser { text, nesting_max: limits.nesting_max, steps_max: limits.meta_steps_max, meta };
        parser.choice(0)?;
        if !parser.rest().is_empty() {
            return Err(parser.unexpected());
        }
        Ok(parser.meta)
    }

    /// The outcome if each rule came to what `rule` says of a name's index and each glob to what `matching` says; `None`
    /// where it divides by zero.
    pub fn evaluate(&self, rule: impl Fn(u32) -> f64, matching: impl Fn(u32) -> f64) -> Option<f64> {
        evaluate(&self.steps, &mut Vec::new(), rule, matching)
    }
}

/// Does steps, with an empty stack that is left empty.
pub fn evaluate(
    steps: &[Step],
    stack: &mut Vec<f64>,
    rule: impl Fn(u32) -> f64,
    matching: impl Fn(u32) -> f64,
) -> Option<f64> {
    stack.clear();
    for step in steps {
        let value = match *step {
            Step::Number(number) => number,
            Step::Rule(name) => rule(name),
            Step::Matching(glob) => matching(glob),
            Step::Not => {
                let value = stack.pop()?;
                if value.is_nan() { value } else { truth(value == 0.0) }
            }
            Step::Negate => -stack.pop()?,
            Step::Choose => {
                let (no, yes, condition) = (stack.pop()?, stack.pop()?, stack.pop()?);
                match () {
                    () if condition.is_nan() => condition,
                    () if condition == 0.0 => no,
                    () => yes,
                }
            }
            _ => {
                let (right, left) = (stack.pop()?, stack.pop()?);
                binary(*step, left, right)
            }
        };
        stack.push(value);
    }
    stack.pop().filter(|value| value.is_finite())
}

/// Result of an operator for two operands. A division by zero is not a number, and so are results made of it: but an operand that `&&`
/// and `||` do not look at may be one.
pub(crate) fn binary(step: Step, left: f64, right: f64) -> f64 {
    match step {
        Step::Multiply => left * right,
        Step::Divide if right == 0.0 => f64::NAN,
        Step::Divide => left / right,
        Step::Add => left + right,
        Step::Subtract => left - right,
        Step::Xor if left.is_nan() || right.is_nan() => f64::NAN,
        Step::Xor => (unsigned(left) ^ unsigned(right)) as f64,
        Step::And if left == 0.0 || left.is_nan() => left,
        Step::And => right,
        Step::Or if left == 0.0 => right,
        Step::Or => left,
        Step::Compare(_) if left.is_nan() || right.is_nan() => f64::NAN,
        Step::Compare(Comparison::Less) => truth(left < right),
        Step::Compare(Comparison::LessOrEqual) => truth(left <= right),
        Step::Compare(Comparison::Greater) => truth(left > right),
        Step::Compare(Comparison::GreaterOrEqual) => truth(left >= right),
        Step::Compare(Comparison::Equal) => truth(left == right),
        Step::Compare(Comparison::Unequal) => truth(left != right),
        _ => f64::NAN,
    }
}

/// As Perl cuts a number to an unsigned integer: a negative one is its two's complement.
fn unsigned(value: f64) -> u64 {
    if value < 0.0 { (value as i64).cast_unsigned() } else { value as u64 }
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

struct Parser<'a> {
    text: &'a [u8],
    nesting_max: usize,
    steps_max: usize,
    meta: Meta,
}

impl<'a> Parser<'a> {
    /// Operators from the loosest to the tightest, those of one level side by side; longer ones first.
    const LEVELS: [&'static [(&'static [u8], Step)]; 5] = [
        &[(b"||", Step::Or)],
        &[(b"&&", Step::And)],
        &[(b"^", Step::Xor)],
        &[(b"+", Step::Add), (b"-", Step::Subtract)],
        &[(b"*", Step::Multiply), (b"/", Step::Divide)],
    ];
    const COMPARED: usize = 3;
    const EQUALITIES: [(&'static [u8], Comparison); 2] = [(b"==", Comparison::Equal), (b"!=", Comparison::Unequal)];
    const ORDERS: [(&'static [u8], Comparison); 4] = [
        (b"<=", Comparison::LessOrEqual),
        (b">=", Comparison::GreaterOrEqual),
        (b"<", Comparison::Less),
        (b">", Comparison::Greater),
    ];

    fn choice(&mut self, nesting: usize) -> Result<(), Fault> {
        if nesting > self.nesting_max {
            return Err(Fault::new(format!("parentheses stand more than {} deep", self.nesting_max), FORM));
        }
        self.level(0, nesting)?;
        if self.rest().first() != Some(&b'?') {
            return Ok(());
        }
        self.skip(1);
        self.choice(nesting + 1)?;
        if self.rest().first() != Some(&b':') {
            return Err(self.unexpected());
        }
        self.skip(1);
        self.choice(nesting + 1)?;
        self.push(Step::Choose)
    }

    fn level(&mut self, level: usize, nesting: usize) -> Result<(), Fault> {
        let Some(operators) = Self::LEVELS.get(level) else { return self.unary(nesting) };
        let operand = |parser: &mut Self| match level + 1 {
            Self::COMPARED => parser.equality(nesting),
            next => parser.level(next, nesting),
        };
        operand(self)?;
        while let Some(&(text, step)) = operators.iter().find(|(text, _)| self.rest().starts_with(text)) {
            self.skip(text.len());
            let sign = matches!(step, Step::Add | Step::Subtract);
            if sign && self.text.first().is_some_and(u8::is_ascii_digit) {
                return Err(signed());
            }
            operand(self)?;
            self.push(step)?;
        }
        Ok(())
    }

    fn equality(&mut self, nesting: usize) -> Result<(), Fault> {
        self.chain(&Self::EQUALITIES, |parser| {
            parser.chain(&Self::ORDERS, |parser| parser.level(Self::COMPARED, nesting))
        })
    }

    /// `a < b < c` is `a < b && b < c`: the operand in the middle is evaluated twice, which nobody can notice.
    fn chain(
        &mut self,
        operators: &[(&[u8], Comparison)],
        operand: impl Fn(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        operand(self)?;
        let mut chained = false;
        while let Some(&(text, comparison)) = operators.iter().find(|(text, _)| self.rest().starts_with(text)) {
            self.skip(text.len());
            let start = self.meta.steps.len();
            operand(self)?;
            let middle = self.meta.steps[start..].to_vec();
            self.push(Step::Compare(comparison))?;
            if chained {
                self.push(Step::And)?;
            }
            chained = operators.iter().any(|(text, _)| self.rest().starts_with(text));
            if chained {
                middle.into_iter().try_for_each(|step| self.push(step))?;
            }
        }
        Ok(())
    }

    fn unary(&mut self, nesting: usize) -> Result<(), Fault> {
        if nesting > self.nesting_max {
            return Err(Fault::new(format!("operators stand more than {} deep", self.nesting_max), FORM));
        }
        let step = match *self.rest() {
            [b'!', ..] => Step::Not,
            [b'-' | b'+', next, ..] if next.is_ascii_digit() => return Err(signed()),
            [b'-', ..] => Step::Negate,
            [b'+', ..] => {
                self.skip(1);
                return self.unary(nesting + 1);
            }
            _ => return self.operand(nesting),
        };
        self.skip(1);
        self.unary(nesting + 1)?;
        self.push(step)
    }

    fn operand(&mut self, nesting: usize) -> Result<(), Fault> {
        match self.rest() {
            [b'(', ..] => {
                self.skip(1);
                if self.rest().first() == Some(&b')') {
                    self.skip(1);
                    return self.push(Step::Number(0.0));
                }
                self.choice(nesting + 1)?;
                if self.rest().first() != Some(&b')') {
                    return Err(self.unexpected());
                }
                self.skip(1);
                Ok(())
            }
            [first, ..] if first.is_ascii_digit() => self.number(),
            [first, ..] if first.is_ascii_alphabetic() || *first == b'_' => self.name(),
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let word = self.take(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
        let text = core::str::from_utf8(word).unwrap_or_default();
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = match text.split_once('.') {
            Some((whole, fraction))
                if digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0')) =>
            {
                text.parse::<f64>().ok()
            }
            // As in Perl.
            None if digits(text) && text.starts_with('0') => {
                u64::from_str_radix(text, 8).ok().map(|number| number as f64)
            }
            None if digits(text) => text.parse::<f64>().ok(),
            _ => None,
        };
        match number.filter(|number| number.is_finite()) {
            Some(number) => self.push(Step::Number(number)),
            None => Err(Fault::new(
                format!("{} is no number", shown(word)),
                "write digits, with a point between them at most",
            )),
        }
    }

    fn name(&mut self) -> Result<(), Fault> {
        const MATCHING: &[u8] = b"rules_matching";
        let word = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if word == MATCHING && self.text.first() == Some(&b'(') {
            self.text = &self.text[1..];
            return self.matching();
        }
        let name =
            super::name(word).ok_or_else(|| Fault::new(format!("{} is no name of a rule", shown(word)), FORM))?;
        let at = place(&mut self.meta.names, name);
        self.push(Step::Rule(at))
    }

    fn matching(&mut self) -> Result<(), Fault> {
        let glob = self.take(|byte| byte.is_ascii_alphanumeric() || b"_*?".contains(&byte));
        if glob.is_empty() || self.rest().first() != Some(&b')') {
            return Err(Fault::new("rules_matching() takes one glob", "write names with * and ?"));
        }
        self.skip(1);
        let at = place(&mut self.meta.globs, core::str::from_utf8(glob).unwrap_or_default());
        self.push(Step::Matching(at))
    }

    fn push(&mut self, step: Step) -> Result<(), Fault> {
        if self.meta.steps.len() == self.steps_max {
            return Err(Fault::new(format!("the meta has more than {} steps", self.steps_max), "split it"));
        }
        self.meta.steps.push(step);
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

    fn unexpected(&self) -> Fault {
        match self.rest() {
            [] => Fault::new("the meta ends too early", FORM),
            rest if rest.starts_with(b"and ") || rest.starts_with(b"or ") => {
                Fault::new(format!("no operator stands before {:?}", shown(rest)), "write && and ||")
            }
            rest => Fault::new(format!("{:?} cannot stand where it stands", shown(rest)), FORM),
        }
    }
}

/// `-1` is one word to SpamAssassin's reader, and not a number.
fn signed() -> Fault {
    Fault::new("a number has no sign", "write 0 - 1, with a space behind the operator")
}

fn place(list: &mut Vec<Box<str>>, name: &str) -> u32 {
    let at = list.iter().position(|known| **known == *name).unwrap_or_else(|| {
        list.push(name.into());
        list.len() - 1
    });
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Whether `glob` matches `name`; `*` is any run and `?` any letter.
pub fn matches(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut behind) = (0, 0);
    let mut star = None;
    while behind < name.len() {
        match glob.get(at) {
            Some(b'*') => {
                star = Some((at, behind));
                at += 1;
                continue;
            }
            Some(&byte) if byte == b'?' || byte == name[behind] => {
                at += 1;
                behind += 1;
                continue;
            }
            _ => {}
        }
        // Let the last star take one more.
        let Some((at_star, from)) = star else { return false };
        star = Some((at_star, from + 1));
        at = at_star + 1;
        behind = from + 1;
    }
    glob[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        let meta = Meta::read(text.as_bytes(), &Limits::default()).ok()?;
        let rule = |name: u32| match &*meta.names[name as usize] {
            "ONE" => 1.0,
            "TWO" => 2.0,
            _ => 0.0,
        };
        meta.evaluate(rule, |_| 5.0)
    }

    #[test]
    fn operators_bind_as_in_perl() {
        for (text, expected) in [
            ("ONE && !(TWO || NONE)", 0.0),
            ("(3 * ONE - 2 * TWO) > 0", 0.0),
            ("3 * TWO - 2.5 * ONE", 3.5),
            ("NONE || TWO", 2.0),
            ("TWO && ONE", 1.0),
            ("ONE && TWO", 2.0),
            ("!TWO > 2", 0.0),
            ("!!TWO", 1.0),
            ("-TWO + 1", -1.0),
            ("ONE - -TWO", 3.0),
            ("ONE < TWO < 3", 1.0),
            ("3 > TWO > 1 > ONE", 0.0),
            ("ONE <= 2 == 1", 1.0),
            ("ONE==1||TWO", 1.0),
            ("TWO != 2", 0.0),
            ("010", 8.0),
            ("()", 0.0),
            ("ONE ? TWO : 7", 2.0),
            ("NONE ? TWO : ONE ? 3 : 4", 3.0),
            ("rules_matching(__A_*) >= 2", 1.0),
            ("(TWO+ONE)>1", 1.0),
            ("7 - 2 - 1", 4.0),
            ("8 / 2 / 2", 2.0),
            ("ONE && rules_matching(A?)", 5.0),
            ("ONE ^ NONE", 1.0),
            ("ONE ^ ONE", 0.0),
            ("ONE^TWO", 3.0),
            ("TWO == 2 ^ ONE", 0.0),
            ("ONE ^ TWO && NONE", 0.0),
            ("NONE || !ONE ^ 2.9", 2.0),
            ("NONE - ONE ^ NONE", 18_446_744_073_709_551_615.0),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_perl_would_not_run_is_refused() {
        for text in [
            "",
            "ONE &&",
            "(ONE",
            "ONE and TWO",
            "ONE % 2",
            "ONE | TWO",
            "ONE ^",
            "ONE ^^ TWO",
            "abs(ONE)",
            "ONE !",
            "ONE TWO",
            "ONE <=> TWO",
            "A, B",
            "1.",
            ".5",
            "A=1",
            "A x 3",
            "1_000",
            "A > > B",
            "-1",
            "3A",
            "A::B",
            "1e3",
            "A'B",
            "A && (B) (C)",
            "A >> 1",
            "A =~ B",
            "!",
            "0x10",
            "08",
            "1..2",
            "A || || B",
            "rules_matching(A[12])",
            "rules_matching()",
            "rules_matching(A,B)",
            "rules_matching (A)",
            "A > -1",
            "A-1",
            "A +1",
            "A ** 2",
        ] {
            assert!(Meta::read(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn a_division_by_zero_has_no_outcome() {
        assert_eq!(value("ONE / NONE"), None);
        assert_eq!(value("!(ONE / NONE)"), None);
        assert_eq!(value("ONE / NONE > 1"), None);
        assert_eq!(value("ONE / NONE ^ 1"), None);
        assert_eq!(value("ONE / NONE ? 1 : 2"), None);
        assert_eq!(value("ONE / NONE && TWO"), None);
        assert_eq!(value("NONE && ONE / NONE"), Some(0.0), "Perl does not come that far");
        assert_eq!(value("TWO || ONE / NONE"), Some(2.0));
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let limits = Limits { nesting_max: 10, meta_steps_max: 100, ..Limits::default() };
        let read = |text: String| Meta::read(text.as_bytes(), &limits);
        assert!(read(format!("{}A{}", "(".repeat(9), ")".repeat(9))).is_ok());
        assert!(read("(".repeat(100_000)).is_err());
        assert!(read("!".repeat(100_000) + "A").is_err());
        assert!(read("A?".repeat(100_000)).is_err());
        assert!(read("A+".repeat(51) + "A").is_err());
        // Doubled at each level, were there no bound.
        assert!(read((0..9).fold("A".into(), |inner, _| format!("(1 < ({inner}) < 2)"))).is_err());
    }

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, expected) in [
            ("__A_*", "__A_1", true),
            ("A?", "AB", true),
            ("A?", "A", false),
            ("*B*", "ABC", true),
            ("*AB", "AAB", true),
            ("A*C*E", "ABCDE", true),
            ("A*C*F", "ABCDE", false),
            ("a*", "A1", false),
        ] {
            assert_eq!(matches(glob.as_bytes(), name.as_bytes()), expected, "{glob} {name}");
        }
    }
}
