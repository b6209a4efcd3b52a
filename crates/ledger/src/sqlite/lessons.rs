//! Words of lessons: learned, taken back, and forgotten when they are many.

use learn::{Tokens, expire};
use rusqlite::{OptionalExtension as _, Transaction, params};

use super::{Done, count_mails};
use crate::form::{AHEAD_SECONDS, SURPLUS_FACTOR, count, cut, number, signed};
use crate::{Learned, Lesson};

/// How a mail is known: the id, and whether as spam.
pub(super) fn known<'i>(
    transaction: &Transaction<'_>,
    owner: i64,
    ids: &'i [Box<str>],
) -> Done<Option<(&'i str, bool)>> {
    let mut ask = transaction.prepare_cached("SELECT spam FROM mail WHERE owner = ?1 AND id = ?2")?;
    for id in ids {
        if let Some(is_spam) = ask.query_row(params![owner, cut(id)], |row| row.get(0)).optional()? {
            return Ok(Some((id, is_spam)));
        }
    }
    Ok(None)
}

pub(super) fn learn_one(transaction: &Transaction<'_>, owner: i64, lesson: &Lesson) -> Done<Learned> {
    let before = known(transaction, owner, &lesson.ids)?;
    match before {
        Some((_, is_spam)) if is_spam == lesson.is_spam || !lesson.corrects => return Ok(Learned::Known),
        Some((id, is_spam)) => take_back(transaction, owner, id, is_spam, &lesson.tokens)?,
        None => {}
    }
    let (spam, ham) = (i64::from(lesson.is_spam), i64::from(!lesson.is_spam));
    let mut tell = transaction.prepare_cached(
        "INSERT INTO word (owner, key, spam, ham, at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET spam = iif(spam = ?6, ?6, spam + ?3), ham = iif(ham = ?6, ?6, ham + ?4), at = max(at, ?5)",
    )?;
    for key in lesson.tokens.keys() {
        tell.execute(params![owner, number(*key), spam, ham, lesson.at, i64::MAX])?;
    }
    count_mails(transaction, owner, lesson.is_spam, 1)?;
    if let Some(id) = lesson.ids.first() {
        let mut tell = transaction.prepare_cached("REPLACE INTO mail (owner, id, spam, at) VALUES (?1, ?2, ?3, ?4)")?;
        tell.execute(params![owner, cut(id), lesson.is_spam, lesson.at])?;
    }
    Ok(if before.is_some() { Learned::Corrected } else { Learned::New })
}

pub(super) fn take_back(
    transaction: &Transaction<'_>,
    owner: i64,
    id: &str,
    is_spam: bool,
    tokens: &Tokens,
) -> Done<()> {
    let (spam, ham) = (i64::from(is_spam), i64::from(!is_spam));
    let mut less = transaction.prepare_cached(
        "UPDATE word SET spam = max(spam - ?3, 0), ham = max(ham - ?4, 0) WHERE owner = ?1 AND key = ?2",
    )?;
    let mut none =
        transaction.prepare_cached("DELETE FROM word WHERE owner = ?1 AND key = ?2 AND spam = 0 AND ham = 0")?;
    for key in tokens.keys() {
        less.execute(params![owner, number(*key), spam, ham])?;
        none.execute(params![owner, number(*key)])?;
    }
    count_mails(transaction, owner, is_spam, -1)?;
    transaction.execute("DELETE FROM mail WHERE owner = ?1 AND id = ?2", params![owner, cut(id)]).map(drop)
}

pub(super) fn words(transaction: &Transaction<'_>, owner: i64) -> Done<u64> {
    transaction.query_row("SELECT count(*) FROM word WHERE owner = ?1", [owner], |row| row.get(0)).map(count)
}

pub(super) fn forget_old(transaction: &Transaction<'_>, owner: i64, words_max: u64, now: i64) -> Done<u64> {
    let all = words(transaction, owner)?;
    if all <= words_max {
        return Ok(0);
    }
    let newest = "SELECT max(at) FROM word WHERE owner = ?1 AND at <= ?2";
    let newest: Option<i64> =
        transaction.query_row(newest, params![owner, now.saturating_add(AHEAD_SECONDS)], |row| row.get(0))?;
    let newest = newest.unwrap_or(now).min(now);
    let Some(surplus) = expire::surplus(all, words_max) else { return Ok(0) };
    let kept = "SELECT at FROM word WHERE owner = ?1 ORDER BY at LIMIT 1 OFFSET ?2";
    let kept: i64 = transaction.query_row(kept, params![owner, signed(surplus)], |row| row.get(0))?;
    let until = kept.min(newest.saturating_sub(expire::AGE_MIN));
    let mut forgotten = transaction.execute("DELETE FROM word WHERE owner = ?1 AND at < ?2", params![owner, until])?;
    if forgotten == 0 && all > words_max.saturating_mul(SURPLUS_FACTOR) {
        forgotten = transaction.execute(
            "DELETE FROM word WHERE owner = ?1 AND key IN
             (SELECT key FROM word WHERE owner = ?1 ORDER BY at, spam + ham LIMIT ?2)",
            params![owner, signed(surplus)],
        )?;
    }
    Ok(forgotten as u64)
}
