//! Words of lessons, and the mails that were learned.

use std::collections::{BTreeSet, HashMap};

use learn::{Corpus, Counts, Key, Tokens, expire as rule};
use ledger::form::{AHEAD_SECONDS, SURPLUS_FACTOR, TOUCH_SECONDS, count, cut, key, number, signed};
use ledger::{Learned, Lesson, MAILS_MAX, Summary};

use super::line::{Done, Session};

/// Numbers of keys, in their order.
fn numbers<'k>(keys: impl IntoIterator<Item = &'k Key>) -> Vec<i64> {
    let mut all: Vec<i64> = keys.into_iter().map(|key| number(*key)).collect();
    all.sort_unstable();
    all
}

/// One row: hundreds of them take longer to carry than to find.
const RECALL: &str = "
    select l.spam, l.ham, w.keys, w.spam, w.ham from sluice.learner l cross join lateral
        (select array_agg(key) as keys, array_agg(spam) as spam, array_agg(ham) as ham
        from sluice.word where owner = l.id and key = any($2)) w
    where l.name = $1";

pub async fn recall(session: &Session, owner: &str, keys: &[Key]) -> Done<(Corpus, Vec<Counts>)> {
    let row = session.row(RECALL, &[&cut(owner).as_bytes(), &numbers(keys)]).await?;
    let Some(row) = row else { return Ok((Corpus::default(), Vec::new())) };
    let corpus = Corpus { spam: count(row.get(0)), ham: count(row.get(1)) };
    let column = |at: usize| row.get::<_, Option<Vec<i64>>>(at).unwrap_or_default();
    let counts = column(3).into_iter().zip(column(4));
    let word = |(key, (spam, ham))| (key, Counts { key, spam: count(spam), ham: count(ham) });
    let found: HashMap<Key, Counts> = column(2).into_iter().map(key).zip(counts).map(word).collect();
    Ok((corpus, keys.iter().filter_map(|key| found.get(key).copied()).collect()))
}

/// Rows that another node has just now are passed over: it notes a use, or learns them.
const TOUCH: &str = "
    with old as (
        select owner, key from sluice.word
        where owner = (select id from sluice.learner where name = $1) and key = any($2) and at < $3
        for update skip locked)
    update sluice.word w set at = greatest(w.at, $4) from old where w.owner = old.owner and w.key = old.key";

pub async fn touch(session: &Session, touched: &HashMap<Box<str>, BTreeSet<Key>>, at: i64) -> Done<()> {
    let before = at.saturating_sub(TOUCH_SECONDS);
    for (owner, keys) in touched {
        session.run(TOUCH, &[&cut(owner).as_bytes(), &numbers(keys), &before, &at]).await?;
    }
    Ok(())
}

/// Locks an owner for this transaction; none if there is no such.
pub async fn lock(session: &Session, owner: &str) -> Done<Option<i64>> {
    let find = "select id from sluice.learner where name = $1 for update";
    Ok(session.row(find, &[&cut(owner).as_bytes()]).await?.map(|row| row.get(0)))
}

/// The same for one who is noted where there is none.
pub async fn note(session: &Session, owner: &str) -> Done<i64> {
    if let Some(id) = lock(session, owner).await? {
        return Ok(id);
    }
    let note = "insert into sluice.learner (name) values ($1) on conflict do nothing";
    session.run(note, &[&cut(owner).as_bytes()]).await?;
    Ok(lock(session, owner).await?.unwrap_or_default())
}

pub async fn learn(session: &Session, owner: &str, lessons: &[Lesson]) -> Done<Vec<Learned>> {
    session
        .transaction("begin", async || {
            let owner = note(session, owner).await?;
            let mut all = Vec::new();
            for lesson in lessons {
                all.push(learn_one(session, owner, lesson).await?);
            }
            Ok(all)
        })
        .await
}

const LEARN: &str = "
    with words as (
        insert into sluice.word as w (owner, key, spam, ham, at)
        select $1::bigint, key, $3::bigint, $4::bigint, $5::bigint from unnest($2::bigint[]) key
        on conflict (owner, key) do update set at = greatest(w.at, excluded.at),
            spam = least(w.spam, 9223372036854775807 - excluded.spam) + excluded.spam,
            ham = least(w.ham, 9223372036854775807 - excluded.ham) + excluded.ham),
    mail as (
        insert into sluice.lesson (owner, id, spam, at) select $1, $6::bytea, $3 = 1, $5 where $6 is not null
        on conflict (owner, id) do update set spam = excluded.spam, at = excluded.at)
    update sluice.learner set spam = least(spam, 9223372036854775807 - $3) + $3, ham = least(ham, 9223372036854775807 - $4) + $4
    where id = $1";

async fn learn_one(session: &Session, owner: i64, lesson: &Lesson) -> Done<Learned> {
    let before = known(session, owner, &lesson.ids).await?;
    match before {
        Some((_, is_spam)) if is_spam == lesson.is_spam || !lesson.corrects => return Ok(Learned::Known),
        Some((id, is_spam)) => take_back(session, owner, id, is_spam, &lesson.tokens).await?,
        None => {}
    }
    let (spam, ham) = (i64::from(lesson.is_spam), i64::from(!lesson.is_spam));
    let id = lesson.ids.first().map(|id| cut(id).as_bytes());
    session.run(LEARN, &[&owner, &numbers(lesson.tokens.keys()), &spam, &ham, &lesson.at, &id]).await?;
    Ok(if before.is_some() { Learned::Corrected } else { Learned::New })
}

/// How a mail is known: the id, and whether as spam.
async fn known<'i>(session: &Session, owner: i64, ids: &'i [Box<str>]) -> Done<Option<(&'i str, bool)>> {
    let all: Vec<&[u8]> = ids.iter().map(|id| cut(id).as_bytes()).collect();
    let rows =
        session.rows("select id, spam from sluice.lesson where owner = $1 and id = any($2)", &[&owner, &all]).await?;
    let found: HashMap<&[u8], bool> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    Ok(ids.iter().find_map(|id| Some((&**id, *found.get(cut(id).as_bytes())?))))
}

const TAKE_BACK: &str = "
    with less as (
        update sluice.word set spam = greatest(spam - $3, 0), ham = greatest(ham - $4, 0)
        where owner = $1 and key = any($2) and (spam > $3 or ham > $4)),
    gone as (delete from sluice.word where owner = $1 and key = any($2) and spam <= $3 and ham <= $4),
    mail as (delete from sluice.lesson where owner = $1 and id = $5)
    update sluice.learner set spam = greatest(spam - $3::bigint, 0), ham = greatest(ham - $4::bigint, 0) where id = $1";

async fn take_back(session: &Session, owner: i64, id: &str, is_spam: bool, tokens: &Tokens) -> Done<()> {
    let (spam, ham) = (i64::from(is_spam), i64::from(!is_spam));
    let with: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
        [&owner, &numbers(tokens.keys()), &spam, &ham, &cut(id).as_bytes()];
    session.run(TAKE_BACK, &with).await.map(drop)
}

pub async fn forget(session: &Session, owner: &str, ids: &[Box<str>], tokens: &Tokens) -> Done<bool> {
    session
        .transaction("begin", async || {
            let Some(owner) = lock(session, owner).await? else { return Ok(false) };
            let Some((id, is_spam)) = known(session, owner, ids).await? else { return Ok(false) };
            take_back(session, owner, id, is_spam, tokens).await?;
            Ok(true)
        })
        .await
}

pub async fn expire(session: &Session, owner: &str, words_max: u64, now: i64) -> Done<u64> {
    const MAILS: &str = "
        delete from sluice.lesson where owner = $1 and id in (
            select id from sluice.lesson where owner = $1 order by at desc offset $2)";
    session
        .transaction("begin", async || {
            let Some(owner) = lock(session, owner).await? else { return Ok(0) };
            let forgotten = forget_old(session, owner, words_max, now).await?;
            session.run("update sluice.learner set expired = $2 where id = $1", &[&owner, &now]).await?;
            session.run(MAILS, &[&owner, &signed(MAILS_MAX)]).await?;
            Ok(forgotten)
        })
        .await
}

async fn forget_old(session: &Session, owner: i64, words_max: u64, now: i64) -> Done<u64> {
    const NEWEST: &str = "select coalesce(max(at), $3) from sluice.word where owner = $1 and at <= $2";
    const KEPT: &str = "select at from sluice.word where owner = $1 order by at limit 1 offset $2";
    const FEWER: &str = "
        delete from sluice.word where owner = $1 and key in (
            select key from sluice.word where owner = $1 order by at, spam::numeric + ham limit $2)";
    let all = count(session.number("select count(*) from sluice.word where owner = $1", &[&owner]).await?);
    if all <= words_max {
        return Ok(0);
    }
    let newest = session.number(NEWEST, &[&owner, &now.saturating_add(AHEAD_SECONDS), &now]).await?.min(now);
    let Some(surplus) = rule::surplus(all, words_max) else { return Ok(0) };
    let kept = session.number(KEPT, &[&owner, &signed(surplus)]).await?;
    let until = kept.min(newest.saturating_sub(rule::AGE_MIN));
    let forgotten = session.run("delete from sluice.word where owner = $1 and at < $2", &[&owner, &until]).await?;
    match forgotten {
        0 if all > words_max.saturating_mul(SURPLUS_FACTOR) => session.run(FEWER, &[&owner, &signed(surplus)]).await,
        _ => Ok(forgotten),
    }
}

const SUMMARY: &str = "
    select l.spam, l.ham, l.expired, (select count(*) from sluice.word where owner = l.id),
        coalesce((select min(at) from sluice.word where owner = l.id), 0),
        coalesce((select max(at) from sluice.word where owner = l.id), 0),
        (select count(*) from sluice.lesson where owner = l.id), (select count(*) from sluice.report where owner = l.id),
        (select count(*) from sluice.sender where owner = l.id)
    from sluice.learner l where name = $1";

pub async fn summary(session: &Session, owner: &str) -> Done<Summary> {
    let row = session.row(SUMMARY, &[&cut(owner).as_bytes()]).await?;
    Ok(row.map_or_else(Summary::default, |row| Summary {
        corpus: Corpus { spam: count(row.get(0)), ham: count(row.get(1)) },
        words: count(row.get(3)),
        oldest: row.get(4),
        newest: row.get(5),
        expired: row.get(2),
        mails: count(row.get(6)),
        reports: count(row.get(7)),
        senders: count(row.get(8)),
    }))
}
