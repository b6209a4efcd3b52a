//! Errors in a script, with their place.

use alloc::string::String;
use core::fmt;

/// A place in a script; both count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// An error in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The name of the script, if it is one that was included.
    pub script: Option<String>,
    /// Where it is.
    pub place: Place,
    /// Description of the error.
    pub text: String,
}

impl Error {
    pub(crate) fn new(place: Place, text: impl Into<String>) -> Error {
        Error { script: None, place, text: text.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(script) = &self.script {
            write!(f, "script {script}, ")?;
        }
        write!(f, "line {}, column {}: {}", self.place.line, self.place.column, self.text)
    }
}

impl core::error::Error for Error {}
