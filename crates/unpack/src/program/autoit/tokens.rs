//! Tokens of a compiled script, written as text.

use crate::frame::codec::le32;
use crate::frame::reader::Outbox;

/// The longest token besides text.
const TOKENS: usize = 9;

/// Tokens of a script, as they become text.
#[derive(Default)]
pub(super) struct Tokens {
    /// The lines that the script says to have, once it has.
    pub(super) has_begun: bool,
    pub(super) held: Vec<u8>,
    /// A text on its way: what is left of it, its key, and how it ends.
    pub(super) text: Option<(u32, u16, &'static str)>,
    pub(super) high: Option<u16>,
}

impl Tokens {
    pub(super) fn byte(&mut self, byte: u8, outbox: &mut Outbox) -> bool {
        self.held.push(byte);
        if let Some((left, key, end)) = self.text {
            let [low, high] = self.held[..] else { return true };
            self.held.clear();
            self.character(u16::from_le_bytes([low, high]) ^ key, outbox);
            self.text = Some((left - 1, key, end)).filter(|(left, ..)| *left > 0);
            if self.text.is_none() {
                outbox.content(end.as_bytes());
            }
            return true;
        }
        if !self.has_begun {
            self.has_begun = self.held.len() == 4;
            if self.has_begun {
                self.held.clear();
            }
            return true;
        }
        self.token(outbox)
    }

    fn character(&mut self, unit: u16, outbox: &mut Outbox) {
        let units = [self.high.take().unwrap_or(unit), unit];
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        let is_pair = units[0] != unit;
        for character in char::decode_utf16(units[usize::from(!is_pair)..].iter().copied()) {
            let mut bytes = [0; 4];
            outbox.content(character.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes).as_bytes());
        }
    }

    fn token(&mut self, outbox: &mut Outbox) -> bool {
        const OPERATORS: [&str; 25] = [
            ",", "=", ">", "<", "<>", ">=", "<=", "(", ")", "+", "-", "/", "*", "&", "[", "]", "==", "^", "+=", "-=",
            "/=", "*=", "&=", "?", ":",
        ];
        let token = self.held[0];
        let wanted = match token {
            0x00 | 0x01 | 0x05 | 0x30..=0x37 => 5,
            0x10 | 0x20 => TOKENS,
            0x40..=0x58 | 0x7f => 1,
            _ => return false,
        };
        if self.held.len() < wanted {
            return true;
        }
        let (word, long) = (le32(&self.held, 1), u64::from(le32(&self.held, 5)) << 32 | u64::from(le32(&self.held, 1)));
        self.held.clear();
        let begin = match token {
            0x32 => "@",
            0x33 => "$",
            0x35 => ".",
            0x36 => "\"",
            _ => "",
        };
        match token {
            0x7f => outbox.content(b"\r\n"),
            0x40..=0x58 => outbox.content(format!("{} ", OPERATORS[usize::from(token - 0x40)]).as_bytes()),
            0x10 => outbox.content(format!("{long} ").as_bytes()),
            0x20 => outbox.content(format!("{} ", f64::from_bits(long)).as_bytes()),
            0x30.. => {
                outbox.content(begin.as_bytes());
                let end = if token == 0x36 { "\" " } else { " " };
                self.text = Some((word, word as u16, end)).filter(|_| word > 0);
                if word == 0 {
                    outbox.content(end.as_bytes());
                }
            }
            _ => outbox.content(format!("{word} ").as_bytes()),
        }
        true
    }
}
