//! What a cluster has learned: the trait [`Ledger`] on PostgreSQL, for all nodes together.
//!
//! It stands here and not in the crate `ledger` since that has no network, and hosts do not import each other. Each call is one
//! statement, or one transaction; none waits for a standby (`synchronous_commit = off`), so the loss of the primary may cost the last
//! second of lessons, and no mail. Whoever writes words, mails or reports of an owner locks its row first, names of senders are locked
//! in their order, and what only notes a use passes over rows that others have: no two wait for each other. If they do nevertheless, the
//! loser is tried again, [`RETRIES_MAX`] times. A call whose answer does not come is not repeated: it may have been done.
//!
//! A call waits for its answer as long as its kind may take, and for a connection no longer than its caller is patient: connections are
//! made in the background ([`mod@line`]). Bounds: [`TOUCHED_MAX`] tokens whose use is not written yet.

mod line;
mod marks;
mod reports;
mod senders;
mod snapshots;
mod tables;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use learn::{Corpus, Key, Snapshot, Standing, Tokens};
use ledger::form::FORGET_MARKS_EVERY;
use ledger::{
    Alike, Conduct, Counts, Error, Fuzzy, Greeting, Learned, Ledger, Lesson, MARKS_MAX, Mark, Name, Recalled, Summary,
};

use line::Line;

use super::postgres::Database;
use crate::config::{Config, Keeping};
use crate::learned::{Source, Waits};

/// How often a transaction that lost to another is tried again.
const RETRIES_MAX: u32 = 10;

/// Tokens that are noted at a time.
const TOUCHED_MAX: usize = 20_000;

/// How long a transaction that writes may take.
const WRITE_WAIT: Duration = Duration::from_secs(10);

/// How long may take what reads or writes everything.
const ALL_WAIT: Duration = Duration::from_secs(600);

/// The way to what was learned: the database of a cluster that shares it, else the file of the folder.
///
/// # Errors
/// As of [`Database::new`].
pub fn source(config: &Config, folder: &Path) -> Result<Source, String> {
    let Some(settings) = config.cluster.as_ref().filter(|settings| settings.learned == Keeping::Shared) else {
        return Ok(Source::file(folder));
    };
    let database = Database::new(settings, &config.tls.authorities)?;
    let open = move |waits| Ok(Box::new(Shared::open(database.clone(), waits)?) as Box<dyn Ledger>);
    Ok(Source::shared(format!("{settings:?}"), open))
}

/// The ledger of a cluster.
pub struct Shared {
    line: Line,
    waits: Waits,
    touched: Touched,
    /// Marks that were added by this node since old ones were forgotten.
    marks_added: u64,
}

/// Tokens that were of use in one second, by owner.
#[derive(Default)]
struct Touched {
    at: i64,
    count: usize,
    keys: HashMap<Box<str>, BTreeSet<Key>>,
}

impl Shared {
    /// A ledger in this database; the connection is made in the background.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn open(database: Database, waits: Waits) -> Result<Shared, Error> {
        let line = Line::new(database, waits.connection)?;
        Ok(Shared { line, waits, touched: Touched::default(), marks_added: 0 })
    }

    /// Whether it can be written to, and the numbers of the site.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(&mut self) -> Result<Summary, Error> {
        self.line.call(WRITE_WAIT, line::Session::check)?;
        self.summary("")
    }

    /// Writes the uses that were gathered.
    fn settle(&mut self) -> Result<(), Error> {
        let Touched { at, keys, .. } = std::mem::take(&mut self.touched);
        if keys.is_empty() {
            return Ok(());
        }
        self.line.call(WRITE_WAIT, async |session| words::touch(session, &keys, at).await)
    }

    fn forget_marks(&mut self, added: u64, now: i64) -> Result<(), Error> {
        self.marks_added = self.marks_added.saturating_add(added);
        if self.marks_added < FORGET_MARKS_EVERY {
            return Ok(());
        }
        self.marks_added = 0;
        self.line.call(ALL_WAIT, async |session| marks::forget(session, MARKS_MAX, now).await)
    }
}

impl Ledger for Shared {
    fn recall(&mut self, owner: &str, keys: &[Key]) -> Result<(Corpus, Vec<learn::Counts>), Error> {
        self.line.call(self.waits.answer, async |session| words::recall(session, owner, keys).await)
    }

    fn touch(&mut self, owner: &str, keys: &[Key], at: i64) -> Result<(), Error> {
        if self.touched.at != at || self.touched.count + keys.len() > TOUCHED_MAX {
            self.settle()?;
        }
        self.touched.at = at;
        self.touched.count += keys.len();
        self.touched.keys.entry(owner.into()).or_default().extend(keys);
        Ok(())
    }

    fn learn(&mut self, owner: &str, lessons: &[Lesson]) -> Result<Vec<Learned>, Error> {
        self.settle()?;
        self.line.call(WRITE_WAIT * 6, async |session| words::learn(session, owner, lessons).await)
    }

    fn forget(&mut self, owner: &str, ids: &[Box<str>], tokens: &Tokens) -> Result<bool, Error> {
        self.settle()?;
        self.line.call(WRITE_WAIT, async |session| words::forget(session, owner, ids, tokens).await)
    }

    fn expire(&mut self, owner: &str, words_max: u64, now: i64) -> Result<u64, Error> {
        self.settle()?;
        self.line.call(ALL_WAIT, async |session| words::expire(session, owner, words_max, now).await)
    }

    fn greet(&mut self, greeting: &Greeting, now: i64) -> Result<bool, Error> {
        let greet = async |session: &line::Session| marks::greet(session, greeting, now).await;
        let (has_waited, added) = self.line.call(self.waits.answer, greet)?;
        self.forget_marks(added, now)?;
        Ok(has_waited)
    }

    fn vouch(&mut self, vouchers: &[Mark], now: i64) -> Result<(), Error> {
        let added = self.line.call(WRITE_WAIT, async |session| marks::vouch(session, vouchers, now).await)?;
        self.forget_marks(added, now)
    }

    fn standings(&mut self, owner: &str, names: &[Name]) -> Result<Vec<Standing>, Error> {
        self.line.call(self.waits.answer, async |session| senders::standings(session, owner, names).await)
    }

    fn count(&mut self, owner: &str, conduct: &Conduct, counts: Counts, now: i64) -> Result<(), Error> {
        self.line.call(WRITE_WAIT, async |session| senders::count(session, owner, conduct, counts, now).await)
    }

    fn forget_senders(&mut self, most: u64, since: i64) -> Result<u64, Error> {
        self.line.call(ALL_WAIT, async |session| senders::forget(session, most, since).await)
    }

    fn alike(&mut self, owner: &str, fuzzy: &Fuzzy) -> Result<Alike, Error> {
        let alike =
            self.line.call(self.waits.answer, async |session| reports::alike(session, owner, Some(fuzzy)).await)?;
        Ok(alike.unwrap_or_default())
    }

    /// The questions go together, so that a mail waits for the way to the database once.
    fn ask(&mut self, owner: &str, keys: &[Key], names: &[Name], fuzzy: Option<&Fuzzy>) -> Result<Recalled, Error> {
        self.line.call(self.waits.answer, async |session| {
            let ((corpus, words), standings, alike) = tokio::try_join!(
                words::recall(session, owner, keys),
                senders::standings(session, owner, names),
                reports::alike(session, owner, fuzzy),
            )?;
            Ok(Recalled { corpus, words, standings, alike })
        })
    }

    fn report(&mut self, owner: &str, fuzzy: &Fuzzy, is_spam: bool, now: i64) -> Result<(), Error> {
        self.line.call(WRITE_WAIT, async |session| match is_spam {
            true => reports::report(session, owner, fuzzy, now).await,
            false => reports::withdraw(session, owner, fuzzy).await,
        })
    }

    fn forget_reports(&mut self, most: u64, since: i64) -> Result<(), Error> {
        self.line.call(ALL_WAIT, async |session| reports::forget(session, most, since).await)
    }

    fn summary(&mut self, owner: &str) -> Result<Summary, Error> {
        self.settle()?;
        self.line.call(ALL_WAIT, async |session| words::summary(session, owner).await)
    }

    fn export(&mut self, owner: &str, each: &mut dyn FnMut(Snapshot) -> std::io::Result<()>) -> Result<(), Error> {
        self.settle()?;
        let mut failed = None;
        let mut tell = |item| each(item).map_err(|error| failed = Some(error)).is_ok();
        self.line.once(ALL_WAIT, async |session| snapshots::export(session, owner, &mut tell).await)?;
        failed.map_or(Ok(()), |error| Err(Error::Io(error)))
    }

    fn import(
        &mut self,
        owner: &str,
        lines: &mut dyn Iterator<Item = Result<Snapshot, Error>>,
    ) -> Result<Summary, Error> {
        self.settle()?;
        self.line.call(WRITE_WAIT, snapshots::begin)?;
        while let Some(some) = snapshots::Some::of(lines)? {
            self.line.call(ALL_WAIT, async |session| snapshots::stage(session, &some).await)?;
        }
        self.line.call(ALL_WAIT, async |session| snapshots::replace(session, owner).await)?;
        self.summary(owner)
    }
}
