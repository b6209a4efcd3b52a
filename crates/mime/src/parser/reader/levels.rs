//! The containers that are open, and what a delimiter line does to them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::Class;

use super::{Reader, Tell};
use crate::parser::boundary::{Boundary, Delimiter, Verdict};

/// A container that is open.
#[derive(Debug, Clone)]
pub(in crate::parser) enum Level {
    Message,
    Multipart(Multipart),
}

/// An open multipart.
#[derive(Debug, Clone, Default)]
pub(in crate::parser) struct Multipart {
    /// `None` if it declares none: then the first line that looks like a delimiter defines it.
    pub(in crate::parser) boundary: Option<Box<[u8]>>,
    /// Whether the boundary exceeds its kept length.
    cut: bool,
    /// Its parts are messages unless they say otherwise.
    digest: bool,
    /// Its closing delimiter was seen.
    closed: bool,
    /// A delimiter of it was seen.
    settled: bool,
    /// Boundaries of other readings: further declared ones, or the first line that looks like a delimiter.
    others: Vec<Box<[u8]>>,
    /// A delimiter of another one that is declared was seen.
    other_seen: bool,
    /// The boundary is guessed, not declared.
    guessed: bool,
    /// A line looks like a delimiter, and is one of no reading.
    stray: bool,
    /// Whether a line that begins like a field follows one that looks like a delimiter.
    stray_field: bool,
}

/// Role of a line that looks like a delimiter, for a multipart without any delimiter so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::parser) enum Guess {
    /// Its boundary, for it declares none.
    Taken,
    /// The boundary of another reading, which is to be offered.
    New,
    /// Content, in this reading.
    Known,
}

impl Multipart {
    pub(in crate::parser) fn new(
        boundary: Option<Box<[u8]>>,
        cut: bool,
        digest: bool,
        others: Vec<Box<[u8]>>,
    ) -> Multipart {
        Multipart { boundary, cut, digest, others, ..Multipart::default() }
    }

    pub(in crate::parser) fn guessed(boundary: Box<[u8]>) -> Multipart {
        Multipart { boundary: Some(boundary), settled: true, ..Multipart::default() }
    }

    fn take_guess(&mut self, boundary: &[u8]) -> Guess {
        if self.boundary.is_none() {
            self.settled = true;
            self.boundary = Some(boundary.into());
            return Guess::Taken;
        }
        if self.others.iter().any(|other| !other.is_empty() && boundary.starts_with(other)) {
            self.other_seen |= !self.guessed;
            return Guess::Known;
        }
        if self.others.is_empty() {
            self.guessed = true;
            self.others.push(boundary.into());
            return Guess::New;
        }
        self.stray = true;
        Guess::Known
    }
}

impl Reader {
    pub(in crate::parser) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(in crate::parser) fn is_full(&self) -> bool {
        self.levels.len() >= self.bounds.levels_max
    }

    pub(in crate::parser) fn push_level(&mut self, level: Level) {
        self.levels.push(level);
    }

    /// Pushes a multipart whose container is open under another boundary already; which level it is.
    pub(in crate::parser) fn push_silent(&mut self, multipart: Multipart) -> usize {
        self.levels.push(Level::Multipart(multipart));
        self.silent = self.levels.len();
        self.silent - 1
    }

    pub(in crate::parser) fn in_digest(&self) -> bool {
        matches!(self.levels.last(), Some(Level::Multipart(multipart)) if multipart.digest)
    }

    /// Whether a delimiter of this level ends the reading.
    pub(in crate::parser) const fn is_outside(&self, level: usize) -> bool {
        level < self.outside
    }

    /// Makes the reading end only at delimiters of the levels below `level`.
    pub(in crate::parser) fn end_outside(&mut self, level: usize) {
        self.outside = self.outside.min(level);
    }

    /// From here on a line with junk behind the boundary is no delimiter.
    pub(in crate::parser) const fn set_strict(&mut self) {
        self.strict = true;
    }

    /// Role of a line, by the matcher's verdict.
    pub(in crate::parser) fn judge(&self, verdict: Verdict) -> Verdict {
        let Verdict::Delimiter(delimiter) = verdict else {
            return verdict;
        };
        let Some(Level::Multipart(multipart)) = self.levels.get(delimiter.level) else {
            return verdict;
        };
        let empty = multipart.boundary.as_deref().is_none_or(<[u8]>::is_empty);
        if delimiter.junk && (self.strict || empty) {
            return Verdict::Content;
        }
        Verdict::Delimiter(Delimiter { junk: delimiter.junk && !multipart.cut, ..delimiter })
    }

    /// The boundaries of all open multiparts.
    pub(in crate::parser) fn boundaries(&self) -> impl Iterator<Item = (usize, Boundary<'_>)> {
        boundaries(&self.levels)
    }

    /// Whether a line that looks like a delimiter may be one of the innermost multipart under a boundary that it does
    /// not declare.
    pub(in crate::parser) fn wants_guess(&self) -> bool {
        matches!(self.levels.last(), Some(Level::Multipart(multipart)) if !multipart.settled)
    }

    /// Returns the role of a line that looks like a delimiter, for the innermost multipart.
    pub(in crate::parser) fn takes_guess(&mut self, boundary: &[u8]) -> Guess {
        let Some(Level::Multipart(multipart)) = self.levels.last_mut() else {
            return Guess::Known;
        };
        multipart.take_guess(boundary)
    }

    /// Notes a line that begins like a field, before the first delimiter of the innermost multipart, if a line that looks like one
    /// stands before it. Whether it did: then another reading goes on there, and this one matters only if the declared delimiter
    /// comes after all.
    pub(in crate::parser) fn takes_stray_field(&mut self) -> bool {
        let Some(Level::Multipart(multipart)) = self.levels.last_mut() else {
            return false;
        };
        let stray = multipart.guessed && !multipart.settled;
        multipart.stray_field |= stray;
        stray
    }

    /// Tells of lines that look like delimiters in a multipart whose own never came, where no reading knew them.
    fn tell_stray(&mut self, multipart: &Multipart) {
        if multipart.stray && !multipart.settled && !multipart.other_seen {
            let finding = self.finding(Class::Ambiguous, "Heuristics.Ambiguous.Mime.BoundaryUnseen");
            self.tell(Tell::Finding(finding));
        }
    }

    /// Closes the levels within `level`, whose delimiter has been met.
    pub(in crate::parser) fn close_to(&mut self, level: usize, close: bool) {
        while self.levels.len() > level + 1 {
            self.close_last();
        }
        let Some(Level::Multipart(multipart)) = self.levels.last_mut() else {
            return;
        };
        multipart.closed = close;
        let first = !core::mem::replace(&mut multipart.settled, true);
        if first && multipart.stray_field {
            let finding = self.finding(Class::Ambiguous, "Heuristics.Ambiguous.Mime.HeaderStart");
            self.tell(Tell::Finding(finding));
        }
    }

    pub(in crate::parser) fn close_all(&mut self) {
        while self.levels.len() > self.silent {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        let level = self.levels.pop();
        if self.levels.len() >= self.silent {
            if let Some(Level::Multipart(multipart)) = level {
                self.tell_stray(&multipart);
            }
            self.tell(Tell::Close);
        } else {
            self.silent = self.levels.len();
        }
    }
}

/// The boundaries of the multiparts among `levels`.
fn boundaries(levels: &[Level]) -> impl Iterator<Item = (usize, Boundary<'_>)> {
    levels.iter().enumerate().filter_map(|(index, level)| match level {
        Level::Multipart(multipart) => {
            Some((index, Boundary { bytes: multipart.boundary.as_deref()?, closed: multipart.closed }))
        }
        Level::Message => None,
    })
}
