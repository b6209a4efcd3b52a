//! Strings in conditions: whether, where and how often one is found, and `of` over a list.

use super::Reader;
use crate::syntax::line::Reject;
use crate::yara::id::{NodeId, StringId};
use crate::yara::lexer::Token;
use crate::yara::node::{CURRENT, List, Node, Quantifier, Where};

impl<'a, 's> Reader<'a, 's> {
    pub(super) fn found(&mut self, name: &str) -> Result<NodeId, Reject> {
        let string = self.string(name)?;
        let place = self.place()?;
        Ok(self.arena.add(Node::Found(string, place)))
    }

    /// `at` and a number, `in` and a range, or nothing.
    pub(super) fn place(&mut self) -> Result<Where, Reject> {
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
    pub(super) fn index(&mut self) -> Result<NodeId, Reject> {
        if !self.takes(&Token::Symbol("["))? {
            return Ok(self.arena.add(Node::Number(1)));
        }
        let index = self.integer(5)?;
        self.expect("]")?;
        Ok(index)
    }

    pub(super) fn string(&mut self, name: &str) -> Result<StringId, Reject> {
        if name.is_empty() && self.in_strings {
            return Ok(CURRENT);
        }
        let found = self.scope.strings.iter().position(|(known, _)| known == name && !name.is_empty());
        let found = found.ok_or_else(|| Reject::Malformed(format!("there is no string ${name}")))?;
        self.used[found] = true;
        Ok(self.scope.strings[found].1)
    }

    /// Adds the strings whose names begin with that, one at least.
    fn with_prefix(&mut self, prefix: &str, all: &mut Vec<StringId>) -> Result<(), Reject> {
        let before = all.len();
        for ((name, string), used) in self.scope.strings.iter().zip(&mut self.used) {
            if name.starts_with(prefix) {
                *used = true;
                all.push(*string);
            }
        }
        let is_empty = all.len() == before;
        if is_empty { Err(Reject::Malformed(format!("there is no string ${prefix}*"))) } else { Ok(()) }
    }

    /// Reads `of` after a number, which may be one of strings.
    pub(super) fn of_after(&mut self, number: NodeId) -> Result<NodeId, Reject> {
        let is_percentage = self.is_percentage();
        if !is_percentage && self.peek()? != Token::Word("of") {
            return Ok(number);
        }
        if self.arena.is_truth(number) || self.arena.is_float(number) {
            return Err(Reject::Malformed("a set without the number of those that must be found".to_owned()));
        }
        if !is_percentage {
            return self.of(Quantifier::Number(number));
        }
        self.lexer.next()?;
        if let Node::Number(..1 | 101..) = self.arena.get(number) {
            return Err(Reject::Malformed("a percentage that is not between 1 and 100".to_owned()));
        }
        self.of(Quantifier::Percent(number))
    }

    pub(super) fn of(&mut self, quantifier: Quantifier) -> Result<NodeId, Reject> {
        if !self.takes(&Token::Word("of"))? {
            return Err(Reject::Malformed("all, any or none of nothing".to_owned()));
        }
        let strings = self.strings()?;
        let place = self.place()?;
        Ok(self.arena.add(Node::Of(quantifier, strings, place)))
    }

    /// `them`, or strings in parentheses.
    pub(super) fn strings(&mut self) -> Result<List, Reject> {
        let mut all = Vec::new();
        if self.takes(&Token::Word("them"))? {
            self.with_prefix("", &mut all)?;
            return Ok(self.arena.add_list(&all));
        }
        self.expect("(")?;
        loop {
            match self.lexer.next()? {
                Token::Found(name) => match name.strip_suffix('*') {
                    Some(prefix) => self.with_prefix(prefix, &mut all)?,
                    None => {
                        let string = self.string(name)?;
                        all.push(string);
                    }
                },
                Token::Word(word) if word != "them" => return Err(Reject::Unsupported("sets of rules".to_owned())),
                _ => return Err(Reject::Malformed("a set of strings without strings".to_owned())),
            }
            if !self.takes(&Token::Symbol(","))? {
                break;
            }
        }
        self.expect(")")?;
        Ok(self.arena.add_list(&all))
    }
}
