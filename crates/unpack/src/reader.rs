//! The stage of every format that is a document: a [`Reader`] that takes bytes and tells in passing, and the outbox
//! between it and the one verb.
//!
//! A reader is called when its outbox is empty, takes as much as it likes of a small piece and puts what it has to tell
//! into the outbox; [`Reading`] hands that on, one thing a step. What a reader tells must not depend on the cut of its
//! input, and content is told as a copy.
//!
//! Bounds: the content of one call, [`CONTENT_BYTES`] and what the reader adds to it at most.

use std::collections::VecDeque;
use std::ops::Range;

use stream::{Class, Event, Finding, Fuel, Object, ReadAt, Stage, Step, Window};

/// The longest piece of input that a reader is given at once.
const PIECE_BYTES: usize = 4096;

/// Content that a reader may put into its empty outbox without asking for room.
pub(crate) const CONTENT_BYTES: usize = 4096;

/// What reads a document: a stage that may tell several things at once.
pub(crate) trait Reader: Send {
    /// Takes a prefix of `input`, which is not empty, and tells what it says. If it takes nothing it tells something, or
    /// changes its state so that it will.
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize;

    /// Whether the rest of the input is none of its business, once all is told. Then it is not called again.
    fn is_over(&self) -> bool {
        false
    }

    /// No more input follows. Called until it says that it is done; what is still open is closed behind it.
    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended;
}

/// Whether a reader has more to tell at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    More,
    Done,
}

/// What a reader has to tell, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    words: VecDeque<Word>,
    content: Vec<u8>,
    /// How much of the content has been told.
    told: usize,
    /// Objects open, as the reader sees it.
    open: u32,
    /// Bytes worked on besides those taken and told.
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
            Some(Word::Content(count)) => *count += bytes.len(),
            _ => self.words.push_back(Word::Content(bytes.len())),
        }
    }

    /// An object begins.
    pub fn open(&mut self, object: Object) {
        self.open += 1;
        self.words.push_back(Word::Event(Event::Open(object)));
    }

    /// The innermost open object ends.
    pub fn close(&mut self) {
        self.open -= 1;
        self.words.push_back(Word::Event(Event::Close));
    }

    /// Something is wrong at `offset`.
    pub fn finding(&mut self, class: Class, name: &'static str, offset: u64) {
        self.words.push_back(Word::Event(Event::finding(Finding::new(class, name, offset))));
    }

    /// Asks for a range of the input that follows what this call of [`Reader::read`] takes.
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

    /// Content that waits to be told.
    pub fn content_bytes(&self) -> usize {
        self.content.len() - self.told
    }

    /// The last `count` bytes of it.
    pub fn last_content(&self, count: usize) -> &[u8] {
        &self.content[self.content.len() - count..]
    }

    /// The next thing to tell, content copied to the window.
    fn next(&mut self, output: &mut Window) -> Option<Event> {
        match self.words.pop_front()? {
            Word::Event(event) => Some(event),
            Word::Content(count) => {
                let wrote = output.push(&self.content[self.told..self.told + count]);
                self.told += wrote;
                if wrote < count {
                    self.words.push_front(Word::Content(count - wrote));
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
}

impl<R: Reader> Reading<R> {
    pub fn new(reader: R) -> Reading<R> {
        Reading { reader, outbox: Outbox::default(), ended: Ended::More }
    }

    fn tell(&mut self, taken: usize, output: &mut Window, fuel: &mut Fuel) -> Step {
        let room = output.room();
        let event = self.outbox.next(output).unwrap_or(Event::Idle);
        fuel.burn((taken + room - output.room() + std::mem::take(&mut self.outbox.work)).max(1));
        Step::tell(taken, event)
    }
}

impl<R: Reader> Stage for Reading<R> {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        if fuel.is_empty() || input.is_empty() {
            return Step::idle(0);
        }
        if self.outbox.is_empty() && self.reader.is_over() {
            fuel.burn(1);
            return Step::tell(0, Event::End);
        }
        let piece = &input[..fuel.allows(input.len()).min(PIECE_BYTES)];
        let mut taken = 0;
        while self.outbox.is_empty() && taken == 0 {
            taken = self.reader.read(piece, &mut self.outbox);
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
                fuel.burn(std::mem::take(&mut self.outbox.work).max(1));
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
