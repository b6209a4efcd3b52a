//! Errors of the file, in words for the log.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Error of the ledger.
#[derive(Debug)]
pub enum Error {
    /// The file is no database, or is damaged.
    Damaged(PathBuf),
    /// The file is that of another program, or of a later version of this one.
    Foreign(PathBuf),
    /// The disk is full.
    Full(PathBuf),
    /// Another process held the file for too long.
    Busy(PathBuf),
    /// It cannot be opened or used for another reason.
    Failed(PathBuf, String),
    /// A database that is no file cannot be used: the reason.
    Database(String),
    /// A line of an imported snapshot is invalid: its number, and the reason.
    Line(u64, String),
    /// An exported snapshot could not be written.
    Io(std::io::Error),
}

impl Error {
    pub(crate) fn of(path: &Path, error: &rusqlite::Error) -> Error {
        let path = path.to_path_buf();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Error::Damaged(path),
            Some(ErrorCode::DiskFull) => Error::Full(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy(path),
            _ => Error::Failed(path, error.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Damaged(path) => write!(
                f,
                "{}: the file is damaged or no database; move it away, and import a snapshot or learn anew",
                path.display()
            ),
            Error::Foreign(path) => {
                write!(f, "{}: a database of another program, or of a later version of this one", path.display())
            }
            Error::Full(path) => write!(f, "{}: no room left on the disk", path.display()),
            Error::Busy(path) => write!(f, "{}: another process was at it for too long", path.display()),
            Error::Failed(path, reason) => write!(f, "{}: {reason}", path.display()),
            Error::Database(reason) => write!(f, "the database of the cluster: {reason}"),
            Error::Line(line, reason) => write!(f, "line {line}: {reason}"),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
