//! The one verb: [`Stage::step`].

use alloc::boxed::Box;
use core::ops::Range;

use crate::{Finding, Fuel, Object, Window};

/// A reader of a stream that emits events.
///
/// # Calling order
///
/// `step` as long as there is input, then `finish` until it returns [`Event::End`]. A stage that has emitted
/// [`Event::End`] is not called again, whatever input remains.
///
/// # Promises of the driver
///
/// * Bytes that were not taken are offered again, with more after them.
/// * The window has room for at least one byte whenever a stage is called. The driver empties it after each
///   [`Event::Wrote`].
///
/// # Promises of a stage
///
/// * **Progress.** Given input and fuel it takes at least one byte or emits an event other than [`Event::Idle`]: it
///   never waits for two bytes to arrive together. A header that it needs as a whole is copied into its own bounded
///   buffer.
/// * **Bounds.** One call handles at most the input it was given and fills at most the window it was given. Memory
///   beyond its size at rest is bounded by [`Limits`](crate::Limits).
/// * **Balance.** Each [`Event::Open`] has its [`Event::Close`]; `finish` closes open objects before it ends.
///   Content ([`Event::Verbatim`], [`Event::Wrote`]) belongs to the innermost open object, and there is none outside of
///   one, except for a stage with a single unnamed output (a transfer decoder).
/// * **Portable.** It holds nothing of the thread that it is called in: the next call may come from another.
/// * **No error.** Invalid content is a [`Note`]; afterwards the stage continues as well as it can, or ends.
pub trait Stage: Send {
    /// Takes a prefix of `input` and emits one event.
    ///
    /// Burns at least as many units of fuel as bytes taken or written, and at least one when it does anything.
    /// Without fuel it takes nothing and is [`Event::Idle`].
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step;

    /// Ends the input. Called until it returns [`Event::End`].
    ///
    /// [`Event::Idle`] means that the fuel ran out. `kept` holds the ranges that were asked for by [`Event::Keep`].
    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event;

    /// Returns the stage of the second reading after [`Note::Fork`], which begins at the next byte.
    ///
    /// It ends (with [`Event::End`]) where the two readings meet again, or with the stream. Content before its first
    /// object belongs to its own copy of the object that was open at the fork, which it may close. If the driver does
    /// not ask, the second reading is not inspected, and the driver emits a finding.
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
    /// Requests that this range of the input, none of it taken yet, be kept for `finish`. The range may reach beyond
    /// the end of the input. Further requests have to ascend. A refusal is the driver's finding; the stage continues
    /// without the range, or with its kept front.
    Keep(Range<u64>),
    /// The stage is done and takes no further bytes.
    End,
}

/// A remark of a stage on the content.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// Something to report and, by policy, to act on.
    Finding(Finding),
    /// The content has a second reading from the next byte on; see [`Stage::alternative`]. The finding names the
    /// ambiguity; its class is `Ambiguous`, or `TwoReadings` if the ambiguity is harmless once both readings are
    /// inspected.
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
    /// Copies kept bytes from `offset` on into `buffer` and returns their number: fewer than fit only before a gap or
    /// the end, 0 if that offset is not kept.
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
