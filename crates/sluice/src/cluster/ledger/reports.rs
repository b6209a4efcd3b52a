//! Reports of spam: shingles of texts, and digests of attachments. Reports of one owner are written one after the other.

use ledger::form::{ROWS_MAX, SAME_PLACES, cut, rows, signed};
use ledger::{Alike, Fuzzy};

use super::line::{Done, Session};
use super::words::note;

/// Digests of attachments in their order, each once.
fn digests(fuzzy: &Fuzzy) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = fuzzy.parts.iter().map(<[u8; 16]>::as_slice).collect();
    all.sort_unstable();
    all.dedup();
    all
}

const ALIKE: &str = "
    select exists (select from sluice.part where owner = l.id and digest = any($2)),
        coalesce((select count(*) from unnest($3::bigint[]) shared cross join lateral
            (select report from sluice.shingle where owner = l.id and value = shared limit $4) s
            group by report order by 1 desc limit 1), 0)
    from sluice.learner l where name = $1";

/// Compares a mail, if it is to be.
pub async fn alike(session: &Session, owner: &str, fuzzy: Option<&Fuzzy>) -> Done<Option<Alike>> {
    let Some(fuzzy) = fuzzy else { return Ok(None) };
    let shingles: Vec<i64> = rows(fuzzy).collect();
    let row = session.row(ALIKE, &[&cut(owner).as_bytes(), &digests(fuzzy), &shingles, &ROWS_MAX]).await?;
    Ok(Some(row.map_or_else(Alike::default, |row| Alike {
        places: u8::try_from(row.get::<_, i64>(1)).unwrap_or(u8::MAX),
        has_part: row.get(0),
    })))
}

const NEAREST: &str = "
    select report, count(*) from unnest($2::bigint[]) shared cross join lateral
        (select report from sluice.shingle where owner = $1 and value = shared limit $3) s
    group by report having count(*) >= $4 order by 2 desc, 1 desc limit 1";

/// The report that a text nearly equals.
async fn nearest(session: &Session, owner: i64, shingles: &[i64]) -> Done<Option<i64>> {
    let row = session.row(NEAREST, &[&owner, &shingles, &ROWS_MAX, &i64::from(SAME_PLACES)]).await?;
    Ok(row.map(|row| row.get(0)))
}

pub async fn report(session: &Session, owner: &str, fuzzy: &Fuzzy, now: i64) -> Done<()> {
    const PARTS: &str = "
        insert into sluice.part as p (owner, digest, count, last) select $1::bigint, digest, 1, $3::bigint from unnest($2::bytea[]) digest
        on conflict (owner, digest) do update set count = p.count + 1, last = greatest(p.last, excluded.last)";
    const AGAIN: &str = "update sluice.report set count = count + 1, last = greatest(last, $2) where id = $1";
    const NEW: &str = "
        with new as (insert into sluice.report (owner, count, last) values ($1, 1, $3) returning id)
        insert into sluice.shingle select $1, value, id from new, unnest($2::bigint[]) value on conflict do nothing";
    let shingles: Vec<i64> = rows(fuzzy).collect();
    session
        .transaction("begin", async || {
            let owner = note(session, owner).await?;
            session.run(PARTS, &[&owner, &digests(fuzzy), &now]).await?;
            if shingles.is_empty() {
                return Ok(());
            }
            if let Some(report) = nearest(session, owner, &shingles).await?
                && session.run(AGAIN, &[&report, &now]).await? > 0
            {
                return Ok(());
            }
            session.run(NEW, &[&owner, &shingles, &now]).await.map(drop)
        })
        .await
}

/// Forgets the reports of a mail, and all nearly equal ones.
pub async fn withdraw(session: &Session, owner: &str, fuzzy: &Fuzzy) -> Done<()> {
    const REMOVE: &str = "
        with gone as (delete from sluice.shingle where report = $1) delete from sluice.report where id = $1";
    let shingles: Vec<i64> = rows(fuzzy).collect();
    session
        .transaction("begin", async || {
            let owner = note(session, owner).await?;
            let parts = "delete from sluice.part where owner = $1 and digest = any($2)";
            session.run(parts, &[&owner, &digests(fuzzy)]).await?;
            while let Some(report) = nearest(session, owner, &shingles).await? {
                session.run(REMOVE, &[&report]).await?;
            }
            Ok(())
        })
        .await
}

/// Forgets texts and attachments older than `since`, and the oldest of each kind beyond `most`.
pub async fn forget(session: &Session, most: u64, since: i64) -> Done<()> {
    const PARTS: &str = "
        delete from sluice.part where (owner, digest) in (
            select owner, digest from sluice.part where last < $1 or (owner, digest) in (
                select owner, digest from sluice.part order by last desc offset $2)
            for update skip locked)";
    const TEXTS: &str = "
        with old as (
            select id from sluice.report where last < $1 or id in (
                select id from sluice.report order by last desc, id desc offset $2)
            for update skip locked),
        gone as (delete from sluice.report where id in (select id from old))
        delete from sluice.shingle where report in (select id from old)";
    session.run(PARTS, &[&since, &signed(most)]).await?;
    session.run(TEXTS, &[&since, &signed(most)]).await.map(drop)
}
