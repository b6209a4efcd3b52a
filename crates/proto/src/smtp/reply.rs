//! Replies (RFC 5321, section 4.2) with enhanced status codes (RFC 2034).

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The bytes of one reply line's text, at most.
const TEXT_BYTES_MAX: usize = 480;

/// A reply: what happened, for the program and for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The three digits, 200 to 599.
    pub code: u16,
    /// The enhanced code (RFC 3463).
    pub enhanced: Option<Enhanced>,
    /// The text, lines separated by `\n`.
    pub text: Cow<'static, str>,
}

/// An enhanced status code: class, subject, detail.
pub type Enhanced = (u8, u16, u16);

impl Reply {
    /// A reply with a text of our own.
    pub const fn new(code: u16, enhanced: Enhanced, text: &'static str) -> Reply {
        Reply { code, enhanced: Some(enhanced), text: Cow::Borrowed(text) }
    }

    /// A reply with a text made for the occasion.
    pub const fn with_text(code: u16, enhanced: Enhanced, text: String) -> Reply {
        Reply { code, enhanced: Some(enhanced), text: Cow::Owned(text) }
    }

    /// Whether it says yes.
    pub const fn is_positive(&self) -> bool {
        self.code >= 200 && self.code < 400
    }

    /// Whether it says no for ever.
    pub const fn is_permanent(&self) -> bool {
        self.code >= 500
    }

    /// Appends the reply as it goes over the wire. Whatever the text holds, it stays one reply: control characters
    /// become spaces, and long lines are cut.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut lines = self.text.split('\n').peekable();
        while let Some(line) = lines.next() {
            out.extend_from_slice(&digits(self.code));
            out.push(if lines.peek().is_some() { b'-' } else { b' ' });
            if let Some((class, subject, detail)) = self.enhanced {
                out.extend_from_slice(alloc::format!("{class}.{subject}.{detail} ").as_bytes());
            }
            let safe = line.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte });
            out.extend(safe.take(TEXT_BYTES_MAX));
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Splits one line of a peer's reply: its code, whether more lines follow, and its text.
    pub(super) fn split_line(line: &[u8]) -> Option<(u16, bool, &[u8])> {
        let (code, rest) = line.split_at_checked(3)?;
        if !code.iter().all(u8::is_ascii_digit) || !(b'2'..=b'5').contains(&code[0]) {
            return None;
        }
        let code = code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        match rest.split_first() {
            None => Some((code, false, rest)),
            Some((b' ', text)) => Some((code, false, text)),
            Some((b'-', text)) => Some((code, true, text)),
            Some(_) => None,
        }
    }

    /// A peer's reply from its code and its text, the enhanced code taken out of each line.
    pub(super) fn heard(code: u16, text: &str) -> Reply {
        let first = text.split('\n').next().unwrap_or_default();
        let Some((enhanced, _)) = enhanced(first).filter(|((class, ..), _)| u16::from(*class) == code / 100) else {
            return Reply { code, enhanced: None, text: Cow::Owned(text.to_owned()) };
        };
        let lines = text.split('\n').map(|line| match self::enhanced(line) {
            Some((same, rest)) if same == enhanced => rest,
            _ => line,
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        Reply { code, enhanced: Some(enhanced), text: Cow::Owned(text) }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some((class, subject, detail)) = self.enhanced {
            write!(f, " {class}.{subject}.{detail}")?;
        }
        write!(f, " {}", self.text.replace('\n', " "))
    }
}

fn digits(code: u16) -> [u8; 3] {
    let code = code.clamp(200, 599);
    [code / 100, code / 10 % 10, code % 10].map(|digit| b'0' + digit as u8)
}

fn enhanced(line: &str) -> Option<(Enhanced, &str)> {
    let (code, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut numbers = code.split('.');
    let class = numbers.next()?.parse().ok().filter(|class| matches!(class, 2 | 4 | 5))?;
    let subject = numbers.next()?.parse().ok().filter(|&number: &u16| number < 1000)?;
    let detail = numbers.next()?.parse().ok().filter(|&number: &u16| number < 1000)?;
    numbers.next().is_none().then_some(((class, subject, detail), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn wire(reply: &Reply) -> String {
        let mut out = Vec::new();
        reply.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_share_code_and_enhanced_code() {
        assert_eq!(wire(&Reply::new(554, (5, 7, 1), "No\nReally")), "554-5.7.1 No\r\n554 5.7.1 Really\r\n");
    }

    #[test]
    fn a_text_cannot_inject_a_line() {
        assert_eq!(wire(&Reply::with_text(550, (5, 0, 0), "a\r250 ok\0".into())), "550 5.0.0 a 250 ok \r\n");
        assert!(wire(&Reply::with_text(550, (5, 0, 0), "x".repeat(5000))).len() <= 512);
    }

    #[test]
    fn what_a_peer_said_is_handed_on_as_it_was() {
        let reply = Reply::heard(550, "5.1.1 No such user\n5.1.1 here");
        assert_eq!(reply.enhanced, Some((5, 1, 1)));
        assert_eq!(wire(&reply), "550-5.1.1 No such user\r\n550 5.1.1 here\r\n");
        assert_eq!(Reply::heard(250, "5.1.1 odd").to_string(), "250 5.1.1 odd");
    }

    #[test]
    fn junk_is_no_reply() {
        for junk in ["", "25", "abc", "150 x", "250x", "650 x"] {
            assert_eq!(Reply::split_line(junk.as_bytes()), None, "{junk}");
        }
    }
}
