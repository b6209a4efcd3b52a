//! Kept parts of a document, and the parts of them that are read again at the end.
//!
//! Bounds: [`PASSAGES_MAX`] passages besides the whole document; [`REREAD_MAX`] times what may be kept is read.

use std::collections::VecDeque;

use stream::{Limits, ReadAt};

use super::mark::Marked;
use super::object::Object;
use crate::frame::reader::Outbox;

/// Maximum number of passages to read again: documents have hundreds of pictures whose parameters come later.
const PASSAGES_MAX: usize = 1_024;

/// Passages may lie within one another. Together they are at most so many times as long as what may be kept.
const REREAD_MAX: u64 = 4;

/// Passages of the input that are kept, and read again at the end.
pub(super) struct Again {
    bytes_max: u64,
    /// End of the kept bytes from the start; 0 before the request.
    head: u64,
    /// Where the rest that is kept begins.
    tail: Option<u64>,
    needed: bool,
    /// Whether a stream showed that the document is not encrypted.
    is_plain: bool,
    /// What looks like the head of an object in a string, a comment or data, and where it ends.
    hidden: Option<(Marked, u64)>,
    /// End of the document, when it has come.
    end: u64,
    passages: VecDeque<Passage>,
    passages_seen: usize,
    reread: u64,
    reading: Option<Reading>,
    missed: Option<u64>,
}

/// Something to be read again.
struct Passage {
    start: u64,
    end: u64,
    begins: Begins,
}

/// What a passage begins with.
pub(super) enum Begins {
    Words,
    /// The data of an object's stream: nothing else is read.
    Data(Box<Object>),
    /// What stands behind this head.
    Marked(Marked),
}

/// A passage that is being read.
struct Reading {
    end: u64,
    /// Whether it is the data of a stream.
    is_data: bool,
    /// Whether an object that begins in it is read to its own end.
    is_open: bool,
    is_over: bool,
}

impl Again {
    pub fn new(limits: &Limits) -> Again {
        Again {
            bytes_max: limits.spool_bytes_max.into(),
            head: 0,
            tail: None,
            needed: false,
            is_plain: false,
            hidden: None,
            end: 0,
            passages: VecDeque::new(),
            passages_seen: 0,
            reread: 0,
            reading: None,
            missed: None,
        }
    }

    /// Asks for the first bytes, once; whether it did.
    pub fn begin(&mut self, bytes: u64, outbox: &mut Outbox) -> bool {
        if self.head > 0 {
            return false;
        }
        self.head = bytes.min(self.bytes_max).max(1);
        outbox.keep(0..self.head);
        true
    }

    /// Requests the following input, since a passage may have to be read again.
    pub fn need(&mut self) {
        self.needed |= self.head > 0 && self.tail.is_none() && !self.is_reading();
    }

    /// A stream has been read that would have been another in an encrypted document.
    pub fn shows_plain(&mut self) {
        self.is_plain = true;
    }

    /// How many of `count` bytes at `at` may be read before [`Again::keep`] has to be asked.
    pub fn before_head(&self, at: u64, count: usize) -> usize {
        match usize::try_from(self.head.saturating_sub(at)) {
            Ok(left) if left > 0 && !self.is_plain => count.min(left),
            _ => count,
        }
    }

    /// Requests the input after `at`, its current place, if it is needed: at the end of the head it is where the document
    /// may be encrypted, for all that is known. Returns whether it did.
    pub fn keep(&mut self, at: u64, outbox: &mut Outbox) -> bool {
        if at >= self.head && !self.is_plain {
            self.need();
        }
        if !std::mem::take(&mut self.needed) {
            return false;
        }
        let start = at.max(self.head);
        self.tail = Some(start);
        outbox.keep(start..start.saturating_add(self.bytes_max));
        true
    }

    /// What looks like the head of an object ends here, in a string, a comment or data.
    pub fn hides(&mut self, marked: Marked, end: u64) {
        // The data of a passage have been seen before.
        if !self.reading.as_ref().is_some_and(|reading| reading.is_data) {
            self.hidden = self.hidden.or(Some((marked, end)));
            self.need();
        }
    }

    /// Whether there was one since the last string or object ended.
    pub fn has_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// The string, the object with the comment, or the data end at `end`.
    pub fn shown(&mut self, end: u64) {
        if let Some((marked, start)) = self.hidden.take() {
            self.passage(Passage { start, end, begins: Begins::Marked(marked) });
        }
    }

    /// The data of an object's stream, from `start` on, are to be read again.
    pub fn data(&mut self, start: u64, object: Box<Object>) {
        self.passage(Passage { start, end: u64::MAX, begins: Begins::Data(object) });
    }

    /// What stands here is to be read again as words.
    pub fn words(&mut self, start: u64, end: u64) {
        self.passage(Passage { start, end, begins: Begins::Words });
    }

    fn passage(&mut self, passage: Passage) {
        self.passages_seen += 1;
        if self.passages_seen > PASSAGES_MAX || self.head == 0 {
            self.missed = self.missed.or(Some(passage.start));
        } else {
            self.passages.push_back(passage);
        }
    }

    /// The whole document is to be read again, and nothing else of it.
    pub fn everything(&mut self) {
        self.forget();
        let end = self.end;
        let head = self.head.min(end);
        let tail = self.tail.unwrap_or(end);
        let passage = |start, end| Passage { start, end, begins: Begins::Words };
        if tail <= head || head == end {
            return self.passages.push_back(passage(0, end));
        }
        self.missed = Some(head);
        self.passages.push_back(passage(0, head));
        self.passages.push_back(passage(tail, end));
    }

    /// The document, or a passage of it, ended here.
    pub fn ended(&mut self, at: u64) {
        self.end = self.end.max(at);
    }

    /// Drops the objects that were to be read again.
    pub fn forget(&mut self) {
        self.passages.clear();
        self.passages_seen = 0;
        self.missed = None;
    }

    /// Whether something is being read again.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Reads kept bytes at `at` of the passage. `is_within` says that an object has begun and not ended there.
    pub fn read(&mut self, kept: &dyn ReadAt, at: u64, is_within: bool, piece: &mut [u8]) -> usize {
        let Some(reading) = &self.reading else { return 0 };
        let end = match reading {
            Reading { is_over: true, .. } => 0,
            Reading { is_open: true, .. } if is_within => self.end,
            reading => reading.end,
        };
        let left = end.saturating_sub(at).min(piece.len() as u64) as usize;
        let allowed = self.reread < self.bytes_max.saturating_mul(REREAD_MAX);
        let count = if allowed { kept.read_at(at, &mut piece[..left]) } else { 0 };
        self.reread += count as u64;
        if count == 0 && left > 0 {
            self.missed = self.missed.or(Some(at));
        }
        count
    }

    /// The stream of the passage's object has been read.
    pub fn stream_ended(&mut self) {
        if let Some(reading) = self.reading.as_mut().filter(|reading| reading.is_data) {
            reading.is_over = true;
        }
    }

    /// An object ended here. A passage that only its last object leads beyond its end is over.
    pub fn object_ended(&mut self, at: u64) {
        if let Some(reading) = self.reading.as_mut().filter(|reading| reading.is_open) {
            reading.is_over |= at >= reading.end;
        }
    }

    /// Whether the passage that is being read is over.
    pub fn is_over(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.is_over)
    }

    /// Whether there is another passage.
    pub fn has_next(&self) -> bool {
        !self.passages.is_empty()
    }

    /// Goes on to the next passage: where it starts, and with what.
    pub fn next(&mut self) -> Option<(u64, Begins)> {
        let Passage { start, end, begins } = self.passages.pop_front()?;
        let (is_data, is_open) = (matches!(begins, Begins::Data(_)), matches!(begins, Begins::Marked(_)));
        self.reading = Some(Reading { end, is_data, is_open, is_over: false });
        Some((start, begins))
    }

    /// The first place that should have been read again and was not kept.
    pub fn missed(&self) -> Option<u64> {
        self.missed
    }
}
