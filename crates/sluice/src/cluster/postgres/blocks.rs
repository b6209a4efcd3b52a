//! Blocks of a volume in PostgreSQL: rows with bytes, or with the name of an object, its length and SHA-256, and the list of former objects.

use std::future::Future;
use std::time::Duration;

use cluster::{Blocks, Object, Row};
use tokio::time::timeout;
use tokio_postgres::Row as Found;

use super::{Session, VOLUME, describe, signed, unsigned};

/// How long a fold may take: it deletes a whole tail.
const FOLD_WAIT: Duration = Duration::from_secs(120);

/// The columns of a block by which [`object_of`] knows its object.
pub const OBJECT_COLUMNS: &str = "b.object, b.length, b.sha256";

const ADD_BYTES: &str = "
    insert into sluice.block (volume, block, flush, epoch, bytes) values ($1, $2, $3, $4, $5) on conflict do nothing";

const ADD_OBJECTS: &str = "
    insert into sluice.block (volume, block, flush, epoch, object, length, sha256)
    select $1, block, $2, $3, object, length, sum
    from unnest($4::bigint[], $5::text[], $6::int[], $7::bytea[]) as t(block, object, length, sum) on conflict do nothing";

/// A fold of another connection may be on the way to its commit: it has this lock until then.
const LOCK: &str = "select 1 from sluice.volume where id = $1 and epoch = $2 for update";

/// An object that is given up now is kept from now on, whatever a listing has thought of it before.
const RETIRE: &str = "
    insert into sluice.former (volume, object) select volume, object from gone where object is not null
    on conflict (volume, object) do update set since = now()";

const ORPHANS: &str = "
    with gone as (delete from sluice.block b where b.volume = $1 and b.epoch <= $2 and not exists (select 1
        from sluice.fold f where f.volume = b.volume and f.flush = b.flush and f.epoch = b.epoch) returning volume, object)";

const REPLACED: &str = "
    with gone as (delete from sluice.block b where b.volume = $1 and b.flush < $2 and exists (select 1
        from sluice.block n where n.volume = b.volume and n.block = b.block and n.flush = $2 and n.epoch = $3)
        returning volume, object)";

const MOVE_OUT: &str = "
    update sluice.block set bytes = null, object = $6, length = $7, sha256 = $8
    where volume = $1 and block = $2 and flush = $3 and epoch = $4 and object is null
    and exists (select 1 from sluice.volume where id = $1 and epoch = $5)";

const MOVE_IN: &str = "
    with gone as (update sluice.block set bytes = $7, object = null, length = null, sha256 = null
        where volume = $1 and block = $2 and flush = $3 and epoch = $4 and object = $6
        and exists (select 1 from sluice.volume where id = $1 and epoch = $5) returning volume, $6::text as object)";

const NOTE_UNNAMED: &str = "
    insert into sluice.former (volume, object) select $1, name from unnest($3::text[]) as t(name)
    where exists (select 1 from sluice.volume where id = $1 and epoch = $2)
    and not exists (select 1 from sluice.block b where b.volume = $1 and b.object = name) on conflict do nothing";

const OVER: &str = "
    select f.object from sluice.former f join sluice.volume v on v.id = f.volume and v.epoch = $2
    where f.volume = $1 and f.since < now() - make_interval(days => $3)
    and not exists (select 1 from sluice.block b where b.volume = f.volume and b.object = f.object) limit $4";

/// The rows of a volume's blocks, over a connection of their own.
pub struct Rows {
    pub session: Session,
    /// Days for which former objects are kept.
    pub keep_days: u32,
}

/// Reads the columns of [`OBJECT_COLUMNS`]; none if the block is in the database.
pub fn object_of(row: &Found) -> Result<Option<Object>, String> {
    let Some(name) = row.get::<_, Option<String>>("object") else { return Ok(None) };
    let (length, sum): (Option<i32>, Option<&[u8]>) = (row.get("length"), row.get("sha256"));
    let length = length.and_then(|length| u32::try_from(length).ok());
    match (length, sum.and_then(|sum| sum.try_into().ok())) {
        (Some(length), Some(sum)) => Ok(Some(Object { name, length, sum })),
        _ => Err(format!("the row of object {name} is damaged")),
    }
}

fn row_of(found: &Found) -> Row {
    Row {
        block: unsigned(found.get("block")),
        flush: unsigned(found.get("flush")),
        epoch: unsigned(found.get("epoch")),
    }
}

/// Waits for something long.
async fn patiently<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, String> {
    match timeout(FOLD_WAIT, answer).await {
        Ok(answer) => answer.map_err(|error| describe(&error)),
        Err(_) => Err(format!("no answer in {} s", FOLD_WAIT.as_secs())),
    }
}

/// What a statement says that was the owner's.
fn owned(is_owner: bool) -> Result<(), String> {
    if is_owner { Ok(()) } else { Err("another node has the store".into()) }
}

impl Rows {
    async fn cleaned(&mut self, epoch: i64) -> Result<bool, tokio_postgres::Error> {
        let change = self.session.client.transaction().await?;
        if change.query_opt(LOCK, &[&VOLUME, &epoch]).await?.is_none() {
            return change.rollback().await.map(|()| false);
        }
        change.execute(&format!("{ORPHANS}{RETIRE}"), &[&VOLUME, &epoch]).await?;
        change.commit().await.map(|()| true)
    }

    async fn folded(&mut self, epoch: i64, flush: i64) -> Result<bool, tokio_postgres::Error> {
        let change = self.session.client.transaction().await?;
        let Some(volume) = change.query_opt(&LOCK.replace("1 from", "folded from"), &[&VOLUME, &epoch]).await? else {
            return change.rollback().await.map(|()| false);
        };
        if volume.get::<_, i64>(0) >= flush {
            // This fold was made before, and its answer was lost.
            return change.rollback().await.map(|()| true);
        }
        change.execute("update sluice.volume set folded = $2 where id = $1", &[&VOLUME, &flush]).await?;
        change.execute("insert into sluice.fold values ($1, $2, $3)", &[&VOLUME, &flush, &epoch]).await?;
        change.execute("delete from sluice.tail where volume = $1 and flush <= $2", &[&VOLUME, &flush]).await?;
        change.execute(&format!("{REPLACED}{RETIRE}"), &[&VOLUME, &flush, &epoch]).await?;
        change.commit().await.map(|()| true)
    }

    async fn some(&self, columns: &str, is: &str, most: usize) -> Result<Vec<Found>, String> {
        let query = format!(
            "select b.block, b.flush, b.epoch, {columns} from sluice.block b
            join sluice.fold f on f.volume = b.volume and f.flush = b.flush and f.epoch = b.epoch
            where b.volume = $1 and b.object {is} limit $2"
        );
        patiently(self.session.client.query(&query, &[&VOLUME, &signed(most as u64)])).await
    }
}

impl Blocks<String> for Rows {
    async fn clean(&mut self, epoch: u64) -> Result<(), String> {
        patiently(self.cleaned(signed(epoch))).await.and_then(owned)
    }

    async fn add_bytes(&mut self, (epoch, flush): (u64, u64), blocks: &[(u64, Vec<u8>)]) -> Result<(), String> {
        for (block, bytes) in blocks {
            self.session.run(ADD_BYTES, &[&VOLUME, &signed(*block), &signed(flush), &signed(epoch), bytes]).await?;
        }
        Ok(())
    }

    async fn add_objects(&mut self, (epoch, flush): (u64, u64), blocks: &[(u64, Object)]) -> Result<(), String> {
        let numbers: Vec<i64> = blocks.iter().map(|(block, _)| signed(*block)).collect();
        let names: Vec<&str> = blocks.iter().map(|(_, object)| &*object.name).collect();
        let lengths: Vec<i32> = blocks.iter().map(|(_, object)| object.length.cast_signed()).collect();
        let sums: Vec<&[u8]> = blocks.iter().map(|(_, object)| &object.sum[..]).collect();
        let with: [&(dyn super::ToSql + Sync); 7] =
            [&VOLUME, &signed(flush), &signed(epoch), &numbers, &names, &lengths, &sums];
        self.session.run(ADD_OBJECTS, &with).await
    }

    async fn fold(&mut self, epoch: u64, flush: u64) -> Result<(), String> {
        patiently(self.folded(signed(epoch), signed(flush))).await.and_then(owned)
    }

    async fn with_bytes(&mut self, most: usize) -> Result<Vec<(Row, Vec<u8>)>, String> {
        let found = self.some("b.bytes", "is null", most).await?;
        let bytes =
            |row: &Found| row.get::<_, Option<Vec<u8>>>("bytes").ok_or("a block has neither bytes nor an object");
        found.iter().map(|row| Ok((row_of(row), bytes(row)?))).collect()
    }

    async fn with_objects(&mut self, most: usize) -> Result<Vec<(Row, Object)>, String> {
        let found = self.some(OBJECT_COLUMNS, "is not null", most).await?;
        let objects = found.iter().map(|row| Ok(object_of(row)?.map(|object| (row_of(row), object))));
        objects.filter_map(Result::transpose).collect()
    }

    async fn move_out(&mut self, epoch: u64, row: Row, object: &Object) -> Result<(), String> {
        let Row { block, flush, epoch: of } = row;
        let [block, flush, of, epoch] = [block, flush, of, epoch].map(signed);
        let (length, sum) = (object.length.cast_signed(), &object.sum[..]);
        self.session.run(MOVE_OUT, &[&VOLUME, &block, &flush, &of, &epoch, &object.name, &length, &sum]).await
    }

    async fn move_in(&mut self, epoch: u64, row: Row, object: &Object, bytes: &[u8]) -> Result<(), String> {
        let Row { block, flush, epoch: of } = row;
        let [block, flush, of, epoch] = [block, flush, of, epoch].map(signed);
        let statement = format!("{MOVE_IN}{RETIRE}");
        self.session.run(&statement, &[&VOLUME, &block, &flush, &of, &epoch, &object.name, &bytes]).await
    }

    async fn note_unnamed(&mut self, epoch: u64, names: &[String]) -> Result<(), String> {
        patiently(self.session.client.execute(NOTE_UNNAMED, &[&VOLUME, &signed(epoch), &names])).await.map(drop)
    }

    async fn over(&mut self, epoch: u64, most: usize) -> Result<Vec<String>, String> {
        let days = self.keep_days.cast_signed();
        let with: [&(dyn super::ToSql + Sync); 4] = [&VOLUME, &signed(epoch), &days, &signed(most as u64)];
        let rows = patiently(self.session.client.query(OVER, &with)).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn forget(&mut self, names: &[String]) -> Result<(), String> {
        let forget = "delete from sluice.former where volume = $1 and object = any($2)";
        self.session.run(forget, &[&VOLUME, &names]).await
    }
}
