//! What a server answers.

use std::fmt;

/// Rows that one key may have; more are a wrong query.
pub const ROWS_MAX: usize = 100;

/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 64 << 10;

/// A row of a table, or an entry of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Of an entry its distinguished name.
    pub name: Option<String>,
    fields: Vec<(String, String)>,
}

/// Why there is no answer. It says nothing of what is in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The server cannot be reached, or takes too long: it may be there again at any time.
    Away(String),
    /// It does not want to, or its answer makes no sense: somebody has to change something.
    Refused(String),
}

impl Row {
    /// Of an entry with this distinguished name.
    pub(crate) fn of_entry(name: String) -> Row {
        Row { name: Some(name), fields: Vec::new() }
    }

    /// Puts a value there.
    ///
    /// # Errors
    /// When it is too long.
    pub(crate) fn put(&mut self, name: &str, value: String) -> Result<(), Error> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::Refused(format!("{name} is longer than 64 KiB")));
        }
        self.fields.push((name.to_ascii_lowercase(), value));
        Ok(())
    }

    /// The value of a column; none if it is NULL, or there is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All columns with their values, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether it says anything: an aggregate without anything to count gives a row of NULLs, too.
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
