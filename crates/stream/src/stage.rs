//! The one verb: [`Stage::step`].

use alloc::boxed::Box;
use core::ops::Range;

use crate::{Finding, Fuel, Object, Window};

/// Something that reads a stream and tells what it saw.
///
/// # Calling order
/// `step` as long as there is input, then `finish` until it returns [`Event::End`]. A stage that has told
/// [`Event::End`] is not called again, whatever input remains.
///
/// # What the driver promises
/// * Bytes that were not taken are offered again, with more behind them.
/// * The window has room for at least one byte whenever a stage is called. The driver empties it after each
///   [`Event::Wrote`].
///
/// # What a stage promises
/// * **Progress.** Given input and fuel it takes at least one byte or tells something other than [`Event::Idle`]: it
///   never waits for two bytes to arrive together. What it must see whole (a header) it copies into a bounded buffer of
///   its own.
/// * **Bounds.** One call handles at most the input it was given and fills at most the window it was given. Memory
///   beyond its size at rest is bounded by [`Limits`](crate::Limits).
/// * **Balance.** Each [`Event::Open`] has its [`Event::Close`]; `finish` closes what is still open before it ends.
///   Content ([`Event::Verbatim`], [`Event::Wrote`]) belongs to the innermost open object, and there is none outside of
///   one, except for a stage with a single unnamed output (a transfer decoder).
/// * **Portable.** It holds nothing of the thread that it is called in: the next call may come from another.
/// * **No error.** What is wrong with the content is a [`Note`]; afterwards the stage goes on as best it can or ends.
pub trait Stage: Send {
    /// Takes a prefix of `input` and tells one thing.
    ///
    /// Burns at least as many units of fuel as bytes taken or written, and at least one when it does anything.
    /// Without fuel it takes nothing and is [`Event::Idle`].
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step;

    /// Ends the input. Called until it returns [`Event::End`].
    ///
    /// [`Event::Idle`] means that the fuel ran out. `kept` holds the ranges that were asked for by [`Event::Keep`].
    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event;

    /// After [`Note::Fork`]: the stage that reads, from the next byte on, what can be read another way.
    ///
    /// It ends (with [`Event::End`]) where the two readings meet again, or with the stream. What it tells before it opens
    /// anything is content of the object that was open at the fork, in a copy of the reading's own, which it may close. The
    /// driver may not ask; then the second reading is not inspected, which is a finding of the driver's.
    fn alternative(&mut self) -> Option<Box<dyn Stage>> {
        None
    }
}

/// The outcome of one call of [`Stage::step`]: how much of the input it took, and one event.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Bytes taken from the front of the input.
    pub taken: usize,
    /// The one thing told.
    pub event: Event,
}

/// The one thing that a step tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Nothing to tell: all input was taken or the fuel is used up.
    Idle,
    /// All bytes taken by this step are content of the innermost open object, as they stand.
    Verbatim,
    /// The bytes written to the window are content of the innermost open object.
    Wrote,
    /// An object begins within the innermost open one.
    Open(Object),
    /// The innermost open object is complete.
    Close,
    /// A remark on the content.
    Note(Note),
    /// The stage asks that this range of its own input, none of it taken yet, be kept for `finish`. The range may reach
    /// beyond the end of the input. It may ask again, in ascending order. A refusal is the driver's finding; the stage
    /// goes on without, or with what was kept of the front.
    Keep(Range<u64>),
    /// The stage is done; bytes that it has not taken are none of its business.
    End,
}

/// A remark of a stage on the content.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Something to report and, by policy, to act on.
    Finding(Finding),
    /// From the next byte on the content can be read in another way; see [`Stage::alternative`]. The finding says what
    /// is ambiguous; its class is that of an ambiguity, or `TwoReadings` where it is none as long as both are inspected.
    Fork(Finding),
}

impl Step {
    /// Takes `taken` bytes and tells nothing.
    pub const fn idle(taken: usize) -> Step {
        Step { taken, event: Event::Idle }
    }

    /// Takes `taken` bytes and tells `event`.
    pub const fn tell(taken: usize, event: Event) -> Step {
        Step { taken, event }
    }
}

impl Event {
    /// The event that reports `finding`.
    pub const fn finding(finding: Finding) -> Event {
        Event::Note(Note::Finding(finding))
    }
}

/// Bytes that can be read again at their offset in the stream.
pub trait ReadAt {
    /// Copies what is kept from `offset` on into `buffer` and returns how many bytes that were: fewer than fit only
    /// where a gap or the end follows, 0 when that offset is not kept.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize;
}

/// A [`ReadAt`] that has kept nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl ReadAt for Nothing {
    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> usize {
        0
    }
}
