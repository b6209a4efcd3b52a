//! Text of UTF-16 without a mark of its byte order, the least byte first, as `powershell -EncodedCommand` takes it: told as
//! UTF-8.
//!
//! Bounds: [`HEAD_BYTES`] by which it is judged.

use stream::{Kind, Object, ReadAt};
use text::utf16::{Endian, decode};

use crate::frame::reader::{Ended, Outbox, Reader};

const HEAD_BYTES: usize = 128;
const HEAD_MIN: usize = 32;

/// Whether bytes begin like such text: no unit is a control character, and three of four are ASCII.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let units = || head.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
    let is_odd = |unit: u16| matches!(unit, 0..=8 | 14..=31 | 127..=159 | 0xfeff | 0xfffe..);
    let ascii = units().filter(|&unit| unit < 127).count();
    head.len() >= HEAD_MIN && !units().any(is_odd) && ascii * 4 >= units().count() * 3
}

/// A reader of files without a known type.
#[derive(Default)]
pub(crate) struct Utf16 {
    /// The head, then what is left of a character.
    held: Vec<u8>,
    state: State,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Text,
    Other,
}

impl Utf16 {
    fn judge(&mut self, outbox: &mut Outbox) {
        if !is_text(&self.held) {
            self.state = State::Other;
            return;
        }
        self.state = State::Text;
        outbox.open(Object { kind: Kind::Embedded, ..Object::default() });
        self.tell(outbox);
    }

    /// Tells the characters that are whole.
    fn tell(&mut self, outbox: &mut Outbox) {
        let mut end = self.held.len() & !1;
        let is_first_half = |unit: &[u8]| unit[1] & 0xfc == 0xd8;
        if end > 0 && is_first_half(&self.held[end - 2..end]) {
            end -= 2;
        }
        outbox.content(decode(&self.held[..end], Endian::Little).as_bytes());
        self.held.drain(..end);
    }
}

impl Reader for Utf16 {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        match self.state {
            State::Other => input.len(),
            State::Text => {
                let count = input.len().min(1024);
                self.held.extend_from_slice(&input[..count]);
                self.tell(outbox);
                count
            }
            State::Head => {
                let count = input.len().min(HEAD_BYTES - self.held.len());
                self.held.extend_from_slice(&input[..count]);
                if self.held.len() == HEAD_BYTES {
                    self.judge(outbox);
                }
                count
            }
        }
    }

    fn is_over(&self) -> bool {
        self.state == State::Other
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if self.state == State::Head {
            self.judge(outbox);
        }
        if self.state == State::Text {
            outbox.content(decode(&self.held, Endian::Little).as_bytes());
            outbox.close();
        }
        self.state = State::Other;
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::reader::Reading;
    use stream::law;

    fn told(bytes: &[u8]) -> Vec<law::Told> {
        let make = || Reading::new(Utf16::default());
        law::holds(make, bytes);
        law::holds_at_every_cut(make, bytes);
        law::tell(make(), bytes)
    }

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn text_without_a_mark_is_told_in_utf_8() {
        for text in ["IEX (New-Object Net.WebClient)", &"$a = 'läng 𝄞'; ".repeat(40)] {
            assert_eq!(law::content(&told(&wide(text))), text.as_bytes());
        }
        for other in [&b"short"[..], &[0; 200], &wide("\u{1}IEX (New-Object Net.WebClient)"), &[b'a'; 300]] {
            assert_eq!(told(other).len(), 1, "{}", other.escape_ascii());
        }
    }
}
