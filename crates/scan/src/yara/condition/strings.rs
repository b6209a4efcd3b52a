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

    pub(super) fn string(&self, name: &str) -> Result<StringId, Reject> {
        if name.is_empty() && self.in_strings {
            return Ok(CURRENT);
        }
        let found = self.scope.strings.iter().find(|(known, _)| known == name && !name.is_empty());
        found.map(|(_, string)| *string).ok_or_else(|| Reject::Malformed(format!("there is no string ${name}")))
    }

    /// Reads `of` after a number, which may be one of strings.
    pub(super) fn of_after(&mut self, number: NodeId) -> Result<NodeId, Reject> {
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
}
