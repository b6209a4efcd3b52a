//! Flushes: each is one row of the database, whose fate becomes known in the end.
//!
//! An answer may be missing, because the connection is lost, or mislead: PostgreSQL reports a commit whose wait for
//! standbys was cut short as a success with a warning. Both are [`Answer::Unknown`]. Then the current primary is asked
//! for the row: a row that exists becomes certain when a later commit of our own has been replicated; a missing row is
//! sent again. The number of a flush is given once in an epoch, so a row that arrives twice is stored once.

use alloc::boxed::Box;

use crate::marks::blocks_of;
use crate::runs::{RUNS_BYTES_MAX, Runs};

/// Result of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was committed and replicated.
    Done,
    /// It changed no row.
    Refused,
    /// Unknown: no answer, no answer in time, or a warning.
    Unknown,
}

/// The row of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Counts owners.
    pub epoch: u64,
    /// The number of the last flush.
    pub flush: u64,
}

/// A database that keeps the tail of one volume.
pub trait Engine {
    /// Appends the row of `flush`, if the volume has this epoch and an older flush.
    fn append(&mut self, epoch: u64, flush: u64, runs: &[u8]) -> Answer;

    /// Returns the volume's row at the primary, if it exists, over a new connection, which no earlier statement can
    /// arrive by.
    fn standing(&mut self) -> Option<Standing>;

    /// Commits a change without effect to the volume's row, if it has this epoch and this flush: once it is done,
    /// everything before it is replicated. The primary may have changed meanwhile, and miss the flush.
    fn settle(&mut self, epoch: u64, flush: u64) -> Answer;

    /// Waits before the next attempt; false if there is none.
    fn wait(&mut self) -> bool;

    /// Notes that a block is about to be written for the first time since the last fold.
    fn touch(&mut self, block: u64);

    /// Notes that writing has ended for good.
    fn lose(&mut self, lost: Lost);
}

impl<E: Engine + ?Sized> Engine for Box<E> {
    fn append(&mut self, epoch: u64, flush: u64, runs: &[u8]) -> Answer {
        (**self).append(epoch, flush, runs)
    }

    fn standing(&mut self) -> Option<Standing> {
        (**self).standing()
    }

    fn settle(&mut self, epoch: u64, flush: u64) -> Answer {
        (**self).settle(epoch, flush)
    }

    fn wait(&mut self) -> bool {
        (**self).wait()
    }

    fn touch(&mut self, block: u64) {
        (**self).touch(block);
    }

    fn lose(&mut self, lost: Lost) {
        (**self).lose(lost);
    }
}

/// Reason for which this owner can write no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Another node has taken it over.
    Taken,
    /// The database was unreachable in all attempts.
    Unreachable,
    /// The database has another history than this owner: acknowledged flushes are missing, or there are more.
    Diverged,
}

/// Writes of an owner.
#[derive(Debug)]
pub struct Tail<E> {
    engine: E,
    epoch: u64,
    /// The last flush that is certain.
    flush: u64,
    runs: Runs,
    lost: Option<Lost>,
}

impl<E: Engine> Tail<E> {
    /// Makes the tail of a volume that was taken over, from its row.
    pub fn new(engine: E, standing: Standing) -> Tail<E> {
        Tail { engine, epoch: standing.epoch, flush: standing.flush, runs: Runs::default(), lost: None }
    }

    /// Notes that these bytes are about to be written to the cache.
    pub fn touch(&mut self, at: u64, length: usize) {
        blocks_of(at, length).for_each(|block| self.engine.touch(block));
    }

    /// Adds a write to the cache, which has all bytes of every flush. A long tail is appended before its flush.
    ///
    /// # Errors
    /// [`Lost`], for good.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Lost> {
        self.runs.push(at, bytes);
        match self.runs.bytes().len() < RUNS_BYTES_MAX {
            true => self.lost.map_or(Ok(()), Err),
            false => self.flush().map(drop),
        }
    }

    /// Makes all writes durable. Returns the number of the last flush.
    ///
    /// # Errors
    /// [`Lost`], for good: the fate of the writes since the last flush is unknown.
    pub fn flush(&mut self) -> Result<u64, Lost> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        if self.runs.is_empty() {
            return Ok(self.flush);
        }
        if let Err(lost) = self.append() {
            self.lost = Some(lost);
            self.engine.lose(lost);
            return Err(lost);
        }
        self.flush += 1;
        self.runs.clear();
        Ok(self.flush)
    }

    fn append(&mut self) -> Result<(), Lost> {
        let (epoch, number) = (self.epoch, self.flush + 1);
        let mut answer = self.engine.append(epoch, number, self.runs.bytes());
        // A refused statement is checked too: an earlier one of the same number may have arrived late.
        while answer != Answer::Done {
            let Some(standing) = self.engine.standing() else {
                if !self.engine.wait() {
                    return Err(Lost::Unreachable);
                }
                continue;
            };
            answer = match standing {
                Standing { epoch: other, .. } if other != epoch => return Err(Lost::Taken),
                Standing { flush, .. } if flush == number => self.engine.settle(epoch, number),
                Standing { flush, .. } if flush == self.flush => self.engine.append(epoch, number, self.runs.bytes()),
                _ => return Err(Lost::Diverged),
            };
            if answer != Answer::Done && !self.engine.wait() {
                return Err(Lost::Unreachable);
            }
        }
        Ok(())
    }
}
