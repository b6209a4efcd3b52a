//! The text of a page of PDF (ISO 32000-2, section 9.4): the strings that its operators show. Characters are taken for those of
//! Windows-1252, as most fonts that have one byte for each are written; what fonts number in another way is left out.

use text::charset::Charset;

use super::Sink;

/// A gap between strings in an array from which on it stands for a blank, in thousandths of the font's size.
const BLANK_GAP: i32 = -180;

/// The longest string that is read, in bytes.
const STRING_BYTES_MAX: usize = 4 << 10;

/// Whether the beginning of a stream looks like that of a page with text.
pub(super) fn is_page(head: &[u8]) -> bool {
    head.windows(3).any(|at| matches!(at, [b'B', b'T', b' ' | b'\r' | b'\n' | b'/'] | [b' ', b'T', b'f']))
}

/// Reads a page.
#[derive(Debug, Default)]
pub(super) struct PdfPage {
    state: State,
    string: Vec<u8>,
    /// The number or operator under way.
    word: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// In a string, so many parentheses within it.
    String(u32),
    /// The same behind a backslash.
    Escaped(u32),
    /// The same in a number of so many octal digits.
    Octal(u32, u8),
    Hex,
    Comment,
}

impl PdfPage {
    pub fn read(&mut self, bytes: &[u8], sink: &mut Sink) {
        bytes.iter().for_each(|&byte| self.step(byte, sink));
    }

    fn step(&mut self, byte: u8, sink: &mut Sink) {
        match (self.state, byte) {
            (State::Outside, _) => self.outside(byte, sink),
            (State::Comment, b'\r' | b'\n') => self.state = State::Outside,
            (State::Comment, _) => {}
            (State::Hex, b'>') => self.end_hex(sink),
            (State::Hex, _) => self.push(byte),
            (State::Octal(depth, digits @ ..3), b'0'..=b'7') => {
                let value = self.string.pop().unwrap_or(0);
                self.string.push(value.wrapping_mul(8).wrapping_add(byte - b'0'));
                self.state = State::Octal(depth, digits + 1);
            }
            (State::Octal(depth, _), _) => {
                self.state = State::String(depth);
                self.step(byte, sink);
            }
            (State::Escaped(depth), _) => self.escaped(depth, byte),
            (State::String(depth), b'\\') => self.state = State::Escaped(depth),
            (State::String(0), b')') => {
                self.state = State::Outside;
                let string = std::mem::take(&mut self.string);
                // Of fonts with two bytes a character it says nothing.
                if !string.contains(&0) {
                    sink.text(&Charset::WINDOWS_1252.lossy(&string));
                }
            }
            (State::String(depth), b'(') => (_, self.state) = (self.push(byte), State::String(depth.saturating_add(1))),
            (State::String(depth), b')') => (_, self.state) = (self.push(byte), State::String(depth.saturating_sub(1))),
            (State::String(_), _) => self.push(byte),
        }
    }

    fn outside(&mut self, byte: u8, sink: &mut Sink) {
        if byte.is_ascii_alphanumeric() || b"-+.*'\"/_".contains(&byte) {
            if self.word.len() < 16 {
                self.word.push(byte);
            }
            return;
        }
        self.end_word(sink);
        self.state = match byte {
            b'(' => State::String(0),
            b'<' => State::Hex,
            b'%' => State::Comment,
            _ => State::Outside,
        };
    }

    /// A wide gap between strings, or an operator: the word before it is over.
    fn end_word(&mut self, sink: &mut Sink) {
        let word = std::mem::take(&mut self.word);
        let Ok(word) = std::str::from_utf8(&word) else { return };
        let whole = word.split('.').next().unwrap_or_default();
        let is_gap = whole.parse::<i32>().is_ok_and(|gap| gap <= BLANK_GAP);
        if is_gap || matches!(word, "Td" | "TD" | "Tm" | "T*" | "Tj" | "TJ" | "ET" | "'" | "\"") {
            sink.blank();
        }
    }

    fn escaped(&mut self, depth: u32, byte: u8) {
        self.state = State::String(depth);
        match byte {
            b'0'..=b'7' => {
                self.push(byte - b'0');
                self.state = State::Octal(depth, 1);
            }
            b'\r' | b'\n' => {}
            b'n' | b'r' | b't' | b'b' | b'f' => self.push(b' '),
            _ => self.push(byte),
        }
    }

    /// Digits of bytes: they are text if all of them are printable.
    fn end_hex(&mut self, sink: &mut Sink) {
        self.state = State::Outside;
        let digits = std::mem::take(&mut self.string);
        let bytes = text::hex::decode(&digits).filter(|bytes| bytes.iter().all(|byte| (b' '..=b'~').contains(byte)));
        if let Some(text) = bytes.and_then(|bytes| String::from_utf8(bytes).ok()) {
            sink.text(&text);
        }
    }

    fn push(&mut self, byte: u8) {
        if self.string.len() < STRING_BYTES_MAX {
            self.string.push(byte);
        }
    }
}
