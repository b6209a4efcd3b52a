//! The tables, and how those of an earlier form are brought to this one.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::{BUSY_WAIT, Done, fuzzy};

/// "slrn": what files of ours have in their header.
const APPLICATION: i32 = 0x736c_726e;

/// The form of the tables; the first had no marks, the second no senders, the third no reports.
const FORM: i32 = 4;

const TABLES: &str = "
    CREATE TABLE owner (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        spam INTEGER NOT NULL DEFAULT 0, ham INTEGER NOT NULL DEFAULT 0, expired INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE word (
        owner INTEGER NOT NULL, key INTEGER NOT NULL,
        spam INTEGER NOT NULL, ham INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (owner, key)
    ) WITHOUT ROWID;
    CREATE TABLE mail (
        owner INTEGER NOT NULL, id TEXT NOT NULL, spam INTEGER NOT NULL, at INTEGER NOT NULL,
        PRIMARY KEY (owner, id)
    ) WITHOUT ROWID;
";

/// Tables that the third form added.
const SENDERS: &str = "
    CREATE TABLE sender (
        owner INTEGER NOT NULL, name BLOB NOT NULL,
        count INTEGER NOT NULL, total REAL NOT NULL, last INTEGER NOT NULL, added BLOB,
        PRIMARY KEY (owner, name)
    ) WITHOUT ROWID;
";

/// Tables that the second form added.
const MARKS: &str = "
    CREATE TABLE mark (
        id BLOB PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL
    ) WITHOUT ROWID;
";

/// Makes a file ready; `false`: it is not ours.
pub(super) fn prepare(connection: &mut Connection) -> Done<bool> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(32);
    let of =
        |connection: &Connection, name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if of(connection, "application_id")? != APPLICATION {
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        // Another process may have made it ours since: tables and number come together.
        if tables > 0 && of(connection, "application_id")? != APPLICATION {
            return Ok(false);
        }
        write_ahead(connection)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been here meanwhile.
        if of(&transaction, "application_id")? != APPLICATION {
            transaction.execute_batch(TABLES)?;
            transaction.execute_batch(MARKS)?;
            transaction.execute_batch(SENDERS)?;
            transaction.execute_batch(fuzzy::TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", FORM)?;
        }
        transaction.commit()?;
    }
    if (1..FORM).contains(&of(connection, "user_version")?) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let form = of(&transaction, "user_version")?;
        for tables in [MARKS, SENDERS, fuzzy::TABLES].iter().skip(usize::try_from(form - 1).unwrap_or(usize::MAX)) {
            transaction.execute_batch(tables)?;
        }
        transaction.pragma_update(None, "user_version", FORM.max(form))?;
        transaction.commit()?;
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Nowhere else may be written to.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(of(connection, "user_version")? == FORM)
}

/// Has the file written ahead. SQLite does not wait for that itself while another process has the file open.
fn write_ahead(connection: &Connection) -> Done<()> {
    let end = Instant::now() + BUSY_WAIT;
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}
