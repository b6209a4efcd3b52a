//! The words of PDF (ISO 32000-2, 7.2 and 7.3), byte by byte.
//!
//! Names are emitted with their `#xx` undone, strings with their escapes undone and byte by byte, so that nothing grows with
//! a string. What no grammar knows is a [`Token::Word`].
//!
//! Bounds: [`WORD_BYTES`] of a name or word; the rest of a longer one is dropped, and it equals nothing.

/// Maximum length of names and words; longer ones have no meaning.
const WORD_BYTES: usize = 127;

/// Token of the lexer.
#[derive(Debug, PartialEq)]
pub(super) enum Token {
    Integer(u64),
    /// `/Name`: ask [`Lexer::word`].
    Name,
    /// Anything else that is no delimiter: ask [`Lexer::word`].
    Word,
    DictionaryOpen,
    DictionaryClose,
    ArrayOpen,
    ArrayClose,
    StringOpen,
    StringByte(u8),
    StringClose,
}

/// Reads words.
pub(super) struct Lexer {
    state: State,
    word: Vec<u8>,
}

enum State {
    Between,
    Comment,
    /// A name; of `#xx` so much has been read.
    Name(Escape),
    Word,
    /// `<` has been read.
    Less,
    /// `>` has been read.
    Greater,
    Literal {
        depth: u32,
        escape: Literal,
    },
    Hex(Option<u8>),
}

#[derive(Clone, Copy)]
enum Escape {
    None,
    Hash,
    High(u8),
}

/// State of an escape in a literal string.
#[derive(Clone, Copy)]
enum Literal {
    Plain,
    /// `\` has been read.
    Backslash,
    /// So many octal digits, with this value.
    Octal(u8, u8),
    /// A carriage return, escaped or not, has been read: a line feed belongs to it.
    Return,
}

impl Lexer {
    pub fn new() -> Lexer {
        Lexer { state: State::Between, word: Vec::new() }
    }

    /// The name or word told last.
    pub fn word(&self) -> &[u8] {
        if self.word.len() > WORD_BYTES { b"" } else { &self.word }
    }

    /// Whether it is in a string.
    pub fn is_in_string(&self) -> bool {
        matches!(self.state, State::Literal { .. } | State::Hex(_))
    }

    /// Whether it is in a comment.
    pub fn is_in_comment(&self) -> bool {
        matches!(self.state, State::Comment)
    }

    /// Resets the lexer within a word.
    pub fn reset(&mut self) {
        self.state = State::Between;
        self.word.clear();
    }

    /// Reads one byte. Returns `false` with the finished word if the byte belongs to the next one.
    pub fn push(&mut self, byte: u8) -> (bool, Option<Token>) {
        match self.state {
            State::Between => (true, self.begin(byte)),
            State::Comment => {
                if matches!(byte, b'\r' | b'\n') {
                    self.state = State::Between;
                }
                (true, None)
            }
            State::Name(escape) => self.name(escape, byte),
            State::Word if is_regular(byte) => {
                self.add(byte);
                (true, None)
            }
            State::Word => {
                self.state = State::Between;
                (false, Some(integer(&self.word).map_or(Token::Word, Token::Integer)))
            }
            State::Less if byte == b'<' => self.tell(Token::DictionaryOpen),
            State::Less => {
                self.state = State::Hex(None);
                (false, Some(Token::StringOpen))
            }
            State::Greater if byte == b'>' => self.tell(Token::DictionaryClose),
            State::Greater => {
                self.state = State::Between;
                (false, None)
            }
            State::Literal { depth, escape } => self.literal(depth, escape, byte),
            State::Hex(high) => self.hex(high, byte),
        }
    }

    fn tell(&mut self, token: Token) -> (bool, Option<Token>) {
        self.state = State::Between;
        (true, Some(token))
    }

    fn add(&mut self, byte: u8) {
        if self.word.len() <= WORD_BYTES {
            self.word.push(byte);
        }
    }

    fn begin(&mut self, byte: u8) -> Option<Token> {
        match byte {
            b'%' => self.state = State::Comment,
            b'<' => self.state = State::Less,
            b'>' => self.state = State::Greater,
            b'[' => return Some(Token::ArrayOpen),
            b']' => return Some(Token::ArrayClose),
            b'(' => {
                self.state = State::Literal { depth: 0, escape: Literal::Plain };
                return Some(Token::StringOpen);
            }
            b'/' => {
                self.word.clear();
                self.state = State::Name(Escape::None);
            }
            _ if is_regular(byte) => {
                self.word.clear();
                self.word.push(byte);
                self.state = State::Word;
            }
            _ => {}
        }
        None
    }

    fn name(&mut self, escape: Escape, byte: u8) -> (bool, Option<Token>) {
        let digit = char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (add, next) = match (escape, digit) {
            (Escape::Hash, Some(high)) => (None, Escape::High(high)),
            (Escape::High(high), Some(low)) => (Some(high << 4 | low), Escape::None),
            _ => {
                self.unescape(escape);
                if !is_regular(byte) {
                    self.state = State::Between;
                    return (false, Some(Token::Name));
                }
                if byte == b'#' { (None, Escape::Hash) } else { (Some(byte), Escape::None) }
            }
        };
        add.into_iter().for_each(|byte| self.add(byte));
        self.state = State::Name(next);
        (true, None)
    }

    /// A `#` without two digits behind it stands for itself.
    fn unescape(&mut self, escape: Escape) {
        match escape {
            Escape::None => {}
            Escape::Hash => self.add(b'#'),
            Escape::High(high) => {
                self.add(b'#');
                self.add(char::from_digit(high.into(), 16).map_or(b'0', |digit| digit as u8));
            }
        }
    }

    fn literal(&mut self, depth: u32, escape: Literal, byte: u8) -> (bool, Option<Token>) {
        let stay = |escape| State::Literal { depth, escape };
        let (next, token) = match (escape, byte) {
            (Literal::Return, b'\n') => (stay(Literal::Plain), None),
            (Literal::Octal(digits, value), b'0'..=b'7') if digits < 3 => {
                let value = value << 3 | (byte - b'0');
                if digits == 2 {
                    (stay(Literal::Plain), Some(Token::StringByte(value)))
                } else {
                    (stay(Literal::Octal(digits + 1, value)), None)
                }
            }
            (Literal::Octal(_, value), _) => {
                self.state = stay(Literal::Plain);
                return (false, Some(Token::StringByte(value)));
            }
            (Literal::Backslash, b'0'..=b'7') => (stay(Literal::Octal(1, byte - b'0')), None),
            (Literal::Backslash, b'\r') => (stay(Literal::Return), None),
            (Literal::Backslash, b'\n') => (stay(Literal::Plain), None),
            (Literal::Backslash, _) => (stay(Literal::Plain), Some(Token::StringByte(unescaped(byte)))),
            (_, b'\\') => (stay(Literal::Backslash), None),
            (_, b'\r') => (stay(Literal::Return), Some(Token::StringByte(b'\n'))),
            (_, b'(') => (
                State::Literal { depth: depth.saturating_add(1), escape: Literal::Plain },
                Some(Token::StringByte(byte)),
            ),
            (_, b')') if depth == 0 => (State::Between, Some(Token::StringClose)),
            (_, b')') => (State::Literal { depth: depth - 1, escape: Literal::Plain }, Some(Token::StringByte(byte))),
            _ => (stay(Literal::Plain), Some(Token::StringByte(byte))),
        };
        self.state = next;
        (true, token)
    }

    /// In a hexadecimal string; a missing last digit is 0, and non-digits are skipped.
    fn hex(&mut self, high: Option<u8>, byte: u8) -> (bool, Option<Token>) {
        let digit = char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (taken, next, token) = match (high, digit) {
            (Some(high), Some(low)) => (true, State::Hex(None), Some(Token::StringByte(high << 4 | low))),
            (None, Some(digit)) => (true, State::Hex(Some(digit)), None),
            (Some(high), None) if byte == b'>' => (false, State::Hex(None), Some(Token::StringByte(high << 4))),
            (None, None) if byte == b'>' => (true, State::Between, Some(Token::StringClose)),
            (high, None) => (true, State::Hex(high), None),
        };
        self.state = next;
        (taken, token)
    }
}

/// Neither white space nor a delimiter (7.2.3).
pub(super) fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !matches!(byte, b'(' | b')' | b'<' | b'>' | b'[' | b']' | b'{' | b'}' | b'/' | b'%')
}

/// White space (7.2.3).
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

/// Meaning of a backslash and this byte.
fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        _ => byte,
    }
}

/// A word that is a number without sign or fraction; `+` is allowed.
fn integer(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"+").unwrap_or(word);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0u64, |value, digit| value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens of `text`, names and words with their text.
    fn tokens(text: &[u8]) -> Vec<String> {
        let mut lexer = Lexer::new();
        let mut tokens = Vec::new();
        for &byte in text {
            loop {
                let (taken, token) = lexer.push(byte);
                let word = String::from_utf8_lossy(lexer.word()).into_owned();
                tokens.extend(token.map(|token| match token {
                    Token::Name => format!("/{word}"),
                    Token::Word => word,
                    Token::Integer(value) => value.to_string(),
                    Token::DictionaryOpen => "<<".into(),
                    Token::DictionaryClose => ">>".into(),
                    Token::ArrayOpen => "[".into(),
                    Token::ArrayClose => "]".into(),
                    Token::StringOpen => "(".into(),
                    Token::StringClose => ")".into(),
                    Token::StringByte(byte) => byte.escape_ascii().to_string(),
                }));
                if taken {
                    break;
                }
            }
        }
        tokens
    }

    #[test]
    fn words_end_where_delimiters_begin() {
        assert_eq!(
            tokens(b"<</Fl#61te[1 -2]/A%c (\n/B 4 0 R true>>"),
            ["<<", "/Flate", "[", "1", "-2", "]", "/A", "/B", "4", "0", "R", "true", ">>"]
        );
    }

    #[test]
    fn hashes_that_escape_nothing_stand_for_themselves() {
        assert_eq!(tokens(b"/A#4 /B# /C#4g /##41 "), ["/A#4", "/B#", "/C#4g", "/#A"]);
    }

    #[test]
    fn strings_lose_their_escapes() {
        assert_eq!(tokens(br"(a(b)\)\101\7\nq\q)").concat(), r"(a(b))A\x07\nqq)");
        assert_eq!(tokens(b"(a\\\r\nb\r\nc\rd)").concat(), r"(ab\nc\nd)");
        assert_eq!(tokens(b"<41 4\n2 5>").concat(), "(ABP)");
    }
}
