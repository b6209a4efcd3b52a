//! Reading conditions of YARA rules.
//!
//! After the YARA manual, "Conditions"; what binds tighter than what is as in its table. Not supported, each refused by
//! name: modules beyond `math` and a part of `pe`, external variables beyond those of `fact`, texts that are not compared with one
//! that stands there, sets of rules.

mod loops;
mod modules;
mod strings;

use super::fact::Field;
use super::id::{NodeId, StringId};
use super::lexer::{Lexer, Token};
use super::node::{Arena, Node, Operator, Quantifier, Where, Width};
use crate::syntax::line::Reject;
use loops::Item;

/// How tightly `not` and comparisons bind.
const NEGATION: u8 = 2;
const COMPARISON: u8 = 3;
/// The deepest nesting.
const DEPTH_MAX: usize = 64;
/// The most operators in a row, runs of one and the same `and` or `or` counted once.
const OPERATORS_MAX: usize = 32;

/// The reason to refuse a truth where a number is wanted.
const NO_NUMBER: &str = "a truth where a number belongs";

/// Names that a condition may use.
pub(crate) struct Scope<'a> {
    /// The strings of the rule by name; those without a name are `""`.
    pub(crate) strings: &'a [(String, StringId)],
    /// The modules that were imported.
    pub(crate) imports: &'a [&'a str],
    /// The number of another rule of the file, if it is there and was not refused.
    pub(crate) rule: &'a dyn Fn(&str) -> Option<Result<u32, ()>>,
}

/// Reads a condition.
pub(crate) struct Reader<'a, 's> {
    pub(crate) lexer: &'s mut Lexer<'a>,
    pub(crate) arena: &'s mut Arena,
    pub(crate) scope: Scope<'s>,
    variables: Vec<(&'a str, Item)>,
    /// For each string whether the condition speaks of it.
    used: Vec<bool>,
    /// Whether a loop over strings is open.
    in_strings: bool,
    depth: usize,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(lexer: &'s mut Lexer<'a>, arena: &'s mut Arena, scope: Scope<'s>) -> Reader<'a, 's> {
        let used = vec![false; scope.strings.len()];
        Reader { lexer, arena, scope, variables: Vec::new(), used, in_strings: false, depth: 0 }
    }

    /// Refuses a condition that does not speak of each string. A name with an underscore before it is exempt, as in YARA 4.3.
    pub(crate) fn check_used(&self) -> Result<(), Reject> {
        let all = self.scope.strings.iter().zip(&self.used);
        match all.into_iter().find(|((name, _), used)| !**used && !name.starts_with('_')) {
            Some(((name, _), _)) => Err(Reject::Malformed(format!("the condition does not speak of ${name}"))),
            None => Ok(()),
        }
    }

    /// Reads an expression whose operators bind at least that tightly.
    pub(crate) fn expression(&mut self, least: u8) -> Result<NodeId, Reject> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Reject::Malformed("the condition is nested too deep".to_owned()));
        }
        let mut first = self.operand()?;
        if least <= NEGATION {
            first = self.goes_on(first, COMPARISON)?;
            first = self.of_after(first)?;
        }
        let all = self.goes_on(first, least)?;
        self.depth -= 1;
        Ok(all)
    }

    /// Reads the operators behind an operand that bind at least that tightly, each with its right side.
    fn goes_on(&mut self, first: NodeId, least: u8) -> Result<NodeId, Reject> {
        let mut run = vec![first];
        let mut joined = Operator::Or;
        let mut count = 0;
        while let Some((operator, tightness)) = self.operator()?.filter(|(_, tightness)| *tightness >= least) {
            self.lexer.next()?;
            if operator != joined || !matches!(operator, Operator::Or | Operator::And) {
                run = vec![self.join(joined, &run)?];
                joined = operator;
                count += 1;
            }
            if count > OPERATORS_MAX {
                return Err(Reject::Malformed("a condition of too many operators in a row".to_owned()));
            }
            run.push(self.expression(tightness + 1)?);
        }
        self.join(joined, &run)
    }

    /// Reads an expression where only a number without a fraction has a place.
    fn integer(&mut self, least: u8) -> Result<NodeId, Reject> {
        let id = self.number(least)?;
        match self.arena.is_float(id) {
            true => Err(Reject::Malformed("a number with a fraction where none can be".to_owned())),
            false => Ok(id),
        }
    }

    /// Reads an expression where only a number has a place.
    fn number(&mut self, least: u8) -> Result<NodeId, Reject> {
        let id = self.expression(least)?;
        match self.arena.is_truth(id) {
            true => Err(Reject::Malformed(NO_NUMBER.to_owned())),
            false => Ok(id),
        }
    }

    /// Joins operands of one operator: those of `and` and `or`, which may be many, to a tree of little depth.
    fn join(&mut self, operator: Operator, run: &[NodeId]) -> Result<NodeId, Reject> {
        Ok(match run {
            [] => self.arena.add(Node::Number(0)),
            [one] => *one,
            run => {
                let (left, right) = run.split_at(run.len().div_ceil(2));
                let (left, right) = (self.join(operator, left)?, self.join(operator, right)?);
                let node = self.joined(operator, left, right)?;
                self.arena.add(node)
            }
        })
    }

    fn joined(&self, operator: Operator, left: NodeId, right: NodeId) -> Result<Node, Reject> {
        if matches!(operator, Operator::Or | Operator::And) {
            return Ok(Node::Pair(operator, left, right));
        }
        if self.arena.is_truth(left) || self.arena.is_truth(right) {
            return Err(Reject::Malformed(NO_NUMBER.to_owned()));
        }
        let is_float = self.arena.is_float(left) || self.arena.is_float(right);
        match operator {
            _ if operator.is_comparison() && is_float => Ok(Node::FloatCompare(operator, left, right)),
            _ if operator.is_comparison() => Ok(Node::Pair(operator, left, right)),
            _ if !is_float => self.calculated(operator, left, right),
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide => {
                Ok(Node::FloatPair(operator, left, right))
            }
            _ => Err(Reject::Malformed("a number with a fraction where none can be".to_owned())),
        }
    }

    /// A calculation, done at once where both sides are constant.
    fn calculated(&self, operator: Operator, left: NodeId, right: NodeId) -> Result<Node, Reject> {
        let none = || Reject::Malformed("a calculation without a result".to_owned());
        match (operator, self.arena.get(left), self.arena.get(right)) {
            (Operator::Divide | Operator::Remainder, _, Node::Number(0)) => Err(none()),
            (Operator::ShiftLeft | Operator::ShiftRight, _, Node::Number(..0)) => Err(none()),
            (_, Node::Number(left), Node::Number(right)) => {
                operator.of_constants(left, right).map(Node::Number).ok_or_else(none)
            }
            _ => Ok(Node::Pair(operator, left, right)),
        }
    }

    fn peek(&self) -> Result<Token<'a>, Reject> {
        self.lexer.clone().next()
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, wanted: &Token<'_>) -> Result<bool, Reject> {
        let is = self.peek()? == *wanted;
        if is {
            self.lexer.next()?;
        }
        Ok(is)
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Reject> {
        match self.takes(&Token::Symbol(symbol))? {
            true => Ok(()),
            false => Err(Reject::Malformed(format!("{symbol:?} is missing in the condition"))),
        }
    }

    fn operator(&self) -> Result<Option<(Operator, u8)>, Reject> {
        Ok(Some(match self.peek()? {
            Token::Word("or") => (Operator::Or, 0),
            Token::Word("and") => (Operator::And, 1),
            Token::Symbol("==") => (Operator::Equal, 3),
            Token::Symbol("!=") => (Operator::NotEqual, 3),
            Token::Symbol("<") => (Operator::Less, 4),
            Token::Symbol("<=") => (Operator::LessOrEqual, 4),
            Token::Symbol(">") => (Operator::Greater, 4),
            Token::Symbol(">=") => (Operator::GreaterOrEqual, 4),
            Token::Symbol("|") => (Operator::BitOr, 5),
            Token::Symbol("^") => (Operator::BitXor, 6),
            Token::Symbol("&") => (Operator::BitAnd, 7),
            Token::Symbol("<<") => (Operator::ShiftLeft, 8),
            Token::Symbol(">>") => (Operator::ShiftRight, 8),
            Token::Symbol("+") => (Operator::Add, 9),
            Token::Symbol("-") => (Operator::Subtract, 9),
            Token::Symbol("*") => (Operator::Multiply, 10),
            Token::Symbol("\\") => (Operator::Divide, 10),
            Token::Symbol("%") if !self.is_percentage() => (Operator::Remainder, 10),
            _ => return Ok(None),
        }))
    }

    /// Whether `%` and `of` come next.
    fn is_percentage(&self) -> bool {
        let mut ahead = self.lexer.clone();
        ahead.next() == Ok(Token::Symbol("%")) && ahead.next() == Ok(Token::Word("of"))
    }

    fn operand(&mut self) -> Result<NodeId, Reject> {
        let token = self.lexer.next()?;
        let node = match token {
            Token::Number(number) => Node::Number(number),
            Token::Float(bits) => Node::Float(bits),
            Token::Found(name) => return self.found(name),
            Token::Count(name) => {
                let (string, place) = (self.string(name)?, self.place()?);
                if let Where::At(_) = place {
                    return Err(Reject::Malformed("a count at a place".to_owned()));
                }
                Node::Count(string, place)
            }
            Token::Offset(name) => Node::Offset(self.string(name)?, self.index()?),
            Token::Length(name) => Node::Length(self.string(name)?, self.index()?),
            Token::Symbol("(") => {
                let inside = self.expression(0)?;
                self.expect(")")?;
                return Ok(inside);
            }
            Token::Symbol("-") => {
                let of = self.number(11)?;
                match self.arena.get(of) {
                    Node::Number(number) => Node::Number(number.wrapping_neg()),
                    _ if self.arena.is_float(of) => Node::FloatNegative(of),
                    _ => Node::Negative(of),
                }
            }
            Token::Symbol("~") => Node::Complement(self.integer(11)?),
            Token::Word(word) => return self.word(word),
            Token::Text(_) | Token::Regex(..) => return Err(Reject::Unsupported("texts in the condition".to_owned())),
            _ => return Err(Reject::Malformed("the condition breaks off".to_owned())),
        };
        Ok(self.arena.add(node))
    }

    fn word(&mut self, word: &'a str) -> Result<NodeId, Reject> {
        let node = match word {
            "true" => Node::Truth(true),
            "false" => Node::Truth(false),
            "not" => Node::Not(self.expression(NEGATION)?),
            "defined" => Node::Defined(self.expression(NEGATION)?),
            "filesize" => Node::FileSize,
            "entrypoint" => Node::EntryPoint,
            "pe" | "math" | "elf" => {
                self.check_imported(word)?;
                match word {
                    "pe" => self.of_pe()?,
                    "elf" => self.of_elf()?,
                    _ => self.of_math()?,
                }
            }
            "filename" => self.compare(Field::FileName)?,
            "filepath" => self.compare(Field::FilePath)?,
            "extension" => self.compare(Field::Extension)?,
            "filetype" => self.compare(Field::FileType)?,
            "all" => return self.of(Quantifier::All),
            "any" => return self.of(Quantifier::Any),
            "none" => return self.of(Quantifier::None),
            "for" => self.each()?,
            _ => match (width(word), self.variables.iter().rposition(|(name, _)| *name == word)) {
                (Some(width), _) => {
                    self.expect("(")?;
                    let at = self.integer(0)?;
                    self.expect(")")?;
                    Node::Read(width, at)
                }
                (_, Some(number)) => self.variable(number)?,
                (None, None) => return self.other(word),
            },
        };
        Ok(self.arena.add(node))
    }

    fn check_imported(&self, module: &str) -> Result<(), Reject> {
        match self.scope.imports.contains(&module) {
            true => Ok(()),
            false => Err(Reject::Malformed(format!("the module {module} is not imported"))),
        }
    }

    /// Another rule, or what is not supported.
    fn other(&mut self, word: &str) -> Result<NodeId, Reject> {
        if self.peek()? == Token::Symbol(".") {
            return Err(Reject::Unsupported(format!("the module {word}")));
        }
        match (self.scope.rule)(word) {
            Some(Ok(rule)) => Ok(self.arena.add(Node::Rule(rule))),
            Some(Err(())) => Err(Reject::Unsupported(format!("it speaks of the rule {word}, which is refused"))),
            None => Err(Reject::Unsupported(format!("the external variable {word}"))),
        }
    }
}

/// `uint16be` and its kin.
fn width(word: &str) -> Option<Width> {
    let (word, big) = word.strip_suffix("be").map_or((word, false), |word| (word, true));
    let (word, signed) = word.strip_prefix('u').map_or((word, true), |word| (word, false));
    let bytes = match word {
        "int8" => 1,
        "int16" => 2,
        "int32" => 4,
        _ => return None,
    };
    Some(Width { bytes, signed, big })
}
