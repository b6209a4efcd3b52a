//! Reputation of senders, and mails by their own names: a row each, with a count, a sum and the time of the last use.
//!
//! A rated mail has the count 1, a mail with a lesson 2, so that an opposite lesson undoes the right amount. The row of
//! a mail has the names it counted for, with the amount added to each: a later lesson may not know the signer any more.

use learn::Standing;
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::Done;
use crate::form::{TAUGHT, signed};
use crate::{Conduct, Counts, Name};

pub(super) fn find(transaction: &Transaction<'_>, owner: i64, name: &Name) -> Done<Standing> {
    let mut ask = transaction.prepare_cached("SELECT count, total FROM sender WHERE owner = ?1 AND name = ?2")?;
    let found = ask.query_row(params![owner, name], |row| Ok(Standing { count: row.get(0)?, total: row.get(1)? }));
    Ok(found.optional()?.unwrap_or_default())
}

fn put(transaction: &Transaction<'_>, owner: i64, name: &Name, standing: Standing, now: i64) -> Done<()> {
    if standing == Standing::default() {
        return remove(transaction, owner, name);
    }
    let mut tell = transaction.prepare_cached(
        "INSERT INTO sender (owner, name, count, total, last) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET count = ?3, total = ?4, last = max(last, ?5)",
    )?;
    tell.execute(params![owner, name, standing.count, standing.total, now]).map(drop)
}

fn remove(transaction: &Transaction<'_>, owner: i64, name: &Name) -> Done<()> {
    let mut tell = transaction.prepare_cached("DELETE FROM sender WHERE owner = ?1 AND name = ?2")?;
    tell.execute(params![owner, name]).map(drop)
}

/// Counts a mail by its kind of effect.
pub(super) fn count(
    transaction: &Transaction<'_>,
    owner: i64,
    conduct: &Conduct,
    counts: Counts,
    now: i64,
) -> Done<()> {
    let book = Book { transaction, owner, now };
    let mail = conduct.mail.as_ref();
    let before = mail.map_or(Ok(Standing::default()), |mail| find(transaction, owner, mail))?;
    let added = mail.map_or(Ok(None), |mail| book.added(mail))?;
    let names: Vec<Name> = added.iter().flatten().map(|(name, _)| *name).collect();
    let names = if names.is_empty() { &conduct.sender } else { &names };
    match counts {
        Counts::Rated { .. } if before.count > 0 => Ok(()),
        Counts::Rated { score, moved } => {
            let added = book.add(names, |known| known.with(score, conduct.dilution))?;
            book.add(&conduct.recipients, |known| known.with(-conduct.welcome, 1.0))?;
            book.note(mail, Standing::default().with(moved, 1.0), &added)
        }
        Counts::Taught(points) => {
            if before.count >= TAUGHT {
                book.take_back(added.as_deref().unwrap_or_default())?;
            }
            let added = book.add(names, |known| known.taught(points, conduct.dilution))?;
            book.note(mail, Standing { count: TAUGHT, total: f64::from(TAUGHT) * points }, &added)
        }
        Counts::Forgotten => {
            book.take_back(added.as_deref().unwrap_or_default())?;
            mail.map_or(Ok(()), |mail| remove(transaction, owner, mail))
        }
    }
}

/// Amount that a mail has added to the total of a name.
type Added = (Name, f64);

/// Senders of one owner, within a transaction.
struct Book<'t> {
    transaction: &'t Transaction<'t>,
    owner: i64,
    now: i64,
}

impl Book<'_> {
    /// Returns the amounts that a mail has added the last time.
    fn added(&self, mail: &Name) -> Done<Option<Vec<Added>>> {
        let mut ask = self.transaction.prepare_cached("SELECT added FROM sender WHERE owner = ?1 AND name = ?2")?;
        let bytes = ask.query_row(params![self.owner, mail], |row| row.get::<_, Option<Vec<u8>>>(0)).optional()?;
        let read = |entry: &[u8; 24]| {
            let (name, points) = entry.split_first_chunk()?;
            Some((*name, f64::from_le_bytes(points.try_into().ok()?)))
        };
        Ok(bytes.flatten().map(|bytes| bytes.as_chunks().0.iter().filter_map(read).collect()))
    }

    /// Changes the standings of names; returns the amounts added.
    fn add(&self, names: &[Name], by: impl Fn(Standing) -> Standing) -> Done<Vec<Added>> {
        let add = |name: &Name| {
            let before = find(self.transaction, self.owner, name)?;
            let after = by(before);
            put(self.transaction, self.owner, name, after, self.now)?;
            Ok((*name, after.total - before.total))
        };
        names.iter().map(add).collect()
    }

    fn take_back(&self, added: &[Added]) -> Done<()> {
        added.iter().try_for_each(|(name, points)| {
            let known = find(self.transaction, self.owner, name)?;
            put(self.transaction, self.owner, name, known.without(*points), self.now)
        })
    }

    /// Notes how a mail has counted, and the amounts added.
    fn note(&self, mail: Option<&Name>, standing: Standing, added: &[Added]) -> Done<()> {
        let Some(mail) = mail else { return Ok(()) };
        put(self.transaction, self.owner, mail, standing, self.now)?;
        let mut tell =
            self.transaction.prepare_cached("UPDATE sender SET added = ?3 WHERE owner = ?1 AND name = ?2")?;
        let bytes: Vec<u8> =
            added.iter().flat_map(|(name, points)| name.iter().copied().chain(points.to_le_bytes())).collect();
        tell.execute(params![self.owner, mail, bytes]).map(drop)
    }
}

/// Forgets names unseen since `since`, and those unseen for longest beyond `most`.
pub(super) fn forget(transaction: &Transaction<'_>, most: u64, since: i64) -> Done<u64> {
    let old = transaction.execute("DELETE FROM sender WHERE last < ?1", [since])?;
    let all: i64 = transaction.query_row("SELECT count(*) FROM sender", [], |row| row.get(0))?;
    let surplus = all.saturating_sub(signed(most));
    let beyond = match surplus > 0 {
        true => transaction.execute(
            "DELETE FROM sender WHERE (owner, name) IN (SELECT owner, name FROM sender ORDER BY last LIMIT ?1)",
            [surplus],
        )?,
        false => 0,
    };
    Ok((old + beyond) as u64)
}
