//! Folds: from time to time the blocks that were written replace the rows of the tail, so that a take-over reads little.
//!
//! A block is read from the cache while the writer may be writing to it. It has all flushes up to that of the fold; what it has beyond
//! them is written anew by the rows that stay. In between, blocks are moved between the database and the bucket, where the settings have
//! changed, and objects that nobody needs are deleted.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use cluster::{BLOCK_BYTES, Folds};
use mailbox::File;
use store::Device as _;

use super::cache::{Batch, Notes};
use super::objects::Store;
use super::postgres::{Database, Rows};
use super::random::random;

/// The tail that is folded.
const TAIL_BYTES: u64 = 64 << 20;

/// A shorter one is folded after this time.
const EVERY: Duration = Duration::from_secs(600);

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The longest pause after a failure.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How often former objects are looked for, and how often all objects.
const EXPIRE_EVERY: Duration = Duration::from_secs(600);
const SWEEP_EVERY: Duration = Duration::from_secs(86_400);

/// Numbers of folds, for the metrics.
#[derive(Debug, Default)]
pub struct Counts {
    tail_bytes: AtomicU64,
    has_failed: AtomicBool,
    repeated: AtomicU64,
}

/// Folds of an owner.
pub struct Folding {
    pub database: Database,
    pub epoch: u64,
    pub file: File,
    pub notes: Arc<Notes>,
    pub objects: Option<Store>,
    pub counts: Arc<Counts>,
}

/// When what comes beside folds is due.
struct Chores {
    at: Instant,
    pause: Duration,
    expire_at: Instant,
    sweep_at: Instant,
    /// Where a look at all objects is.
    swept: Option<String>,
}

impl Counts {
    /// Notes that this node has nothing to fold any more.
    pub fn end(&self) {
        self.tail_bytes.store(0, Relaxed);
        self.has_failed.store(false, Relaxed);
    }

    /// The numbers in Prometheus' text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, kind, help, number) in [
            (
                "tail_bytes",
                "gauge",
                "Bytes of changes that are not folded into blocks yet.",
                self.tail_bytes.load(Relaxed),
            ),
            ("fold_failed", "gauge", "1 if the last fold failed.", self.has_failed.load(Relaxed).into()),
            ("object_retries_total", "counter", "Requests to S3 that were made again.", self.repeated.load(Relaxed)),
        ] {
            let _ =
                write!(text, "# HELP sluice_store_cluster_{name} {help}\n# TYPE sluice_store_cluster_{name} {kind}\n");
            let _ = writeln!(text, "sluice_store_cluster_{name} {number}");
        }
        text
    }
}

/// Folds what an owner writes, until its task is dropped; `name` is the token of the volume.
pub async fn run(folding: Folding, name: String) {
    let Folding { notes, counts, objects, epoch, .. } = &folding;
    let mut folds = Folds::new(name, *epoch);
    let (mut last, mut pause) = (Instant::now(), LOOK_EVERY);
    let mut chores = Chores::new();
    loop {
        tokio::time::sleep(pause).await;
        let tail = notes.tail_bytes();
        counts.tail_bytes.store(tail, Relaxed);
        if let Some(objects) = objects {
            counts.repeated.store(objects.repeated(), Relaxed);
        }
        if tail == 0 || tail < TAIL_BYTES && last.elapsed() < EVERY {
            folding.tidy(&mut folds, &mut chores).await;
            continue;
        }
        let batch = notes.batch();
        let outcome = folding.fold(&mut folds, &batch).await;
        counts.has_failed.store(outcome.is_err(), Relaxed);
        match outcome {
            Ok(()) => {
                (last, pause) = (Instant::now(), LOOK_EVERY);
                if let Err(error) = notes.folded() {
                    tracing::error!(%error, "marks of the cache cannot be written");
                }
            }
            Err(error) => {
                tracing::warn!(%error, flush = batch.flush, "recent changes cannot be folded into the store in the database");
                folding.say(&error).await;
                notes.unfold(batch);
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

impl Folding {
    async fn rows(&self) -> Result<Rows, String> {
        let keep_days = self.objects.as_ref().map_or(0, |objects| objects.keep_days);
        Ok(Rows { session: self.database.connect().await?, keep_days })
    }

    async fn fold(&self, folds: &mut Folds, batch: &Batch) -> Result<(), String> {
        let began = Instant::now();
        let mut rows = self.rows().await?;
        let blocks: Vec<u64> = batch.blocks.iter().copied().collect();
        let read = |block: u64| {
            let at = block.saturating_mul(BLOCK_BYTES);
            let length = self.file.len().saturating_sub(at).min(BLOCK_BYTES);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            self.file.read_at(at, &mut bytes).map(|()| bytes).map_err(|error| error.to_string())
        };
        let mut objects = self.objects.clone().filter(|objects| objects.writes);
        folds.fold(&mut rows, objects.as_mut(), (batch.flush, random()), &blocks, read).await?;
        rows.session.trouble(self.epoch, None).await?;
        let (blocks, milliseconds) = (blocks.len(), began.elapsed().as_millis());
        tracing::debug!(flush = batch.flush, blocks, milliseconds, "recent changes folded into the store");
        Ok(())
    }

    /// Tells all nodes why folds fail.
    async fn say(&self, trouble: &str) {
        if let Ok(session) = self.database.connect().await {
            let _ = session.trouble(self.epoch, Some(trouble)).await;
        }
    }

    /// Does a piece of what else is due.
    async fn tidy(&self, folds: &mut Folds, chores: &mut Chores) {
        let Some(mut objects) = self.objects.clone() else { return };
        if chores.at > Instant::now() {
            return;
        }
        chores.at = Instant::now()
            + match self.tidied(folds, chores, &mut objects).await {
                Ok(()) => {
                    chores.pause = LOOK_EVERY;
                    Duration::ZERO
                }
                Err(error) => {
                    tracing::warn!(%error, "objects of the store cannot be moved or deleted");
                    chores.pause = (chores.pause * 2).min(PAUSE_MAX);
                    chores.pause
                }
            };
    }

    async fn tidied(&self, folds: &mut Folds, chores: &mut Chores, objects: &mut Store) -> Result<(), String> {
        let now = Instant::now();
        let (is_over, is_swept) = (chores.expire_at <= now, chores.sweep_at <= now);
        if folds.is_moved() && !is_over && !is_swept {
            return Ok(());
        }
        let mut rows = self.rows().await?;
        if folds.relocate(&mut rows, objects, objects.writes, random()).await? {
            return Ok(());
        }
        if is_over && !folds.expire(&mut rows, objects).await? {
            chores.expire_at = now + EXPIRE_EVERY;
        }
        if is_swept {
            let after = chores.swept.take().unwrap_or_default();
            chores.swept = folds.sweep(&mut rows, objects, &after).await?;
            if chores.swept.is_none() {
                chores.sweep_at = now + SWEEP_EVERY;
            }
        }
        Ok(())
    }
}

impl Chores {
    fn new() -> Chores {
        let now = Instant::now();
        Chores { at: now, pause: LOOK_EVERY, expire_at: now, sweep_at: now, swept: None }
    }
}
