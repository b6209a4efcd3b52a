//! The content of a part, decoded as it is read.

use alloc::boxed::Box;
use alloc::vec::Vec;

use mime::Decoder;
use stream::{Coding, Event, Fuel, Nothing, Stage, Window};

use crate::mail::{Mail, Message};

/// Bytes of a message that are read at a time.
const PIECE_BYTES: usize = 64 << 10;

/// The content of a part, piece by piece.
pub struct Content {
    message: u64,
    at: u64,
    end: u64,
    decoder: Box<Decoder>,
    is_raw: bool,
    /// The piece that was told last, of what is decoded.
    window: Window,
    /// Bytes that were read, of which the first `taken` are done with.
    input: Vec<u8>,
    taken: usize,
    is_over: bool,
}

impl Content {
    pub(super) fn new(message: u64, (at, end): (u64, u64), coding: Coding) -> Content {
        // Decoded it is not longer.
        let bytes = usize::try_from(end.saturating_sub(at)).unwrap_or(PIECE_BYTES).clamp(1 << 10, PIECE_BYTES);
        Content {
            message,
            at,
            end,
            decoder: Box::new(Decoder::trimming(coding)),
            is_raw: coding == Coding::Identity,
            window: Window::with_capacity(bytes),
            input: Vec::new(),
            taken: 0,
            is_over: false,
        }
    }

    /// A message as it stands.
    pub fn whole(message: &Message) -> Content {
        Content::new(message.number, (0, message.row.size), Coding::Identity)
    }

    /// The next piece; `None` at the end.
    pub fn next(&mut self, mail: &mut dyn Mail) -> Option<&[u8]> {
        self.window.clear();
        while !self.is_over {
            if self.taken == self.input.len() && !self.fill(mail) {
                return self.finish();
            }
            let from = self.taken;
            if self.is_raw {
                self.taken = self.input.len();
                return self.input.get(from..);
            }
            let rest = self.input.get(from..).unwrap_or_default();
            let step = self.decoder.step(rest, &mut self.window, &mut Fuel::unlimited());
            self.taken = from.saturating_add(step.taken).min(self.input.len());
            match step.event {
                Event::Wrote => return Some(self.window.filled()),
                Event::Verbatim => return self.input.get(from..self.taken),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        None
    }

    fn finish(&mut self) -> Option<&[u8]> {
        while !self.is_over && !self.is_raw {
            match self.decoder.finish(&Nothing, &mut self.window, &mut Fuel::unlimited()) {
                Event::Wrote => return Some(self.window.filled()),
                Event::End => self.is_over = true,
                _ => {}
            }
        }
        self.is_over = true;
        None
    }

    /// Reads on, once all that was read is done with.
    fn fill(&mut self, mail: &mut dyn Mail) -> bool {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        self.input.resize(left, 0);
        let count = if left == 0 { 0 } else { mail.read(self.message, self.at, &mut self.input) };
        self.input.truncate(count);
        self.taken = 0;
        self.at = self.at.saturating_add(count as u64);
        count > 0
    }
}
