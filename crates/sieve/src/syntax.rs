//! Commands, arguments, tests and blocks of a script (RFC 5228, section 8.2), whatever they mean.
//!
//! Bounds: [`DEPTH_MAX`], [`LIST_MAX`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::error::{Error, Place};
use crate::lexer::{Lexer, Token};

/// How deep blocks, and tests, may be nested.
pub const DEPTH_MAX: usize = 32;
/// Strings of a list, and tests of one.
pub const LIST_MAX: usize = 4_096;

/// A command or a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// In lower case.
    pub name: String,
    pub place: Place,
    pub arguments: Vec<Argument>,
    pub tests: Vec<Node>,
    /// The tests are in parentheses.
    pub is_list: bool,
    /// None: it ends in a semicolon, or is a test.
    pub block: Option<Vec<Node>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub place: Place,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// In lower case.
    Tag(String),
    Number(u64),
    Text(String),
    List(Vec<String>),
}

/// Reads a script.
pub(crate) fn parse(source: &str) -> Result<Vec<Node>, Error> {
    let mut parser = Parser { lexer: Lexer::new(source), place: Place::default(), token: Token::End };
    parser.advance()?;
    let commands = parser.commands(0)?;
    match parser.token {
        Token::End => Ok(commands),
        _ => Err(parser.unexpected("a command")),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    place: Place,
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, Error> {
        let (place, token) = self.lexer.next()?;
        self.place = place;
        Ok(core::mem::replace(&mut self.token, token))
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let found = match &self.token {
            Token::Identifier(name) => format!("{name:?}"),
            Token::Tag(name) => format!("\":{name}\""),
            Token::Number(number) => number.to_string(),
            Token::Text(_) => "a string".into(),
            Token::Mark(mark) => format!("\"{mark}\""),
            Token::End => "the end of the script".into(),
        };
        Error::new(self.place, format!("{wanted} is expected, and here is {found}"))
    }

    fn eat(&mut self, mark: char) -> Result<bool, Error> {
        let found = self.token == Token::Mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn commands(&mut self, depth: usize) -> Result<Vec<Node>, Error> {
        if depth > DEPTH_MAX {
            return Err(Error::new(self.place, format!("blocks are nested more than {DEPTH_MAX} deep")));
        }
        let mut commands = Vec::new();
        while let Token::Identifier(_) = self.token {
            let mut node = self.node(0)?;
            if !self.eat(';')? {
                if !self.eat('{')? {
                    return Err(self.unexpected("\";\" or \"{\""));
                }
                node.block = Some(self.commands(depth.saturating_add(1))?);
                if !self.eat('}')? {
                    return Err(self.unexpected("a command or \"}\""));
                }
            }
            commands.push(node);
        }
        Ok(commands)
    }

    /// A name, arguments and tests.
    fn node(&mut self, depth: usize) -> Result<Node, Error> {
        if depth > DEPTH_MAX {
            return Err(Error::new(self.place, format!("tests are nested more than {DEPTH_MAX} deep")));
        }
        let place = self.place;
        let Token::Identifier(name) = self.token else { return Err(self.unexpected("a test")) };
        let name = name.to_ascii_lowercase();
        self.advance()?;
        let mut node = Node { name, place, arguments: Vec::new(), tests: Vec::new(), is_list: false, block: None };
        while let Some(value) = self.argument()? {
            node.arguments.push(value);
        }
        let depth = depth.saturating_add(1);
        if let Token::Identifier(_) = self.token {
            node.tests.push(self.node(depth)?);
        } else if self.eat('(')? {
            node.is_list = true;
            loop {
                node.tests.push(self.node(depth)?);
                if node.tests.len() > LIST_MAX {
                    return Err(Error::new(self.place, format!("more than {LIST_MAX} tests")));
                }
                if !self.eat(',')? {
                    break;
                }
            }
            if !self.eat(')')? {
                return Err(self.unexpected("\",\" or \")\""));
            }
        }
        Ok(node)
    }

    fn argument(&mut self) -> Result<Option<Argument>, Error> {
        let place = self.place;
        let value = match &self.token {
            Token::Tag(name) => Value::Tag(name.to_ascii_lowercase()),
            Token::Number(number) => Value::Number(*number),
            Token::Text(text) => Value::Text(text.clone()),
            Token::Mark('[') => {
                self.advance()?;
                return self.list(place).map(Some);
            }
            _ => return Ok(None),
        };
        self.advance()?;
        Ok(Some(Argument { place, value }))
    }

    fn list(&mut self, place: Place) -> Result<Argument, Error> {
        let mut strings = Vec::new();
        loop {
            let Token::Text(text) = &self.token else { return Err(self.unexpected("a string")) };
            strings.push(text.clone());
            if strings.len() > LIST_MAX {
                return Err(Error::new(place, format!("more than {LIST_MAX} strings")));
            }
            self.advance()?;
            if !self.eat(',')? {
                break;
            }
        }
        if !self.eat(']')? {
            return Err(self.unexpected("\",\" or \"]\""));
        }
        Ok(Argument { place, value: Value::List(strings) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let blocks = |depth: usize| format!("{}{}", "if true {".repeat(depth), "}".repeat(depth));
        assert!(parse(&blocks(DEPTH_MAX)).is_ok());
        assert!(parse(&blocks(DEPTH_MAX + 1)).is_err());
        assert!(parse(&format!("if {}true {{}}", "not ".repeat(DEPTH_MAX - 1))).is_ok());
        assert!(parse(&format!("if {}true {{}}", "not ".repeat(100_000))).is_err());
    }

    #[test]
    fn errors_say_what_is_expected() {
        for (source, wanted) in [
            ("keep", "line 1, column 5: \";\" or \"{\" is expected, and here is the end of the script"),
            ("keep;\n}", "line 2, column 1: a command is expected, and here is \"}\""),
            ("if anyof(true {}", "line 1, column 15: \",\" or \")\" is expected, and here is \"{\""),
            ("x [];", "line 1, column 4: a string is expected, and here is \"]\""),
            ("if x { keep; ", "line 1, column 14: a command or \"}\" is expected, and here is the end of the script"),
        ] {
            assert_eq!(parse(source).unwrap_err().to_string(), wanted, "{source}");
        }
    }
}
