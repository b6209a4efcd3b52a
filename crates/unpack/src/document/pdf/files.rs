//! Names of embedded files in an object stream: its file specifications, which the streams outside are called by.
//!
//! Bounds: one object.

use super::known::Known;
use super::lexer::{Lexer, Token};
use super::object::{Object, STRING_BYTES};

/// Reads the dictionaries of an object stream for the names in them.
pub(super) struct Files {
    lexer: Lexer,
    object: Object,
    text: Vec<u8>,
}

impl Files {
    pub fn new() -> Files {
        Files { lexer: Lexer::new(), object: Object::new(None), text: Vec::new() }
    }

    /// Reads content, and notes the names that it tells.
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
        let object = &mut self.object;
        match token {
            Token::DictionaryOpen if object.is_complete() => {
                *object = Object::new(None);
                object.open(true);
            }
            Token::DictionaryOpen => object.open(true),
            Token::ArrayOpen => object.open(false),
            Token::DictionaryClose | Token::ArrayClose => {
                object.close();
                if let Some((name, streams)) = object.file.take() {
                    streams.into_iter().for_each(|number| known.name(number, &name, None));
                }
            }
            Token::Name => object.name(self.lexer.word()),
            Token::Word => object.word(self.lexer.word()),
            Token::Integer(value) => object.integer(value),
            Token::StringOpen => self.text.clear(),
            Token::StringByte(byte) if self.text.len() < STRING_BYTES => self.text.push(byte),
            Token::StringByte(_) => {}
            Token::StringClose => object.string(&self.text),
        }
    }
}
