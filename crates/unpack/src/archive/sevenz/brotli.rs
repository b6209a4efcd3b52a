//! Brotli as a method of 7z: one stream, or several, each behind the frame of a writer with threads.
//!
//! ```text
//! frame := 0x184d2a50, 8, u32: bytes of the stream, "BR", u16: size hint
//! ```
//! Bounds: as the decoder of the stream.

use stream::Limits;

use super::pull::{CUT, DATA};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le32};
use crate::stream::brotli::Brotli;

const FRAME_BYTES: usize = 16;
const MAGIC: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0];
const MARK: &[u8] = b"BR";

/// A decoder of such streams.
pub(super) struct BrotliCoder {
    limits: Limits,
    inner: Brotli,
    head: Collected<FRAME_BYTES>,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    /// Not a head: so many of its bytes are data.
    Bare(usize),
    /// So many bytes of the frame's stream are left.
    Framed(u64),
}

impl BrotliCoder {
    pub fn new(limits: &Limits) -> BrotliCoder {
        BrotliCoder { limits: limits.clone(), inner: Brotli::new(limits), head: Collected::new(), state: State::Head }
    }

    fn head(&mut self, input: &[u8]) -> Progress {
        let is_possible = |bytes: &[u8]| bytes.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
        let taken = self.head.fill_while(input, is_possible);
        match self.head.whole() {
            Some(head) if is_possible(&head[..MAGIC.len()]) && &head[12..14] == MARK => {
                self.state = State::Framed(u64::from(le32(head, 8)));
                self.inner = Brotli::new(&self.limits);
                self.head.clear();
            }
            None if is_possible(self.head.bytes()) && !input.is_empty() => {}
            None if self.head.len() == 0 => {}
            _ => self.state = State::Bare(0),
        }
        Progress::took(taken)
    }

    fn bare(&mut self, done: usize, input: &[u8], output: &mut [u8]) -> Progress {
        let head = &self.head.bytes()[done..];
        if head.is_empty() {
            return self.inner.decode(input, output);
        }
        let progress = self.inner.decode(head, output);
        self.state = State::Bare(done + progress.taken);
        Progress { taken: 0, ..progress }
    }

    fn framed(&mut self, left: u64, input: &[u8], output: &mut [u8]) -> Progress {
        let count = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        let progress = self.inner.decode(&input[..count], output);
        let left = left - progress.taken as u64;
        self.state = State::Framed(left);
        let is_over = left == 0 && progress.wrote == 0 && matches!(progress.told, Told::Over | Told::Nothing);
        if is_over && progress.taken == 0 {
            self.state = State::Head;
        }
        match progress.told {
            Told::Over if left > 0 => Progress { told: Told::Fault(DATA), ..progress },
            Told::Over => Progress { told: Told::Nothing, ..progress },
            _ => progress,
        }
    }
}

impl Decoder for BrotliCoder {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut taken = 0;
        loop {
            let before = std::mem::discriminant(&self.state);
            let progress = match self.state {
                State::Head => self.head(&input[taken..]),
                State::Bare(done) => self.bare(done, &input[taken..], output),
                State::Framed(left) => self.framed(left, &input[taken..], output),
            };
            taken += progress.taken;
            if progress.wrote > 0 || progress.told != Told::Nothing || before == std::mem::discriminant(&self.state) {
                return Progress { taken, ..progress };
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match self.state {
            State::Head => Some(DATA),
            _ => self.inner.missing().map(|_| CUT),
        }
    }
}
