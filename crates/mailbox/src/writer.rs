//! The one writer of a volume, and the way to it.
//!
//! Jobs come over a bounded channel. The thread takes one, and all that have come meanwhile, lets each stage what it wants,
//! flushes once, and answers all of them: the next batch forms while the flush runs, so there is no timer. Readers have
//! [snapshots](Handle::state) and a descriptor of their own.
//!
//! After a failed write nothing is written any more: every job is answered by [`Error::Failed`], and readers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;

use store::{Append, Error, Geometry, Message, Sealed, State, Transaction, Usage, Volume};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::file::File;

/// Jobs that wait; who brings another one waits too.
const JOBS_MAX: usize = 1024;

/// Jobs that are done at most before a flush.
const BATCH_MAX: usize = 1024;

/// Bytes of a message that a session collects before it hands them to the writer.
const PIECE_BYTES: usize = 64 << 10;

/// Stages something; what it returns is called when that is durable, or was not to be had.
type Job = Box<dyn FnOnce(&mut Volume<File>) -> Option<Answer> + Send>;
type Answer = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// The thread that owns the volume.
#[derive(Debug)]
pub struct Writer {
    thread: JoinHandle<Result<(), Error>>,
}

/// The way to the writer, and to what it has written.
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

/// What the writer has done.
#[derive(Debug, Default)]
pub struct Counts {
    /// Flushes.
    pub commits: AtomicU64,
    /// Transactions that were made durable by them.
    pub transactions: AtomicU64,
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
    while let Some(job) = waiting.blocking_recv() {
        let mut answers: Vec<Answer> = job(&mut volume).into_iter().collect();
        // Pieces of large messages count too: who waits for a flush waits for no endless stream.
        for _ in 1..BATCH_MAX {
            let Ok(job) = waiting.try_recv() else { break };
            answers.extend(job(&mut volume));
        }
        if answers.is_empty() {
            continue;
        }
        let outcome = volume.commit();
        if let Err(error) = &outcome {
            tracing::error!(%error, "the store cannot be written");
        }
        counts.commits.fetch_add(1, Relaxed);
        counts.transactions.fetch_add(answers.len() as u64, Relaxed);
        published.send_if_modified(|state| {
            let is_newer = state.commits != volume.state().commits;
            state.clone_from(volume.state());
            is_newer
        });
        answers.into_iter().for_each(|answer| answer(outcome.clone()));
    }
    volume.close().map(drop)
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

    /// What the writer has done.
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
        self.staged(move |volume| stage(volume, work)).await
    }

    /// A message that comes in.
    pub fn incoming(&self) -> Incoming {
        Incoming { handle: self.clone(), append: None, piece: Vec::new(), size: 0 }
    }

    /// Stages something and waits until it is durable.
    async fn staged<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Volume<File>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        let job: Job = Box::new(move |volume| match work(volume) {
            Ok(value) => Some(Box::new(move |outcome| drop(tell.send(outcome.map(|()| value))))),
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
    let value = work(&mut transaction)?;
    transaction.stage()?;
    Ok(value)
}

/// A message that comes in: of a small one nothing is written before its transaction, of a large one a piece is held.
pub struct Incoming {
    handle: Handle,
    append: Option<Append>,
    piece: Vec<u8>,
    size: u64,
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
        let (append, piece) = (self.append.take(), std::mem::take(&mut self.piece));
        self.append = Some(self.handle.at_once(move |volume| append_to(volume, append, &piece)).await?);
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
        let Incoming { handle, append, piece, .. } = self;
        let job = move |volume: &mut Volume<File>| {
            let append = append_to(volume, append, &piece)?;
            let sealed = volume.seal(append, &digest, 0)?;
            stage(volume, |transaction| work(transaction, &sealed))
        };
        handle.staged(job).await
    }

    /// The message is whole, and waits for the transaction that makes it visible.
    ///
    /// # Errors
    /// As [`Incoming::write`].
    pub async fn seal(self, digest: Vec<u8>) -> Result<Sealed, Error> {
        let Incoming { handle, append, piece, .. } = self;
        let seal = move |volume: &mut Volume<File>| {
            let append = append_to(volume, append, &piece)?;
            volume.seal(append, &digest, 0)
        };
        handle.at_once(seal).await
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
