//! The words of YARA rules.
//!
//! After the YARA manual, "Writing YARA rules". A `/` always begins a comment or a regular expression, since division is
//! written `\`.

use crate::syntax::line::Reject;

/// A word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A keyword or an identifier.
    Word(&'a str),
    Number(i64),
    /// A number with a fraction, by its bits.
    Float(u64),
    /// A text in quotes, unescaped.
    Text(Vec<u8>),
    /// `$name`, or `$name*` with the asterisk; the name may be empty.
    Found(&'a str),
    /// `#name`.
    Count(&'a str),
    /// `@name`.
    Offset(&'a str),
    /// `!name`.
    Length(&'a str),
    /// The expression between slashes, and its flags.
    Regex(&'a [u8], &'a str),
    /// Anything else, as it stands.
    Symbol(&'a str),
    End,
}

const SYMBOLS: [&str; 8] = ["==", "!=", "<=", ">=", "<<", ">>", "..", ".*"];

/// Reads words from a text.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(text: &'a [u8]) -> Lexer<'a> {
        Lexer { text, at: 0 }
    }

    /// How many bytes were read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    /// The next word. What is none is passed, too, a byte of it at least, so that whoever goes on comes to an end.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, Reject> {
        self.skip_blanks();
        let before = self.at;
        let word = self.word();
        if word.is_err() {
            self.at = self.at.max(before + 1);
        }
        word
    }

    fn word(&mut self) -> Result<Token<'a>, Reject> {
        let rest = self.rest();
        let Some(&first) = rest.first() else {
            return Ok(Token::End);
        };
        match first {
            b'"' => self.quoted(),
            b'/' => self.regex(),
            b'$' => Ok(Token::Found(self.name_of_string(true))),
            b'#' => Ok(Token::Count(self.name_of_string(false))),
            b'@' => Ok(Token::Offset(self.name_of_string(false))),
            b'!' if rest.get(1) != Some(&b'=') => Ok(Token::Length(self.name_of_string(false))),
            b'0'..=b'9' => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(Token::Word(self.take_while(0, is_word))),
            _ => self.symbol(),
        }
    }

    fn symbol(&mut self) -> Result<Token<'a>, Reject> {
        let rest = self.rest();
        let double = SYMBOLS.iter().find(|symbol| rest.starts_with(symbol.as_bytes()));
        let length = double.filter(|symbol| **symbol != ".*").map_or(1, |symbol| symbol.len());
        let symbol = rest.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let symbol = symbol.ok_or_else(|| "a character that has no place in a rule".to_owned())?;
        self.at += length;
        Ok(Token::Symbol(symbol))
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let length = match rest {
                [b'/', b'/', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                [b'/', b'*', after @ ..] => memchr::memmem::find(after, b"*/").map_or(rest.len(), |end| end + 4),
                [blank, ..] if blank.is_ascii_whitespace() => 1,
                // A mark of the byte order, where an editor has left one.
                [0xef, 0xbb, 0xbf, ..] => 3,
                _ => return,
            };
            self.at += length;
        }
    }

    /// Takes `skip` bytes and those behind them that fit, and tells the latter.
    fn take_while(&mut self, skip: usize, fits: fn(u8) -> bool) -> &'a str {
        let rest = self.rest().get(skip..).unwrap_or(&[]);
        let length = rest.iter().take_while(|&&byte| fits(byte)).count();
        self.at += skip + length;
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    fn name_of_string(&mut self, with_asterisk: bool) -> &'a str {
        let start = self.at + 1;
        let name = self.take_while(1, is_word);
        if !with_asterisk || self.rest().first() != Some(&b'*') {
            return name;
        }
        self.at += 1;
        std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default()
    }

    fn number(&mut self) -> Result<Token<'a>, Reject> {
        let word = self.take_while(0, is_word);
        let (digits, factor) = match word.strip_suffix("KB") {
            Some(digits) => (digits, 1 << 10),
            None => word.strip_suffix("MB").map_or((word, 1), |digits| (digits, 1 << 20)),
        };
        let number = match (digits.strip_prefix("0x"), digits.strip_prefix("0o")) {
            (Some(hex), _) if factor == 1 => i64::from_str_radix(hex, 16),
            (_, Some(octal)) if factor == 1 => i64::from_str_radix(octal, 8),
            _ => digits.parse(),
        };
        // Two dots are those of a range.
        if let [b'.', b'0'..=b'9', ..] = self.rest() {
            let fraction = self.take_while(1, is_word);
            let float = format!("{word}.{fraction}").parse::<f64>();
            let float = float.map_err(|_| Reject::Malformed(format!("\"{word}.{fraction}\" is no number")))?;
            return Ok(Token::Float(float.to_bits()));
        }
        let number = number.ok().and_then(|number| number.checked_mul(factor));
        number.map(Token::Number).ok_or_else(|| Reject::Malformed(format!("{word:?} is no number")))
    }

    fn quoted(&mut self) -> Result<Token<'a>, Reject> {
        let mut text = Vec::new();
        let mut rest = self.rest().iter().copied().enumerate().skip(1);
        while let Some((at, byte)) = rest.next() {
            match byte {
                b'"' => {
                    self.at += at + 1;
                    return Ok(Token::Text(text));
                }
                b'\n' => break,
                b'\\' => text.push(escaped(&mut rest).ok_or_else(|| "an escape that is none".to_owned())?),
                byte => text.push(byte),
            }
        }
        Err(Reject::Malformed("a text without an end".to_owned()))
    }

    fn regex(&mut self) -> Result<Token<'a>, Reject> {
        let rest = &self.rest()[1..];
        let mut escaped = false;
        let end = rest.iter().position(|&byte| {
            let ends = !escaped && matches!(byte, b'/' | b'\n');
            escaped = !escaped && byte == b'\\';
            ends
        });
        let end =
            end.filter(|&end| rest[end] == b'/').ok_or_else(|| "a regular expression without an end".to_owned())?;
        self.at += 1 + end;
        let flags = self.take_while(1, is_word);
        match flags {
            "" | "i" | "s" | "is" => Ok(Token::Regex(&rest[..end], flags)),
            _ => Err(Reject::Malformed(format!("{flags:?} are no flags of a regular expression"))),
        }
    }

    /// Reads the text from the brace that was just read to the one that closes it: a body in hexadecimal digits,
    /// without blanks and comments.
    pub(crate) fn hex_body(&mut self) -> Result<Vec<u8>, Reject> {
        let mut body = Vec::new();
        loop {
            let before = self.at;
            self.skip_blanks();
            if self.at > before && is_half(&body) {
                return Err(Reject::Malformed("a blank within a byte".to_owned()));
            }
            match self.rest().first() {
                None => return Err(Reject::Malformed("a body without an end".to_owned())),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(body);
                }
                Some(&byte) => {
                    self.at += 1;
                    body.push(byte);
                }
            }
        }
    }

    /// Passes everything up to a word that begins a rule, an import or an inclusion.
    pub(crate) fn skip_to_rule(&mut self) {
        loop {
            let before = self.at;
            match self.next() {
                Ok(Token::End) => return,
                Ok(Token::Word("rule" | "private" | "global" | "import" | "include")) => {
                    self.at = before;
                    return;
                }
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Passes everything up to the end of the rule of whose braces so many are open.
    pub(crate) fn skip_rule(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.next() {
                Ok(Token::End) => return,
                Ok(Token::Symbol("{")) => depth += 1,
                Ok(Token::Symbol("}")) if depth <= 1 => return,
                Ok(Token::Symbol("}")) => depth -= 1,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Whether a body ends with half a byte, or a sign without its byte.
fn is_half(body: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'?';
    let digits = body.iter().rev().take_while(|byte| is_digit(byte)).count();
    let before = digits.checked_add(1).and_then(|at| body.len().checked_sub(at)).and_then(|at| body.get(at));
    digits % 2 == 1 && !matches!(before, Some(b'[' | b'-')) || body.last() == Some(&b'~')
}

/// Whether a word is one of YARA's own, and no identifier.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

const KEYWORDS: [&str; 50] = [
    "all",
    "and",
    "any",
    "ascii",
    "at",
    "base64",
    "base64wide",
    "condition",
    "contains",
    "defined",
    "endswith",
    "entrypoint",
    "false",
    "filesize",
    "for",
    "fullword",
    "global",
    "icontains",
    "iendswith",
    "iequals",
    "import",
    "in",
    "int16",
    "int16be",
    "int32",
    "int32be",
    "int8",
    "int8be",
    "istartswith",
    "matches",
    "meta",
    "nocase",
    "none",
    "not",
    "of",
    "or",
    "private",
    "rule",
    "startswith",
    "strings",
    "them",
    "true",
    "uint16",
    "uint16be",
    "uint32",
    "uint32be",
    "uint8",
    "uint8be",
    "wide",
    "xor",
];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn escaped(rest: &mut impl Iterator<Item = (usize, u8)>) -> Option<u8> {
    Some(match rest.next()?.1 {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'x' => {
            let mut digit = || char::from(rest.next()?.1).to_digit(16);
            (digit()? << 4 | digit()?) as u8
        }
        byte @ (b'"' | b'\\') => byte,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token<'_>> {
        let mut lexer = Lexer::new(text.as_bytes());
        let words = std::iter::from_fn(|| Some(lexer.next().expect(text)).filter(|token| *token != Token::End));
        words.collect()
    }

    #[test]
    fn words_of_every_kind_are_read() {
        let all = words("7.25 1..2");
        let float = Token::Float(7.25f64.to_bits());
        assert_eq!(all, [float, Token::Number(1), Token::Symbol(".."), Token::Number(2)]);
        let all = words("rule /* { */ a // x\n 10KB 0x1F 0o17 \"a\\x41\\\"\\n\" $b* $ #c @d[1] !e != (1..2) /a\\/b/is");
        assert_eq!(
            all[..5],
            [Token::Word("rule"), Token::Word("a"), Token::Number(10240), Token::Number(31), Token::Number(15)]
        );
        assert_eq!(
            all[5..9],
            [Token::Text(b"aA\"\n".to_vec()), Token::Found("b*"), Token::Found(""), Token::Count("c")]
        );
        assert_eq!(all[9], Token::Offset("d"));
        assert_eq!(all[13..15], [Token::Length("e"), Token::Symbol("!=")]);
        assert_eq!(all[17], Token::Symbol(".."));
        assert_eq!(all.last(), Some(&Token::Regex(b"a\\/b", "is")));
    }

    #[test]
    fn a_body_is_read_to_its_brace_and_a_rule_to_its_last() {
        let mut lexer = Lexer::new(b"{ 61 /* } */ 62 // }\n [2-4] 63 } x");
        lexer.next().expect("a brace");
        assert_eq!(lexer.hex_body(), Ok(b"6162[2-4]63".to_vec()));
        let mut lexer = Lexer::new(b"a { b = { 61 } c = \"}\" d = /}/ \"open\n } rule");
        lexer.skip_rule();
        assert_eq!(lexer.next(), Ok(Token::Word("rule")));
    }

    #[test]
    fn what_is_no_word_is_passed() {
        let mut lexer = Lexer::new(b" /ab\n \xff \"c\n");
        let errors =
            std::iter::from_fn(|| Some(lexer.next()).filter(|word| *word != Ok(Token::End))).filter(Result::is_err);
        assert_eq!(errors.take(100).count(), 3);
    }
}
