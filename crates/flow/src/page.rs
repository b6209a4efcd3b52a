//! The score of a web page by phrases: the question of a door, and the answer.

use alloc::boxed::Box;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The terms on which a page is scored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paging {
    /// The filter group, counted from 1.
    pub group: u32,
    /// The day of the week where the site is, from 0 for Monday: some phrases hold at times.
    pub day: u8,
    /// Minutes since midnight there.
    pub minute: u16,
    /// Whether a page is blocked for its score; otherwise the score is told alone.
    pub blocks: bool,
}

/// The score of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageScore {
    /// The sum of the weights.
    pub points: i32,
    /// Consequence for the page.
    pub outcome: PageOutcome,
    /// Whether that is done, rather than told alone.
    pub blocks: bool,
    /// Phrases that counted; at most [`PageScore::PHRASES_MAX`].
    pub phrases: Vec<Phrase>,
    /// Categories with their points, the highest first.
    pub categories: Vec<(Box<str>, i32)>,
}

/// The outcome of a score.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PageOutcome {
    /// The page passes.
    #[default]
    Passed,
    /// It passes whatever else is in it, for this phrase or these.
    Exception(Box<str>, bool),
    /// It is blocked for this phrase; true for a combination of several.
    Banned(Box<str>, bool),
    /// It is blocked for its points.
    Weighted,
    /// It is blocked since it has too many phrases to count.
    Dense,
}

/// A phrase, or a combination of several, that counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phrase {
    /// The text.
    pub text: Box<str>,
    /// The number of occurrences.
    pub count: u32,
    /// The points of one occurrence; none of a banned phrase.
    pub weight: Option<i32>,
}

impl PageScore {
    /// The most phrases that are listed.
    pub const PHRASES_MAX: usize = 64;

    /// Whether the page is blocked.
    pub const fn is_blocked(&self) -> bool {
        self.blocks && self.is_bad()
    }

    /// Whether the page would be blocked if scores block.
    pub const fn is_bad(&self) -> bool {
        matches!(self.outcome, PageOutcome::Banned(..) | PageOutcome::Weighted | PageOutcome::Dense)
    }
}
