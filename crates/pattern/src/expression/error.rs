//! Errors in an expression.

use std::fmt;

/// Why an expression was refused, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte of the expression at which, or right behind which, something is wrong.
    pub offset: usize,
    /// Kind of error.
    pub wrong: Wrong,
}

/// Errors in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// It ends with a backslash.
    TrailingBackslash,
    /// A bracket is not closed.
    OpenBracket,
    /// A group or a comment is not closed.
    OpenGroup,
    /// A group is closed that was not opened.
    StrayParenthesis,
    /// A quantifier with nothing in front of it.
    NothingToRepeat,
    /// A quantifier behind a quantifier.
    NestedQuantifier,
    /// A count beyond [`REPEAT_MAX`](super::REPEAT_MAX).
    CountTooBig,
    /// A range whose end is before its start.
    BadRange,
    /// A POSIX class that does not exist.
    UnknownClass,
    /// An incomplete escape, or one with wrong digits.
    BadEscape,
    /// A reference to a group that does not exist.
    NoSuchGroup,
    /// A reference by a name that several groups have.
    AmbiguousName,
    /// A flag that does not exist.
    UnknownFlag,
    /// A look behind without a bound of [`BEHIND_MAX`](super::BEHIND_MAX) bytes.
    LongLookBehind,
    /// Groups in groups beyond the limit.
    TooDeep,
    /// More bytes than the limit.
    TooLong,
    /// Something of Perl's that is not supported; its name.
    Unsupported(&'static str),
}

impl fmt::Display for Wrong {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Wrong::TrailingBackslash => "a backslash ends it",
            Wrong::OpenBracket => "[ without ]",
            Wrong::OpenGroup => "( without )",
            Wrong::StrayParenthesis => ") without (",
            Wrong::NothingToRepeat => "a quantifier follows nothing",
            Wrong::NestedQuantifier => "a quantifier follows a quantifier",
            Wrong::CountTooBig => "a count beyond 65534",
            Wrong::BadRange => "a range that ends before it begins",
            Wrong::UnknownClass => "no such POSIX class",
            Wrong::BadEscape => "an escape that is not complete",
            Wrong::NoSuchGroup => "a reference to a group that does not exist",
            Wrong::AmbiguousName => "a reference by a name that several groups have",
            Wrong::UnknownFlag => "no such flag",
            Wrong::LongLookBehind => "a look behind of more than 255 bytes",
            Wrong::TooDeep => "groups nested too deep",
            Wrong::TooLong => "too long",
            Wrong::Unsupported(what) => return write!(to, "{what} is not supported"),
        })
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "at byte {}: {}", self.offset, self.wrong)
    }
}

impl std::error::Error for SyntaxError {}
