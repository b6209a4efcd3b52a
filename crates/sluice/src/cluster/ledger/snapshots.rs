//! Snapshots: what an owner has learned goes out as of one moment, and comes in at once.
//!
//! Lines that come in wait in tables of the session, some at a time, so that a broken snapshot changes nothing, and an owner is locked
//! only while they replace what was there.

use std::collections::HashMap;

use learn::{Counts, Key, Snapshot};
use ledger::Error;
use ledger::form::{count, cut, key, number, signed};
use tokio_postgres::types::ToSql;

use super::line::{Done, Session};
use super::words::note;

/// Lines of one statement.
const LINES: usize = 5_000;

/// Tells of everything about an owner, until `tell` returns `false`.
pub async fn export(session: &Session, owner: &str, tell: &mut impl FnMut(Snapshot) -> bool) -> Done<()> {
    const OWNER: &str = "select id, spam, ham from sluice.learner where name = $1";
    const WORDS: &str = "select key, spam, ham, at from sluice.word where owner = $1 order by key";
    const MAILS: &str = "select spam, id from sluice.lesson where owner = $1 order by id";
    session
        .transaction("begin isolation level repeatable read read only", async || {
            let found = session.row(OWNER, &[&cut(owner).as_bytes()]).await?;
            let (spam, ham) = found.as_ref().map_or((0, 0), |row| (count(row.get(1)), count(row.get(2))));
            let is_told = [Snapshot::Version, Snapshot::Spam(spam), Snapshot::Ham(ham)].into_iter().all(&mut *tell);
            let Some(id) = found.map(|row| row.get::<_, i64>(0)).filter(|_| is_told) else { return Ok(()) };
            let mut goes_on = true;
            let word = |row: &tokio_postgres::Row| {
                let counts = Counts { key: key(row.get(0)), spam: count(row.get(1)), ham: count(row.get(2)) };
                goes_on = tell(Snapshot::Word(counts, row.get(3)));
                goes_on
            };
            session.each(WORDS, &[&id], word).await?;
            if !goes_on {
                return Ok(());
            }
            let mail = |row: &tokio_postgres::Row| {
                let id = String::from_utf8_lossy(row.get::<_, &[u8]>(1)).into();
                tell(Snapshot::Mail(row.get(0), id))
            };
            session.each(MAILS, &[&id], mail).await
        })
        .await
}

/// Some lines of a snapshot.
#[derive(Default)]
pub struct Some {
    spam: i64,
    ham: i64,
    words: HashMap<Key, (Counts, i64)>,
    mails: HashMap<Box<str>, bool>,
}

impl Some {
    /// The next lines; none after the last.
    ///
    /// # Errors
    /// That of a line.
    pub fn of(lines: &mut dyn Iterator<Item = Result<Snapshot, Error>>) -> Result<Option<Some>, Error> {
        let mut some = Some::default();
        let mut count = 0;
        for line in lines.take(LINES) {
            count += 1;
            match line? {
                Snapshot::Version | Snapshot::Other => {}
                Snapshot::Spam(mails) => some.spam = some.spam.saturating_add(signed(mails)),
                Snapshot::Ham(mails) => some.ham = some.ham.saturating_add(signed(mails)),
                Snapshot::Word(counts, at) => drop(some.words.insert(counts.key, (counts, at))),
                Snapshot::Mail(is_spam, id) => drop(some.mails.insert(cut(&id).into(), is_spam)),
            }
        }
        Ok((count > 0).then_some(some))
    }
}

/// Makes room for lines.
pub async fn begin(session: &Session) -> Done<()> {
    const PLACES: [&str; 2] = [
        "create temp table if not exists new_word (key bigint primary key, spam bigint, ham bigint, at bigint)",
        "create temp table if not exists new_lesson (id bytea primary key, spam bool)",
    ];
    for place in PLACES {
        session.run(place, &[]).await?;
    }
    session.run("create temp table if not exists new_corpus (spam bigint, ham bigint)", &[]).await?;
    session.run("truncate new_word, new_lesson, new_corpus", &[]).await.map(drop)
}

/// Puts lines aside.
pub async fn stage(session: &Session, some: &Some) -> Done<()> {
    const WORDS: &str = "
        insert into new_word select * from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
        on conflict (key) do update set spam = excluded.spam, ham = excluded.ham, at = excluded.at";
    const MAILS: &str = "
        insert into new_lesson select * from unnest($1::bytea[], $2::bool[]) on conflict (id) do update set spam = excluded.spam";
    let words: Vec<[i64; 4]> = some
        .words
        .values()
        .map(|(counts, at)| [number(counts.key), signed(counts.spam), signed(counts.ham), *at])
        .collect();
    let column = |place: usize| -> Vec<i64> { words.iter().map(|word| word[place]).collect() };
    let [keys, spam, ham, at] = [0, 1, 2, 3].map(column);
    let (ids, are_spam): (Vec<&[u8]>, Vec<bool>) =
        some.mails.iter().map(|(id, is_spam)| (id.as_bytes(), *is_spam)).unzip();
    session
        .transaction("begin", async || {
            let with: [&(dyn ToSql + Sync); 4] = [&keys, &spam, &ham, &at];
            session.run(WORDS, &with).await?;
            session.run(MAILS, &[&ids, &are_spam]).await?;
            session.run("insert into new_corpus values ($1, $2)", &[&some.spam, &some.ham]).await.map(drop)
        })
        .await
}

/// Replaces everything about an owner by the lines put aside.
pub async fn replace(session: &Session, owner: &str) -> Done<()> {
    const COUNTS: &str = "
        update sluice.learner set expired = 0,
            spam = (select least(coalesce(sum(spam), 0), 9223372036854775807)::bigint from new_corpus),
            ham = (select least(coalesce(sum(ham), 0), 9223372036854775807)::bigint from new_corpus)
        where id = $1";
    session
        .transaction("begin", async || {
            let owner = note(session, owner).await?;
            session.run("delete from sluice.word where owner = $1", &[&owner]).await?;
            session.run("delete from sluice.lesson where owner = $1", &[&owner]).await?;
            session.run(COUNTS, &[&owner]).await?;
            session.run("insert into sluice.word select $1, key, spam, ham, at from new_word", &[&owner]).await?;
            session.run("insert into sluice.lesson select $1, id, spam, 0 from new_lesson", &[&owner]).await.map(drop)
        })
        .await
}
