//! Reduce, zip's methods 2 to 5: bytes that often follow another have short codes, and behind them are matches.
//!
//! Source: APPNOTE 6.3.10, section 5.2. Bounds: the follower sets, 20 KiB with the last 4 KiB.

use crate::bits::tokens::{Bits, Broken, Recent, Tokens};

const FOLLOWERS_MAX: usize = 64;
/// The byte that begins a match; followed by 0 it is itself.
const ESCAPE: u8 = 144;

/// The state of a reduced stream.
pub(crate) struct Reduce {
    /// From 1 to 4: the higher, the longer the distances and the shorter the lengths.
    factor: u32,
    followers: Box<[[u8; FOLLOWERS_MAX]; 256]>,
    counts: [u8; 256],
    header: Header,
    last: u8,
    state: State,
    recent: Recent<4096>,
}

/// The follower sets come first, that of 255 in front.
enum Header {
    Count { byte: u8 },
    Follower { byte: u8, at: u8 },
    Complete,
}

#[derive(Clone, Copy)]
enum State {
    Literal,
    Escaped,
    Length { distance: usize, length: usize },
    Distance { distance: usize, length: usize },
}

impl Reduce {
    /// The state for zip's method `method`, from 2 to 5.
    pub fn new(method: u16) -> Reduce {
        Reduce {
            factor: u32::from(method.clamp(2, 5)) - 1,
            followers: Box::new([[0; FOLLOWERS_MAX]; 256]),
            counts: [0; 256],
            header: Header::Count { byte: 255 },
            last: 0,
            state: State::Literal,
            recent: Recent::new(),
        }
    }

    fn read_header(&mut self, bits: &mut Bits) {
        self.header = match self.header {
            Header::Count { byte } => {
                let count = bits.take(6) as u8;
                self.counts[usize::from(byte)] = count;
                if count == 0 { after(byte) } else { Header::Follower { byte, at: 0 } }
            }
            Header::Follower { byte, at } => {
                self.followers[usize::from(byte)][usize::from(at)] = bits.take(8) as u8;
                let is_last = at + 1 == self.counts[usize::from(byte)];
                if is_last { after(byte) } else { Header::Follower { byte, at: at + 1 } }
            }
            Header::Complete => Header::Complete,
        };
    }

    fn byte(&self, bits: &mut Bits) -> u8 {
        let last = usize::from(self.last);
        let count = u32::from(self.counts[last]);
        if count == 0 || bits.take(1) == 1 {
            return bits.take(8) as u8;
        }
        let width = (u32::BITS - (count - 1).leading_zeros()).max(1);
        self.followers[last][bits.take(width) as usize % FOLLOWERS_MAX]
    }
}

const fn after(byte: u8) -> Header {
    match byte.checked_sub(1) {
        Some(byte) => Header::Count { byte },
        None => Header::Complete,
    }
}

impl Tokens for Reduce {
    const BITS_MAX: u32 = 9;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        const LENGTH_MIN: usize = 3;
        if !matches!(self.header, Header::Complete) {
            self.read_header(bits);
            return Ok(());
        }
        let byte = self.byte(bits);
        self.last = byte;
        let longest = 0x7f >> (self.factor - 1);
        self.state = match self.state {
            State::Literal if byte == ESCAPE => State::Escaped,
            State::Literal => {
                self.recent.push(byte, content);
                State::Literal
            }
            State::Escaped if byte == 0 => {
                self.recent.push(ESCAPE, content);
                State::Literal
            }
            State::Escaped => {
                let length = usize::from(byte & longest);
                let distance = usize::from(byte) >> (8 - self.factor) << 8;
                match byte & longest == longest {
                    true => State::Length { distance, length },
                    false => State::Distance { distance, length },
                }
            }
            State::Length { distance, length } => State::Distance { distance, length: length + usize::from(byte) },
            State::Distance { distance, length } => {
                self.recent.repeat(distance + usize::from(byte) + 1, length + LENGTH_MIN, content);
                State::Literal
            }
        };
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left < 8
    }
}
