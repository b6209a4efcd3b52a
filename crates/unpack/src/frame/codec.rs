//! Interface of decompressors inside of this crate: a push decoder that cannot fail, only report.
//!
//! One decoder reads one compressed stream with all its framing (headers, trailers, further members). The stage around
//! it, [`Compressed`](crate::frame::compressed::Compressed) or the zip reader, turns what it tells into events.

use stream::{Class, Event, Finding};

/// The reader stood still, and was ended.
pub(crate) const STALL: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Stall");
/// Turns in a row that a decoder may take without taking or writing a byte: changes of state, and findings.
pub(crate) const DECODER_TURNS_MAX: u32 = 4096;

/// A push decoder of one compressed format.
pub(crate) trait Decoder: Send {
    /// Takes a prefix of `input`, fills a prefix of `output`, and returns at most one event.
    ///
    /// `output` is not empty. Given input it makes progress or returns an event; with empty input it writes buffered
    /// output. The event comes after the written bytes.
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress;

    /// Fault when the input ends here, after a call with empty input that did nothing.
    fn missing(&self) -> Option<Fault>;

    /// Bytes that were taken without belonging to the stream, once it is over or broken: read ahead, or in search of a
    /// continuation.
    fn surplus(&self) -> &[u8] {
        &[]
    }
}

/// A decoder of frames: a state machine whose states read a part of the framing or of the content.
pub(crate) trait Framed: Send {
    /// Fault of an end elsewhere than where it [may be](Self::may_end).
    const TRUNCATED: Fault;

    /// State of the decoder.
    fn state(&self) -> impl PartialEq + use<Self>;

    /// Lets the state read a prefix of `input`, write, or change to another state. A state without progress needs more
    /// input.
    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress;

    /// Whether the input may end here.
    fn may_end(&self) -> bool;

    /// The input has ended where the state wants more; whether there is something to tell all the same.
    fn cut_short(&mut self) -> bool {
        false
    }

    /// As [`Decoder::surplus`].
    fn surplus(&self) -> &[u8] {
        &[]
    }
}

impl<F: Framed> Decoder for F {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        // Changes of state alone.
        let mut turns: u32 = 0;
        let mut taken = 0;
        loop {
            let before = self.state();
            let mut progress = self.turn(&input[taken..], output);
            taken += progress.taken;
            let moved = progress.taken > 0 || before != self.state();
            turns = if progress.taken > 0 { 0 } else { turns.saturating_add(1) };
            if turns > DECODER_TURNS_MAX {
                return Progress { taken, wrote: progress.wrote, told: Told::Fault(STALL) };
            }
            let is_idle = !moved && progress.wrote == 0 && progress.told == Told::Nothing;
            if is_idle && input.is_empty() && self.cut_short() {
                continue;
            }
            if progress.wrote > 0 || progress.told != Told::Nothing || !moved {
                progress.taken = taken;
                return progress;
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        (!self.may_end()).then_some(F::TRUNCATED)
    }

    fn surplus(&self) -> &[u8] {
        Framed::surplus(self)
    }
}

/// Progress of one call of [`Decoder::decode`].
#[derive(Debug, PartialEq)]
pub(crate) struct Progress {
    /// Bytes taken from the front of the input.
    pub taken: usize,
    /// Bytes written to the front of the output.
    pub wrote: usize,
    /// Event after them.
    pub told: Told,
}

/// Event of a decoder.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// Content begins, with the name that the header gives it.
    Begin(Option<Box<str>>),
    /// Something is wrong.
    Fault(Fault),
    /// The compressed stream is complete.
    Over,
}

/// Fault of a compressed stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub class: Class,
    pub name: &'static str,
    /// Whether decoding cannot go on behind it.
    pub fatal: bool,
}

impl Fault {
    /// A fault behind which nothing can be decoded.
    pub const fn fatal(class: Class, name: &'static str) -> Fault {
        Fault { class, name, fatal: true }
    }

    /// A fault that does not keep the rest from being decoded.
    pub const fn passing(class: Class, name: &'static str) -> Fault {
        Fault { class, name, fatal: false }
    }

    /// The event that reports it at `offset`.
    pub fn event(self, offset: u64) -> Event {
        Event::finding(Finding::new(self.class, self.name, offset))
    }
}

impl Progress {
    /// Took `taken` bytes and has nothing to say.
    pub const fn took(taken: usize) -> Progress {
        Progress::tells(taken, Told::Nothing)
    }

    /// Took `taken` bytes, wrote none, tells `told`.
    pub const fn tells(taken: usize, told: Told) -> Progress {
        Progress { taken, wrote: 0, told }
    }

    /// Took `taken` bytes and found a fault.
    pub const fn fault(taken: usize, fault: Fault) -> Progress {
        Progress::tells(taken, Told::Fault(fault))
    }
}

/// A few bytes collected until there are `N` of them: a header or trailer that must be seen whole.
#[derive(Debug, Clone)]
pub(crate) struct Collected<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Collected<N> {
    pub const fn new() -> Collected<N> {
        Collected { bytes: [0; N], len: 0 }
    }

    /// Copies from `input` until `wanted` bytes are collected (at most `N`). Returns how many were taken.
    pub fn fill(&mut self, input: &[u8], wanted: usize) -> usize {
        let count = wanted.min(N).saturating_sub(self.len).min(input.len());
        self.bytes[self.len..self.len + count].copy_from_slice(&input[..count]);
        self.len += count;
        count
    }

    /// Copies from `input` up to the byte with which the collected bytes are no longer `possible`.
    pub fn fill_while(&mut self, input: &[u8], possible: impl Fn(&[u8]) -> bool) -> usize {
        let mut taken = 0;
        while self.len < N && taken < input.len() && possible(self.bytes()) {
            taken += self.fill(&input[taken..taken + 1], N);
        }
        taken
    }

    /// Collected bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Returns all `N` bytes once they are collected.
    pub fn whole(&self) -> Option<&[u8; N]> {
        (self.len == N).then_some(&self.bytes)
    }

    /// Returns the number of collected bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Removes up to `count` bytes from the front.
    pub fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        self.bytes.copy_within(count..self.len, 0);
        self.len -= count;
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

/// The little-endian number at `at`, missing bytes read as zero.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    le64_of(bytes, at, 2) as u16
}

/// See [`le16`].
pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    le64_of(bytes, at, 4) as u32
}

/// See [`le16`].
pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    le64_of(bytes, at, 8)
}

fn le64_of(bytes: &[u8], at: usize, width: usize) -> u64 {
    let field = bytes.get(at..).unwrap_or_default();
    let field = &field[..width.min(field.len())];
    field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The big-endian number at `at`, missing bytes read as zero.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    le16(bytes, at).swap_bytes()
}

/// See [`be16`].
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    le32(bytes, at).swap_bytes()
}

/// See [`be16`].
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    le64(bytes, at).swap_bytes()
}
