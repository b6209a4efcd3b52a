//! Programs of the backtracking matcher: small instructions and the tables they point into.

use super::syntax::Assertion;
use crate::ByteSet;

/// No set: any byte, or the end, may follow.
pub(super) const ANY: u32 = u32::MAX;
/// A branch whose failures are not remembered.
pub(super) const FORGET: u32 = u32::MAX;

/// A compiled expression.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub code: Vec<Instruction>,
    pub sets: Vec<ByteSet>,
    /// The bytes of all literals.
    pub bytes: Vec<u8>,
    pub bounds: Vec<Bounds>,
    pub looks: Vec<LookAround>,
    /// Two for each group, and two for the whole.
    pub slots: usize,
    pub registers: usize,
    /// How many branches there are whose failures may be remembered.
    pub branches: u32,
    pub start: Start,
}

/// Where matches can begin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Start {
    #[default]
    Anywhere,
    /// At the start of the haystack.
    First,
    /// Where the search began.
    From,
    /// After a line feed or at the start of the haystack.
    Line,
    /// In front of one of a few bytes.
    Few(Vec<u8>),
    /// In front of a byte of a set.
    Set(ByteSet),
}

/// Counts of a loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub min: u32,
    pub max: u32,
    pub lazy: bool,
}

/// A look around: its inside follows the instruction, up to its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct LookAround {
    pub negative: bool,
    /// For a look behind: the fewest and the most bytes that it takes.
    pub behind: Option<(u32, u32)>,
    /// Where its inside begins, and where it goes on.
    pub enter: u32,
    pub exit: u32,
}

/// How a run of a set gives bytes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greed {
    Greedy,
    Lazy,
    /// Not at all.
    Possessive,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Instruction {
    Byte(u8),
    /// `bytes[at..at + length]`.
    Literal {
        at: u32,
        length: u32,
    },
    /// The same, in lower case; letters match in either.
    Folded {
        at: u32,
        length: u32,
    },
    Set(u32),
    /// Bytes of a set, between `bounds`.
    Run {
        set: u32,
        bounds: u32,
        greed: Greed,
    },
    /// Goes on behind it if a byte of `set` follows, else at `other`; and if that fails, at `other` too.
    Branch {
        set: u32,
        other: u32,
        memo: u32,
    },
    /// Goes on at `other`; if that fails and a byte of `set` follows, behind it.
    Away {
        set: u32,
        other: u32,
        memo: u32,
    },
    Jump(u32),
    /// A group begins here, if it comes to its end.
    Open(u32),
    /// A group ends here; from now on it has matched.
    Close(u32),
    Assert(Assertion),
    Backreference {
        group: u32,
        fold: bool,
    },
    /// A counted loop begins.
    LoopStart(u32),
    /// Decides whether there is another turn, which begins behind it with [`Self::LoopEnter`].
    LoopTest {
        register: u32,
        bounds: u32,
        exit: u32,
    },
    /// A turn begins here.
    LoopEnter(u32),
    /// A turn is over.
    LoopBack {
        register: u32,
        test: u32,
    },
    Look(u32),
    LookEnd(u32),
    Atomic,
    AtomicEnd,
    Match,
    Fail,
}
