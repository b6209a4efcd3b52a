//! Rows of an answer, and errors.

use std::fmt;

/// Maximum number of rows of a key; more mean a wrong query.
pub const ROWS_MAX: usize = 100;

/// Maximum length of a value, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// Row of a table, or entry of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Distinguished name of an entry.
    pub name: Option<String>,
    fields: Vec<(String, String)>,
}

/// Reason for a missing answer; it says nothing about the content of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The server is unreachable or too slow; a later attempt may succeed.
    Away(String),
    /// The server refuses the query, or its answer is invalid: the configuration has to change.
    Refused(String),
}

impl Row {
    /// Makes a row of the entry with this distinguished name.
    pub(crate) fn of_entry(name: String) -> Row {
        Row { name: Some(name), fields: Vec::new() }
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The value is too long.
    pub(crate) fn put(&mut self, name: &str, value: String) -> Result<(), Error> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::Refused(format!("{name} is longer than 64 KiB")));
        }
        self.fields.push((name.to_ascii_lowercase(), value));
        Ok(())
    }

    /// Returns the value of a column; `None` if it is NULL or missing.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Iterates over columns and values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns whether any value is present: an aggregate over no rows gives a row of NULLs.
    pub(crate) fn is_something(&self) -> bool {
        self.name.is_some() || self.fields.iter().any(|(_, value)| !value.is_empty())
    }
}

impl Error {
    pub(crate) fn away(error: impl fmt::Display) -> Error {
        Error::Away(error.to_string())
    }

    pub(crate) fn refused(error: impl fmt::Display) -> Error {
        Error::Refused(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Away(reason) | Error::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for Error {}
