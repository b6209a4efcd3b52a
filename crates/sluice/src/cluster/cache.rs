//! The cache of a shared volume on this machine: the file of the store, with marks beside it that say what of it can be believed.
//!
//! A node that waits follows: it applies each flush to its file, so that a take-over reads next to nothing. An owner notes each block before
//! it first writes to it. When it is no owner any more, these blocks are read anew, since what it wrote last was perhaps never flushed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cluster::{BLOCK_BYTES, Malformed, Marks, Object, Objects as _, TOGETHER, blocks_of, each};
use mailbox::File;
use store::Device as _;

use super::objects::Store;
use super::postgres::{OBJECT_COLUMNS, Session, Volume, object_of, unsigned};

/// Blocks that have been folded since a flush: a fold deletes those that it replaces.
const BLOCKS: &str = "and b.flush > $2";

/// One block.
const BLOCK: &str = "and b.block = $2";

const TAIL: &str = "select flush, runs from sluice.tail where volume = $1 and flush > $2 order by flush";

/// Where the boot of a Linux machine has its name.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The file of a volume, and what is known of it.
pub struct Cache {
    pub file: File,
    pub notes: Arc<Notes>,
    objects: Option<Store>,
    /// Objects that were read before reading failed: they are in the file.
    read: BTreeMap<u64, String>,
}

/// Blocks that have to be read, and their objects.
type Wanted = Vec<(u64, Object)>;

/// State of a cache, for the writer and for folds.
pub struct Notes {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    marks: Marks,
    /// Where lines are appended.
    lines: fs::File,
    /// Blocks of flushes since the last fold.
    written: BTreeSet<u64>,
    /// Blocks that were written since the last flush.
    pending: BTreeSet<u64>,
    /// Bytes of flushes since then.
    tail_bytes: u64,
}

/// Input of a fold.
pub struct Batch {
    /// Its flush.
    pub flush: u64,
    /// Blocks that were written up to that flush.
    pub blocks: BTreeSet<u64>,
    bytes: u64,
}

impl Cache {
    /// Opens the cache of a volume; one that cannot be believed is made anew. None if another process has it.
    ///
    /// # Errors
    /// When there is no room.
    pub fn open(path: &Path, volume: &Volume, objects: Option<&Store>) -> io::Result<Option<Cache>> {
        let beside = marks_of(path);
        let boot = fs::read_to_string(BOOT)?.trim().to_owned();
        let length = fs::metadata(path).map(|found| found.len()).ok();
        Cache::is_none_or_ours(path)?;
        let marks = fs::read_to_string(&beside).ok().and_then(|text| Marks::read(&text));
        if marks.as_ref().is_some_and(|marks| marks.volume != volume.name) {
            let why = "a copy of another cluster's store: if it is not needed any more, move it and its marks away";
            return Err(io::Error::other(format!("{}: {why}", path.display())));
        }
        let is_right = |marks: &Marks| marks.boot == boot && length == Some(volume.bytes);
        let believed = marks.filter(is_right);
        if believed.is_none() && !remove(path)? {
            return Ok(None);
        }
        let fresh = Marks { volume: volume.name.clone(), boot: boot.clone(), flush: 0, touched: BTreeSet::new() };
        let is_new = believed.is_none();
        let notes = Arc::new(Notes::write(beside, believed.unwrap_or(fresh))?);
        if is_new {
            drop(File::create(path, volume.bytes)?);
        }
        match File::open(path, true) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
            file => Ok(Some(Cache { file: file?, notes, objects: objects.cloned(), read: BTreeMap::new() })),
        }
    }

    /// Refuses the store of one machine in the place of a cache.
    ///
    /// # Errors
    /// Says what to do with it.
    pub fn is_none_or_ours(path: &Path) -> io::Result<()> {
        match path.try_exists()? && !marks_of(path).try_exists()? {
            true => Err(io::Error::other(format!(
                "{}: the store of this machine alone, and no cache of the cluster: sluice cluster import, then move it away",
                path.display()
            ))),
            false => Ok(()),
        }
    }

    /// Whether there is a copy of some cluster's store.
    pub fn is_there(path: &Path) -> bool {
        fs::read_to_string(marks_of(path)).is_ok_and(|text| Marks::read(&text).is_some())
    }

    /// The last flush that it has.
    pub fn flush(&self) -> u64 {
        self.notes.lock().marks.flush
    }

    /// Whether there is something to follow.
    pub fn is_behind(&self, volume: &Volume) -> bool {
        let inner = self.notes.lock();
        inner.marks.flush < volume.flush || !inner.marks.touched.is_empty()
    }

    /// Brings it up to date, as of one moment. Returns the last flush. `as_owner` reads the whole tail, so that it is known which blocks the
    /// next fold has to have: those that former owners wrote, too.
    ///
    /// # Errors
    /// When the database or the bucket does not answer, an object is missing or damaged, or the disk fails.
    pub async fn follow(&mut self, session: &Session, as_owner: bool) -> Result<u64, String> {
        loop {
            session.snapshot(true).await?;
            let outcome = self.caught_up(session, as_owner).await;
            session.snapshot(false).await?;
            let (folded, wanted) = match outcome? {
                Ok(flush) => return Ok(flush),
                Err(wanted) => wanted,
            };
            // It may take long, and no snapshot is held for it: objects stay for days.
            self.fill(wanted).await?;
            self.has_blocks(folded);
        }
    }

    /// Notes that it has all flushes up to a fold.
    fn has_blocks(&mut self, folded: u64) {
        self.read.clear();
        let mut inner = self.notes.lock();
        inner.marks.flush = folded;
        inner.marks.touched.clear();
    }

    /// Reads objects into the file.
    async fn fill(&mut self, wanted: Wanted) -> Result<(), String> {
        let has = |(block, object): &(u64, Object)| self.read.get(block) == Some(&object.name);
        let wanted: Wanted = wanted.into_iter().filter(|wanted| !has(wanted)).collect();
        let Some(store) = &mut self.objects else {
            let name = wanted.first().map_or("", |(_, object)| &object.name);
            return Err(format!("blocks are objects ({name}), and there is no [cluster.objects]"));
        };
        tracing::info!(blocks = wanted.len(), "blocks are read from S3");
        for some in wanted.chunks(TOGETHER) {
            let objects: Vec<Object> = some.iter().map(|(_, object)| object.clone()).collect();
            let read = store.get(&objects).await?;
            for ((block, object), bytes) in some.iter().zip(read) {
                put(&mut self.file, *block, &bytes)?;
                self.read.insert(*block, object.name.clone());
            }
        }
        Ok(())
    }

    /// Reads what the database has. Returns the last flush, or the fold and its objects that have to be read before.
    async fn caught_up(&mut self, session: &Session, as_owner: bool) -> Result<Result<u64, (u64, Wanted)>, String> {
        let volume = session.look("").await?.ok_or("the volume is gone")?;
        let Marks { mut flush, touched, .. } = self.notes.lock().marks.clone();
        let mut wanted = Wanted::new();
        let is_behind = flush < volume.folded;
        if is_behind {
            self.blocks(session, BLOCKS, flush, &mut wanted).await?;
        }
        for &block in &touched {
            if !self.blocks(session, BLOCK, block, &mut wanted).await? {
                let left = volume.bytes.saturating_sub(block.saturating_mul(BLOCK_BYTES)).min(BLOCK_BYTES);
                put(&mut self.file, block, &vec![0; usize::try_from(left).unwrap_or(0)])?;
            }
        }
        if !wanted.is_empty() {
            return Ok(Err((volume.folded, wanted)));
        }
        let from = if as_owner || is_behind || !touched.is_empty() { 0 } else { flush };
        let (mut written, mut tail_bytes) = (BTreeSet::new(), 0u64);
        let file = &mut self.file;
        session
            .each(TAIL, from, |row| {
                let (number, row): (i64, &[u8]) = (row.get(0), row.get(1));
                flush = unsigned(number);
                tail_bytes = tail_bytes.saturating_add(row.len() as u64);
                let run = |at: u64, run: &[u8]| {
                    written.extend(blocks_of(at, run.len()));
                    file.write_at(at, run).map_err(|error| Fault(error.to_string()))
                };
                each(row, run).map_err(|Fault(reason)| format!("flush {number}: {reason}"))
            })
            .await?;
        flush = flush.max(volume.folded);
        if flush != volume.flush {
            return Err(format!("the database has flush {} and the rows up to {flush}", volume.flush));
        }
        let mut inner = self.notes.lock();
        inner.marks.flush = flush;
        inner.marks.touched.clear();
        (inner.written, inner.tail_bytes) = (written, tail_bytes);
        Ok(Ok(flush))
    }

    /// Reads blocks into the file, and adds those that are objects. Returns whether there are any.
    async fn blocks(&mut self, session: &Session, which: &str, of: u64, wanted: &mut Wanted) -> Result<bool, String> {
        let query = format!(
            "select b.block, b.bytes, {OBJECT_COLUMNS} from sluice.block b
            join sluice.fold f on f.volume = b.volume and f.flush = b.flush and f.epoch = b.epoch
            where b.volume = $1 {which}"
        );
        let (mut is_there, file) = (false, &mut self.file);
        let read = |row: &tokio_postgres::Row| {
            is_there = true;
            let block = unsigned(row.get("block"));
            match (object_of(row)?, row.get::<_, Option<&[u8]>>("bytes")) {
                (Some(object), _) => wanted.push((block, object)),
                (None, Some(bytes)) => put(file, block, bytes)?,
                (None, None) => return Err(format!("block {block} has neither bytes nor an object")),
            }
            Ok(())
        };
        session.each(&query, of, read).await?;
        Ok(is_there)
    }
}

fn put(file: &mut File, block: u64, bytes: &[u8]) -> Result<(), String> {
    file.write_at(block.saturating_mul(BLOCK_BYTES), bytes).map_err(|error| error.to_string())
}

struct Fault(String);

impl From<Malformed> for Fault {
    fn from(_: Malformed) -> Fault {
        Fault("the row is damaged".into())
    }
}

/// The file of the marks of a cache.
pub fn marks_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".marks");
    name.into()
}

/// Removes a file that cannot be believed. False: another process has it.
fn remove(path: &Path) -> io::Result<bool> {
    match File::open(path, true) {
        Ok(_held) => fs::remove_file(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(false),
        Err(error) => Err(error),
    }
}

impl Notes {
    fn write(path: PathBuf, marks: Marks) -> io::Result<Notes> {
        let lines = write_whole(&path, &marks)?;
        Ok(Notes {
            path,
            inner: Mutex::new(Inner {
                marks,
                lines,
                written: BTreeSet::new(),
                pending: BTreeSet::new(),
                tail_bytes: 0,
            }),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a block is about to be written.
    pub fn touch(&self, block: u64) {
        let mut inner = self.lock();
        if inner.pending.insert(block) && inner.marks.touched.insert(block) {
            let line = Marks::line(block);
            if let Err(error) = inner.lines.write_all(line.as_bytes()) {
                // Without its line the block would be believed after a crash: nothing is.
                tracing::error!(file = %self.path.display(), %error, "marks cannot be written: the cache will be read anew");
                let _ = inner.lines.set_len(0);
            }
        }
    }

    /// Notes a flush that is certain.
    pub fn flushed(&self, flush: u64, bytes: usize) {
        let mut inner = self.lock();
        inner.marks.flush = flush;
        inner.tail_bytes = inner.tail_bytes.saturating_add(bytes as u64);
        let pending = std::mem::take(&mut inner.pending);
        inner.written.extend(pending);
    }

    /// Bytes of flushes since the last fold.
    pub fn tail_bytes(&self) -> u64 {
        self.lock().tail_bytes
    }

    /// Begins a fold.
    pub fn batch(&self) -> Batch {
        let mut inner = self.lock();
        let (blocks, bytes) = (std::mem::take(&mut inner.written), std::mem::take(&mut inner.tail_bytes));
        Batch { flush: inner.marks.flush, blocks, bytes }
    }

    /// Takes back a fold that failed.
    pub fn unfold(&self, batch: Batch) {
        let mut inner = self.lock();
        inner.written.extend(batch.blocks);
        inner.tail_bytes = inner.tail_bytes.saturating_add(batch.bytes);
    }

    /// Ends a fold: its blocks can be believed again, but for those that were written since.
    ///
    /// # Errors
    /// When the marks cannot be written.
    pub fn folded(&self) -> io::Result<()> {
        let mut inner = self.lock();
        inner.marks.touched = inner.written.union(&inner.pending).copied().collect();
        inner.lines = write_whole(&self.path, &inner.marks)?;
        Ok(())
    }

    /// Keeps what is known.
    ///
    /// # Errors
    /// When the marks cannot be written.
    pub fn keep(&self) -> io::Result<()> {
        let mut inner = self.lock();
        inner.lines = write_whole(&self.path, &inner.marks)?;
        Ok(())
    }
}

/// Writes marks in place of what is there. Returns the file, open at its end.
fn write_whole(path: &Path, marks: &Marks) -> io::Result<fs::File> {
    let beside = path.with_extension("marks.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(marks.text().as_bytes())?;
    fs::rename(&beside, path)?;
    Ok(file)
}
