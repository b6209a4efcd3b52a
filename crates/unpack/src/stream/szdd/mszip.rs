//! KWAJ's method 4: deflate streams, each of which refers back to those before.
//!
//! ```text
//! blocks := (length u16, "CK", deflate stream)*, [0 u16]
//! ```
//!
//! A block ends where its deflate stream does; its length says no more than whether there is one, as in libmspack.

use super::{DATA, TRUNCATED};
use crate::codec::deflate::Deflate;
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told};
use stream::Class;

/// Distance to which a block may refer back.
const HISTORY_BYTES: usize = 32 << 10;

/// The method.
pub(super) struct MsZip {
    head: Collected<4>,
    deflate: Deflate,
    is_in_block: bool,
    history: Vec<u8>,
}

impl MsZip {
    pub fn new() -> MsZip {
        let deflate = Deflate::new(DATA, TRUNCATED.name);
        MsZip { head: Collected::new(), deflate, is_in_block: false, history: Vec::new() }
    }

    /// As [`Decoder::decode`].
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if !self.is_in_block {
            return self.head(input);
        }
        let mut progress = self.deflate.decode(input, output);
        self.remember(&output[..progress.wrote]);
        if progress.told == Told::Over {
            self.is_in_block = false;
            progress.told = Told::Nothing;
        }
        progress
    }

    /// Bytes that were taken and are no head of a block.
    pub fn surplus(&self) -> &[u8] {
        if self.head.bytes() == [0, 0] { &[] } else { self.head.bytes() }
    }

    fn head(&mut self, input: &[u8]) -> Progress {
        const LENGTH_BYTES: usize = 2;
        if input.is_empty() && self.head.len() == 0 {
            return Progress::tells(0, Told::Over);
        }
        let mut taken = self.head.fill(input, LENGTH_BYTES);
        if self.head.bytes() == [0, 0] {
            return Progress::tells(taken, Told::Over);
        }
        taken += self.head.fill(&input[taken..], LENGTH_BYTES + 2);
        match self.head.whole() {
            None => Progress::took(taken),
            Some([_, _, b'C', b'K']) if self.deflate.restart(&self.history) => {
                self.is_in_block = true;
                self.head.clear();
                Progress::took(taken)
            }
            Some(_) => Progress::fault(taken, Fault::fatal(Class::Malformed, DATA)),
        }
    }

    fn remember(&mut self, content: &[u8]) {
        self.history.extend_from_slice(content);
        if self.history.len() > 2 * HISTORY_BYTES {
            self.history.drain(..self.history.len() - HISTORY_BYTES);
        }
    }
}
