//! An encrypted member whose password is known: its cipher, and the decoder of what is encrypted.
//!
//! Bounds: a piece of [`PIECE_BYTES`].

use std::collections::VecDeque;

use stream::Class;

use super::cipher::{Cipher, Scheme};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told};

pub(super) const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Zip");
const SIZE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Zip.Size");
const CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Zip.Crc");

const PIECE_BYTES: usize = 512;
const TAIL_BYTES_MAX: usize = 10;

/// A decoder of encrypted content.
pub(super) struct Unlocked {
    cipher: Cipher,
    decoder: Box<dyn Decoder>,
    head_left: usize,
    /// Bytes of data that have not been decrypted, if that is known.
    data_left: Option<u64>,
    piece: [u8; PIECE_BYTES],
    /// Offset of the bytes that are decrypted and not decoded.
    start: usize,
    end: usize,
    tail_bytes: usize,
    tail: Collected<TAIL_BYTES_MAX>,
    /// To be emitted behind the tail; one that is fatal comes last.
    faults: VecDeque<Fault>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Decoding,
    /// The content is complete.
    Tail,
    Over,
}

impl Unlocked {
    pub fn new(scheme: Scheme, cipher: Cipher, data_bytes: Option<u64>, decoder: Box<dyn Decoder>) -> Unlocked {
        Unlocked {
            cipher,
            decoder,
            head_left: scheme.head_bytes(),
            data_left: data_bytes,
            piece: [0; PIECE_BYTES],
            start: 0,
            end: 0,
            tail_bytes: scheme.tail_bytes(),
            tail: Collected::new(),
            faults: VecDeque::new(),
            state: State::Decoding,
        }
    }

    /// Decrypts as much as fits the piece; one byte at a time without a known length, since the data may end anywhere.
    fn refill(&mut self, input: &[u8]) -> usize {
        let left = self.data_left.map_or(1, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let count = input.len().min(PIECE_BYTES).min(left);
        self.piece[..count].copy_from_slice(&input[..count]);
        self.cipher.decrypt(&mut self.piece[..count]);
        (self.start, self.end) = (0, count);
        self.data_left = self.data_left.map(|left| left - count as u64);
        count
    }

    fn content(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = if self.start == self.end { self.refill(input) } else { 0 };
        let progress = self.decoder.decode(&self.piece[self.start..self.end], output);
        self.start += progress.taken;
        match progress.told {
            Told::Over => {
                let surplus = self.decoder.surplus().len();
                if self.start < self.end + surplus || self.has_data_left() {
                    self.faults.push_back(SIZE);
                }
                self.state = State::Tail;
            }
            Told::Fault(fault) => self.fail(fault),
            Told::Nothing if progress == Progress::took(0) && taken == 0 && self.data_left == Some(0) => {
                self.fail(self.decoder.missing().unwrap_or(TRUNCATED));
            }
            Told::Nothing | Told::Begin(_) => {}
        }
        if progress.wrote == 0 && self.state == State::Tail {
            return self.tail(input, taken);
        }
        Progress { taken, wrote: progress.wrote, told: Told::Nothing }
    }

    /// Reports a fault. With a known length it is reported at the end of the data, wherever in the piece it occurred.
    fn fail(&mut self, fault: Fault) {
        self.faults.push_back(fault);
        if fault.fatal {
            self.state = if self.data_left.is_some() { State::Tail } else { State::Over };
        }
    }

    fn has_data_left(&self) -> bool {
        self.data_left.is_some_and(|left| left > 0)
    }

    /// Emits the rest after the content: data that are left over, and the tail. So many bytes of `input` are taken
    /// already.
    fn tail(&mut self, input: &[u8], mut taken: usize) -> Progress {
        while self.has_data_left() && taken < input.len() {
            taken += self.refill(&input[taken..]);
        }
        if self.has_data_left() {
            return Progress::took(taken);
        }
        taken += self.tail.fill(&input[taken..], self.tail_bytes);
        if self.tail.len() < self.tail_bytes {
            return Progress::took(taken);
        }
        if self.faults.is_empty() && !self.cipher.vouches(self.tail.bytes()) {
            self.faults.push_back(CRC);
        }
        self.state = State::Over;
        Progress::tells(taken, self.last_words())
    }

    fn last_words(&mut self) -> Told {
        self.faults.pop_front().map_or(Told::Over, Told::Fault)
    }
}

impl Decoder for Unlocked {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match self.state {
            State::Decoding if self.head_left > 0 => {
                let taken = input.len().min(self.head_left);
                self.head_left -= taken;
                Progress::took(taken)
            }
            State::Decoding => loop {
                let start = self.start;
                let progress = self.content(input, output);
                // A decoder that reads its parameters from the piece has not stopped, though no byte of the input is taken.
                if progress != Progress::took(0) || self.state != State::Decoding || self.start == start {
                    return progress;
                }
            },
            State::Tail => self.tail(input, 0),
            State::Over => Progress::tells(0, self.last_words()),
        }
    }

    fn missing(&self) -> Option<Fault> {
        Some(TRUNCATED)
    }
}
