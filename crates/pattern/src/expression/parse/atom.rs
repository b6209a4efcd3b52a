//! Characters, escapes, anchors, references.

use super::super::error::{SyntaxError, Wrong};
use super::super::syntax::{Assertion, Node, has_case, lower};
use super::{NAMED, Parser};
use crate::ByteSet;

/// Set of the escapes `d`, `w`, `s`, `h`, `v` and their negations.
pub(super) fn class_of(letter: u8) -> Option<ByteSet> {
    let set = match letter.to_ascii_lowercase() {
        b'd' => DIGITS,
        b'w' => WORD,
        b's' => BLANKS,
        b'h' => ByteSet::from_words([1 << b' ' | 1 << b'\t', 0, 1 << (0xa0 - 128), 0]),
        b'v' => VERTICAL,
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { set.complement() } else { set })
}

/// As [`u8::is_ascii_digit`], [`is_word`](super::super::syntax::is_word) and so on say: rules have thousands of them.
const DIGITS: ByteSet = ByteSet::from_words([0x03ff << b'0', 0, 0, 0]);
const WORD: ByteSet = ByteSet::from_words([0x03ff << b'0', 0x07ff_fffe_87ff_fffe, 0, 0]);
const BLANKS: ByteSet = ByteSet::from_words([1 << b' ' | 0x1f << b'\t', 0, 0, 0]);
const VERTICAL: ByteSet = ByteSet::from_words([0x0f << b'\n', 0, 1 << (0x85 - 128), 0]);
const NO_LINE_FEED: ByteSet = ByteSet::from_words([!(1 << b'\n'), u64::MAX, u64::MAX, u64::MAX]);

impl Parser<'_, '_> {
    /// One atom; nothing if what stood here matches nothing and cannot be repeated.
    pub(super) fn atom(&mut self) -> Result<Option<Node>, SyntaxError> {
        let Some(byte) = self.peek() else {
            return Ok(None);
        };
        self.at += 1;
        if self.is_quoted {
            return Ok(Some(self.literal(byte)));
        }
        Ok(Some(match byte {
            b'*' | b'+' | b'?' => {
                self.at -= 1;
                return self.fail(Wrong::NothingToRepeat);
            }
            b'(' => return self.group(),
            b'[' => self.bracket()?,
            b'.' if self.flags.dot_all => Node::Set(ByteSet::EMPTY.complement()),
            b'.' => Node::Set(NO_LINE_FEED),
            b'^' if self.flags.multi_line => Node::Assert(Assertion::LineStart),
            b'^' => Node::Assert(Assertion::Start),
            b'$' if self.flags.multi_line => Node::Assert(Assertion::LineEnd),
            b'$' => Node::Assert(Assertion::LastLine),
            b'\\' => self.escape()?,
            byte => self.literal(byte),
        }))
    }

    fn literal(&self, byte: u8) -> Node {
        let (byte, fold) = self.folded(byte);
        Node::Literal { bytes: vec![byte], fold }
    }

    /// Value of a byte, and whether it stands for either case.
    pub(super) fn folded(&self, byte: u8) -> (u8, bool) {
        let fold = self.flags.ignore_case && has_case(byte);
        (if fold { lower(byte) } else { byte }, fold)
    }

    /// Reads an escape, after its backslash.
    fn escape(&mut self) -> Result<Node, SyntaxError> {
        let Some(letter) = self.peek() else {
            return self.fail(Wrong::TrailingBackslash);
        };
        if let Some(class) = class_of(letter) {
            self.at += 1;
            return Ok(Node::Set(class));
        }
        let assertion = match letter {
            b'A' => Assertion::Start,
            b'z' => Assertion::End,
            b'Z' => Assertion::LastLine,
            b'b' => Assertion::Word,
            b'B' => Assertion::NotWord,
            b'G' => Assertion::From,
            _ => return self.escape_that_takes(letter),
        };
        self.at += 1;
        if matches!(letter, b'b' | b'B') && self.peek() == Some(b'{') {
            return self.fail(Wrong::Unsupported("a Unicode boundary"));
        }
        Ok(Node::Assert(assertion))
    }

    fn escape_that_takes(&mut self, letter: u8) -> Result<Node, SyntaxError> {
        match letter {
            b'R' => {
                self.at += 1;
                let pair = Node::Literal { bytes: b"\r\n".to_vec(), fold: false };
                let one = Node::Set(VERTICAL);
                Ok(Node::Atomic(Box::new(Node::Alternate([pair, one].into()))))
            }
            b'N' if !self.is_name_behind() => {
                self.at += 1;
                Ok(Node::Set(NO_LINE_FEED))
            }
            b'1'..=b'9' => self.number(),
            b'g' => self.reference_g(),
            b'k' => self.reference_k(),
            b'K' => self.fail(Wrong::Unsupported("\\K")),
            b'X' => self.fail(Wrong::Unsupported("\\X")),
            b'C' => self.fail(Wrong::Unsupported("\\C")),
            _ => {
                let byte = self.escaped_byte()?;
                Ok(byte.map_or(Node::Never, |byte| self.literal(byte)))
            }
        }
    }

    /// Whether `\N` is followed by a name or a number in braces, and not by nothing or a count.
    fn is_name_behind(&self) -> bool {
        let Some(inside) = self.rest().strip_prefix(b"N{") else {
            return false;
        };
        inside.iter().take_while(|&&byte| byte != b'}').any(|byte| !byte.is_ascii_digit() && !b", ".contains(byte))
    }

    /// The byte for which an escape stands, inside and outside of brackets; behind the backslash. Nothing for a character
    /// beyond a byte, which matches none.
    pub(super) fn escaped_byte(&mut self) -> Result<Option<u8>, SyntaxError> {
        let Some(letter) = self.peek() else {
            return self.fail(Wrong::TrailingBackslash);
        };
        if matches!(letter, b'0'..=b'7') {
            return self.octal();
        }
        self.at += 1;
        Ok(Some(match letter {
            b'a' => 7,
            b'e' => 0x1b,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => return self.hexadecimal(),
            b'o' => return self.braced(8),
            b'c' => return self.control(),
            b'N' if self.rest().starts_with(b"{U+") => {
                self.at += 3;
                let digits = self.take_until(b'}');
                return self.number_of(digits, 16);
            }
            b'N' => return self.fail(Wrong::Unsupported("\\N{name}")),
            b'p' | b'P' => return self.fail(Wrong::Unsupported("a Unicode property")),
            b'L' | b'U' | b'F' | b'l' | b'u' => return self.fail(Wrong::Unsupported("a change of case")),
            letter => letter,
        }))
    }

    fn control(&mut self) -> Result<Option<u8>, SyntaxError> {
        match self.peek() {
            Some(letter @ b' '..=b'~') => {
                self.at += 1;
                Ok(Some(letter.to_ascii_uppercase() ^ 64))
            }
            _ => self.fail(Wrong::BadEscape),
        }
    }

    fn hexadecimal(&mut self) -> Result<Option<u8>, SyntaxError> {
        if self.peek() == Some(b'{') {
            return self.braced(16);
        }
        let digits = self.take_while(2, |byte| byte.is_ascii_hexdigit());
        self.number_of(Some(digits), 16)
    }

    /// Up to three octal digits.
    fn octal(&mut self) -> Result<Option<u8>, SyntaxError> {
        let digits = self.take_while(3, |byte| matches!(byte, b'0'..=b'7'));
        self.number_of(Some(digits), 8)
    }

    /// A number in braces.
    fn braced(&mut self, radix: u32) -> Result<Option<u8>, SyntaxError> {
        if !self.eat_plain(b'{') {
            return self.fail(Wrong::BadEscape);
        }
        let digits = self.take_until(b'}').map(|digits| digits.trim_ascii());
        self.number_of(digits, radix)
    }

    fn number_of(&self, digits: Option<&[u8]>, radix: u32) -> Result<Option<u8>, SyntaxError> {
        let Some(digits) = digits else {
            return self.fail(Wrong::BadEscape);
        };
        let mut number = 0u32;
        for &digit in digits {
            let Some(value) = char::from(digit).to_digit(radix) else {
                return self.fail(Wrong::BadEscape);
            };
            number = number.saturating_mul(radix).saturating_add(value);
        }
        Ok(u8::try_from(number).ok())
    }

    /// `\1`, and `\10` if there are that many groups; else it is octal.
    fn number(&mut self) -> Result<Node, SyntaxError> {
        let offset = self.at;
        let number = self.decimal().unwrap_or(0);
        if number >= 10 && number > self.groups_told {
            self.is_unsure = true;
            self.at = offset;
            let byte = self.escaped_byte()?;
            return Ok(byte.map_or(Node::Never, |byte| self.literal(byte)));
        }
        Ok(self.reference(number, offset))
    }

    /// A decimal number, if digits stand here.
    fn decimal(&mut self) -> Option<u32> {
        let digits = self.take_while(usize::MAX, |byte| byte.is_ascii_digit());
        let add = |number: u32, digit: &u8| number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
        (!digits.is_empty()).then(|| digits.iter().fold(0, add))
    }

    fn reference(&mut self, group: u32, offset: usize) -> Node {
        self.referred.push((group, offset));
        Node::Backreference { group: group.min(NAMED - 1), fold: self.flags.ignore_case }
    }

    /// `\g1`, `\g-1`, `\g{1}`, `\g{-1}`, `\g{name}`.
    fn reference_g(&mut self) -> Result<Node, SyntaxError> {
        self.at += 1;
        let offset = self.at;
        let is_braced = self.eat_plain(b'{');
        if is_braced {
            self.take_while(usize::MAX, |byte| byte == b' ');
        }
        let is_relative = self.eat_plain(b'-');
        if is_braced && !is_relative && !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let name = self.name(b'}')?;
            return Ok(self.reference_by_name(name, offset));
        }
        let Some(number) = self.decimal() else {
            return self.fail(Wrong::BadEscape);
        };
        if is_braced {
            self.take_while(usize::MAX, |byte| byte == b' ');
            if !self.eat_plain(b'}') {
                return self.fail(Wrong::BadEscape);
            }
        }
        let group = if is_relative { (self.groups + 1).saturating_sub(number) } else { number };
        if group == 0 || number == 0 {
            return Err(SyntaxError { offset, wrong: Wrong::NoSuchGroup });
        }
        Ok(self.reference(group, offset))
    }

    /// `\k<name>`, `\k'name'`, `\k{name}`.
    fn reference_k(&mut self) -> Result<Node, SyntaxError> {
        self.at += 1;
        let end = match self.peek() {
            Some(b'<') => b'>',
            Some(b'\'') => b'\'',
            Some(b'{') => b'}',
            _ => return self.fail(Wrong::BadEscape),
        };
        self.at += 1;
        let offset = self.at;
        let name = self.name(end)?;
        Ok(self.reference_by_name(name, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::syntax::is_word;
    use super::*;

    #[test]
    fn classes_have_the_bytes_that_perl_says() {
        let is = |letter, holds: fn(u8) -> bool| {
            assert_eq!(class_of(letter), Some(ByteSet::of(holds)), "{}", char::from(letter));
            assert_eq!(class_of(letter.to_ascii_uppercase()), Some(ByteSet::of(|byte| !holds(byte))));
        };
        is(b'd', |byte| byte.is_ascii_digit());
        is(b'w', is_word);
        is(b's', |byte| matches!(byte, b' ' | b'\t'..=b'\r'));
        is(b'h', |byte| matches!(byte, b' ' | b'\t' | 0xa0));
        is(b'v', |byte| matches!(byte, b'\n'..=b'\r' | 0x85));
        assert_eq!(NO_LINE_FEED, ByteSet::of(|byte| byte != b'\n'));
    }
}
