//! One file of SQLite.
//!
//! Words are rows of a number each, the five bytes of the key, so that a mail's words are found in the order of the table. The
//! log is written ahead and not synced with each transaction: a loss of power may cost the last lessons, and never more.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use learn::{Corpus, Counts, Key, Snapshot, Standing, Tokens};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};

use crate::form::{FORGET_MARKS_EVERY, TOUCH_SECONDS, count, cut, key, number, signed};
use crate::{
    Alike, Conduct, Error, Fuzzy, Greeting, Learned, Ledger, Lesson, MAILS_MAX, MARKS_MAX, Mark, Name, Summary,
};
use lessons::{forget_old, known, learn_one, take_back, words};
use tables::prepare;

/// How long another process is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// A file that is open.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    connection: Connection,
    /// Marks that were added since old ones were forgotten.
    marks_added: u64,
}

type Done<T> = rusqlite::Result<T>;

impl Sqlite {
    /// Opens a file, and makes one where there is none.
    ///
    /// # Errors
    /// When it cannot be opened, is damaged, or is not ours.
    pub fn open(path: &Path) -> Result<Sqlite, Error> {
        let failed = |error: &rusqlite::Error| Error::of(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let path = &real(path).map_err(|error| Error::Failed(path.into(), error.to_string()))?;
        let mut connection = Connection::open_with_flags(path, flags).map_err(|error| failed(&error))?;
        match prepare(&mut connection) {
            Ok(true) => Ok(Sqlite { path: path.into(), connection, marks_added: 0 }),
            Ok(false) => Err(Error::Foreign(path.into())),
            Err(error) => Err(failed(&error)),
        }
    }

    /// One transaction that writes.
    fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Done<T>) -> Result<T, Error> {
        let done = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        });
        done.map_err(|error| Error::of(&self.path, &error))
    }

    /// One transaction that reads.
    fn read<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Done<T>) -> Result<T, Error> {
        let done = self.connection.transaction().and_then(|transaction| work(&transaction));
        done.map_err(|error| Error::of(&self.path, &error))
    }

    /// Forgets old marks, after so many new ones.
    fn forget_marks(&mut self, added: u64, now: i64) -> Result<(), Error> {
        self.marks_added = self.marks_added.saturating_add(added);
        if self.marks_added < FORGET_MARKS_EVERY {
            return Ok(());
        }
        self.marks_added = 0;
        self.write(|transaction| marks::forget(transaction, MARKS_MAX, now))
    }

    /// Looks through the whole file for damage.
    ///
    /// # Errors
    /// When there is some.
    pub fn check(&mut self) -> Result<(), Error> {
        let said: String =
            self.read(|transaction| transaction.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)))?;
        if said == "ok" { Ok(()) } else { Err(Error::Damaged(self.path.clone())) }
    }
}

/// The path of a file with no links on the way to it, which SQLite would not follow; the file is made for us alone where there is
/// none.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.canonicalize()?.join(path.file_name().unwrap_or_default());
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path),
    }
}

/// The number of an owner, if there is one.
fn find(transaction: &Transaction<'_>, owner: &str) -> Done<Option<i64>> {
    let mut ask = transaction.prepare_cached("SELECT id FROM owner WHERE name = ?1")?;
    ask.query_row([cut(owner)], |row| row.get(0)).optional()
}

/// The number of an owner, who is noted where there is none.
fn note(transaction: &Transaction<'_>, owner: &str) -> Done<i64> {
    if let Some(id) = find(transaction, owner)? {
        return Ok(id);
    }
    transaction.execute("INSERT INTO owner (name) VALUES (?1)", [cut(owner)])?;
    Ok(transaction.last_insert_rowid())
}

fn corpus(transaction: &Transaction<'_>, owner: i64) -> Done<Corpus> {
    let mut ask = transaction.prepare_cached("SELECT spam, ham FROM owner WHERE id = ?1")?;
    ask.query_row([owner], |row| Ok(Corpus { spam: count(row.get(0)?), ham: count(row.get(1)?) }))
}

fn count_mails(transaction: &Transaction<'_>, owner: i64, is_spam: bool, by: i64) -> Done<()> {
    let mut tell = transaction.prepare_cached(match is_spam {
        true => "UPDATE owner SET spam = iif(?2 > 0 AND spam > ?3 - ?2, ?3, max(spam + ?2, 0)) WHERE id = ?1",
        false => "UPDATE owner SET ham = iif(?2 > 0 AND ham > ?3 - ?2, ?3, max(ham + ?2, 0)) WHERE id = ?1",
    })?;
    tell.execute(params![owner, by, i64::MAX]).map(drop)
}

impl Ledger for Sqlite {
    fn recall(&mut self, owner: &str, keys: &[Key]) -> Result<(Corpus, Vec<Counts>), Error> {
        self.read(|transaction| {
            let Some(owner) = find(transaction, owner)? else { return Ok((Corpus::default(), Vec::new())) };
            let mut ask = transaction.prepare_cached("SELECT spam, ham FROM word WHERE owner = ?1 AND key = ?2")?;
            let mut found = Vec::new();
            for &key in keys {
                let counts = ask.query_row(params![owner, number(key)], |row| {
                    Ok(Counts { key, spam: count(row.get(0)?), ham: count(row.get(1)?) })
                });
                found.extend(counts.optional()?);
            }
            Ok((corpus(transaction, owner)?, found))
        })
    }

    fn touch(&mut self, owner: &str, keys: &[Key], at: i64) -> Result<(), Error> {
        const OLD: &str = "SELECT 1 FROM word WHERE owner = ?1 AND key = ?2 AND at < ?3";
        let before = at.saturating_sub(TOUCH_SECONDS);
        let old: Vec<Key> = self.read(|transaction| {
            let Some(owner) = find(transaction, owner)? else { return Ok(Vec::new()) };
            let mut ask = transaction.prepare_cached(OLD)?;
            let mut old = Vec::new();
            for key in keys {
                if ask.exists(params![owner, number(*key), before])? {
                    old.push(*key);
                }
            }
            Ok(old)
        })?;
        if old.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            let owner = note(transaction, owner)?;
            let mut tell =
                transaction.prepare_cached("UPDATE word SET at = max(at, ?3) WHERE owner = ?1 AND key = ?2")?;
            old.iter().try_for_each(|key| tell.execute(params![owner, number(*key), at]).map(drop))
        })
    }

    fn learn(&mut self, owner: &str, lessons: &[Lesson]) -> Result<Vec<Learned>, Error> {
        self.write(|transaction| {
            let owner = note(transaction, owner)?;
            lessons.iter().map(|lesson| learn_one(transaction, owner, lesson)).collect()
        })
    }

    fn forget(&mut self, owner: &str, ids: &[Box<str>], tokens: &Tokens) -> Result<bool, Error> {
        self.write(|transaction| {
            let Some(owner) = find(transaction, owner)? else { return Ok(false) };
            let Some((id, is_spam)) = known(transaction, owner, ids)? else { return Ok(false) };
            take_back(transaction, owner, id, is_spam, tokens)?;
            Ok(true)
        })
    }

    fn expire(&mut self, owner: &str, words_max: u64, now: i64) -> Result<u64, Error> {
        self.write(|transaction| {
            let Some(owner) = find(transaction, owner)? else { return Ok(0) };
            let forgotten = forget_old(transaction, owner, words_max, now)?;
            transaction.execute("UPDATE owner SET expired = ?2 WHERE id = ?1", params![owner, now])?;
            transaction.execute(
                "DELETE FROM mail WHERE owner = ?1 AND id IN
                 (SELECT id FROM mail WHERE owner = ?1 ORDER BY at DESC LIMIT -1 OFFSET ?2)",
                params![owner, signed(MAILS_MAX)],
            )?;
            Ok(forgotten)
        })
    }

    fn greet(&mut self, greeting: &Greeting, now: i64) -> Result<bool, Error> {
        if self.read(|transaction| marks::is_vouched(transaction, &greeting.vouchers, now))? {
            return Ok(true);
        }
        let (has_waited, added) = self.write(|transaction| marks::wait(transaction, greeting, now))?;
        self.forget_marks(added, now)?;
        Ok(has_waited)
    }

    fn vouch(&mut self, vouchers: &[Mark], now: i64) -> Result<(), Error> {
        let due = self.read(|transaction| marks::due(transaction, vouchers, now))?;
        if due.is_empty() {
            return Ok(());
        }
        let added = self.write(|transaction| marks::vouch(transaction, &due, now))?;
        self.forget_marks(added, now)
    }

    fn standings(&mut self, owner: &str, names: &[Name]) -> Result<Vec<Standing>, Error> {
        self.read(|transaction| match find(transaction, owner)? {
            Some(owner) => names.iter().map(|name| senders::find(transaction, owner, name)).collect(),
            None => Ok(vec![Standing::default(); names.len()]),
        })
    }

    fn count(&mut self, owner: &str, conduct: &Conduct, counts: crate::Counts, now: i64) -> Result<(), Error> {
        self.write(|transaction| senders::count(transaction, note(transaction, owner)?, conduct, counts, now))
    }

    fn forget_senders(&mut self, most: u64, since: i64) -> Result<u64, Error> {
        self.write(|transaction| senders::forget(transaction, most, since))
    }

    fn alike(&mut self, owner: &str, fuzzy: &Fuzzy) -> Result<Alike, Error> {
        self.read(|transaction| match find(transaction, owner)? {
            Some(owner) => fuzzy::alike(transaction, owner, fuzzy),
            None => Ok(Alike::default()),
        })
    }

    fn report(&mut self, owner: &str, fuzzy: &Fuzzy, is_spam: bool, now: i64) -> Result<(), Error> {
        self.write(|transaction| {
            let owner = note(transaction, owner)?;
            match is_spam {
                true => fuzzy::report(transaction, owner, fuzzy, now),
                false => fuzzy::withdraw(transaction, owner, fuzzy),
            }
        })
    }

    fn forget_reports(&mut self, most: u64, since: i64) -> Result<(), Error> {
        self.write(|transaction| fuzzy::forget(transaction, most, since))
    }

    fn summary(&mut self, owner: &str) -> Result<Summary, Error> {
        self.read(|transaction| {
            let Some(owner) = find(transaction, owner)? else { return Ok(Summary::default()) };
            let number = |ask: &str| transaction.query_row(ask, [owner], |row| row.get::<_, i64>(0));
            Ok(Summary {
                corpus: corpus(transaction, owner)?,
                words: words(transaction, owner)?,
                oldest: number("SELECT coalesce(min(at), 0) FROM word WHERE owner = ?1")?,
                newest: number("SELECT coalesce(max(at), 0) FROM word WHERE owner = ?1")?,
                expired: number("SELECT expired FROM owner WHERE id = ?1")?,
                mails: number("SELECT count(*) FROM mail WHERE owner = ?1").map(count)?,
                reports: number("SELECT count(*) FROM text WHERE owner = ?1").map(count)?,
                senders: number("SELECT count(*) FROM sender WHERE owner = ?1").map(count)?,
            })
        })
    }

    fn export(&mut self, owner: &str, each: &mut dyn FnMut(Snapshot) -> std::io::Result<()>) -> Result<(), Error> {
        let mut failed = None;
        let mut tell = |item| each(item).map_err(|error| failed = Some(error)).is_ok();
        self.read(|transaction| {
            let id = find(transaction, owner)?;
            let corpus = id.map_or(Ok(Corpus::default()), |id| corpus(transaction, id))?;
            let head = [Snapshot::Version, Snapshot::Spam(corpus.spam), Snapshot::Ham(corpus.ham)];
            let Some(id) = id.filter(|_| head.clone().into_iter().all(&mut tell)) else { return Ok(()) };
            let mut ask = transaction.prepare("SELECT key, spam, ham, at FROM word WHERE owner = ?1")?;
            let mut rows = ask.query([id])?;
            while let Some(row) = rows.next()? {
                let counts = Counts { key: key(row.get(0)?), spam: count(row.get(1)?), ham: count(row.get(2)?) };
                if !tell(Snapshot::Word(counts, row.get(3)?)) {
                    return Ok(());
                }
            }
            let mut ask = transaction.prepare("SELECT spam, id FROM mail WHERE owner = ?1")?;
            let mut rows = ask.query([id])?;
            while let Some(row) = rows.next()? {
                if !tell(Snapshot::Mail(row.get(0)?, row.get::<_, String>(1)?.into())) {
                    return Ok(());
                }
            }
            Ok(())
        })?;
        failed.map_or(Ok(()), |error| Err(Error::Io(error)))
    }

    fn import(
        &mut self,
        owner: &str,
        lines: &mut dyn Iterator<Item = Result<Snapshot, Error>>,
    ) -> Result<Summary, Error> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| Error::of(&path, &error);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let id = note(&transaction, owner).map_err(failed)?;
        begin_anew(&transaction, id).map_err(failed)?;
        for line in lines {
            put(&transaction, id, &line?).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        self.summary(owner)
    }
}

fn begin_anew(transaction: &Transaction<'_>, owner: i64) -> Done<()> {
    transaction.execute("DELETE FROM word WHERE owner = ?1", [owner])?;
    transaction.execute("DELETE FROM mail WHERE owner = ?1", [owner])?;
    transaction.execute("UPDATE owner SET spam = 0, ham = 0, expired = 0 WHERE id = ?1", [owner]).map(drop)
}

fn put(transaction: &Transaction<'_>, owner: i64, item: &Snapshot) -> Done<()> {
    match item {
        Snapshot::Version | Snapshot::Other => Ok(()),
        Snapshot::Spam(mails) => count_mails(transaction, owner, true, signed(*mails)),
        Snapshot::Ham(mails) => count_mails(transaction, owner, false, signed(*mails)),
        Snapshot::Word(Counts { key, spam, ham }, at) => {
            let mut tell = transaction
                .prepare_cached("REPLACE INTO word (owner, key, spam, ham, at) VALUES (?1, ?2, ?3, ?4, ?5)")?;
            tell.execute(params![owner, number(*key), signed(*spam), signed(*ham), at]).map(drop)
        }
        Snapshot::Mail(is_spam, id) => {
            let mut tell =
                transaction.prepare_cached("REPLACE INTO mail (owner, id, spam, at) VALUES (?1, ?2, ?3, 0)")?;
            tell.execute(params![owner, cut(id), is_spam]).map(drop)
        }
    }
}

mod fuzzy;
mod lessons;
mod marks;
mod senders;
mod tables;
#[cfg(test)]
mod tests;
