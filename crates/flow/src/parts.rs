//! Where in a mail its parts stand.

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

/// The parts of a mail, by the numbers that IMAP gives them (RFC 9051, section 6.4.5).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    /// Each of them, in their order; the first is the mail itself. At most [`Parts::PLACES_MAX`].
    pub places: Vec<Place>,
    /// The size of the mail in bytes.
    pub len: u64,
}

/// Where one part stands, in bytes of the mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its numbers: `[]` is the mail, `[2, 1]` the first part of its second.
    pub path: Vec<u32>,
    /// The header in front of it.
    pub header: Range<u64>,
    /// Its content.
    pub body: Range<u64>,
    /// The header and the body of the mail that it is, if it is one.
    pub message: Option<(Range<u64>, Range<u64>)>,
}

impl Parts {
    /// The most parts that are reported of one mail; more are not known.
    pub const PLACES_MAX: usize = 256;

    /// A part by its numbers. A part that has no parts is its own first part, as servers have it.
    pub fn place(&self, path: &[u32]) -> Option<&Place> {
        let find = |path: &[u32]| self.places.iter().find(|place| place.path == path);
        let as_its_first = || {
            let (last, parent) = path.split_last()?;
            find(parent).filter(|place| *last == 1 && place.message.is_none())
        };
        find(path).or_else(as_its_first)
    }
}
