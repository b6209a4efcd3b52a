//! The edge's side: it has the process of the store started, and started again, and lends it what it asks for.
//!
//! Bounds: [`WAITING_MAX`] mails of doors and [`EVALUATIONS_MAX`] evaluations that wait for a process, [`INSPECTIONS_MAX`] inspections and one lesson at a time, [`ASKED_MAX`] of both with
//! those that wait; handshakes and relays as many as the store may have sessions. A process that asks for more gets nothing: whatever
//! stored mail makes of it, the descriptors of the edge are there for its other doors.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as Begun;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use edge::message::authenticity::Evaluations;
use edge::net::listening::Sockets;
use edge::net::stream::Stream;
use edge::upstream::within::Caller;
use flow::Evaluation;
use jail::Launched as _;
use rustix::net::AddressFamily;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Semaphore;

use super::lines::{self, Order, Request};
use super::{inspector, relay};
use crate::output::Failure;
use crate::process::supervise::channel::{Channel, Packet};
use crate::process::supervise::lead::Lead;
use crate::store::callers;
use crate::store::gateway::Gateway;
use crate::store::host::{Host as _, Mail, Unlearned};

const WAITING_MAX: usize = 4_096;

const EVALUATIONS_MAX: usize = 1_024;

const INSPECTIONS_MAX: usize = 256;

const ASKED_MAX: usize = 4_096;

/// The pause before the next process: it doubles with each that does not live.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long a process lives that was worth starting.
const LONG_LIFE: Duration = Duration::from_secs(10);

/// How long the numbers are waited for.
const NUMBERS_WAIT: Duration = Duration::from_millis(300);

/// How long a mail may take that comes to be learned.
const LESSON_WAIT: Duration = Duration::from_secs(60);

/// The way to the process of the store, for the whole run.
pub struct Apart {
    gateway: Arc<Gateway>,
    lead: &'static Lead,
    /// The settings of the store, which the process has to have read too.
    fingerprint: String,
    state: Mutex<State>,
    news: Condvar,
    sessions_max: usize,
    relays: Arc<Semaphore>,
    asked: Arc<Semaphore>,
    inspections: Arc<Semaphore>,
    lessons: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    channel: Option<Arc<Channel>>,
    waiting: VecDeque<(Begun, Caller)>,
    /// Outcome of the first start: the password of a newcomer, or why there is no store.
    begun: Option<Result<Option<String>, String>>,
    /// Evaluations that wait for a process.
    evaluations: VecDeque<Evaluation>,
    starts: u64,
    questions: u64,
    numbers: (u64, String),
    /// Sessions of the process, counted until they end.
    sessions: Vec<Option<Box<dyn Send + Sync>>>,
    is_ending: bool,
    is_over: bool,
}

impl Apart {
    /// One that is not started yet, for so many sessions.
    pub fn new(gateway: Arc<Gateway>, lead: &'static Lead, fingerprint: String, sessions_max: usize) -> Apart {
        Apart {
            gateway,
            lead,
            fingerprint,
            state: Mutex::default(),
            news: Condvar::new(),
            sessions_max,
            relays: Arc::new(Semaphore::new(sessions_max.min(Semaphore::MAX_PERMITS))),
            asked: Arc::new(Semaphore::new(ASKED_MAX)),
            inspections: Arc::new(Semaphore::new(INSPECTIONS_MAX)),
            lessons: Arc::new(Semaphore::new(1)),
            thread: Mutex::default(),
        }
    }

    /// Starts the process, which gets these sockets, and waits until it serves; the password of a newcomer.
    ///
    /// # Errors
    /// When the store cannot be served.
    pub fn begin<'s>(self: &Arc<Self>, sockets: impl Iterator<Item = &'s Sockets>) -> Result<Option<String>, Failure> {
        let copies = sockets.map(|sockets| Ok((sockets.name(), sockets.copies()?)));
        let copies: Vec<(String, Vec<OwnedFd>)> = copies.collect::<io::Result<_>>()?;
        let mut loops = tokio::runtime::Builder::new_multi_thread();
        let runtime = loops.worker_threads(2).thread_name("store").enable_all().build()?;
        let apart = self.clone();
        let run = move || {
            apart.run(&runtime, &copies);
            runtime.shutdown_timeout(Duration::from_secs(1));
        };
        let thread = std::thread::Builder::new().name("store".into()).spawn(run)?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        let state = self.lock();
        let state = self.news.wait_while(state, |state| state.begun.is_none()).unwrap_or_else(PoisonError::into_inner);
        let begun = state.begun.clone().unwrap_or(Ok(None));
        drop(state);
        begun.map_err(Failure::from)
    }

    /// Hands over mail of a door; gives its connection back if the store takes no more.
    pub fn deliver(&self, stream: Begun, caller: Caller) -> Result<(), Begun> {
        let mut broken: Option<Arc<Channel>> = None;
        loop {
            let mut state = self.lock();
            match state.channel.clone().filter(|now| broken.as_ref().is_none_or(|broken| !Arc::ptr_eq(now, broken))) {
                // Nobody else waits while the other process is busy.
                Some(channel) => {
                    drop(state);
                    match send_caller(&channel, &stream, &caller) {
                        Ok(()) => return Ok(()),
                        Err(error) if is_gone(&error) => broken = Some(channel),
                        Err(error) => {
                            tracing::warn!(%error, "a mail does not reach the store");
                            give_up(&channel, &error);
                            return Err(stream);
                        }
                    }
                }
                None if state.is_over || state.waiting.len() >= WAITING_MAX => return Err(stream),
                None => {
                    state.waiting.push_back((stream, caller));
                    return Ok(());
                }
            }
        }
    }

    /// Tells the process what the gateway has to lend now.
    pub fn show(&self) {
        let channel = self.lock().channel.clone();
        channel.iter().for_each(|channel| self.send(channel, &self.shown()));
    }

    fn shown(&self) -> Order {
        Order::Shown { tls: self.gateway.has_tls(), learns: self.gateway.learns() }
    }

    /// The numbers of the store; those of its starts alone while there is no process.
    pub fn numbers(&self) -> String {
        let (channel, question, starts) = {
            let mut state = self.lock();
            state.questions += 1;
            (state.channel.clone(), state.questions, state.starts)
        };
        let name = "sluice_process_starts_total";
        let starts =
            format!("# HELP {name} Starts of a process.\n# TYPE {name} counter\n{name}{{process=\"keep\"}} {starts}\n");
        let Some(channel) = channel else { return starts };
        self.send(&channel, &Order::Numbers(question));
        let waited = self.news.wait_timeout_while(self.lock(), NUMBERS_WAIT, |state| state.numbers.0 < question);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        starts + &state.numbers.1
    }

    /// Closes the store as soon as the mails that are being handed over are in it.
    pub fn end(&self) {
        self.order(Order::End, |state| state.is_ending = true);
    }

    /// The same where no door hands over anything any more, and waits for it.
    pub fn finish(&self) {
        self.order(Order::Over, |state| (state.is_ending, state.is_over) = (true, true));
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map(JoinHandle::join);
    }

    /// Gives an order, which a process that starts gets, too.
    fn order(&self, order: Order, note: impl FnOnce(&mut State)) {
        let channel = {
            let mut state = self.lock();
            note(&mut state);
            state.channel.clone()
        };
        channel.iter().for_each(|channel| self.send(channel, &order));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, channel: &Channel, order: &Order) {
        if let Err(error) = channel.send(&lines::line(order), &[]) {
            tracing::debug!(%error, "the process of the store cannot be told");
            give_up(channel, &error);
        }
    }

    /// Has a process, until the end.
    fn run(&self, runtime: &Runtime, sockets: &[(String, Vec<OwnedFd>)]) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let outcome = self.live(runtime.handle(), sockets);
            let mut state = self.lock();
            state.channel = None;
            state.sessions.clear();
            let why = outcome.as_ref().err().map_or_else(|| "its process has ended".into(), io::Error::to_string);
            let has_begun = state.begun.get_or_insert_with(|| Err(format!("the store: {why}"))).is_ok();
            self.news.notify_all();
            if !has_begun || state.is_ending {
                state.is_over = true;
                state.waiting.clear();
                return;
            }
            drop(state);
            if began.elapsed() > LONG_LIFE {
                pause = PAUSE_MIN;
            }
            let error = outcome.err().map(|error| error.to_string());
            tracing::error!(
                error,
                pause_ms = pause.as_millis(),
                "the process of the store has ended, and starts again"
            );
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Starts a process, and lends it what it asks for until it ends.
    fn live(&self, loops: &Handle, sockets: &[(String, Vec<OwnedFd>)]) -> io::Result<()> {
        let [ours, theirs] = Channel::pair()?;
        let mut started = self.lead.keep_store(&OwnedFd::from(theirs))?;
        let outcome = self.lend(&Arc::new(ours), loops, sockets);
        if self.lock().is_ending {
            return Ok(());
        }
        // One that is not understood, or hears nothing, still has the volume.
        let how = started.end();
        Err(outcome.err().unwrap_or_else(|| io::Error::other(how)))
    }

    fn lend(&self, channel: &Arc<Channel>, loops: &Handle, sockets: &[(String, Vec<OwnedFd>)]) -> io::Result<()> {
        for (name, sockets) in sockets {
            let sockets: Vec<_> = sockets.iter().map(OwnedFd::as_fd).collect();
            channel.send(&format!("socket {name}"), &sockets)?;
        }
        channel.send(&format!("begin {}", self.fingerprint), &[])?;
        self.send(channel, &self.shown());
        while let Some(Packet { line, beside }) = channel.receive()? {
            match lines::read::<Request>(&line) {
                Some(Request::Ready(password)) => {
                    self.open(channel);
                    self.begun(Ok(password));
                }
                Some(request) => self.answer(loops, request, beside)?,
                None => return Err(nonsense()),
            }
        }
        Ok(())
    }

    /// Hands over all that has waited for a process that serves.
    fn open(&self, channel: &Arc<Channel>) {
        let (waiting, evaluations, orders) = {
            let mut state = self.lock();
            state.channel = Some(channel.clone());
            state.starts += 1;
            let orders = [(state.is_ending, Order::End), (state.is_over, Order::Over)];
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.evaluations), orders)
        };
        self.send(channel, &self.shown());
        for (stream, caller) in waiting {
            let _ = send_caller(channel, &stream, &caller);
        }
        evaluations.into_iter().for_each(|evaluation| self.send(channel, &Order::Count(evaluation.into())));
        orders.iter().filter(|(is_due, _)| *is_due).for_each(|(_, order)| self.send(channel, order));
    }

    fn answer(&self, loops: &Handle, request: Request, beside: Vec<OwnedFd>) -> io::Result<()> {
        match (request, beside.as_slice()) {
            (Request::Failed(why), []) => {
                tracing::error!(error = why, "the store is closed");
                self.begun(Err(why));
            }
            (Request::Stale, []) => {
                let why = "the store has other settings since: a new process reads them";
                tracing::warn!("{why}");
                self.lead.answer("replace", 0, why);
            }
            (Request::Secure, [_, _]) => {
                let [client, session] = <[OwnedFd; 2]>::try_from(beside).map_err(|_| io::ErrorKind::InvalidData)?;
                let Ok(place) = self.relays.clone().try_acquire_owned() else { return Ok(()) };
                let gateway = self.gateway.clone();
                loops.spawn(async move {
                    secure(gateway, client, session).await;
                    drop(place);
                });
            }
            (Request::Inspect, [_]) => beside.into_iter().for_each(|socket| self.inspect(loops, socket)),
            (Request::Learn { spam }, [_]) => beside.into_iter().for_each(|socket| self.learn(loops, spam, socket)),
            (Request::Lost, []) => self.gateway.lose_lesson(),
            (Request::Session(true), []) => {
                let session = self.gateway.session();
                let mut state = self.lock();
                if state.sessions.len() < self.sessions_max {
                    state.sessions.push(session);
                }
            }
            (Request::Session(false), []) => drop(self.lock().sessions.pop()),
            (Request::Numbers(question, numbers), []) => {
                self.lock().numbers = (question, numbers);
                self.news.notify_all();
            }
            _ => return Err(nonsense()),
        }
        Ok(())
    }

    fn begun(&self, outcome: Result<Option<String>, String>) {
        self.lock().begun.get_or_insert(outcome);
        self.news.notify_all();
    }

    fn inspect(&self, loops: &Handle, socket: OwnedFd) {
        let Ok(asked) = self.asked.clone().try_acquire_owned() else { return };
        let (gateway, places) = (self.gateway.clone(), self.inspections.clone());
        loops.spawn(async move {
            let _asked = asked;
            let Ok(_place) = places.acquire_owned().await else { return };
            let Some(lender) = gateway.lender() else { return };
            let outcome = match begun(socket).and_then(tokio::net::UnixStream::from_std) {
                Ok(stream) => inspector::serve(stream, lender).await,
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                tracing::debug!(%error, "an inspection for the store was broken off");
            }
        });
    }

    fn learn(&self, loops: &Handle, is_spam: bool, socket: OwnedFd) {
        let Ok(asked) = self.asked.clone().try_acquire_owned() else { return };
        let (gateway, places, handle) = (self.gateway.clone(), self.lessons.clone(), loops.clone());
        loops.spawn(async move {
            let _asked = asked;
            let Ok(_place) = places.acquire_owned().await else { return };
            let teach = move || Lesson::of(socket).and_then(|lesson| lesson.learn(&handle, &gateway, is_spam));
            if let Ok(Err(error)) = tokio::task::spawn_blocking(teach).await {
                tracing::debug!(%error, "a lesson of the store was broken off");
            }
        });
    }
}

/// Evaluations go to the store, which reports them.
impl Evaluations for Apart {
    fn count(&self, evaluation: &Evaluation) {
        let mut state = self.lock();
        let Some(channel) = state.channel.clone() else {
            if state.evaluations.len() < EVALUATIONS_MAX {
                state.evaluations.push_back(evaluation.clone());
            }
            return;
        };
        drop(state);
        self.send(&channel, &Order::Count(Box::new(evaluation.clone())));
    }
}

fn send_caller(channel: &Channel, stream: &Begun, caller: &Caller) -> io::Result<()> {
    let line = callers::line(caller);
    let name = line.trim_end().trim_start_matches("deliver ");
    channel.send(&lines::line(&Order::Deliver(name.into())), &[stream.as_fd()])
}

fn nonsense() -> io::Error {
    io::Error::other("it makes no sense")
}

/// Whether the process has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Lets a process go that takes nothing any more: a line may stand there in part. Another one follows.
fn give_up(channel: &Channel, error: &io::Error) {
    if error.kind() == io::ErrorKind::WouldBlock {
        let _ = rustix::net::shutdown(channel, rustix::net::Shutdown::Both);
    }
}

fn begun(socket: OwnedFd) -> io::Result<Begun> {
    let stream = Begun::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// A socket that another process had, as a stream of this one.
fn taken(socket: OwnedFd) -> io::Result<Stream> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(match rustix::net::sockopt::socket_domain(&socket)? {
        AddressFamily::UNIX => Stream::Unix(tokio::net::UnixStream::from_std(socket.into())?),
        _ => Stream::Tcp(tokio::net::TcpStream::from_std(socket.into())?),
    })
}

/// Shakes hands with a client, and relays it to its session.
async fn secure(gateway: Arc<Gateway>, client: OwnedFd, session: OwnedFd) {
    let work = async {
        let (client, session) = (taken(client)?, taken(session)?);
        relay::relay(gateway.secure(client).await?, session).await
    };
    if let Err(error) = work.await {
        tracing::debug!(%error, "a client of the store in TLS aborted");
    }
}

/// A mail on a socket that is to be learned: its size, its bytes, and then the answer.
struct Lesson {
    stream: Begun,
    size: u64,
}

impl Lesson {
    fn of(socket: OwnedFd) -> io::Result<Lesson> {
        let mut stream = Begun::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LESSON_WAIT))?;
        stream.set_write_timeout(Some(LESSON_WAIT))?;
        let mut size = [0; 8];
        stream.read_exact(&mut size)?;
        Ok(Lesson { stream, size: u64::from_le_bytes(size) })
    }

    fn learn(mut self, handle: &Handle, gateway: &Gateway, is_spam: bool) -> io::Result<()> {
        let answer = match handle.block_on(gateway.learn(is_spam, &mut self)) {
            Ok(true) => "+changed".into(),
            Ok(false) => "+same".into(),
            Err(why) => format!("-{why}"),
        };
        self.stream.write_all(answer.as_bytes())
    }
}

impl Mail for Lesson {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&mut self, offset: u64, piece: &mut [u8]) -> Result<usize, Unlearned> {
        let rest = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let most = rest.min(piece.len());
        if most == 0 {
            // A read of no bytes would wait for one.
            return Ok(0);
        }
        match self.stream.read(&mut piece[..most]) {
            Ok(count @ 1..) => Ok(count),
            Ok(0) | Err(_) => Err("it cannot be read".into()),
        }
    }
}
