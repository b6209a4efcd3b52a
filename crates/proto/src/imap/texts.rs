//! Texts of a server that a client shows: envelopes, previews, names of mailboxes and parts, the words of a status.
//!
//! Characters that a terminal obeys, and those that make a text read as another, become blanks. Lengths stay: what comes in a literal
//! was announced. The marks of one direction (U+061C, U+200E, U+200F) stay, since Arabic and Hebrew names have them; so do tabulators
//! and the bytes that shift between charsets (ISO 2022), which stand in old headers: of the sequences behind ESC no others. Encoded words
//! (RFC 2047) are not decoded.
//!
//! At most three bytes of a character are held, however the runs are cut.

use alloc::vec::Vec;

const ESCAPE: u8 = 0x1b;

/// The bytes behind ESC that choose a charset (ISO 2022).
const SHIFTS: &[u8] = b"$()*+-./NO";

/// Makes texts harmless, run by run.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    /// A character that has begun, or ESC.
    held: Vec<u8>,
}

impl Texts {
    /// Appends a run to `out`. Line ends have a meaning outside of a literal, and none in it.
    pub fn clean(&mut self, run: &[u8], is_literal: bool, out: &mut Vec<u8>) {
        for &byte in run {
            if self.held == [ESCAPE] {
                self.held.clear();
                out.push(if SHIFTS.contains(&byte) { ESCAPE } else { b' ' });
            } else if !self.held.is_empty() {
                if (0x80..0xc0).contains(&byte) {
                    self.held.push(byte);
                    self.end(out);
                    continue;
                }
                self.flush(out);
            }
            match byte {
                ESCAPE | 0xc2..0xf5 => self.held.push(byte),
                b'\r' | b'\n' if !is_literal => out.push(byte),
                b'\t' | 0x0e | 0x0f => out.push(byte),
                0..b' ' | 0x7f => out.push(b' '),
                byte => out.push(byte),
            }
        }
    }

    /// Appends the bytes that are held: the text is over.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        match *self.held {
            [ESCAPE] => out.push(b' '),
            _ => out.extend_from_slice(&self.held),
        }
        self.held.clear();
    }

    /// A whole text.
    pub fn cleaned(text: &[u8]) -> Vec<u8> {
        let (mut texts, mut out) = (Texts::default(), Vec::with_capacity(text.len()));
        texts.clean(text, true, &mut out);
        texts.flush(&mut out);
        out
    }

    /// Decides on the character that is held, if it is complete.
    fn end(&mut self, out: &mut Vec<u8>) {
        let len = match self.held.first() {
            Some(..0xe0) => 2,
            Some(..0xf0) => 3,
            _ => 4,
        };
        if self.held.len() < len {
            return;
        }
        let character = core::str::from_utf8(&self.held).ok().and_then(|text| text.chars().next());
        match character.is_some_and(is_dangerous) {
            true => out.resize(out.len().saturating_add(self.held.len()), b' '),
            false => out.extend_from_slice(&self.held),
        }
        self.held.clear();
    }
}

fn is_dangerous(character: char) -> bool {
    text::hazard::is_hazard(character) && !matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_mislead_are_blanks_however_the_runs_are_cut() {
        for (text, cleaned) in [
            ("gr\u{fc}n\u{202e}gpj.exe\u{2066}", "gr\u{fc}n   gpj.exe   "),
            ("\u{9b}31m \u{7f}\u{1}\t\u{1b}$B \u{200f}\u{5d0} \u{e0041}", "  31m   \t\u{1b}$B \u{200f}\u{5d0}     "),
            ("\u{2028}\u{feff}\u{200b}a\u{200d}b \u{1f600}", "         a\u{200d}b \u{1f600}"),
            ("\u{1b}]0;x\u{1b}[31m\u{1b}(B", " ]0;x [31m\u{1b}(B"),
        ] {
            for cut in 0..=text.len() {
                let (first, second) = text.as_bytes().split_at(cut);
                let (mut texts, mut out) = (Texts::default(), Vec::new());
                texts.clean(first, true, &mut out);
                texts.clean(second, true, &mut out);
                texts.flush(&mut out);
                assert_eq!(core::str::from_utf8(&out), Ok(cleaned), "cut at {cut}");
            }
        }
    }

    #[test]
    fn bytes_of_other_charsets_stay() {
        for bytes in [&b"\xe2\x80\" x"[..], b"gr\xfcn \xa4\xa4", b"\xe2", b"\xf0\x9f\x98", b"\xe2\x80\xe2\x80"] {
            assert_eq!(Texts::cleaned(bytes), bytes);
        }
        let mut out = Vec::new();
        Texts::default().clean(b"\"a\" {3}\r\n", false, &mut out);
        assert_eq!(out, b"\"a\" {3}\r\n");
        assert_eq!(Texts::cleaned(b"a\r\n* 2 BYE"), b"a  * 2 BYE");
    }
}
