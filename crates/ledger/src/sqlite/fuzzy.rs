//! Reports of spam: shingles of texts, and digests of attachments.
//!
//! A text has a row for each shingle, a number made of its value and its position; the texts that share the most rows
//! are the most similar. A text that nearly equals a reported one is not stored again. Bounds: at most [`ROWS_MAX`]
//! texts with one shingle are compared.

use std::collections::HashMap;

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::Done;
use crate::form::{ROWS_MAX, SAME_PLACES, rows, signed};
use crate::{Alike, Fuzzy};

/// Tables that form 4 added.
pub(super) const TABLES: &str = "
    CREATE TABLE text (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, count INTEGER NOT NULL, last INTEGER NOT NULL);
    CREATE TABLE shingle (
        owner INTEGER NOT NULL, value INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (owner, value, text)
    ) WITHOUT ROWID;
    CREATE INDEX shingle_text ON shingle (text);
    CREATE TABLE part (
        owner INTEGER NOT NULL, digest BLOB NOT NULL, count INTEGER NOT NULL, last INTEGER NOT NULL,
        PRIMARY KEY (owner, digest)
    ) WITHOUT ROWID;
";

/// Returns the most similar text, and the number of equal shingles.
fn nearest(transaction: &Transaction<'_>, owner: i64, fuzzy: &Fuzzy) -> Done<Option<(i64, u8)>> {
    let mut ask = transaction.prepare_cached("SELECT text FROM shingle WHERE owner = ?1 AND value = ?2 LIMIT ?3")?;
    let mut shared: HashMap<i64, u8> = HashMap::new();
    for value in rows(fuzzy) {
        let texts = ask.query_map(params![owner, value, ROWS_MAX], |row| row.get(0))?;
        for text in texts {
            *shared.entry(text?).or_default() += 1;
        }
    }
    Ok(shared.into_iter().max_by_key(|&(text, places)| (places, text)))
}

pub(super) fn alike(transaction: &Transaction<'_>, owner: i64, fuzzy: &Fuzzy) -> Done<Alike> {
    let mut ask = transaction.prepare_cached("SELECT 1 FROM part WHERE owner = ?1 AND digest = ?2")?;
    let mut has_part = false;
    for digest in &fuzzy.parts {
        has_part |= ask.exists(params![owner, digest])?;
    }
    let nearest = nearest(transaction, owner, fuzzy)?;
    Ok(Alike { places: nearest.map_or(0, |(_, places)| places), has_part })
}

pub(super) fn report(transaction: &Transaction<'_>, owner: i64, fuzzy: &Fuzzy, now: i64) -> Done<()> {
    for digest in &fuzzy.parts {
        transaction.execute(
            "INSERT INTO part (owner, digest, count, last) VALUES (?1, ?2, 1, ?3)
             ON CONFLICT DO UPDATE SET count = count + 1, last = max(last, ?3)",
            params![owner, digest, now],
        )?;
    }
    if fuzzy.shingles.is_empty() {
        return Ok(());
    }
    if let Some((text, _)) = nearest(transaction, owner, fuzzy)?.filter(|(_, places)| *places >= SAME_PLACES) {
        let again = "UPDATE text SET count = count + 1, last = max(last, ?2) WHERE id = ?1";
        return transaction.execute(again, [text, now]).map(drop);
    }
    transaction.execute("INSERT INTO text (owner, count, last) VALUES (?1, 1, ?2)", [owner, now])?;
    let text = transaction.last_insert_rowid();
    let mut tell =
        transaction.prepare_cached("INSERT OR IGNORE INTO shingle (owner, value, text) VALUES (?1, ?2, ?3)")?;
    rows(fuzzy).try_for_each(|value| tell.execute([owner, value, text]).map(drop))
}

/// Forgets the reports of a mail, and all nearly equal ones.
pub(super) fn withdraw(transaction: &Transaction<'_>, owner: i64, fuzzy: &Fuzzy) -> Done<()> {
    for digest in &fuzzy.parts {
        transaction.execute("DELETE FROM part WHERE owner = ?1 AND digest = ?2", params![owner, digest])?;
    }
    while let Some((text, _)) = nearest(transaction, owner, fuzzy)?.filter(|(_, places)| *places >= SAME_PLACES) {
        remove(transaction, text)?;
    }
    Ok(())
}

fn remove(transaction: &Transaction<'_>, text: i64) -> Done<()> {
    transaction.execute("DELETE FROM shingle WHERE text = ?1", [text])?;
    transaction.execute("DELETE FROM text WHERE id = ?1", [text]).map(drop)
}

/// Forgets texts and attachments older than `since`, and the oldest of each kind beyond `most`.
pub(super) fn forget(transaction: &Transaction<'_>, most: u64, since: i64) -> Done<()> {
    transaction.execute("DELETE FROM part WHERE last < ?1", [since])?;
    transaction.execute(
        "DELETE FROM part WHERE (owner, digest) IN
         (SELECT owner, digest FROM part ORDER BY last DESC LIMIT -1 OFFSET ?1)",
        [signed(most)],
    )?;
    let old = "SELECT id FROM text WHERE last < ?1 UNION
               SELECT id FROM (SELECT id FROM text ORDER BY last DESC, id DESC LIMIT -1 OFFSET ?2) LIMIT 1";
    while let Some(text) = transaction.query_row(old, [since, signed(most)], |row| row.get(0)).optional()? {
        remove(transaction, text)?;
    }
    Ok(())
}
