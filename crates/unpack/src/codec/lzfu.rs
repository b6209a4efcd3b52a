//! Compressed RTF of Outlook (MS-OXRTFCP): LZ77 over a window that begins with the usual words of an RTF.
//!
//! Bounds: a window of 4 KiB.

use stream::{Kind, Object, ReadAt};

use crate::frame::codec::{Collected, le32};
use crate::frame::reader::{Ended, Outbox, Reader};

const WINDOW: usize = 4096;
const HEADER: usize = 16;
const COMPRESSED: u32 = 0x7546_5a4c;
const PLAIN: u32 = 0x414c_454d;

/// Initial content of the window.
const START: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// Emits the RTF in such a stream.
pub(crate) struct LzFu {
    header: Collected<HEADER>,
    opened: bool,
    window: Box<[u8; WINDOW]>,
    at: usize,
    state: State,
}

enum State {
    Flags,
    /// So many items are left; these flags say which of them are references.
    Items {
        flags: u8,
        left: u32,
    },
    Reference {
        flags: u8,
        left: u32,
        first: u8,
    },
    Over,
}

impl LzFu {
    pub fn new() -> LzFu {
        let mut window = Box::new([0; WINDOW]);
        window[..START.len()].copy_from_slice(START);
        LzFu { header: Collected::new(), opened: false, window, at: START.len(), state: State::Flags }
    }

    fn write(&mut self, byte: u8, outbox: &mut Outbox) {
        self.window[self.at] = byte;
        self.at = (self.at + 1) % WINDOW;
        outbox.content(&[byte]);
    }

    fn item(&mut self, byte: u8, outbox: &mut Outbox) {
        self.state = match self.state {
            State::Flags => State::Items { flags: byte, left: 8 },
            State::Items { flags, left } if flags & 1 == 1 => State::Reference { flags, left, first: byte },
            State::Items { flags, left } => {
                self.write(byte, outbox);
                next(flags, left)
            }
            State::Reference { flags, left, first } => {
                let token = usize::from(u16::from_be_bytes([first, byte]));
                let (from, length) = (token >> 4, (token & 15) + 2);
                if from == self.at {
                    self.state = State::Over;
                    return;
                }
                for step in 0..length {
                    self.write(self.window[(from + step) % WINDOW], outbox);
                }
                next(flags, left)
            }
            State::Over => State::Over,
        };
    }
}

fn next(flags: u8, left: u32) -> State {
    if left > 1 { State::Items { flags: flags >> 1, left: left - 1 } } else { State::Flags }
}

impl Reader for LzFu {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        const PIECE: usize = 256;
        let taken = self.header.fill(input, HEADER);
        let Some(header) = self.header.whole().filter(|_| taken == 0) else { return taken };
        let kind = le32(header, 8);
        if !self.opened {
            self.opened = true;
            outbox.open(Object { kind: Kind::Member, name: Some("body.rtf".into()), ..Object::default() });
        }
        let piece = &input[..input.len().min(PIECE)];
        match kind {
            COMPRESSED => piece.iter().for_each(|&byte| self.item(byte, outbox)),
            PLAIN => outbox.content(piece),
            _ => {}
        }
        piece.len()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if std::mem::take(&mut self.opened) {
            outbox.close();
        }
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification() {
        let packed = b"\x2d\0\0\0\x2b\0\0\0LZFu\xf1\xc5\xc7\xa7\x03\0\x0a\0\x72\x63\x70\x67\x31\x32\x35\x42\x32\x0a\xf3 hel\x09\0 bw\x05\xb0ld}\x0a\x80\x0f\xa0";
        let mut outbox = Outbox::default();
        let mut lzfu = LzFu::new();
        let mut at = 0;
        while at < packed.len() {
            at += lzfu.read(&packed[at..], &mut outbox);
        }
        assert_eq!(outbox.last_content(outbox.content_bytes()), b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n");
    }
}
