//! The memory that searches work in, kept from field to field and from mail to mail: what an automaton has built for one serves
//! the next.

use std::fmt;

use pattern::expression::{Expression, Search};

use crate::expression::search;
use crate::searches::Searches;

/// Room for one mail at a time, for the stop words that it was made for.
pub struct Room {
    /// Searches for words that say nothing.
    pub(crate) stop_words: Vec<Search>,
    pub(crate) fields: Searches,
}

impl fmt::Debug for Room {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Room({} bytes)", self.bytes())
    }
}

impl Room {
    /// With nothing in it.
    pub fn new(stop_words: &[Expression]) -> Room {
        Room { stop_words: stop_words.iter().map(search).collect(), fields: Searches::default() }
    }

    /// Returns an estimate of its memory in bytes. Each automaton is bounded.
    pub fn bytes(&self) -> usize {
        self.stop_words.iter().chain(self.fields.all()).map(Search::memory).sum()
    }
}
