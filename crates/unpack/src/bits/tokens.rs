//! The driver of the old bit-wise methods (shrink, reduce, implode, LZW): bits from the lowest on, one token at a time,
//! each of which makes a bounded number of bytes.
//!
//! A token is decoded when as many bits have arrived as it may take, or when the input has ended. Bounds: 8 bytes of
//! bits, the bytes of one token, the state of the method.

use stream::Class;

use crate::frame::codec::{Decoder, Fault, Progress, Told};

/// A method that decodes token by token.
pub(crate) trait Tokens: Send {
    /// The most bits that a token takes: 56 at most.
    const BITS_MAX: u32;

    /// Takes one token's bits and appends its bytes to `content`.
    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken>;

    /// Whether an end of the input is allowed here when so many bits are left.
    fn may_end(&self, bits_left: u32) -> bool;

    /// Whether the stream itself says that it is over.
    fn is_over(&self) -> bool {
        false
    }
}

/// A token that makes no sense.
#[derive(Debug)]
pub(crate) struct Broken;

/// Bits in a queue, the lowest first.
#[derive(Default)]
pub(crate) struct Bits {
    value: u64,
    count: u32,
    /// Whether more was taken than there was.
    overrun: bool,
}

impl Bits {
    fn fill(&mut self, input: &[u8]) -> usize {
        if let Some(next) = input.first_chunk() {
            // Bits beyond the count are those of bytes that are offered again.
            self.value |= u64::from_le_bytes(*next) << self.count;
            let taken = (63 - self.count) / 8;
            self.count += 8 * taken;
            return taken as usize;
        }
        let mut taken = 0;
        while self.count <= 56 && taken < input.len() {
            self.value |= u64::from(input[taken]) << self.count;
            self.count += 8;
            taken += 1;
        }
        taken
    }

    /// The next `count` bits, zeros behind the last.
    pub fn peek(&self, count: u32) -> u32 {
        (self.value & ((1 << count) - 1)) as u32
    }

    /// Takes `count` bits, 32 at most.
    pub fn take(&mut self, count: u32) -> u32 {
        let bits = self.peek(count);
        self.overrun |= count > self.count;
        self.value >>= count;
        self.count = self.count.saturating_sub(count);
        bits
    }

    /// Takes the bits up to the next byte.
    pub fn align(&mut self) {
        self.take(self.count % 8);
    }

    /// Returns the bytes of which no bit was taken.
    fn whole_bytes(&self) -> Vec<u8> {
        let bytes = (self.value >> (self.count % 8)).to_le_bytes();
        bytes[..(self.count / 8) as usize].to_vec()
    }
}

/// A decoder of a stream of tokens.
pub(crate) struct Tokenwise<T> {
    tokens: T,
    bits: Bits,
    /// Output of the last tokens, emitted up to `told`, and the event after it.
    content: Vec<u8>,
    told: usize,
    owing: Told,
    /// Bytes still to come out, if the length is known.
    left: Option<u64>,
    /// Whether the stream is over, broken or not.
    over: bool,
    surplus: Vec<u8>,
    data: Fault,
    truncated: Fault,
}

impl<T: Tokens> Tokenwise<T> {
    /// A decoder of `length` bytes, or up to the end of the input, that reports `data` for a broken stream and `truncated`
    /// for an early end.
    pub fn new(tokens: T, length: Option<u64>, data: &'static str, truncated: &'static str) -> Tokenwise<T> {
        Tokenwise {
            tokens,
            bits: Bits::default(),
            content: Vec::new(),
            told: 0,
            owing: Told::Nothing,
            left: length,
            over: false,
            surplus: Vec::new(),
            data: Fault::fatal(Class::Malformed, data),
            truncated: Fault::fatal(Class::Truncated, truncated),
        }
    }

    fn tell(&mut self, output: &mut [u8]) -> usize {
        let ready = &self.content[self.told..];
        let wrote = ready.len().min(output.len());
        output[..wrote].copy_from_slice(&ready[..wrote]);
        self.told += wrote;
        wrote
    }

    /// Decodes tokens until they make `room` bytes, or want more input; how much of it they took. `last` says
    /// that no more will come.
    fn decode_tokens(&mut self, input: &[u8], room: usize, last: bool) -> usize {
        self.content.clear();
        self.told = 0;
        let mut taken = 0;
        while self.content.len() < room && self.owing == Told::Nothing {
            if self.left == Some(0) || self.tokens.is_over() {
                self.owing = self.ends(Told::Over);
                break;
            }
            if self.bits.count < T::BITS_MAX {
                taken += self.bits.fill(&input[taken..]);
                if self.bits.count < T::BITS_MAX && !last {
                    break;
                }
                if self.bits.count < T::BITS_MAX && self.left.is_none() && self.tokens.may_end(self.bits.count) {
                    self.bits = Bits::default();
                    self.owing = self.ends(Told::Over);
                    break;
                }
            }
            self.next();
        }
        taken
    }

    /// Decodes the next token.
    #[inline(always)]
    fn next(&mut self) {
        let before = self.content.len();
        let is_sound = self.tokens.token(&mut self.bits, &mut self.content).is_ok();
        if !is_sound || self.bits.overrun {
            self.content.truncate(before);
            self.owing = self.ends(Told::Fault(if is_sound { self.truncated } else { self.data }));
            return;
        }
        if let Some(left) = &mut self.left {
            let made = self.content.len() - before;
            let count = usize::try_from(*left).map_or(made, |left| left.min(made));
            self.content.truncate(before + count);
            *left -= count as u64;
        }
    }

    fn ends(&mut self, told: Told) -> Told {
        self.over = true;
        self.surplus = self.bits.whole_bytes();
        told
    }
}

impl<T: Tokens> Decoder for Tokenwise<T> {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let (mut taken, mut wrote) = (0, 0);
        let told = loop {
            wrote += self.tell(&mut output[wrote..]);
            if self.told < self.content.len() {
                break Told::Nothing;
            }
            if self.owing != Told::Nothing {
                break std::mem::replace(&mut self.owing, Told::Nothing);
            }
            if wrote == output.len() {
                break Told::Nothing;
            }
            if self.over {
                break Told::Over;
            }
            taken += self.decode_tokens(&input[taken..], output.len() - wrote, input.is_empty());
            if self.content.is_empty() && self.owing == Told::Nothing {
                break Told::Nothing;
            }
        };
        Progress { taken, wrote, told }
    }

    fn missing(&self) -> Option<Fault> {
        (!self.over).then_some(self.truncated)
    }

    fn surplus(&self) -> &[u8] {
        &self.surplus
    }
}

/// The last bytes written, as far back as matches reach; a filling, zeros if not told, before the first.
pub(crate) struct Recent<const N: usize> {
    bytes: Box<[u8; N]>,
    at: usize,
    written: u64,
}

impl<const N: usize> Recent<N> {
    pub fn new() -> Recent<N> {
        Recent::filled(0)
    }

    pub fn filled(byte: u8) -> Recent<N> {
        Recent { bytes: Box::new([byte; N]), at: 0, written: 0 }
    }

    /// How many bytes have been written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Writes a byte.
    #[inline(always)]
    pub fn push(&mut self, byte: u8, content: &mut Vec<u8>) {
        self.bytes[self.at] = byte;
        self.at = (self.at + 1) % N;
        self.written += 1;
        content.push(byte);
    }

    /// Writes `count` bytes again that begin `distance` back, from 1 to `N`.
    pub fn repeat(&mut self, distance: usize, count: usize, content: &mut Vec<u8>) {
        let from = (self.at + N - distance % N) % N;
        if distance >= count && from.max(self.at) + count < N {
            self.bytes.copy_within(from..from + count, self.at);
            content.extend_from_slice(&self.bytes[self.at..self.at + count]);
            self.at += count;
            self.written += count as u64;
            return;
        }
        for _ in 0..count {
            let byte = self.bytes[(self.at + N - distance % N) % N];
            self.push(byte, content);
        }
    }
}
