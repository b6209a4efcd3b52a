//! Fingerprints of nearly equal mails, and how much a mail resembles one that was reported as spam.
//!
//! Bounds: [`PLACES`] shingles of a text, [`PARTS_MAX`] attachments.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Shingles of a text.
pub const PLACES: usize = 32;

/// Attachments of a mail that are looked at.
pub const PARTS_MAX: usize = 20;

/// A mail, as it is compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fuzzy {
    /// The shingles of its text in their places; none where it is too short.
    pub shingles: Vec<u64>,
    /// Digests of what is attached.
    pub parts: Vec<[u8; 16]>,
}

/// How much it is like one that was reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alike {
    /// Shingles that both have in the same place, at most [`PLACES`].
    pub places: u8,
    /// Whether something that is attached was attached to one that was reported.
    pub has_part: bool,
}

impl Fuzzy {
    /// Whether there is nothing to be compared.
    pub fn is_empty(&self) -> bool {
        self.shingles.is_empty() && self.parts.is_empty()
    }
}

impl Alike {
    /// The share of the text that is alike, from 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.places) / PLACES as f64
    }
}
