//! Loops: `for` over numbers, strings, sections and signers, and its variables.

use super::Reader;
use crate::syntax::line::Reject;
use crate::yara::fact::Head;
use crate::yara::id::NodeId;
use crate::yara::lexer::{Token, is_keyword};
use crate::yara::node::{Node, Operator, Quantifier};

/// Type of a loop's variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Number,
    Section,
    Signer,
}

impl<'a, 's> Reader<'a, 's> {
    /// Reads the rest of `for`.
    pub(super) fn each(&mut self) -> Result<Node, Reject> {
        let quantifier = match self.peek()? {
            Token::Word(word @ ("all" | "any" | "none")) => {
                self.lexer.next()?;
                match word {
                    "all" => Quantifier::All,
                    "any" => Quantifier::Any,
                    _ => Quantifier::None,
                }
            }
            _ => Quantifier::Number(self.integer(5)?),
        };
        if self.takes(&Token::Word("of"))? {
            let strings = self.strings()?;
            if std::mem::replace(&mut self.in_strings, true) {
                return Err(Reject::Malformed("a loop over strings in another".to_owned()));
            }
            let body = self.body()?;
            self.in_strings = false;
            return Ok(Node::ForOf(quantifier, strings, body));
        }
        let Token::Word(variable) = self.lexer.next()? else {
            return Err(Reject::Malformed("a loop without a variable".to_owned()));
        };
        if is_keyword(variable) || self.variables.iter().any(|(name, _)| *name == variable) {
            return Err(Reject::Malformed(format!("{variable} as the variable of a loop")));
        }
        if !self.takes(&Token::Word("in"))? {
            return Err(Reject::Unsupported("loops with several variables".to_owned()));
        }
        if self.takes(&Token::Word("pe"))? {
            self.check_imported("pe")?;
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
    pub(super) fn variable(&mut self, number: usize) -> Result<Node, Reject> {
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
