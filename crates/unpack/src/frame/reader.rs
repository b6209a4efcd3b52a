//! The stage of every format that is a document: a [`Reader`] that takes bytes and fills an outbox, which this stage
//! empties as events.
//!
//! A reader is called when its outbox is empty; it takes any prefix of a small piece and puts its events into the
//! outbox. [`Reading`] emits them, one a step. The events of a reader must not depend on the cut of its input, and
//! content is emitted as a copy.
//!
//! Progress is enforced: every call of a reader burns fuel, and a reader that is called [`READER_TURNS_MAX`] times in a
//! row without taking, emitting content or working on a kilobyte ends with `Heuristics.Limits.Exceeded.Stall`.
//!
//! Bounds: the content of one call, [`CONTENT_BYTES`] and the additions of the reader at most.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;
use std::ops::Range;

use stream::{Class, Event, Finding, Fuel, Object, ReadAt, Stage, Step, Window};

use crate::frame::codec::STALL;
use crate::frame::stall::{Patience, READER_TURNS_MAX};

/// The longest piece of input that a reader is given at once.
const PIECE_BYTES: usize = 4096;

/// Content that a reader may put into its empty outbox without asking for room.
pub(crate) const CONTENT_BYTES: usize = 4096;

/// Reader of a document: a stage that may emit several things at once.
pub(crate) trait Reader: Send {
    /// Takes a prefix of `input`, which is not empty, and emits its events. If it takes nothing it emits an event, or
    /// changes its state so that it will.
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize;

    /// Returns whether the reader ignores the rest of the input, once its events are emitted. Then it is not called
    /// again.
    fn is_over(&self) -> bool {
        false
    }

    /// Ends the input. Called until it is done; objects that are still open are closed afterwards.
    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended;
}

/// Whether a reader has more to tell at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    More,
    Done,
}

/// Events of a reader, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    words: VecDeque<Word>,
    content: Vec<u8>,
    /// How much of the content has been emitted.
    told: usize,
    /// Objects open, as the reader sees it.
    open: u32,
    /// Bytes worked on besides those taken and emitted.
    work: usize,
}

enum Word {
    /// So many bytes of content.
    Content(usize),
    Event(Event),
}

impl Outbox {
    /// Content of the innermost open object.
    pub fn content(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.content.extend_from_slice(bytes);
        match self.words.back_mut() {
            Some(Word::Content(count)) => *count = count.saturating_add(bytes.len()),
            _ => self.words.push_back(Word::Content(bytes.len())),
        }
    }

    /// An object begins.
    pub fn open(&mut self, object: Object) {
        self.open = self.open.saturating_add(1);
        self.words.push_back(Word::Event(Event::Open(object)));
    }

    /// The innermost open object ends.
    pub fn close(&mut self) {
        debug_assert!(self.open > 0, "closed what was not open");
        self.open = self.open.saturating_sub(1);
        self.words.push_back(Word::Event(Event::Close));
    }

    /// Something is wrong at `offset`.
    pub fn finding(&mut self, class: Class, name: &'static str, offset: u64) {
        self.words.push_back(Word::Event(Event::finding(Finding::new(class, name, offset))));
    }

    /// Requests a range of the input after the bytes that this call of [`Reader::read`] takes.
    pub fn keep(&mut self, range: Range<u64>) {
        self.words.push_back(Word::Event(Event::Keep(range)));
    }

    /// Work was done that neither took input nor told content.
    pub fn worked(&mut self, bytes: usize) {
        self.work = self.work.saturating_add(bytes);
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether an object is open.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Content that waits to be emitted.
    pub fn content_bytes(&self) -> usize {
        self.content.len().saturating_sub(self.told)
    }

    /// The last `count` bytes of it.
    pub fn last_content(&self, count: usize) -> &[u8] {
        &self.content[self.content.len().saturating_sub(count)..]
    }

    /// The next thing to tell, content copied to the window.
    fn next(&mut self, output: &mut Window) -> Option<Event> {
        match self.words.pop_front()? {
            Word::Event(event) => Some(event),
            Word::Content(count) => {
                let wrote = output.push(&self.content[self.told..self.told.saturating_add(count)]);
                self.told = self.told.saturating_add(wrote);
                if wrote < count {
                    self.words.push_front(Word::Content(count.saturating_sub(wrote)));
                }
                if self.told == self.content.len() {
                    self.content.clear();
                    self.told = 0;
                }
                Some(Event::Wrote)
            }
        }
    }
}

/// The stage around a reader.
pub(crate) struct Reading<R> {
    reader: R,
    outbox: Outbox,
    ended: Ended,
    /// Bytes of input taken so far.
    at: u64,
    patience: Patience,
    /// Whether the reader stood still and was ended.
    stalled: bool,
}

/// Work in one call that is not standing still.
const WORK: usize = 1024;

impl<R: Reader> Reading<R> {
    pub fn new(reader: R) -> Reading<R> {
        Reading {
            reader,
            outbox: Outbox::default(),
            ended: Ended::More,
            at: 0,
            patience: Patience::of(READER_TURNS_MAX),
            stalled: false,
        }
    }

    fn tell(&mut self, taken: usize, output: &mut Window, fuel: &mut Fuel) -> Step {
        let room = output.room();
        let event = self.outbox.next(output).unwrap_or(Event::Idle);
        let moved = taken.saturating_add(room).saturating_sub(output.room());
        fuel.burn(moved.max(1));
        Step::tell(taken, event)
    }

    /// Pays for a call of the reader that took so many bytes, and ends the reader if it has stood still for too long.
    fn pay(&mut self, taken: usize, fuel: &mut Fuel) {
        let work = std::mem::take(&mut self.outbox.work);
        fuel.burn(work.max(1));
        self.at = self.at.saturating_add(taken as u64);
        if !self.patience.bears(taken > 0 || work >= WORK || self.outbox.content_bytes() > 0) {
            self.stalled = true;
            self.ended = Ended::Done;
            self.outbox.finding(STALL.class, STALL.name, self.at);
        }
    }
}

impl<R: Reader> Stage for Reading<R> {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() || input.is_empty() {
            return Step::idle(0);
        }
        let mut taken = 0;
        while self.outbox.is_empty() && taken == 0 {
            if fuel.is_empty() {
                return Step::idle(0);
            }
            if self.stalled && self.outbox.is_open() {
                self.outbox.close();
            } else if self.stalled || self.reader.is_over() {
                fuel.burn(1);
                return Step::tell(0, Event::End);
            } else {
                let piece = &input[..fuel.allows(input.len()).min(PIECE_BYTES)];
                taken = self.reader.read(piece, &mut self.outbox);
                self.pay(taken, fuel);
            }
        }
        self.tell(taken, output, fuel)
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            if !self.outbox.is_empty() {
                return self.tell(0, output, fuel).event;
            }
            if self.ended == Ended::More {
                self.ended = self.reader.end(kept, &mut self.outbox);
                self.pay(0, fuel);
            } else if self.outbox.is_open() {
                self.outbox.close();
            } else {
                fuel.burn(1);
                return Event::End;
            }
        }
        Event::Idle
    }
}

#[cfg(test)]
mod tests {
    use stream::law;

    use super::*;

    /// Takes nothing, tells nothing, and is never done.
    struct Standing {
        opens: bool,
    }

    impl Reader for Standing {
        fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
            if self.opens && !outbox.is_open() {
                outbox.open(Object::default());
            }
            if self.opens { 0 } else { input.len() }
        }

        fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
            Ended::More
        }
    }

    #[test]
    fn a_reader_that_stands_still_ends_in_a_finding() {
        for opens in [false, true] {
            let told = law::tell(Reading::new(Standing { opens }), b"some bytes");
            let stalls = told.iter().filter(
                |told| matches!(told, law::Told::Note(stream::Note::Finding(finding)) if finding.name == STALL.name),
            );
            assert_eq!(stalls.count(), 1, "{told:?}");
        }
    }
}
