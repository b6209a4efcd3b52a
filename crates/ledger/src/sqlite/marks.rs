//! Marks of greylisting: of waiting mails, and of senders that have delivered.
//!
//! A mark of the first kind counts 0 until it has waited, then 1. A mark of the second kind counts deliveries, at most
//! one an hour, so that a burst is one. Bounds: the number given to [`forget`], and a tenth more between two calls.

use rusqlite::{OptionalExtension as _, Transaction, params};

use super::Done;
use crate::form::{COME_SECONDS, DELIVERIES_MIN, HOUR_SECONDS, KEEP_SECONDS, signed};
use crate::{Greeting, Mark};

struct Row {
    first: i64,
    last: i64,
    count: i64,
}

fn find(transaction: &Transaction<'_>, mark: &Mark) -> Done<Option<Row>> {
    let mut ask = transaction.prepare_cached("SELECT first, last, count FROM mark WHERE id = ?1")?;
    ask.query_row([mark], |row| Ok(Row { first: row.get(0)?, last: row.get(1)?, count: row.get(2)? })).optional()
}

fn put(transaction: &Transaction<'_>, mark: &Mark, row: &Row) -> Done<()> {
    let mut tell = transaction.prepare_cached("REPLACE INTO mark (id, first, last, count) VALUES (?1, ?2, ?3, ?4)")?;
    tell.execute(params![mark, row.first, row.last, row.count]).map(drop)
}

/// Returns whether a sender is exempt.
pub(super) fn is_vouched(transaction: &Transaction<'_>, vouchers: &[Mark], now: i64) -> Done<bool> {
    for mark in vouchers {
        let row = find(transaction, mark)?;
        if row.is_some_and(|row| row.count >= DELIVERIES_MIN && now.saturating_sub(row.last) <= KEEP_SECONDS) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a mail has waited for all of its recipients, and the number of new marks.
pub(super) fn wait(transaction: &Transaction<'_>, greeting: &Greeting, now: i64) -> Done<(bool, u64)> {
    let (mut has_waited, mut added) = (true, 0);
    for mark in &greeting.triplets {
        let row = find(transaction, mark)?;
        added += u64::from(row.is_none());
        let row = match row {
            Some(row) if row.count > 0 && now.saturating_sub(row.last) <= KEEP_SECONDS => {
                Row { last: now.max(row.last), ..row }
            }
            Some(row) if row.count == 0 && now.saturating_sub(row.first) <= COME_SECONDS => {
                let count = i64::from(now.saturating_sub(row.first) >= greeting.delay);
                Row { last: now.max(row.last), count, ..row }
            }
            // New, or too late.
            _ => Row { first: now, last: now, count: i64::from(greeting.delay <= 0) },
        };
        has_waited &= row.count > 0;
        put(transaction, mark, &row)?;
    }
    Ok((has_waited, added))
}

/// Returns the senders for which a delivery counts now.
pub(super) fn due(transaction: &Transaction<'_>, vouchers: &[Mark], now: i64) -> Done<Vec<Mark>> {
    let mut due = Vec::new();
    for mark in vouchers {
        if find(transaction, mark)?.is_none_or(|row| now.saturating_sub(row.last) >= HOUR_SECONDS) {
            due.push(*mark);
        }
    }
    Ok(due)
}

/// Counts a delivery; returns the number of new marks.
pub(super) fn vouch(transaction: &Transaction<'_>, vouchers: &[Mark], now: i64) -> Done<u64> {
    let mut added = 0;
    for mark in vouchers {
        let row = find(transaction, mark)?;
        added += u64::from(row.is_none());
        let row = row.filter(|row| now.saturating_sub(row.last) <= KEEP_SECONDS);
        let row = row.unwrap_or(Row { first: now, last: now, count: 0 });
        put(transaction, mark, &Row { last: now, count: row.count.saturating_add(1), ..row })?;
    }
    Ok(added)
}

/// Forgets expired marks, and those unseen for longest beyond `most`.
pub(super) fn forget(transaction: &Transaction<'_>, most: u64, now: i64) -> Done<()> {
    transaction.execute(
        "DELETE FROM mark WHERE last < ?1 OR count = 0 AND first < ?2",
        [now.saturating_sub(KEEP_SECONDS), now.saturating_sub(COME_SECONDS)],
    )?;
    let all: i64 = transaction.query_row("SELECT count(*) FROM mark", [], |row| row.get(0))?;
    let surplus = all.saturating_sub(signed(most));
    if surplus > 0 {
        // Waiting marks go first.
        transaction.execute(
            "DELETE FROM mark WHERE id IN (SELECT id FROM mark ORDER BY min(count, 1), last LIMIT ?1)",
            [surplus],
        )?;
    }
    Ok(())
}
