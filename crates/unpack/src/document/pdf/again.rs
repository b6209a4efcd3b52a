//! Kept parts of a document, and the parts of them that are read again at the end.
//!
//! Bounds: [`PASSAGES_MAX`] passages besides the whole document; [`REREAD_MAX`] times what may be kept is read.

use std::collections::VecDeque;

use stream::{Limits, ReadAt};

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
    /// Where something that looks like an object began in a string or comment.
    hidden: Option<u64>,
    passages: VecDeque<Passage>,
    passages_seen: usize,
    reread: u64,
    reading: Option<Passage>,
    missed: Option<u64>,
}

/// Something to be read again.
pub(super) struct Passage {
    pub start: u64,
    pub end: u64,
    /// The object whose stream begins there: nothing else is read.
    pub object: Option<Box<Object>>,
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

    /// Something that looks like an object began here, in a string or comment.
    pub fn hides(&mut self, start: u64) {
        self.hidden = self.hidden.or(Some(start));
        self.need();
    }

    /// The string, or the object with the comment, ends at `end`.
    pub fn shown(&mut self, end: u64) {
        if let Some(start) = self.hidden.take() {
            self.passage(Passage { start, end, object: None });
        }
    }

    /// Something is to be read again.
    pub fn passage(&mut self, passage: Passage) {
        self.passages_seen += 1;
        if self.passages_seen > PASSAGES_MAX || self.head == 0 {
            self.missed = self.missed.or(Some(passage.start));
        } else {
            self.passages.push_back(passage);
        }
    }

    /// The whole document, up to `end`, is to be read again, and nothing else of it.
    pub fn everything(&mut self, end: u64) {
        self.forget();
        let head = self.head.min(end);
        let tail = self.tail.unwrap_or(end);
        if tail <= head || head == end {
            return self.passages.push_back(Passage { start: 0, end, object: None });
        }
        self.missed = Some(head);
        self.passages.push_back(Passage { start: 0, end: head, object: None });
        self.passages.push_back(Passage { start: tail, end, object: None });
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

    /// Reads kept bytes at `at` of the passage.
    pub fn read(&mut self, kept: &dyn ReadAt, at: u64, piece: &mut [u8]) -> usize {
        let Some(passage) = &self.reading else { return 0 };
        let left = passage.end.saturating_sub(at).min(piece.len() as u64) as usize;
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
        if let Some(passage) = self.reading.as_mut().filter(|passage| passage.object.is_some()) {
            passage.end = 0;
        }
    }

    /// Whether there is another passage.
    pub fn has_next(&self) -> bool {
        !self.passages.is_empty()
    }

    /// Goes on to the next passage: where it starts, and its object.
    pub fn next(&mut self) -> Option<(u64, Option<Box<Object>>)> {
        let mut passage = self.passages.pop_front()?;
        let (start, object) = (passage.start, passage.object.take());
        if let Some(object) = &object {
            passage.object = Some(Box::new(Object::new(object.id)));
        }
        self.reading = Some(passage);
        Some((start, object))
    }

    /// The first place that should have been read again and was not kept.
    pub fn missed(&self) -> Option<u64> {
        self.missed
    }
}
