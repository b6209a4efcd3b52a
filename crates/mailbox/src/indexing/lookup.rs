//! Looking something up in the index of an account.

use std::cell::{Cell, RefCell};

use ::index::{Field, Query, Segment};
use keep::find::Answer;
use store::State;

use super::segments::{self, Content};
use super::texts::kind;
use crate::writer::Handle;

/// The index of an account, open for one search.
pub(crate) struct Lookup<'a> {
    segments: RefCell<Vec<Segment<Content<'a>>>>,
    /// Messages in the index, and those indexed only in part.
    known: Numbers,
    partial: Numbers,
    is_damaged: Cell<bool>,
}

/// Messages that the index reports for one text.
pub(crate) struct Found {
    numbers: Numbers,
    is_exact: bool,
}

/// Numbers of messages, ascending. Who asks for one after the other finds the next where the last was.
#[derive(Debug, Default)]
struct Numbers {
    all: Vec<u64>,
    last: Cell<usize>,
}

impl Numbers {
    fn new(mut all: Vec<u64>) -> Numbers {
        all.sort_unstable();
        all.dedup();
        Numbers { all, last: Cell::new(0) }
    }

    fn has(&self, number: u64) -> bool {
        let near = self.last.get();
        let found = (near..near + 2).find(|at| self.all.get(*at) == Some(&number));
        let found = found.or_else(|| self.all.binary_search(&number).ok());
        found.inspect(|at| self.last.set(*at)).is_some()
    }
}

impl<'a> Lookup<'a> {
    /// The index of an account; none if there is none, or why it cannot be read.
    pub fn open(store: &'a Handle, state: &State, account: u32) -> Result<Option<Lookup<'a>>, String> {
        let places = segments::of(state, account);
        if places.is_empty() {
            return Ok(None);
        }
        let opened: Result<Vec<_>, _> = places.iter().map(|place| segments::open(store, place.message)).collect();
        let segments = opened.map_err(|error| error.to_string())?;
        let documents = || segments.iter().flat_map(Segment::documents);
        let known = Numbers::new(documents().map(|document| document.number).collect());
        let partial = documents().filter(|document| document.is_partial).map(|document| document.number);
        let partial = Numbers::new(partial.collect());
        Ok(Some(Lookup { segments: RefCell::new(segments), known, partial, is_damaged: Cell::new(false) }))
    }

    /// Whether a message is in it.
    pub fn has(&self, number: u64) -> bool {
        self.known.has(number)
    }

    /// How many messages are in it.
    pub fn len(&self) -> usize {
        self.known.all.len()
    }

    /// Whether something in it could not be read.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.get()
    }

    /// Looks for a text in header fields of a name.
    pub fn in_header(&self, name: &[u8], text: &[u8]) -> Option<Found> {
        let (field, _) = kind(name);
        let found = self.find(&[field], text)?;
        Some(Found { is_exact: found.is_exact && field != Field::Other, ..found })
    }

    /// Looks for a text behind headers.
    pub fn in_body(&self, text: &[u8]) -> Option<Found> {
        self.find(&[Field::Body], text)
    }

    /// Looks for a text anywhere.
    pub fn anywhere(&self, text: &[u8]) -> Option<Found> {
        self.find(&Field::ALL, text)
    }

    /// None if it is nothing that an index knows, or the index is damaged.
    fn find(&self, fields: &[Field], text: &[u8]) -> Option<Found> {
        let query = std::str::from_utf8(text).map(Query::new).ok().filter(|query| !query.is_empty())?;
        let mut numbers = Vec::new();
        for segment in self.segments.borrow_mut().iter_mut() {
            match segment.search(fields, &query) {
                Ok(found) => numbers.extend(found.iter().map(|place| segment.documents()[place].number)),
                Err(error) => {
                    tracing::error!(%error, "an index cannot be read");
                    self.is_damaged.set(true);
                    return None;
                }
            }
        }
        Some(Found { numbers: Numbers::new(numbers), is_exact: query.is_exact() })
    }

    /// Answer of the index for one message.
    pub fn tells(&self, number: u64, found: &Found) -> Answer {
        match found.numbers.has(number) {
            true if !found.is_exact || self.partial.has(number) => Answer::Maybe,
            true => Answer::Present,
            false if self.known.has(number) => Answer::Absent,
            false => Answer::Unknown,
        }
    }
}
