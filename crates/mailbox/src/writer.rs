//! The one writer of a volume, and the way to it.
//!
//! Jobs come over a bounded channel. The thread takes one, and all that have come meanwhile, lets each stage what it wants,
//! flushes once, and answers all of them: the next batch forms while the flush runs, so there is no timer. Readers have
//! [snapshots](Handle::state) and a descriptor of their own.
//!
//! After a failed write nothing is written any more, and readers go on: jobs are answered by [`Error::Failed`] until the volume has been opened
//! anew, which is tried once in a second. A disk without room is a [full](Error::Full) store.
//!
//! A job that panics fails alone: a transaction that is dropped has changed nothing. If it panics elsewhere nobody knows what of the
//! volume is as it should be, so it is opened anew, and the jobs of that batch fail with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use store::{Append, Call, Error, Geometry, Message, Sealed, State, Transaction, Usage, Volume};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::file::File;
use crate::in_flight::Held;

/// Jobs that wait; who brings another one waits too.
const JOBS_MAX: usize = 1024;

/// Jobs that are done at most before a flush.
const BATCH_MAX: usize = 1024;

/// How often a volume whose device failed is opened anew.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// Bytes of a message that a session collects before it hands them to the writer.
const PIECE_BYTES: usize = 64 << 10;

/// Stages something; what it returns is told when that is committed, or was not to be had.
type Job = Box<dyn FnOnce(&mut Volume<File>) -> Option<Answer> + Send>;

struct Answer {
    tell: Box<dyn FnOnce(Result<(), Error>) + Send>,
    commit: Commit,
}

/// When something is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Commit {
    /// When it is on stable storage.
    Durable,
    /// When it is written: it outlives this process, and becomes durable with the next commit that is.
    Written,
}

/// The thread that owns the volume.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<Result<(), Error>>,
}

/// A handle on the writer and the committed state.
#[derive(Clone)]
pub struct Handle {
    jobs: mpsc::Sender<Job>,
    state: watch::Receiver<State>,
    device: Arc<File>,
    geometry: Geometry,
    counts: Arc<Counts>,
    /// Something found no room.
    full: Arc<Notify>,
}

/// Counters of the writer.
#[derive(Debug, Default)]
pub struct Counts {
    /// Flushes.
    pub commits: AtomicU64,
    /// Transactions that were made durable by them.
    pub transactions: AtomicU64,
    /// Whether the last write failed.
    pub has_failed: AtomicBool,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there are no more descriptors or threads.
    pub fn start(volume: Volume<File>) -> std::io::Result<(Writer, Handle)> {
        let (jobs, waiting) = mpsc::channel(JOBS_MAX);
        let (published, state) = watch::channel(volume.state().clone());
        let device = Arc::new(volume.device().reader()?);
        let counts = Arc::new(Counts::default());
        let handle =
            Handle { jobs, state, device, geometry: *volume.geometry(), counts: counts.clone(), full: Arc::default() };
        let run = move || run(volume, waiting, &published, &counts);
        let thread = std::thread::Builder::new().name("store writer".into()).spawn(run)?;
        Ok((Writer { thread }, handle))
    }

    /// Waits until all handles are gone and the volume is closed.
    ///
    /// # Errors
    /// When it could not be closed: what was acknowledged is there all the same.
    pub fn join(self) -> Result<(), Error> {
        self.thread.join().unwrap_or(Err(Error::Failed))
    }
}

fn run(
    mut volume: Volume<File>,
    mut waiting: mpsc::Receiver<Job>,
    published: &watch::Sender<State>,
    counts: &Counts,
) -> Result<(), Error> {
    let mut renewed: Option<Instant> = None;
    while let Some(job) = waiting.blocking_recv() {
        if volume.has_failed() && renewed.is_none_or(|at| at.elapsed() >= RENEW_EVERY) {
            renewed = Some(Instant::now());
            volume = renew(volume);
        }
        let mut answers = Vec::new();
        let mut next = Some(job);
        // Pieces of large messages count too: who waits for a flush waits for no endless stream.
        for _ in 0..BATCH_MAX {
            let Some(job) = next.take().or_else(|| waiting.try_recv().ok()) else { break };
            let Ok(answer) = catch_unwind(AssertUnwindSafe(|| job(&mut volume))) else {
                tracing::error!("a job of the store panicked: the store is opened anew");
                volume = volume.reopen().inspect_err(|error| tracing::error!(%error, "the store cannot be opened"))?;
                // Their sessions hear that they failed.
                answers.clear();
                break;
            };
            answers.extend(answer);
        }
        if volume.has_failed() {
            counts.has_failed.store(true, Relaxed);
        }
        if answers.is_empty() {
            continue;
        }
        // Of a volume that machines share, the part that was not flushed does not outlive the process.
        let is_flushed = answers.iter().any(|answer| answer.commit == Commit::Durable) || volume.device().is_shared();
        let outcome = if is_flushed { volume.commit() } else { volume.commit_unflushed() };
        if let Err(error) = &outcome {
            tracing::error!(%error, "the store cannot be written");
        }
        counts.has_failed.fetch_and(volume.has_failed() || !is_flushed, Relaxed);
        counts.commits.fetch_add(u64::from(is_flushed), Relaxed);
        counts.transactions.fetch_add(answers.len() as u64, Relaxed);
        published.send_if_modified(|state| {
            let is_newer = state.commits != volume.state().commits;
            state.clone_from(volume.state());
            is_newer
        });
        answers.into_iter().for_each(|answer: Answer| (answer.tell)(outcome.clone()));
    }
    volume.close().map(drop)
}

/// Opens a volume anew whose device failed. Until that succeeds it stays as it is.
fn renew(volume: Volume<File>) -> Volume<File> {
    // The tail of a shared volume is its owner's, who ends.
    if volume.device().is_shared() {
        return volume;
    }
    let renewed = volume.device().reader().map_err(|error| error.to_string());
    match renewed.and_then(|device| volume.renewed(device).map_err(|error| error.to_string())) {
        Ok(renewed) => {
            tracing::info!("the store was opened anew after a failed write");
            renewed
        }
        Err(error) => {
            tracing::error!(error, "the store cannot be opened anew");
            volume
        }
    }
}

/// A disk without room is a full store.
fn as_full(error: Error) -> Error {
    let no_room = [Errno::NOSPC, Errno::DQUOT].map(Errno::raw_os_error);
    match &error {
        Error::Device(failed) if failed.call != Call::Read && no_room.contains(&failed.code) => Error::Full,
        _ => error,
    }
}

impl Handle {
    /// Everything as of the last commit.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// A message, if a mailbox has it as of the last commit.
    pub(crate) fn message(&self, number: u64) -> Option<Message> {
        self.state.borrow().message(number).cloned()
    }

    /// Tells of commits.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Counters of the writer.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) fn device(&self) -> &File {
        &self.device
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Does `work` in a transaction of its own; returns when it is durable. If it fails nothing has changed.
    ///
    /// # Errors
    /// What `work` fails with, and what the device does.
    pub async fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.staged(Commit::Durable, move |volume| stage(volume, work)).await
    }

    /// As [`transact`](Self::transact), and returns when it is written: a power failure may undo it, a kill does not.
    ///
    /// # Errors
    /// As [`transact`](Self::transact).
    pub async fn transact_unflushed<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_, File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.staged(Commit::Written, move |volume| stage(volume, work)).await
    }

    /// A message that comes in.
    pub fn incoming(&self) -> Incoming {
        Incoming { handle: self.clone(), append: None, piece: Vec::new(), size: 0, held: None }
    }

    /// A message that somebody sends, and may never finish.
    pub(crate) fn incoming_of(&self, held: Held) -> Incoming {
        Incoming { held: Some(held), ..self.incoming() }
    }

    /// Stages something and waits until it is committed.
    async fn staged<T: Send + 'static>(
        &self,
        commit: Commit,
        work: impl FnOnce(&mut Volume<File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |volume| match work(volume) {
            Ok(value) => {
                Some(Answer { tell: Box::new(move |outcome| drop(tell.send(outcome.map(|()| value)))), commit })
            }
            Err(error) => {
                drop(tell.send(Err(error)));
                None
            }
        });
        self.jobs.send(job).await.map_err(|_| Error::Failed)?;
        self.noted(told.await.unwrap_or(Err(Error::Failed)))
    }

    /// A part of a message that is not in any mailbox yet, up to `bytes_max`; nothing at its end.
    pub(crate) async fn read_sealed(&self, sealed: &Sealed, offset: u64, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let sealed = sealed.clone();
        let read = move |volume: &mut Volume<File>| {
            let left = usize::try_from(sealed.size().saturating_sub(offset)).unwrap_or(usize::MAX);
            let mut piece = vec![0; left.min(bytes_max)];
            let length = volume.read_sealed(&sealed, offset, &mut piece)?;
            piece.truncate(length);
            Ok(piece)
        };
        self.at_once(read).await
    }

    fn noted<T>(&self, outcome: Result<T, Error>) -> Result<T, Error> {
        let outcome = outcome.map_err(as_full);
        if matches!(outcome, Err(Error::Full)) {
            self.full.notify_one();
        }
        outcome
    }

    /// Waits until something finds no room.
    pub(crate) async fn is_full(&self) {
        self.full.notified().await;
    }

    /// How full the volume is.
    pub(crate) async fn usage(&self) -> Result<Usage, Error> {
        self.at_once(|volume| Ok(volume.usage())).await
    }

    /// Does something that need not be durable yet.
    async fn at_once<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Volume<File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |volume| {
            drop(tell.send(work(volume)));
            None
        });
        self.jobs.send(job).await.map_err(|_| Error::Failed)?;
        self.noted(told.await.unwrap_or(Err(Error::Failed)))
    }
}

fn stage<T>(
    volume: &mut Volume<File>,
    work: impl FnOnce(&mut Transaction<'_, File>) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut transaction = volume.transaction()?;
    let Ok(value) = catch_unwind(AssertUnwindSafe(|| work(&mut transaction))) else {
        tracing::error!("a session panicked in a transaction, which is dropped");
        return Err(Error::Failed);
    };
    let value = value?;
    transaction.stage()?;
    Ok(value)
}

/// A message that comes in: of a small one nothing is written before its transaction, of a large one a piece is held.
pub struct Incoming {
    handle: Handle,
    append: Option<Append>,
    piece: Vec<u8>,
    size: u64,
    /// Room in the store charged to it until it is whole.
    held: Option<Held>,
}

/// A message that is whole and in no mailbox yet, with what it takes of the store.
pub(crate) struct Whole {
    pub sealed: Sealed,
    _held: Option<Held>,
}

impl Incoming {
    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds bytes to it.
    ///
    /// # Errors
    /// When the volume is full or failed.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        self.size = self.size.saturating_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let (taken, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.piece.len()));
            self.piece.extend_from_slice(taken);
            bytes = rest;
            if self.piece.len() == PIECE_BYTES {
                self.ship().await?;
            }
        }
        Ok(())
    }

    async fn ship(&mut self) -> Result<(), Error> {
        let bytes = self.piece.len() as u64;
        let free = self.held.as_mut().map_or(Ok(0), |held| held.take(bytes))?;
        let (append, piece) = (self.append.take(), std::mem::take(&mut self.piece));
        let write = move |volume: &mut Volume<File>| match free == 0 || volume.leaves(free)? {
            true => append_to(volume, append, &piece),
            false => Err(Error::Full),
        };
        self.append = Some(self.handle.at_once(write).await?);
        Ok(())
    }

    /// The message is whole: it is stored with `digest`, and `work` says in the same transaction what becomes of it.
    ///
    /// # Errors
    /// As [`Handle::transact`].
    pub async fn finish<T: Send + 'static>(
        self,
        digest: Vec<u8>,
        work: impl FnOnce(&mut Transaction<'_, File>, &Sealed) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Incoming { handle, append, piece, held: _held, .. } = self;
        let job = move |volume: &mut Volume<File>| {
            let append = append_to(volume, append, &piece)?;
            let sealed = volume.seal(append, &digest, keep::digest::thread(&digest))?;
            stage(volume, |transaction| work(transaction, &sealed))
        };
        handle.staged(Commit::Durable, job).await
    }

    /// The message is whole, and waits for the transaction that makes it visible.
    ///
    /// # Errors
    /// As [`Incoming::write`].
    pub(crate) async fn seal(self, digest: Vec<u8>) -> Result<Whole, Error> {
        let Incoming { handle, append, piece, mut held, .. } = self;
        if let Some(held) = &mut held {
            held.take(piece.len() as u64)?;
        }
        let seal = move |volume: &mut Volume<File>| {
            let append = append_to(volume, append, &piece)?;
            volume.seal(append, &digest, keep::digest::thread(&digest))
        };
        Ok(Whole { sealed: handle.at_once(seal).await?, _held: held })
    }
}

fn append_to(volume: &mut Volume<File>, append: Option<Append>, piece: &[u8]) -> Result<Append, Error> {
    let mut append = match append {
        Some(append) => append,
        None => volume.append(None)?,
    };
    volume.write(&mut append, piece)?;
    Ok(append)
}

#[cfg(test)]
mod tests {
    use keep::content::{Messages, Reader};
    use keep::digest::Text;
    use keep::fetch;
    use store::{Arrival, Format, Options, Quota, Refused, SpecialUse, Uids};

    use super::*;
    use crate::content::Standing;

    fn started() -> (tempfile::TempDir, Writer, Handle) {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(&folder.path().join("volume"), 16 << 20).unwrap();
        let file = Volume::format(file, &Format { segment_bytes: 1 << 20, ..Format::new(7, 1_000) }).unwrap();
        let (writer, handle) = Writer::start(Volume::open(file, Options::default()).unwrap()).unwrap();
        (folder, writer, handle)
    }

    async fn inbox(handle: &Handle) -> u32 {
        let make = |transaction: &mut Transaction<'_, File>| {
            let account = transaction.add_account(b"ann", Quota::default())?;
            transaction.create(account, b"INBOX", SpecialUse::default())
        };
        handle.transact(make).await.unwrap()
    }

    async fn deliver(handle: &Handle, inbox: u32) -> Result<u32, Error> {
        let mut incoming = handle.incoming();
        incoming.write(&[b'x'; 200_000]).await?;
        let arrival = Arrival::default();
        incoming.finish(Vec::new(), move |transaction, sealed| transaction.deliver(sealed, inbox, &arrival)).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_session_that_panics_fails_alone_and_changes_nothing() {
        let (_folder, writer, handle) = started();
        let inbox = inbox(&handle).await;
        assert_eq!(deliver(&handle, inbox).await, Ok(1));
        let panics = move |transaction: &mut Transaction<'_, File>| -> Result<(), Error> {
            transaction.expunge(inbox, &Uids::all())?;
            panic!("a session");
        };
        let (failed, delivered) = tokio::join!(handle.transact(panics), deliver(&handle, inbox));
        assert_eq!((failed, delivered), (Err(Error::Failed), Ok(2)));
        assert_eq!(handle.state().mailbox(inbox).unwrap().entries.len(), 2);
        drop(handle);
        assert_eq!(writer.join(), Ok(()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_may_happen_twice_is_seen_without_a_flush_and_is_there_after_a_kill() {
        let (folder, writer, handle) = started();
        let inbox = inbox(&handle).await;
        assert_eq!(deliver(&handle, inbox).await, Ok(1));
        let flushes = handle.counts().commits.load(Relaxed);
        let expunge = move |transaction: &mut Transaction<'_, File>| transaction.expunge(inbox, &Uids::all()).map(drop);
        handle.transact_unflushed(expunge).await.unwrap();
        assert_eq!(handle.state().mailbox(inbox).unwrap().entries.len(), 0);
        assert_eq!(handle.counts().commits.load(Relaxed), flushes);
        // As it is in the file while the writer lives.
        std::fs::copy(folder.path().join("volume"), folder.path().join("killed")).unwrap();
        let killed = File::open(&folder.path().join("killed"), true).unwrap();
        let killed = Volume::open(killed, Options::default()).unwrap();
        assert_eq!(killed.state().mailbox(inbox).unwrap().entries.len(), 0);
        drop(handle);
        assert_eq!(writer.join(), Ok(()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_elsewhere_has_the_volume_opened_anew() {
        let (_folder, writer, handle) = started();
        let inbox = inbox(&handle).await;
        assert_eq!(deliver(&handle, inbox).await, Ok(1));
        let mut begun = handle.incoming();
        begun.write(&[b'x'; 200_000]).await.unwrap();
        let mut whole = handle.incoming();
        whole.write(&[b'x'; 200_000]).await.unwrap();
        let whole = whole.seal(Vec::new()).await.unwrap();
        let panics = |_: &mut Volume<File>| -> Result<(), Error> { panic!("the store") };
        assert_eq!(handle.at_once(panics).await, Err(Error::Failed));
        assert_eq!(deliver(&handle, inbox).await, Ok(2));
        // Where their pieces are there may be others by now.
        assert_eq!(begun.write(&[b'x'; 200_000]).await, Err(Error::Failed));
        let late = move |transaction: &mut Transaction<'_, File>| {
            transaction.deliver(&whole.sealed, inbox, &Arrival::default())
        };
        assert_eq!(handle.transact(late).await, Err(Error::Failed));
        assert_eq!(handle.state().mailbox(inbox).unwrap().entries.len(), 2);
        drop((begun, handle));
        assert_eq!(writer.join(), Ok(()));
    }
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reply_goes_on_with_what_is_expunged_meanwhile() {
        let (_folder, writer, handle) = started();
        let inbox = inbox(&handle).await;
        assert_eq!(deliver(&handle, inbox).await, Ok(1));
        let state = handle.state();
        let number = state.mailbox(inbox).unwrap().entry(1).unwrap().message.get();
        let expunge = move |transaction: &mut Transaction<'_, File>| transaction.expunge(inbox, &Uids::all()).map(drop);
        handle.transact(expunge).await.unwrap();
        assert!(handle.reader(number).is_none(), "for those who ask now it is gone");
        let standing = Standing::new(&handle, &state);
        let (mut content, mut reader) = (Vec::new(), standing.reader(number).unwrap());
        let mut message = fetch::Message::new(&standing, &state, number);
        while (content.len() as u64) < message.size() {
            content.extend_from_slice(reader.piece(content.len() as u64).unwrap());
        }
        assert!(content == [b'x'; 200_000]);
        assert!(message.text(Text::Envelope).is_ok());
        // Where it was there are others, in the end.
        for _ in 0..100 {
            deliver(&handle, inbox).await.unwrap();
            handle.transact(expunge).await.unwrap();
        }
        let mut reader = standing.reader(number).unwrap();
        assert_eq!(reader.piece(0), Err(Error::Refused(Refused::NoSuchMessage)));
        drop((reader, message));
        drop(handle);
        assert_eq!(writer.join(), Ok(()));
    }
}
