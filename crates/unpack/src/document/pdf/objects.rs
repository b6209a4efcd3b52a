//! Facts in an object stream: names of embedded files, and small objects that streams outside refer to.
//!
//! Bounds: one object, the numbers of [`NUMBERS_MAX`] objects.

use super::known::Known;
use super::lexer::{Lexer, Token};
use super::object::{Object, STRING_BYTES};

/// Objects of a stream whose numbers are remembered; the ones behind are read without.
const NUMBERS_MAX: u64 = 4_096;

/// Reads the objects of an object stream (ISO 32000-2, 7.5.7).
pub(super) struct Objects {
    lexer: Lexer,
    object: Object,
    text: Vec<u8>,
    /// Integers of the head that are still to come: a number and an offset for each object.
    head: u64,
    /// Numbers of the objects to come, the next one last.
    numbers: Vec<u64>,
}

impl Objects {
    /// A reader of a stream with so many objects.
    pub fn new(count: u64) -> Objects {
        Objects {
            lexer: Lexer::new(),
            object: Object::new(None),
            text: Vec::new(),
            head: count.saturating_mul(2),
            numbers: Vec::new(),
        }
    }

    /// Reads content, and notes what it tells.
    pub fn read(&mut self, content: &[u8], known: &mut Known) {
        for &byte in content {
            loop {
                let (taken, token) = self.lexer.push(byte);
                token.into_iter().for_each(|token| self.token(token, known));
                if taken {
                    break;
                }
            }
        }
    }

    fn token(&mut self, token: Token, known: &mut Known) {
        if self.head > 0 {
            match token {
                Token::Integer(value) => return self.head(value),
                // Fewer numbers than were promised.
                _ => self.begin(),
            }
        }
        let object = &mut self.object;
        match token {
            Token::DictionaryOpen => return object.open(true),
            Token::ArrayOpen => return object.open(false),
            Token::DictionaryClose | Token::ArrayClose => {
                object.close();
                if let Some((name, streams)) = object.file.take() {
                    streams.into_iter().for_each(|number| known.name(number, &name, None));
                }
            }
            Token::Name => object.name(self.lexer.word()),
            Token::Word => object.word(self.lexer.word()),
            Token::Integer(value) => object.integer(value),
            Token::StringOpen => return self.text.clear(),
            Token::StringByte(byte) if self.text.len() < STRING_BYTES => return self.text.push(byte),
            Token::StringByte(_) => return,
            Token::StringClose => object.string(&self.text),
        }
        if !object.is_open() {
            known.small(std::mem::replace(object, Object::new(self.numbers.pop().map(|number| (number, 0)))));
        }
    }

    /// A number of the head, or an offset.
    fn head(&mut self, value: u64) {
        if self.head.is_multiple_of(2) && (self.numbers.len() as u64) < NUMBERS_MAX {
            self.numbers.push(value);
        }
        self.head -= 1;
        if self.head == 0 {
            self.begin();
        }
    }

    /// The first object begins.
    fn begin(&mut self) {
        self.head = 0;
        self.numbers.reverse();
        self.object = Object::new(self.numbers.pop().map(|number| (number, 0)));
    }
}
