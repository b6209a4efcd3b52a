//! Marks of greylisting: a mail that came to one node has waited at all of them.

use ledger::form::{COME_SECONDS, DELIVERIES_MIN, HOUR_SECONDS, KEEP_SECONDS, count, signed};
use ledger::{Greeting, Mark};

use super::line::{Done, Session};

/// Marks in their order, each once: nodes that note some of the same do not wait for each other.
fn ordered(marks: &[Mark]) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = marks.iter().map(<[u8; 16]>::as_slice).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A mark that has waited, or waits and is not too late, stays with its times; any other begins anew.
const GREET: &str = "
    with vouched as (
        select exists (select from sluice.mark where id = any($2::bytea[]) and count >= $4 and last >= $5) as yes),
    put as (
        insert into sluice.mark as m (id, first, last, count)
        select id, $3::bigint, $3, $6::bigint from vouched, unnest($1::bytea[]) id where not yes
        on conflict (id) do update set
            first = case when m.count > 0 and m.last >= $5 or m.count = 0 and m.first >= $7 then m.first else $3 end,
            last = case when m.count > 0 and m.last >= $5 or m.count = 0 and m.first >= $7 then greatest(m.last, $3) else $3 end,
            count = case when m.count > 0 and m.last >= $5 then m.count
                when m.count = 0 and m.first >= $7 then case when m.first <= $8 then 1 else 0 end
                else $6 end
        returning count, xmax = 0 as is_new)
    select yes or (select coalesce(bool_and(count > 0), true) from put), (select count(*) from put where is_new) from vouched";

/// Returns whether a mail has waited or a sender is exempt, and the number of new marks.
pub async fn greet(session: &Session, greeting: &Greeting, now: i64) -> Done<(bool, u64)> {
    let Greeting { triplets, vouchers, delay } = greeting;
    let (kept_since, came_since) = (now.saturating_sub(KEEP_SECONDS), now.saturating_sub(COME_SECONDS));
    let (fresh, waited_since) = (i64::from(*delay <= 0), now.saturating_sub(*delay));
    let (triplets, vouchers) = (ordered(triplets), ordered(vouchers));
    let with: [&(dyn tokio_postgres::types::ToSql + Sync); 8] =
        [&triplets, &vouchers, &now, &DELIVERIES_MIN, &kept_since, &fresh, &came_since, &waited_since];
    let row = session.row(GREET, &with).await?;
    Ok(row.map_or((true, 0), |row| (row.get(0), count(row.get(1)))))
}

const VOUCH: &str = "
    with put as (
        insert into sluice.mark as m (id, first, last, count) select id, $2::bigint, $2, 1 from unnest($1::bytea[]) id
        on conflict (id) do update set last = $2,
            first = case when m.last >= $3 then m.first else $2 end,
            count = case when m.last >= $3 then least(m.count, 9223372036854775806) + 1 else 1 end
        where m.last <= $4
        returning xmax = 0 as is_new)
    select count(*) from put where is_new";

/// Counts a delivery; returns the number of new marks.
pub async fn vouch(session: &Session, vouchers: &[Mark], now: i64) -> Done<u64> {
    let (kept_since, hour_ago) = (now.saturating_sub(KEEP_SECONDS), now.saturating_sub(HOUR_SECONDS));
    session.number(VOUCH, &[&ordered(vouchers), &now, &kept_since, &hour_ago]).await.map(count)
}

/// Forgets expired marks, and those unseen for longest beyond `most`: waiting ones go first.
pub async fn forget(session: &Session, most: u64, now: i64) -> Done<()> {
    const OLD: &str = "
        delete from sluice.mark where id in (
            select id from sluice.mark where last < $1 or count = 0 and first < $2 for update skip locked)";
    const BEYOND: &str = "
        delete from sluice.mark where id in (
            select id from sluice.mark order by least(count, 1), last limit $1 for update skip locked)";
    session.run(OLD, &[&now.saturating_sub(KEEP_SECONDS), &now.saturating_sub(COME_SECONDS)]).await?;
    let surplus = session.number("select count(*) from sluice.mark", &[]).await?.saturating_sub(signed(most));
    if surplus > 0 {
        session.run(BEYOND, &[&surplus]).await?;
    }
    Ok(())
}
