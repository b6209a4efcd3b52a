//! Errors in a file.

use std::fmt;

/// Error in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The extension is not that of a supported kind of database.
    Kind {
        /// The file.
        file: String,
    },
    /// A line cannot be read.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// Description of the error.
        reason: String,
    },
    /// A container cannot be read or is not what it says it is. What was loaded of it must not be used.
    Container {
        /// The file.
        file: String,
        /// Description of the error.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Kind { file } => write!(f, "{file}: not a supported kind of database"),
            Error::Line { file, line, reason } => write!(f, "{file}:{line}: {reason}"),
            Error::Container { file, reason } => write!(f, "{file}: {reason}"),
        }
    }
}

impl std::error::Error for Error {}
