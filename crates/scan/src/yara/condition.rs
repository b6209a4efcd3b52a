//! Reading conditions of YARA rules.
//!
//! After the YARA manual, "Conditions"; what binds tighter than what is as in its table. Not supported, each refused by
//! name: modules beyond `math` and a part of `pe`, external variables beyond those of `fact`, texts that are not compared with one
//! that stands there, sets of rules.

use super::fact::{Comparison, Field, Head, How, OfSection, OfSigner, Text, constant};
use super::id::{NodeId, StringId, TextId};
use super::lexer::{Lexer, Token};
use super::math::{Measure, Over};
use super::node::{Arena, CURRENT, List, Node, Operator, Quantifier, Where, Width};
use super::regex;
use crate::syntax::line::Reject;

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
    /// The number of another rule of the file, if it is there and was not refused.
    pub(crate) rule: &'a dyn Fn(&str) -> Option<Result<u32, ()>>,
}

/// Type of a loop's variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Number,
    Section,
    Signer,
}

/// Reads a condition.
pub(crate) struct Reader<'a, 's> {
    pub(crate) lexer: &'s mut Lexer<'a>,
    pub(crate) arena: &'s mut Arena,
    pub(crate) scope: Scope<'s>,
    variables: Vec<(&'a str, Item)>,
    /// Whether a loop over strings is open.
    in_strings: bool,
    /// Whether a number is read that says how many of something, whose `of` is not its own.
    in_quantifier: bool,
    depth: usize,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(lexer: &'s mut Lexer<'a>, arena: &'s mut Arena, scope: Scope<'s>) -> Reader<'a, 's> {
        Reader { lexer, arena, scope, variables: Vec::new(), in_strings: false, in_quantifier: false, depth: 0 }
    }

    /// Reads an expression whose operators bind at least that tightly.
    pub(crate) fn expression(&mut self, least: u8) -> Result<NodeId, Reject> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Reject::Malformed("the condition is nested too deep".to_owned()));
        }
        let mut run = vec![self.operand()?];
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
        self.depth -= 1;
        self.join(joined, &run)
    }

    /// The same, where only a number without a fraction has a place.
    fn integer(&mut self, least: u8) -> Result<NodeId, Reject> {
        let id = self.number(least)?;
        match self.arena.is_float(id) {
            true => Err(Reject::Malformed("a number with a fraction where none can be".to_owned())),
            false => Ok(id),
        }
    }

    /// The same, where only a number has a place.
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
            Token::Symbol("%") => (Operator::Remainder, 10),
            _ => return Ok(None),
        }))
    }

    fn operand(&mut self) -> Result<NodeId, Reject> {
        let token = self.lexer.next()?;
        let node = match token {
            Token::Number(number) => {
                let number = self.arena.add(Node::Number(number));
                return self.of_after(number);
            }
            Token::Float(bits) => Node::Float(bits),
            Token::Found(name) => return self.found(name),
            Token::Count(name) => {
                let (string, place) = (self.string(name)?, self.place()?);
                let count = self.arena.add(Node::Count(string, place));
                return self.of_after(count);
            }
            Token::Offset(name) => Node::Offset(self.string(name)?, self.index()?),
            Token::Length(name) => Node::Length(self.string(name)?, self.index()?),
            Token::Symbol("(") => {
                let inside = self.expression(0)?;
                self.expect(")")?;
                return self.of_after(inside);
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
            "not" => Node::Not(self.expression(2)?),
            "defined" => Node::Defined(self.expression(2)?),
            "filesize" => Node::FileSize,
            "entrypoint" => Node::EntryPoint,
            "pe" => self.of_pe()?,
            "math" => self.of_math()?,
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

    /// A text that is known of the object, and what it is compared with.
    fn compare(&mut self, field: Field) -> Result<Node, Reject> {
        let comparison = match self.peek()? {
            Token::Word(word) | Token::Symbol(word) => Comparison::parse(word),
            _ => None,
        };
        let Some(comparison) = comparison else {
            return Ok(Node::Has(field));
        };
        self.lexer.next()?;
        let text = match self.lexer.next()? {
            Token::Text(text) if comparison.how != How::Matches => Text::Plain(text.into()),
            Token::Regex(text, flags) if comparison.how == How::Matches => {
                Text::Expression(Box::new(regex::of_text(text, flags)?))
            }
            _ => return Err(Reject::Unsupported("a text that is compared with what is none".to_owned())),
        };
        Ok(Node::Compare(field, comparison, self.arena.add_text(text)))
    }

    fn of_pe(&mut self) -> Result<Node, Reject> {
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed("pe without a name".to_owned()));
        };
        let is_asked = |name: &str| Reject::Unsupported(format!("pe.{name}"));
        Ok(match name {
            "entry_point" => Node::Head(Head::EntryPoint),
            "number_of_imports" => Node::Head(Head::Libraries),
            "number_of_resources" => Node::Head(Head::Resources),
            "overlay" => {
                self.expect(".")?;
                match self.lexer.next()? {
                    Token::Word("offset") => Node::Head(Head::OverlayOffset),
                    Token::Word("size") => Node::Head(Head::OverlaySize),
                    _ => return Err(Reject::Unsupported("pe.overlay".to_owned())),
                }
            }
            "section_index" => {
                self.expect("(")?;
                let node = match self.peek()? {
                    Token::Text(_) => Node::SectionNamed(self.text("pe.section_index")?),
                    _ => Node::SectionAt(self.integer(5)?),
                };
                self.expect(")")?;
                node
            }
            "number_of_signatures" => Node::Head(Head::Signatures),
            "signatures" => return self.of_signer(),
            "number_of_sections" => Node::Sections,
            "number_of_exports" => Node::Head(Head::Exports),
            "is_pe" => Node::Head(Head::IsPe),
            "is_32bit" => self.of_call(Head::Is32Bit)?,
            "is_64bit" => self.of_call(Head::Is64Bit)?,
            "is_dll" => self.of_call(Head::IsDll)?,
            "machine" => Node::Head(Head::Machine),
            "characteristics" => Node::Head(Head::Characteristics),
            "timestamp" => Node::Head(Head::Timestamp),
            "subsystem" => Node::Head(Head::Subsystem),
            "checksum" => Node::Head(Head::Checksum),
            "image_base" => Node::Head(Head::ImageBase),
            "imphash" => {
                self.expect("(")?;
                self.expect(")")?;
                self.compare(Field::ImportHash)?
            }
            "sections" => return self.of_section(),
            "version_info" => {
                self.expect("[")?;
                let key = self.text("pe.version_info")?;
                self.expect("]")?;
                self.compare(Field::Version(key))?
            }
            "imports" => {
                self.expect("(")?;
                let library = self.text("pe.imports")?;
                let function = if self.takes(&Token::Symbol(","))? { Some(self.text("pe.imports")?) } else { None };
                self.expect(")")?;
                Node::Imports(library, function)
            }
            "exports" => {
                self.expect("(")?;
                let name = self.text("pe.exports")?;
                self.expect(")")?;
                Node::Exports(name)
            }
            name => Node::Number(constant(name).ok_or_else(|| is_asked(name))?),
        })
    }

    fn of_math(&mut self) -> Result<Node, Reject> {
        self.expect(".")?;
        let Token::Word(name) = self.lexer.next()? else {
            return Err(Reject::Malformed("math without a name".to_owned()));
        };
        if name == "MEAN_BYTES" {
            return Ok(Node::Float(127.5f64.to_bits()));
        }
        self.expect("(")?;
        let node = match name {
            "entropy" => Node::Measure(Measure::Entropy, self.over()?),
            "mean" => Node::Measure(Measure::Mean, self.over()?),
            "serial_correlation" => Node::Measure(Measure::SerialCorrelation, self.over()?),
            "monte_carlo_pi" => Node::Measure(Measure::MonteCarloPi, self.over()?),
            "deviation" => {
                let over = self.over()?;
                Node::Measure(Measure::Deviation(self.behind_comma()?), over)
            }
            "percentage" => {
                let byte = self.integer(5)?;
                Node::Measure(Measure::Percentage(byte), self.over_behind_comma()?)
            }
            "count" => {
                let byte = self.integer(5)?;
                Node::CountByte(byte, self.over_behind_comma()?)
            }
            "mode" if self.peek()? == Token::Symbol(")") => Node::Mode(Over::Object),
            "mode" => Node::Mode(self.over()?),
            "in_range" => Node::InRange(self.expression(5)?, self.behind_comma()?, self.behind_comma()?),
            "min" => Node::Least(self.integer(5)?, self.integer_behind_comma()?),
            "max" => Node::Most(self.integer(5)?, self.integer_behind_comma()?),
            "abs" => Node::Absolute(self.integer(5)?),
            "to_number" => {
                let truth = self.expression(0)?;
                let (one, zero) = (self.arena.add(Node::Number(1)), self.arena.add(Node::Not(truth)));
                Node::Pair(Operator::Subtract, one, zero)
            }
            name => return Err(Reject::Unsupported(format!("math.{name}"))),
        };
        self.expect(")")?;
        Ok(node)
    }

    fn behind_comma(&mut self) -> Result<NodeId, Reject> {
        self.expect(",")?;
        self.expression(5)
    }

    fn integer_behind_comma(&mut self) -> Result<NodeId, Reject> {
        self.expect(",")?;
        self.integer(5)
    }

    /// The bytes that something is asked of: a text, or an offset and a length.
    fn over(&mut self) -> Result<Over, Reject> {
        if let Token::Text(_) = self.peek()? {
            return Ok(Over::Text(self.text("math")?));
        }
        Ok(Over::Range(self.integer(5)?, self.integer_behind_comma()?))
    }

    /// The same; all of the object, if there are none.
    fn over_behind_comma(&mut self) -> Result<Over, Reject> {
        match self.peek()? {
            Token::Symbol(",") => Ok(Over::Range(self.integer_behind_comma()?, self.integer_behind_comma()?)),
            _ => Ok(Over::Object),
        }
    }

    fn of_call(&mut self, head: Head) -> Result<Node, Reject> {
        self.expect("(")?;
        self.expect(")")?;
        Ok(Node::Head(head))
    }

    fn of_section(&mut self) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.field_of_section(index)
    }

    /// Reads the field after a section.
    fn field_of_section(&mut self, index: NodeId) -> Result<Node, Reject> {
        self.expect(".")?;
        let of = match self.lexer.next()? {
            Token::Word("name") => return self.compare(Field::SectionName(index)),
            Token::Word("virtual_address") => OfSection::Address,
            Token::Word("virtual_size") => OfSection::AddressLength,
            Token::Word("raw_data_offset") => OfSection::Offset,
            Token::Word("raw_data_size") => OfSection::Length,
            Token::Word("characteristics") => OfSection::Characteristics,
            Token::Word(name) => return Err(Reject::Unsupported(format!("pe.sections[].{name}"))),
            _ => return Err(Reject::Malformed("a section without a field".to_owned())),
        };
        Ok(Node::Section(of, index))
    }

    fn of_signer(&mut self) -> Result<Node, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Err(Reject::Unsupported("loops over what modules have".to_owned()));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        self.field_of_signer(index)
    }

    /// Reads the field after a signature.
    fn field_of_signer(&mut self, index: NodeId) -> Result<Node, Reject> {
        self.expect(".")?;
        let of = match self.lexer.next()? {
            Token::Word("issuer") => OfSigner::Issuer,
            Token::Word("subject") => OfSigner::Subject,
            Token::Word("serial") => OfSigner::Serial,
            Token::Word(name) => return Err(Reject::Unsupported(format!("pe.signatures[].{name}"))),
            _ => return Err(Reject::Malformed("a signature without a field".to_owned())),
        };
        self.compare(Field::Signer(of, index))
    }

    /// The text that something is asked for.
    fn text(&mut self, of: &str) -> Result<TextId, Reject> {
        match self.lexer.next()? {
            Token::Text(text) => Ok(self.arena.add_text(Text::Plain(text.into()))),
            _ => Err(Reject::Unsupported(format!("{of} with what is no text"))),
        }
    }

    fn found(&mut self, name: &str) -> Result<NodeId, Reject> {
        let string = self.string(name)?;
        let place = self.place()?;
        Ok(self.arena.add(Node::Found(string, place)))
    }

    /// `at` and a number, `in` and a range, or nothing.
    fn place(&mut self) -> Result<Where, Reject> {
        if self.takes(&Token::Word("at"))? {
            return Ok(Where::At(self.integer(5)?));
        }
        if self.takes(&Token::Word("in"))? {
            let (low, high) = self.range()?;
            return Ok(Where::In(low, high));
        }
        Ok(Where::Anywhere)
    }

    fn range(&mut self) -> Result<(NodeId, NodeId), Reject> {
        self.expect("(")?;
        let low = self.integer(5)?;
        self.expect("..")?;
        let high = self.integer(5)?;
        self.expect(")")?;
        Ok((low, high))
    }

    /// The number in brackets; the first if there are none.
    fn index(&mut self) -> Result<NodeId, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Ok(self.arena.add(Node::Number(1)));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        Ok(index)
    }

    fn string(&self, name: &str) -> Result<StringId, Reject> {
        if name.is_empty() && self.in_strings {
            return Ok(CURRENT);
        }
        let found = self.scope.strings.iter().find(|(known, _)| known == name && !name.is_empty());
        found.map(|(_, string)| *string).ok_or_else(|| Reject::Malformed(format!("there is no string ${name}")))
    }

    /// Reads `of` after a number, which may be one of strings.
    fn of_after(&mut self, number: NodeId) -> Result<NodeId, Reject> {
        if self.in_quantifier {
            return Ok(number);
        }
        let mut ahead = self.lexer.clone();
        match ahead.next()? {
            Token::Word("of") => self.of(Quantifier::Number(number)),
            Token::Symbol("%") if ahead.next()? == Token::Word("of") => {
                self.lexer.next()?;
                self.of(Quantifier::Percent(number))
            }
            _ => Ok(number),
        }
    }

    fn of(&mut self, quantifier: Quantifier) -> Result<NodeId, Reject> {
        if !self.takes(&Token::Word("of"))? {
            return Err(Reject::Malformed("all, any or none of nothing".to_owned()));
        }
        let strings = self.strings()?;
        let place = self.place()?;
        Ok(self.arena.add(Node::Of(quantifier, strings, place)))
    }

    /// `them`, or strings in parentheses.
    fn strings(&mut self) -> Result<List, Reject> {
        let mut all = Vec::new();
        let everything = |all: &mut Vec<u32>, prefix: &str, strings: &[(String, StringId)]| {
            all.extend(strings.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, string)| *string));
        };
        if self.takes(&Token::Word("them"))? {
            everything(&mut all, "", self.scope.strings);
            return Ok(self.arena.add_list(&all));
        }
        self.expect("(")?;
        loop {
            match self.lexer.next()? {
                Token::Word("them") => everything(&mut all, "", self.scope.strings),
                Token::Found(name) => match name.strip_suffix('*') {
                    Some(prefix) => everything(&mut all, prefix, self.scope.strings),
                    None => all.push(self.string(name)?),
                },
                Token::Word(_) => return Err(Reject::Unsupported("sets of rules".to_owned())),
                _ => return Err(Reject::Malformed("a set of strings without strings".to_owned())),
            }
            if !self.takes(&Token::Symbol(","))? {
                break;
            }
        }
        self.expect(")")?;
        if all.is_empty() {
            return Err(Reject::Malformed("a set of no strings".to_owned()));
        }
        Ok(self.arena.add_list(&all))
    }

    /// Reads the rest of `for`.
    fn each(&mut self) -> Result<Node, Reject> {
        let quantifier = match self.peek()? {
            Token::Word(word @ ("all" | "any" | "none")) => {
                self.lexer.next()?;
                match word {
                    "all" => Quantifier::All,
                    "any" => Quantifier::Any,
                    _ => Quantifier::None,
                }
            }
            _ => {
                self.in_quantifier = true;
                let number = self.integer(11)?;
                self.in_quantifier = false;
                Quantifier::Number(number)
            }
        };
        if self.takes(&Token::Word("of"))? {
            let strings = self.strings()?;
            let outer = std::mem::replace(&mut self.in_strings, true);
            let body = self.body()?;
            self.in_strings = outer;
            return Ok(Node::ForOf(quantifier, strings, body));
        }
        let Token::Word(variable) = self.lexer.next()? else {
            return Err(Reject::Malformed("a loop without a variable".to_owned()));
        };
        if !self.takes(&Token::Word("in"))? {
            return Err(Reject::Unsupported("loops with several variables".to_owned()));
        }
        if self.takes(&Token::Word("pe"))? {
            return self.each_of_pe(quantifier, variable);
        }
        self.expect("(").map_err(|_| Reject::Unsupported("loops over what modules have".to_owned()))?;
        let first = self.integer(5)?;
        if self.takes(&Token::Symbol(".."))? {
            let last = self.integer(5)?;
            self.expect(")")?;
            return Ok(Node::ForRange(quantifier, (first, last), self.body_with(variable, Item::Number)?));
        }
        let mut items = vec![first];
        while self.takes(&Token::Symbol(","))? {
            items.push(self.integer(5)?);
        }
        self.expect(")")?;
        let items = self.arena.add_list(&items);
        Ok(Node::ForList(quantifier, items, self.body_with(variable, Item::Number)?))
    }

    /// A loop over the sections or the signatures of a PE file: over their numbers.
    fn each_of_pe(&mut self, quantifier: Quantifier, variable: &'a str) -> Result<Node, Reject> {
        self.expect(".")?;
        let (item, count) = match self.lexer.next()? {
            Token::Word("sections") => (Item::Section, Node::Sections),
            Token::Word("signatures") => (Item::Signer, Node::Head(Head::Signatures)),
            _ => return Err(Reject::Unsupported("loops over what modules have".to_owned())),
        };
        let (first, one, count) =
            (self.arena.add(Node::Number(0)), self.arena.add(Node::Number(1)), self.arena.add(count));
        let last = self.arena.add(Node::Pair(Operator::Subtract, count, one));
        Ok(Node::ForRange(quantifier, (first, last), self.body_with(variable, item)?))
    }

    /// The variable of a loop, or a field of what it stands for.
    fn variable(&mut self, number: usize) -> Result<Node, Reject> {
        let node = Node::Variable(number as u32);
        let item = self.variables.get(number).map_or(Item::Number, |(_, item)| *item);
        if item == Item::Number {
            return Ok(node);
        }
        let index = self.arena.add(node);
        if item == Item::Section { self.field_of_section(index) } else { self.field_of_signer(index) }
    }

    fn body_with(&mut self, variable: &'a str, item: Item) -> Result<NodeId, Reject> {
        self.variables.push((variable, item));
        let body = self.body();
        self.variables.pop();
        body
    }

    fn body(&mut self) -> Result<NodeId, Reject> {
        self.expect(":")?;
        self.expect("(")?;
        let body = self.expression(0)?;
        self.expect(")")?;
        Ok(body)
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
