//! Reputation of senders, and mails by their own names.
//!
//! A mail changes the rows of some names by what they are: these names are locked by numbers of them, in their order, for the
//! transaction. Names whose numbers are equal wait for each other.

use std::collections::{BTreeSet, HashMap};

use learn::Standing;
use ledger::form::{TAUGHT, count as unsigned, cut, signed};
use ledger::{Conduct, Counts, Name};
use tokio_postgres::types::ToSql;

use super::RETRIES_MAX;
use super::line::{Done, Session};
use super::words::note;

/// Numbers of locks: a transaction has at most so many.
const LOCKS: u8 = 255;

const STANDINGS: &str = "
    select name, count, total from sluice.sender where owner = (select id from sluice.learner where name = $1) and name = any($2)";

pub async fn standings(session: &Session, owner: &str, names: &[Name]) -> Done<Vec<Standing>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let all: Vec<&[u8]> = names.iter().map(<[u8; 16]>::as_slice).collect();
    let rows = session.rows(STANDINGS, &[&cut(owner).as_bytes(), &all]).await?;
    let standing = |count, total| Standing { count: u32::try_from(unsigned(count)).unwrap_or(u32::MAX), total };
    let found: HashMap<&[u8], Standing> =
        rows.iter().map(|row| (row.get(0), standing(row.get(1), row.get(2)))).collect();
    Ok(all.iter().map(|name| found.get(name).copied().unwrap_or_default()).collect())
}

/// Amount that a mail has added to the total of a name.
type Added = (Name, f64);

/// Rows of names, as a mail finds and changes them.
#[derive(Default)]
struct Book {
    rows: HashMap<Name, Standing>,
    /// What a mail has added, where it has a row.
    added: HashMap<Name, Vec<Added>>,
    changed: BTreeSet<Name>,
}

/// Counts a mail by its kind of effect.
pub async fn count(session: &Session, owner: &str, conduct: &Conduct, counts: Counts, now: i64) -> Done<()> {
    let owner = owner_of(session, owner).await?;
    // The names that a mail has counted for are in its row.
    let mail: Vec<Name> = conduct.mail.into_iter().collect();
    let mut before = Book::read(session, owner, &mail).await?;
    for _ in 0..RETRIES_MAX {
        let names: BTreeSet<Name> = before.names(conduct).collect();
        let read = async || {
            lock(session, owner, &names).await?;
            let names: Vec<Name> = names.iter().copied().collect();
            let mut book = Book::read(session, owner, &names).await?;
            if book.names(conduct).any(|name| names.binary_search(&name).is_err()) {
                // Another node has counted it for others meanwhile.
                return Ok(Err(book));
            }
            book.count(conduct, counts);
            book.write(session, owner, now).await.map(Ok)
        };
        match session.transaction("begin", read).await? {
            Ok(()) => return Ok(()),
            Err(book) => before = book,
        }
    }
    Ok(())
}

/// The number of an owner, who need not be locked here.
async fn owner_of(session: &Session, owner: &str) -> Done<i64> {
    let find = "select id from sluice.learner where name = $1";
    match session.row(find, &[&cut(owner).as_bytes()]).await? {
        Some(row) => Ok(row.get(0)),
        None => note(session, owner).await,
    }
}

/// Locks names for this transaction.
async fn lock(session: &Session, owner: i64, names: &BTreeSet<Name>) -> Done<()> {
    let number = |name: &Name| i32::from(name[0] % LOCKS) | i32::try_from(owner & 0x7f_ffff).unwrap_or(0) << 8;
    let numbers: BTreeSet<i32> = names.iter().map(number).collect();
    let numbers: Vec<i32> = numbers.into_iter().collect();
    let lock = "select count(pg_advisory_xact_lock(7599089, number)) from unnest($1::int[]) number";
    session.number(lock, &[&numbers]).await.map(drop)
}

impl Book {
    async fn read(session: &Session, owner: i64, names: &[Name]) -> Done<Book> {
        let all: Vec<&[u8]> = names.iter().map(<[u8; 16]>::as_slice).collect();
        let read = "select name, count, total, added from sluice.sender where owner = $1 and name = any($2)";
        let mut book = Book::default();
        for row in if all.is_empty() { Vec::new() } else { session.rows(read, &[&owner, &all]).await? } {
            let Ok(name) = Name::try_from(row.get::<_, &[u8]>(0)) else { continue };
            let count = u32::try_from(row.get::<_, i64>(1)).unwrap_or(u32::MAX);
            book.rows.insert(name, Standing { count, total: row.get(2) });
            let entry = |entry: &[u8; 24]| {
                let (name, points) = entry.split_first_chunk()?;
                Some((*name, f64::from_le_bytes(points.try_into().ok()?)))
            };
            if let Some(bytes) = row.get::<_, Option<&[u8]>>(3) {
                book.added.insert(name, bytes.as_chunks().0.iter().filter_map(entry).collect());
            }
        }
        Ok(book)
    }

    /// All names that a mail may change.
    fn names<'b>(&'b self, conduct: &'b Conduct) -> impl Iterator<Item = Name> + 'b {
        let added = conduct.mail.as_ref().and_then(|mail| self.added.get(mail));
        let added = added.into_iter().flatten().map(|(name, _)| *name);
        conduct.mail.into_iter().chain(conduct.sender.iter().chain(&conduct.recipients).copied()).chain(added)
    }

    fn find(&self, name: &Name) -> Standing {
        self.rows.get(name).copied().unwrap_or_default()
    }

    fn put(&mut self, name: Name, standing: Standing) {
        if standing == Standing::default() {
            return self.remove(name);
        }
        self.rows.insert(name, standing);
        self.changed.insert(name);
    }

    fn remove(&mut self, name: Name) {
        self.rows.remove(&name);
        self.added.remove(&name);
        self.changed.insert(name);
    }

    fn add(&mut self, names: &[Name], by: impl Fn(Standing) -> Standing) -> Vec<Added> {
        let mut add = |name: &Name| {
            let before = self.find(name);
            let after = by(before);
            self.put(*name, after);
            (*name, after.total - before.total)
        };
        names.iter().map(&mut add).collect()
    }

    fn take_back(&mut self, added: &[Added]) {
        for (name, points) in added {
            self.put(*name, self.find(name).without(*points));
        }
    }

    fn note(&mut self, mail: Option<Name>, standing: Standing, added: Vec<Added>) {
        let Some(mail) = mail else { return };
        self.put(mail, standing);
        if self.rows.contains_key(&mail) {
            self.added.insert(mail, added);
        }
    }

    fn count(&mut self, conduct: &Conduct, counts: Counts) {
        let mail = conduct.mail;
        let before = mail.map_or_else(Standing::default, |mail| self.find(&mail));
        let added = mail.and_then(|mail| self.added.get(&mail).cloned()).unwrap_or_default();
        let names: Vec<Name> = added.iter().map(|(name, _)| *name).collect();
        let names = if names.is_empty() { &conduct.sender } else { &names };
        match counts {
            Counts::Rated { .. } if before.count > 0 => {}
            Counts::Rated { score, moved } => {
                let added = self.add(names, |known| known.with(score, conduct.dilution));
                self.add(&conduct.recipients, |known| known.with(-conduct.welcome, 1.0));
                self.note(mail, Standing::default().with(moved, 1.0), added);
            }
            Counts::Taught(points) => {
                if before.count >= TAUGHT {
                    self.take_back(&added);
                }
                let added = self.add(names, |known| known.taught(points, conduct.dilution));
                self.note(mail, Standing { count: TAUGHT, total: f64::from(TAUGHT) * points }, added);
            }
            Counts::Forgotten => {
                self.take_back(&added);
                mail.into_iter().for_each(|mail| self.remove(mail));
            }
        }
    }

    async fn write(&self, session: &Session, owner: i64, now: i64) -> Done<()> {
        const PUT: &str = "
            insert into sluice.sender as s (owner, name, count, total, added, last)
            select $1::bigint, name, count, total, added, $6::bigint
            from unnest($2::bytea[], $3::bigint[], $4::float8[], $5::bytea[]) new (name, count, total, added)
            on conflict (owner, name) do update set count = excluded.count, total = excluded.total,
                last = greatest(s.last, excluded.last), added = excluded.added";
        let (kept, gone): (Vec<&Name>, Vec<&Name>) =
            self.changed.iter().partition(|name| self.rows.contains_key(*name));
        if !gone.is_empty() {
            let gone: Vec<&[u8]> = gone.into_iter().map(<[u8; 16]>::as_slice).collect();
            session.run("delete from sluice.sender where owner = $1 and name = any($2)", &[&owner, &gone]).await?;
        }
        let rows = kept.iter().map(|name| self.find(name));
        let counts: Vec<i64> = rows.clone().map(|row| i64::from(row.count)).collect();
        let totals: Vec<f64> = rows.map(|row| row.total).collect();
        let bytes = |added: &Vec<Added>| -> Vec<u8> {
            added.iter().flat_map(|(name, points)| name.iter().copied().chain(points.to_le_bytes())).collect()
        };
        let added: Vec<Option<Vec<u8>>> = kept.iter().map(|name| self.added.get(*name).map(bytes)).collect();
        let names: Vec<&[u8]> = kept.into_iter().map(<[u8; 16]>::as_slice).collect();
        let with: [&(dyn ToSql + Sync); 6] = [&owner, &names, &counts, &totals, &added, &now];
        if names.is_empty() { Ok(()) } else { session.run(PUT, &with).await.map(drop) }
    }
}

/// Forgets names unseen since `since`, and those unseen for longest beyond `most`.
pub async fn forget(session: &Session, most: u64, since: i64) -> Done<u64> {
    const OLD: &str = "
        delete from sluice.sender where (owner, name) in (
            select owner, name from sluice.sender where last < $1 for update skip locked)";
    const BEYOND: &str = "
        delete from sluice.sender where (owner, name) in (
            select owner, name from sluice.sender order by last limit $1 for update skip locked)";
    let old = session.run(OLD, &[&since]).await?;
    let surplus = session.number("select count(*) from sluice.sender", &[]).await?.saturating_sub(signed(most));
    let beyond = if surplus > 0 { session.run(BEYOND, &[&surplus]).await? } else { 0 };
    Ok(old + beyond)
}
