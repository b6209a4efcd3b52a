//! Folds: from time to time the blocks that were written replace the rows of the tail, so that a take-over reads little.
//!
//! A block is read from the cache while the writer may be writing to it. It has all flushes up to that of the fold; what it has beyond
//! them is written anew by the rows that stay.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cluster::BLOCK_BYTES;
use mailbox::File;
use store::Device as _;

use super::cache::{Batch, Notes};
use super::postgres::{Database, Session};

/// The tail that is folded.
const TAIL_BYTES: u64 = 64 << 20;

/// A shorter one is folded after this time.
const EVERY: Duration = Duration::from_secs(600);

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Folds what an owner writes, until its task is dropped.
pub async fn run(database: Database, epoch: u64, file: File, notes: Arc<Notes>) {
    let (mut last, mut pause) = (Instant::now(), LOOK_EVERY);
    let mut is_clean = false;
    loop {
        tokio::time::sleep(pause).await;
        let tail = notes.tail_bytes();
        if tail == 0 || tail < TAIL_BYTES && last.elapsed() < EVERY {
            continue;
        }
        let batch = notes.batch();
        match fold(&database, epoch, &file, &batch, &mut is_clean).await {
            Ok(()) => {
                (last, pause) = (Instant::now(), LOOK_EVERY);
                if let Err(error) = notes.folded() {
                    tracing::error!(%error, "marks of the cache cannot be written");
                }
            }
            Err(error) => {
                tracing::warn!(%error, flush = batch.flush, "recent changes cannot be folded into the store in the database");
                notes.unfold(batch);
                is_clean = false;
                pause = (pause * 2).min(Duration::from_secs(60));
            }
        }
    }
}

async fn fold(database: &Database, epoch: u64, file: &File, batch: &Batch, is_clean: &mut bool) -> Result<(), String> {
    let mut session: Session = database.connect().await?;
    if !std::mem::replace(is_clean, true) {
        // Blocks of former owners' folds, or of a fold that failed.
        session.clean(epoch).await?;
    }
    let mut bytes = vec![0; usize::try_from(BLOCK_BYTES).unwrap_or(0)];
    for &block in &batch.blocks {
        let at = block.saturating_mul(BLOCK_BYTES);
        let length = file.len().saturating_sub(at).min(BLOCK_BYTES);
        let piece = &mut bytes[..usize::try_from(length).unwrap_or(0)];
        file.read_at(at, piece).map_err(|error| error.to_string())?;
        session.block(epoch, batch.flush, block, piece).await?;
    }
    session.fold(epoch, batch.flush).await?;
    tracing::debug!(flush = batch.flush, blocks = batch.blocks.len(), "recent changes folded into the store");
    Ok(())
}
