//! LZ4 blocks by push: literals and matches in sequences, the last of which has no match.

use crate::codec::lzma::{Dictionary, SHORT};

/// Twice the reach of matches, so that bytes before the last ones are out of their reach.
const WINDOW_BYTES: usize = 128 << 10;

/// A decoder of blocks, with the window that linked blocks share.
pub(crate) struct Blocks {
    window: Dictionary,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Token,
    LiteralLength { token: u8, length: u64 },
    Literals { token: u8, left: u64 },
    Distance { token: u8, low: Option<u8> },
    MatchLength { distance: usize, length: u64 },
    Match { distance: usize, left: u64 },
    Broken,
}

/// Bytes taken and written.
#[derive(Default)]
pub(crate) struct Done {
    pub taken: usize,
    pub wrote: usize,
}

impl Done {
    fn byte(&mut self, input: &[u8]) -> Option<u8> {
        let byte = *input.get(self.taken)?;
        self.taken += 1;
        Some(byte)
    }
}

impl Blocks {
    pub fn new() -> Blocks {
        let mut window = Dictionary::new();
        window.declare(WINDOW_BYTES as u64, WINDOW_BYTES);
        Blocks { window, state: State::Token }
    }

    /// Forgets the content of the blocks before.
    pub fn forget(&mut self) {
        self.window.reset();
    }

    /// Begins a block.
    pub const fn begin(&mut self) {
        self.state = State::Token;
    }

    /// Whether a match pointed to nothing.
    pub const fn are_broken(&self) -> bool {
        matches!(self.state, State::Broken)
    }

    /// Whether the block may end here: behind literals.
    pub const fn may_end(&self) -> bool {
        matches!(self.state, State::Distance { low: None, .. })
    }

    /// Takes bytes of a stored block.
    pub fn store(&mut self, input: &[u8], output: &mut [u8]) -> Done {
        let mut done = Done::default();
        while self.run(output, &mut done, |blocks, room, done| blocks.literals(u64::MAX, input, room, done) > 0) {}
        done
    }

    /// Takes bytes of a compressed block while there is room for their output.
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Done {
        let mut done = Done::default();
        while self.run(output, &mut done, |blocks, room, done| blocks.sequences(input, room, done)) {}
        done
    }

    /// Fills one run of the window, as far as there is room in it and in the output, and tells it; whether there may be more.
    fn run(
        &mut self,
        output: &mut [u8],
        done: &mut Done,
        fill: impl FnOnce(&mut Blocks, usize, &mut Done) -> bool,
    ) -> bool {
        let to = &mut output[done.wrote..];
        if to.is_empty() {
            return false;
        }
        let start = self.window.position();
        let room = self.window.room(to.len());
        let is_more = fill(self, room, done);
        let count = (self.window.position() - start) as usize;
        to[..count].copy_from_slice(self.window.last(count));
        done.wrote += count;
        is_more
    }

    /// Reads sequences that make up to `room` bytes; whether it was room that was missing.
    fn sequences(&mut self, input: &[u8], room: usize, done: &mut Done) -> bool {
        let end = self.window.position() + room as u64;
        loop {
            while matches!(self.state, State::Token) && self.short_sequence(input, end, done) {}
            let room = (end - self.window.position()) as usize;
            match self.turn(input, room, done) {
                Some(state) => self.state = state,
                None => return self.window.position() == end,
            }
        }
    }

    /// Reads a whole sequence of the usual lengths, far from the ends of input and room; whether there was one.
    #[inline(always)]
    fn short_sequence(&mut self, input: &[u8], end: u64, done: &mut Done) -> bool {
        const GOES_ON: u8 = 15;
        let input = &input[done.taken..];
        let Some((&token, rest)) = input.split_first() else { return false };
        let (literals, length) = (usize::from(token >> 4), token & 15);
        let Some(bytes) = rest.first_chunk::<SHORT>().filter(|_| token >> 4 < GOES_ON && length < GOES_ON) else {
            return false;
        };
        let Some(&distance) = rest.get(literals..).and_then(|rest| rest.first_chunk::<2>()) else { return false };
        let distance = usize::from(u16::from_le_bytes(distance));
        let is_near = distance < SHORT || distance as u64 > self.window.position();
        if is_near || end - self.window.position() < 4 * SHORT as u64 {
            return false;
        }
        self.window.extend_short(bytes, literals);
        if !self.window.repeat_short(distance, usize::from(length) + 4) {
            // Beyond the seam of the ring: the general copy handles the match.
            self.state = State::Match { distance, left: u64::from(length) + 4 };
        }
        done.taken += 1 + literals + 2;
        true
    }

    /// The state behind the next part of a sequence, unless input or room is missing.
    fn turn(&mut self, input: &[u8], room: usize, done: &mut Done) -> Option<State> {
        const GOES_ON: u8 = 15;
        Some(match self.state {
            State::Token => match done.byte(input)? {
                token if token >> 4 == GOES_ON => State::LiteralLength { token, length: u64::from(GOES_ON) },
                token => State::Literals { token, left: u64::from(token >> 4) },
            },
            State::LiteralLength { token, length } => match done.byte(input)? {
                0xff => State::LiteralLength { token, length: length + 0xff },
                last => State::Literals { token, left: length + u64::from(last) },
            },
            State::Literals { token, left: 0 } => State::Distance { token, low: None },
            State::Literals { token, left } => match self.literals(left, input, room, done) {
                0 => return None,
                count => State::Literals { token, left: left - count },
            },
            State::Distance { token, low: None } => State::Distance { token, low: Some(done.byte(input)?) },
            State::Distance { token, low: Some(low) } => {
                let distance = usize::from(u16::from_le_bytes([low, done.byte(input)?]));
                let length = 4 + u64::from(token & 15);
                match token & 15 {
                    _ if distance == 0 || self.window.check(distance).is_err() => State::Broken,
                    GOES_ON => State::MatchLength { distance, length },
                    _ => State::Match { distance, left: length },
                }
            }
            State::MatchLength { distance, length } => match done.byte(input)? {
                0xff => State::MatchLength { distance, length: length + 0xff },
                last => State::Match { distance, left: length + u64::from(last) },
            },
            State::Match { left: 0, .. } => State::Token,
            State::Match { distance, left } => match self.repeat(distance, left, room) {
                0 => return None,
                count => State::Match { distance, left: left - count },
            },
            State::Broken => return None,
        })
    }

    /// Copies up to `left` bytes of input; returns how many.
    fn literals(&mut self, left: u64, input: &[u8], room: usize, done: &mut Done) -> u64 {
        let from = &input[done.taken..];
        let count = from.len().min(room).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.window.extend(&from[..count]);
        done.taken += count;
        count as u64
    }

    /// Copies up to `left` bytes from `distance` back; returns how many.
    fn repeat(&mut self, distance: usize, left: u64, room: usize) -> u64 {
        let count = room.min(usize::try_from(left).unwrap_or(usize::MAX));
        self.window.repeat(distance, count);
        count as u64
    }
}
