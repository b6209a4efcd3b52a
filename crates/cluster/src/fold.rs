//! Folds: blocks replace the rows of the tail, in the database or as objects that its rows name.
//!
//! ```text
//!  blocks ─► objects, each durable ─► rows that name them ─► one statement: the fold is made, the tail goes,
//!            (or rows with bytes)                            replaced objects are former ─► after a time they are deleted
//! ```
//!
//! A row shows nothing before its fold is made, and is added after its object can be read: whatever is lost, late or done twice, no row of a
//! made fold names an object that is not there. Objects are deleted by the list of former ones alone, which are those that rows have named before
//! and those that a listing has found and no row names. They stay for a time, for a node that reads rows of a moment ago, and for a
//! database that is set back to an earlier point.

use alloc::string::String;
use alloc::vec::Vec;
use core::future::Future;

use crate::object::{Object, Parts};

/// Blocks that are sent or read together: a bound of memory.
pub const TOGETHER: usize = 16;

/// A row of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The block.
    pub block: u64,
    /// The flush of its fold.
    pub flush: u64,
    /// The owner that made it.
    pub epoch: u64,
}

/// The database of a volume, as folds use it. Statements of an owner change nothing once the volume has another epoch.
pub trait Blocks<E> {
    /// Deletes the rows of folds that were never made, up to those of `epoch`; their objects become former ones. It waits for a fold whose
    /// commit is not decided.
    fn clean(&mut self, epoch: u64) -> impl Future<Output = Result<(), E>> + Send;

    /// Adds rows with bytes.
    fn add_bytes(&mut self, of: (u64, u64), blocks: &[(u64, Vec<u8>)]) -> impl Future<Output = Result<(), E>> + Send;

    /// Adds rows that name objects.
    fn add_objects(&mut self, of: (u64, u64), blocks: &[(u64, Object)]) -> impl Future<Output = Result<(), E>> + Send;

    /// Makes the rows of an epoch and flush those of the volume; replaced rows are deleted, and their objects become former ones.
    fn fold(&mut self, epoch: u64, flush: u64) -> impl Future<Output = Result<(), E>> + Send;

    /// Returns some rows of made folds that have bytes.
    fn with_bytes(&mut self, most: usize) -> impl Future<Output = Result<Vec<(Row, Vec<u8>)>, E>> + Send;

    /// Returns some rows of made folds that name objects.
    fn with_objects(&mut self, most: usize) -> impl Future<Output = Result<Vec<(Row, Object)>, E>> + Send;

    /// Has a row with bytes name an object in place of them.
    fn move_out(&mut self, epoch: u64, row: Row, object: &Object) -> impl Future<Output = Result<(), E>> + Send;

    /// Has a row hold bytes in place of its object, which becomes a former one.
    fn move_in(
        &mut self,
        epoch: u64,
        row: Row,
        object: &Object,
        bytes: &[u8],
    ) -> impl Future<Output = Result<(), E>> + Send;

    /// Notes those objects as former ones which no row names.
    fn note_unnamed(&mut self, epoch: u64, names: &[String]) -> impl Future<Output = Result<(), E>> + Send;

    /// Returns some former objects whose time is over and which no row names.
    fn over(&mut self, epoch: u64, most: usize) -> impl Future<Output = Result<Vec<String>, E>> + Send;

    /// Forgets former objects that are deleted.
    fn forget(&mut self, names: &[String]) -> impl Future<Output = Result<(), E>> + Send;
}

/// A bucket.
pub trait Objects<E> {
    /// Writes objects, and reads back that each is there as it should be. On an error some may be there, or come later.
    fn put(&mut self, blocks: Vec<(String, Vec<u8>)>) -> impl Future<Output = Result<Vec<Object>, E>> + Send;

    /// Reads objects, in their order; whole and right.
    fn get(&mut self, objects: &[Object]) -> impl Future<Output = Result<Vec<Vec<u8>>, E>> + Send;

    /// Deletes objects; it is no error if they are not there.
    fn delete(&mut self, names: &[String]) -> impl Future<Output = Result<(), E>> + Send;

    /// Returns names of a volume's objects behind `after`, in their order; none at the end.
    fn list(&mut self, volume: &str, after: &str) -> impl Future<Output = Result<Vec<String>, E>> + Send;
}

/// The folds of an owner.
#[derive(Debug)]
pub struct Folds {
    volume: String,
    epoch: u64,
    is_clean: bool,
    /// Whether all blocks are where new ones go.
    is_moved: bool,
}

impl Folds {
    /// Makes the state of an owner that has not folded yet; `volume` is the token of the volume.
    pub fn new(volume: String, epoch: u64) -> Folds {
        Folds { volume, epoch, is_clean: false, is_moved: false }
    }

    /// Makes a fold of `numbers`, whose bytes `read` returns. `objects` are those to write, none if blocks go to the database; `attempt` is a
    /// random number.
    ///
    /// # Errors
    /// Those of the database, of objects and of `read`. The fold may have been made; the tail is there unless it was.
    pub async fn fold<E>(
        &mut self,
        blocks: &mut impl Blocks<E>,
        objects: Option<&mut impl Objects<E>>,
        (flush, attempt): (u64, u64),
        numbers: &[u64],
        read: impl FnMut(u64) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        if !self.is_clean {
            // Blocks of former owners' folds, or of a fold that failed.
            blocks.clean(self.epoch).await?;
        }
        self.is_clean = false;
        self.write(blocks, objects, (flush, attempt), numbers, read).await?;
        blocks.fold(self.epoch, flush).await?;
        self.is_clean = true;
        Ok(())
    }

    /// Writes the blocks of a fold, which shows nothing yet.
    ///
    /// # Errors
    /// Those of the database, of objects and of `read`.
    pub async fn write<E>(
        &mut self,
        blocks: &mut impl Blocks<E>,
        mut objects: Option<&mut impl Objects<E>>,
        (flush, attempt): (u64, u64),
        numbers: &[u64],
        mut read: impl FnMut(u64) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        let of = (self.epoch, flush);
        for some in numbers.chunks(TOGETHER) {
            let bytes = some.iter().map(|&block| Ok((block, read(block)?))).collect::<Result<Vec<_>, E>>()?;
            match &mut objects {
                None => blocks.add_bytes(of, &bytes).await?,
                Some(objects) => {
                    let name = |block| Parts { block, epoch: self.epoch, flush, attempt }.name(&self.volume);
                    let named = bytes.into_iter().map(|(block, bytes)| (name(block), bytes)).collect();
                    let put = objects.put(named).await?;
                    let rows: Vec<_> = some.iter().copied().zip(put).collect();
                    blocks.add_objects(of, &rows).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether all blocks are where new ones go.
    pub fn is_moved(&self) -> bool {
        self.is_moved
    }

    /// Moves some blocks to where new ones go. Returns whether there may be more.
    ///
    /// # Errors
    /// Those of the database and of objects. Nothing is lost then: each block is here or there.
    pub async fn relocate<E>(
        &mut self,
        blocks: &mut impl Blocks<E>,
        objects: &mut impl Objects<E>,
        is_outwards: bool,
        attempt: u64,
    ) -> Result<bool, E> {
        if self.is_moved {
            return Ok(false);
        }
        let count = match is_outwards {
            true => self.move_out(blocks, objects, attempt).await?,
            false => {
                let rows = blocks.with_objects(TOGETHER).await?;
                let named: Vec<Object> = rows.iter().map(|(_, object)| object.clone()).collect();
                let bytes = objects.get(&named).await?;
                for ((row, object), bytes) in rows.iter().zip(&bytes) {
                    blocks.move_in(self.epoch, *row, object, bytes).await?;
                }
                rows.len()
            }
        };
        self.is_moved = count == 0;
        Ok(count > 0)
    }

    async fn move_out<E>(
        &mut self,
        blocks: &mut impl Blocks<E>,
        objects: &mut impl Objects<E>,
        attempt: u64,
    ) -> Result<usize, E> {
        let rows = blocks.with_bytes(TOGETHER).await?;
        let of: Vec<Row> = rows.iter().map(|(row, _)| *row).collect();
        // The owner that moves it, and the flush of its row.
        let name =
            |row: Row| Parts { block: row.block, epoch: self.epoch, flush: row.flush, attempt }.name(&self.volume);
        let put = objects.put(rows.into_iter().map(|(row, bytes)| (name(row), bytes)).collect()).await?;
        for (row, object) in of.iter().zip(&put) {
            blocks.move_out(self.epoch, *row, object).await?;
        }
        Ok(of.len())
    }

    /// Deletes some former objects whose time is over. Returns whether there may be more.
    ///
    /// # Errors
    /// Those of the database and of objects.
    pub async fn expire<E>(&mut self, blocks: &mut impl Blocks<E>, objects: &mut impl Objects<E>) -> Result<bool, E> {
        let names = blocks.over(self.epoch, 8 * TOGETHER).await?;
        if names.is_empty() {
            return Ok(false);
        }
        objects.delete(&names).await?;
        blocks.forget(&names).await?;
        Ok(true)
    }

    /// Looks through one page of all objects, behind `after`, for those that no row names: owners that were killed have left them. Returns the
    /// last name of the page; `None` at the end.
    ///
    /// # Errors
    /// Those of the database and of objects.
    pub async fn sweep<E>(
        &mut self,
        blocks: &mut impl Blocks<E>,
        objects: &mut impl Objects<E>,
        after: &str,
    ) -> Result<Option<String>, E> {
        let names = objects.list(&self.volume, after).await?;
        let Some(last) = names.last().cloned() else { return Ok(None) };
        // A later owner may be about to name what it has written.
        let is_ours = |name: &String| Parts::read(name, &self.volume).is_some_and(|parts| parts.epoch <= self.epoch);
        let names: Vec<String> = names.into_iter().filter(is_ours).collect();
        blocks.note_unnamed(self.epoch, &names).await?;
        Ok(Some(last))
    }
}
