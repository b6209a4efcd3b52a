//! SQLite: a file that is only read. A question waits one second for a writer. A file that was replaced is opened
//! again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, OpenFlags, params_from_iter};

use crate::pattern::Key;
use crate::row::{Error, ROWS_MAX, Row};
use crate::settings::Settings;
use crate::statement::{Statement, Style};

/// Wait for a writer.
const BUSY: Duration = Duration::from_secs(1);

/// File and query.
pub struct Plan {
    path: PathBuf,
    statement: Arc<Statement>,
}

/// Open file with its identity at that time.
struct Opened {
    file: rusqlite::Connection,
    identity: (u64, u64),
}

/// File that is opened by the first question.
pub struct Connection {
    file: Option<Opened>,
    path: PathBuf,
}

impl Plan {
    /// Plans the query by the settings.
    ///
    /// # Errors
    /// Invalid settings.
    pub fn new(settings: &Settings) -> Result<Plan, String> {
        let path = settings.file().ok_or("a file is sqlite:/PATH")?.into();
        let statement = Statement::parse(settings.query.as_deref().unwrap_or_default(), Style::Marked)?;
        Ok(Plan { path, statement: Arc::new(statement) })
    }
}

impl Connection {
    /// Returns a connection without opening the file.
    pub fn open(plan: &Plan) -> Connection {
        Connection { file: None, path: plan.path.clone() }
    }

    /// Runs the query for a key, on a thread that may wait for the disk.
    pub async fn rows(&mut self, plan: &Plan, key: &Key) -> Result<Vec<Row>, Error> {
        let Some(values) = plan.statement.fill(key) else { return Ok(Vec::new()) };
        let (file, path, statement) = (self.file.take(), self.path.clone(), plan.statement.clone());
        let look = move || {
            let identity = identity(&path)?;
            let kept = file.filter(|opened| opened.identity == identity);
            let opened = kept.map_or_else(|| opened(&path, identity), Ok)?;
            let rows = rows(&opened.file, &statement.text, &values).map_err(failed)?;
            Ok((opened, rows))
        };
        let (file, rows) = tokio::task::spawn_blocking(look).await.map_err(Error::away)??;
        self.file = Some(file);
        rows.into_iter().collect()
    }
}

fn identity(path: &Path) -> Result<(u64, u64), Error> {
    let facts = std::fs::metadata(path).map_err(Error::away)?;
    Ok((facts.dev(), facts.ino()))
}

fn opened(path: &Path, identity: (u64, u64)) -> Result<Opened, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = rusqlite::Connection::open_with_flags(path, flags).map_err(failed)?;
    file.busy_timeout(BUSY).map_err(failed)?;
    Ok(Opened { file, identity })
}

fn rows(file: &rusqlite::Connection, text: &str, values: &[String]) -> rusqlite::Result<Vec<Result<Row, Error>>> {
    let mut prepared = file.prepare_cached(text)?;
    let names: Vec<String> = prepared.column_names().map(str::to_owned).collect();
    let mut found = prepared.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(one) = found.next()? {
        if rows.len() == ROWS_MAX {
            return Ok(vec![Err(Error::Refused(format!("more than {ROWS_MAX} rows")))]);
        }
        rows.push(row(one, &names)?);
    }
    Ok(rows)
}

fn row(found: &rusqlite::Row<'_>, names: &[String]) -> rusqlite::Result<Result<Row, Error>> {
    let mut row = Row::default();
    for (at, name) in names.iter().enumerate() {
        let value = match found.get_ref(at)? {
            ValueRef::Null => continue,
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => return Ok(Err(Error::Refused(format!("{name} is no text")))),
            },
        };
        if let Err(error) = row.put(name, value) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(row))
}

fn failed(error: rusqlite::Error) -> Error {
    let is_for_now = matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
        )
    );
    match is_for_now {
        true => Error::away(error),
        false => Error::refused(error),
    }
}
