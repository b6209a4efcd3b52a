//! Reading files of YARA rules.
//!
//! After the YARA manual, "Writing YARA rules". Each rule is read by itself: one that cannot be read or asks for what is
//! not supported is told with the reason, and reading goes on behind it. Rules that speak of it are refused as well.

use std::collections::HashMap;

use super::condition::{Reader, Scope};
use super::finder::Kept;
use super::hex;
use super::id::{NodeId, StringId};
use super::lexer::{self, Lexer, Token};
use super::node::{Arena, Node, Operator};
use super::regex;
use super::table::{Read, Rule, TableBuilder};
use super::text::Modifiers;
use crate::census::{Bound, Class};
use crate::syntax::body::{BodyPart, Gap};
use crate::syntax::line::Reject;

/// The longest name of a rule.
const NAME_BYTES_MAX: usize = 128;
/// The modules of YARA.
const MODULES: [&str; 13] =
    ["pe", "math", "hash", "elf", "time", "dotnet", "console", "cuckoo", "magic", "string", "macho", "dex", "lnk"];
/// The most strings of a rule.
const STRINGS_MAX: usize = 10_000;

/// The rules of one file.
pub(crate) struct Rules<'a> {
    lexer: Lexer<'a>,
    /// The rules so far by name, those that were refused without a number.
    known: HashMap<&'a str, Result<u32, ()>>,
    /// The modules that were imported so far.
    imports: Vec<&'a str>,
    /// Rules without which no other of the file holds.
    global: Vec<u32>,
}

/// Outcome of a rule: its number and its class, or the reason to refuse it.
pub(crate) type Outcome = Result<(u32, Class), Reject>;

/// Modifiers before a rule's name.
#[derive(Debug, Clone, Copy, Default)]
struct Nature {
    private: bool,
    global: bool,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Rules<'a> {
        Rules { lexer: Lexer::new(text), known: HashMap::new(), imports: Vec::new(), global: Vec::new() }
    }

    /// Reads the next rule into the table: its name, and what became of it. `None` is the end of the file.
    pub(crate) fn next(&mut self, table: &mut TableBuilder) -> Option<(String, Outcome)> {
        let mut nature = Nature::default();
        loop {
            let before = self.lexer.clone();
            match self.lexer.next() {
                Ok(Token::End) => return None,
                Ok(Token::Word("private")) => nature.private = true,
                Ok(Token::Word("global")) => nature.global = true,
                Ok(Token::Word("rule")) => break,
                Ok(Token::Word("import")) => {
                    if let Err(refusal) = self.import() {
                        return Some(("import".to_owned(), Err(refusal)));
                    }
                }
                Ok(Token::Word("include")) => {
                    let _ = self.lexer.next();
                    let refusal = Reject::Unsupported("other files are not included".to_owned());
                    return Some(("include".to_owned(), Err(refusal)));
                }
                _ => {
                    self.lexer = before;
                    self.lexer.skip_to_rule();
                    let refusal = Reject::Malformed("a text between rules".to_owned());
                    return Some(("?".to_owned(), Err(refusal)));
                }
            }
        }
        let name = match self.lexer.next() {
            Ok(Token::Word(name)) if !lexer::is_keyword(name) && name.len() <= NAME_BYTES_MAX => name,
            _ => {
                self.lexer.skip_rule();
                return Some(("?".to_owned(), Err(Reject::Malformed("a rule without a name".to_owned()))));
            }
        };
        if self.known.contains_key(name) {
            self.lexer.skip_rule();
            return Some((
                name.to_owned(),
                Err(Reject::Malformed("another rule of the file has this name".to_owned())),
            ));
        }
        let before = self.lexer.clone();
        let mark = table.arena.mark();
        let read = self.rule(nature, table);
        if read.is_err() {
            table.arena.cut(mark);
            self.lexer = before;
            self.lexer.skip_rule();
        }
        let number = read.as_ref().map(|(number, _)| *number).map_err(|_| ());
        if nature.global
            && let Ok(number) = number
        {
            self.global.push(number);
        }
        self.known.insert(name, number);
        Some((name.to_owned(), read))
    }

    fn rule(&mut self, nature: Nature, table: &mut TableBuilder) -> Outcome {
        let mut strings = Vec::new();
        let mut names: Vec<(String, StringId)> = Vec::new();
        self.tags()?;
        if self.takes(&Token::Word("meta"))? {
            self.skip_meta()?;
        }
        if self.takes(&Token::Word("strings"))? {
            self.strings(table.next_string(), &mut names, &mut strings)?;
        }
        if !self.takes(&Token::Word("condition"))? {
            return Err(Reject::Malformed("a rule without a condition".to_owned()));
        }
        self.symbol(":")?;
        let mark = table.arena.mark();
        let known = &self.known;
        let scope = Scope { strings: &names, imports: &self.imports, rule: &|name| known.get(name).copied() };
        let mut reader = Reader::new(&mut self.lexer, &mut table.arena, scope);
        let condition = reader.expression(0)?;
        reader.check_used()?;
        self.symbol("}")?;
        let condition = self.with_globals(condition, table);
        let class = class_of(&strings, table.arena.since(mark));
        let number = table.add(Rule { name: 0, condition, told: !nature.private }, &strings, mark)?;
        Ok((number, if table.keeps() { Class::Bounded(Bound::Content) } else { class }))
    }

    /// A rule holds only if all global ones before it do.
    fn with_globals(&self, condition: NodeId, table: &mut TableBuilder) -> NodeId {
        self.global.iter().fold(condition, |condition, global| {
            let global = table.arena.add(Node::Rule(*global));
            table.arena.add(Node::Pair(Operator::And, global, condition))
        })
    }

    /// Reads the module behind `import`. A known one is refused where it is used, if it is not supported.
    fn import(&mut self) -> Result<(), Reject> {
        let from = self.lexer.clone();
        let name = match self.lexer.next() {
            Ok(Token::Text(name)) => MODULES.into_iter().find(|module| module.as_bytes() == name),
            _ => {
                self.lexer = from;
                None
            }
        };
        self.imports.push(name.ok_or_else(|| Reject::Malformed("an import of an unknown module".to_owned()))?);
        Ok(())
    }

    /// Reads the tags, and the brace behind them.
    fn tags(&mut self) -> Result<(), Reject> {
        let mut tags = Vec::new();
        let are_there = self.takes(&Token::Symbol(":"))?;
        while are_there && let Token::Word(tag) = self.peek()? {
            self.lexer.next()?;
            if lexer::is_keyword(tag) || tags.contains(&tag) {
                return Err(Reject::Malformed(format!("the tag {tag}")));
            }
            tags.push(tag);
        }
        if are_there && tags.is_empty() || !self.takes(&Token::Symbol("{"))? {
            return Err(Reject::Malformed("a rule without a brace".to_owned()));
        }
        Ok(())
    }

    fn symbol(&mut self, wanted: &str) -> Result<(), Reject> {
        match self.lexer.next()? {
            Token::Symbol(symbol) if symbol == wanted => Ok(()),
            _ => Err(Reject::Malformed(format!("{wanted:?} is missing at byte {}", self.lexer.at()))),
        }
    }

    fn peek(&self) -> Result<Token<'a>, Reject> {
        self.lexer.clone().next()
    }

    fn takes(&mut self, wanted: &Token<'_>) -> Result<bool, Reject> {
        let is = self.peek()? == *wanted;
        if is {
            self.lexer.next()?;
        }
        Ok(is)
    }

    /// Passes the lines of `meta`, one at least.
    fn skip_meta(&mut self) -> Result<(), Reject> {
        self.symbol(":")?;
        let mut count = 0;
        while !matches!(self.peek()?, Token::Word("strings" | "condition")) {
            let is_named = matches!(self.lexer.next()?, Token::Word(name) if !lexer::is_keyword(name));
            self.symbol("=")?;
            let is_value = match self.lexer.next()? {
                Token::Text(_) | Token::Number(_) | Token::Word("true" | "false") => true,
                Token::Symbol("-") => matches!(self.lexer.next()?, Token::Number(_)),
                _ => false,
            };
            if !is_named || !is_value {
                return Err(Reject::Malformed("a line of meta without a name or a value".to_owned()));
            }
            count += 1;
        }
        if count == 0 { Err(Reject::Malformed("meta without a line".to_owned())) } else { Ok(()) }
    }

    fn strings(
        &mut self,
        first: StringId,
        names: &mut Vec<(String, StringId)>,
        strings: &mut Vec<Read>,
    ) -> Result<(), Reject> {
        self.symbol(":")?;
        while let Token::Found(name) = self.peek()? {
            self.lexer.next()?;
            self.symbol("=")?;
            if !name.is_empty() && names.iter().any(|(known, _)| known == name) || names.len() >= STRINGS_MAX {
                return Err(Reject::Malformed(format!("${name} stands there twice, or there are too many")));
            }
            let read = self.string();
            let read = read.map_err(|reject| match reject {
                Reject::Malformed(reason) => Reject::Malformed(format!("${name}: {reason}")),
                other => other,
            })?;
            names.push((name.to_owned(), first + strings.len() as StringId));
            strings.push(read);
        }
        if strings.is_empty() { Err(Reject::Malformed("strings without a string".to_owned())) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Read, Reject> {
        let whole = |pieces| vec![BodyPart { gap: Gap::ANY, pieces }];
        let token = self.lexer.next()?;
        match token {
            Token::Symbol("{") => {
                let parts = hex::parse(&self.lexer.hex_body()?)?;
                if self.modifiers()? != Modifiers::default() {
                    return Err(Reject::Malformed("a body takes no modifier but private".to_owned()));
                }
                if !hex::has_long_alternatives(&parts) {
                    return Ok(Read { forms: vec![parts], ..Read::default() });
                }
                let hints = hex::hint(&parts).into_iter().map(whole).collect();
                Ok(Read { kept: Kept::of_body(&parts), hints, ..Read::default() })
            }
            Token::Text(text) => {
                let modifiers = self.modifiers()?;
                let forms = modifiers.forms(&text)?.into_iter().map(whole).collect();
                // The stream does not look for a single byte.
                let kept = match text.as_slice() {
                    [_] if modifiers.base64 || modifiers.base64_wide => None,
                    // Two bytes, of which the second is the key.
                    [_] if modifiers.xor.is_some() && modifiers.wide => None,
                    [_] => Some(Kept::of_text(&text, &modifiers)),
                    _ => None,
                };
                Ok(Read { forms, kept, ..Read::default() })
            }
            Token::Regex(text, flags) => {
                let made = regex::read(text, flags, &self.modifiers()?)?;
                Ok(Read {
                    forms: made.forms.into_iter().flatten().map(whole).collect(),
                    kept: Some(made.kept),
                    hints: made.hints.into_iter().map(whole).collect(),
                })
            }
            _ => Err(Reject::Malformed("no text, no body and no regular expression".to_owned())),
        }
    }

    fn modifiers(&mut self) -> Result<Modifiers, Reject> {
        let mut all = Modifiers::default();
        let mut words = Vec::new();
        while let Token::Word(word) = self.peek()? {
            match word {
                "nocase" => all.caseless = true,
                "wide" => all.wide = true,
                "ascii" => all.ascii = true,
                "fullword" => all.fullword = true,
                "xor" => all.xor = Some((0, u8::MAX)),
                "base64" => all.base64 = true,
                "base64wide" => all.base64_wide = true,
                "private" => {}
                _ => break,
            }
            if words.contains(&word) {
                return Err(Reject::Malformed(format!("{word} stands there twice")));
            }
            words.push(word);
            self.lexer.next()?;
            if matches!(word, "xor" | "base64" | "base64wide") && self.takes(&Token::Symbol("("))? {
                self.argument(word == "xor", &mut all)?;
            }
        }
        let base64 = all.base64 || all.base64_wide;
        if all.xor.is_some() && (all.caseless || base64) || base64 && (all.caseless || all.fullword) {
            return Err(Reject::Malformed("modifiers that do not go together".to_owned()));
        }
        Ok(all)
    }

    /// Reads the argument of a modifier in parentheses: keys, or an alphabet.
    fn argument(&mut self, keys: bool, all: &mut Modifiers) -> Result<(), Reject> {
        let key = |token| match token {
            Token::Number(key) => u8::try_from(key).map_err(|_| Reject::Malformed(format!("there is no key {key}"))),
            _ => Err(Reject::Malformed("a key that is no number".to_owned())),
        };
        match self.lexer.next()? {
            Token::Text(alphabet) if !keys => {
                if all.alphabet.as_ref().is_some_and(|other| *other != alphabet) {
                    return Err(Reject::Malformed("two alphabets of Base64".to_owned()));
                }
                all.alphabet = Some(alphabet);
            }
            token => {
                if !keys {
                    return Err(Reject::Malformed("an alphabet that is no text".to_owned()));
                }
                let first = key(token)?;
                let last = if self.takes(&Token::Symbol("-"))? { key(self.lexer.next()?)? } else { first };
                if last < first {
                    return Err(Reject::Malformed("keys that end before they begin".to_owned()));
                }
                all.xor = Some((first, last));
            }
        }
        self.symbol(")")
    }
}

/// Class of a rule in the census.
fn class_of(strings: &[Read], nodes: &[Node]) -> Class {
    if nodes.iter().any(Arena::is_of_head) {
        return Class::Bounded(Bound::Head);
    }
    if nodes.iter().any(|node| matches!(node, Node::Read(..)) || Arena::is_of_bytes(node)) {
        return Class::Bounded(Bound::Reads);
    }
    let is_open = |string: &Read| string.forms.iter().any(|form| form.len() > 1);
    let is_placed = |node: &Node| matches!(node, Node::Offset(..) | Node::Length(..) | Node::ForOf(..));
    if strings.iter().any(is_open) || nodes.iter().any(is_placed) {
        return Class::Bounded(Bound::Strings);
    }
    Class::AtEnd
}
