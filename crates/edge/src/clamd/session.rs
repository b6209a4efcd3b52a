//! One client: its commands in, its answers out.
//!
//! The session is one task. It waits at once for whatever comes first: bytes from the client, answers from the scans,
//! room to send, room for a stream's next piece. While a scan has no room nothing more is read, so that a stream takes
//! the memory of a few segments however long it is. Between commands no buffer is held.

use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto::clamd::{self, Reply, Request, Server, ServerEvent, Tag};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::wire::Wire;
use crate::metrics::SessionOpen;
use crate::porch::shared::Shared;
use crate::scanner::door::{Clamd, Guest};
use crate::scanner::threads::{Answer, Job, Line, Outcome, Segment};

/// Bytes read at a time, to begin with, and from a client that fills the buffer again and again.
const INPUT_BYTES: usize = 8 << 10;
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Answers that wait to be sent; with more than this no command is read, and no scan can say more.
const OUTBOX_BYTES_MAX: usize = 64 << 10;

/// Lines that scans may say before the session hears them.
const ANSWERS_MAX: usize = 16;

/// How long the last bytes of a client are waited for, so that the reply is not lost.
const LINGER: Duration = Duration::from_secs(2);

/// One client.
pub struct Session {
    shared: Rc<Shared>,
    clamd: Arc<Clamd>,
    client: Arc<str>,
    guest: Guest,
    _open: SessionOpen,
    server: Server,
    started: Instant,
    input: Input,
    answers: Option<Answers>,
    stream: Option<Stream>,
    /// Since when the outbox has waited for the client.
    blocked: Option<Instant>,
    _permit: OwnedSemaphorePermit,
}

/// Input of the client that is not consumed yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    at: usize,
    /// Descriptor that came with these bytes.
    descriptor: Option<OwnedFd>,
    /// Nothing more will come.
    ended: bool,
}

struct Answers {
    sender: mpsc::Sender<Answer>,
    receiver: mpsc::Receiver<Answer>,
}

/// A stream under way.
struct Stream {
    segments: mpsc::Sender<Segment>,
    content: Vec<u8>,
    complete: bool,
}

impl Stream {
    fn is_waiting(&self) -> bool {
        !self.content.is_empty() || self.complete
    }
}

/// Event that wakes a session.
enum Woken {
    Answer(Answer),
    Readable,
    Writable,
    Passed(Option<mpsc::OwnedPermit<Segment>>),
    Late,
    Stopping,
}

impl Session {
    /// A client that was let in.
    pub fn new(
        shared: Rc<Shared>,
        clamd: Arc<Clamd>,
        (client, guest): (Arc<str>, Guest),
        permit: OwnedSemaphorePermit,
    ) -> Session {
        let settings = &clamd.settings;
        let config = clamd::Config {
            stream_bytes_max: settings.stream_bytes_max,
            requests_max: settings.session_requests_max,
            command_ms_max: settings.command_seconds_max.saturating_mul(1_000),
            read_ms_max: settings.read_seconds_max.saturating_mul(1_000),
            ..clamd::Config::default()
        };
        shared.runtime.borrow().metrics.sessions_total.add(1);
        let open = SessionOpen::new(&shared.runtime.borrow().metrics);
        Session {
            guest,
            _open: open,
            shared,
            clamd,
            client,
            server: Server::new(config, 0),
            started: Instant::now(),
            input: Input::default(),
            answers: None,
            stream: None,
            blocked: None,
            _permit: permit,
        }
    }

    /// Runs the session to its end.
    pub async fn run(mut self, wire: Wire) {
        let outcome = self.converse(&wire).await;
        tracing::trace!(client = %self.client, ?outcome, "session ends");
        let ended = self.input.ended;
        drop(self);
        if outcome.is_ok() && !ended {
            let _ = timeout(LINGER, wire.linger()).await;
        }
    }

    async fn converse(&mut self, wire: &Wire) -> std::io::Result<()> {
        loop {
            self.take();
            self.send(wire)?;
            if self.server.is_closed() && self.server.outbox().is_empty() {
                return Ok(());
            }
            match self.wait(wire).await? {
                Woken::Answer(answer) => self.hear(answer),
                Woken::Readable => self.read(wire)?,
                Woken::Writable => {}
                Woken::Passed(permit) => self.pass(permit),
                Woken::Late if self.blocked.is_some() => return Err(std::io::ErrorKind::TimedOut.into()),
                Woken::Late => self.late(),
                Woken::Stopping => {
                    self.server.close();
                }
            }
        }
    }

    /// Waits for whatever comes first.
    async fn wait(&mut self, wire: &Wire) -> std::io::Result<Woken> {
        let deadline = match self.blocked {
            Some(since) => Some(since + Duration::from_secs(self.clamd.settings.send_seconds_max)),
            None => self.server.deadline().map(|ms| self.started + Duration::from_millis(ms)),
        };
        let roomy = self.server.outbox().len() < OUTBOX_BYTES_MAX;
        let passing = self.stream.as_ref().filter(|stream| stream.is_waiting()).map(|stream| stream.segments.clone());
        let reading = self.server.is_listening() && passing.is_none() && roomy && !self.input.ended;
        let mut control = self.shared.control.clone();
        let answers = self.answers.as_mut().filter(|_| roomy);
        let late = tokio::time::sleep_until(deadline.unwrap_or(self.started).into());
        tokio::select! {
            Some(answer) = async { answers?.receiver.recv().await } => Ok(Woken::Answer(answer)),
            writable = wire.writable(), if self.blocked.is_some() => writable.map(|()| Woken::Writable),
            Some(permit) = async { Some(passing?.reserve_owned().await.ok()) } => Ok(Woken::Passed(permit)),
            readable = wire.readable(), if reading => readable.map(|()| Woken::Readable),
            () = late, if deadline.is_some() => Ok(Woken::Late),
            _ = control.wait_for(|control| control.stopping), if self.server.is_idle() => Ok(Woken::Stopping),
            else => std::future::pending().await,
        }
    }

    /// Takes what came, as far as there is room for it.
    fn take(&mut self) {
        loop {
            if self.stream.as_ref().is_some_and(|stream| stream.complete) {
                return;
            }
            let now = self.now();
            let (taken, event) = self.server.step(now, &self.input.bytes[self.input.at..]);
            let content = self.input.at..self.input.at + taken;
            self.input.at += taken;
            match event {
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Content => {
                    let stream = self.stream.as_mut().expect("content belongs to a stream");
                    stream.content.extend_from_slice(&self.input.bytes[content]);
                }
                event => self.heed(event),
            }
            if self.server.is_closed() {
                break;
            }
        }
        if self.input.at == self.input.bytes.len() {
            // Between commands nothing is held; within a stream the buffer is wanted again at once.
            let ended = self.input.ended;
            let bytes = if self.stream.is_some() { std::mem::take(&mut self.input.bytes) } else { Vec::new() };
            self.input = Input { bytes, at: 0, descriptor: None, ended };
            self.input.bytes.clear();
        }
    }

    fn heed(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Asked(tag, request) => self.serve(tag, request),
            ServerEvent::StreamEnd => {
                if let Some(stream) = &mut self.stream {
                    stream.complete = true;
                }
            }
            ServerEvent::Closed => self.stream = None,
            ServerEvent::Idle | ServerEvent::Content => {}
        }
    }

    fn serve(&mut self, tag: Tag, request: Request) {
        let settings = self.clamd.settings.clone();
        match request {
            Request::Stream => {
                let job = self.job(tag, "INSTREAM", "stream");
                let segments = self.clamd.shared.scanner.stream(job);
                self.stream = Some(Stream { segments, content: Vec::new(), complete: false });
            }
            Request::Scan { scan, path } => {
                if scan == clamd::Scan::AllMatches && !settings.all_matches {
                    return self.say(tag, &Reply::UNAVAILABLE);
                }
                let job = self.job(tag, scan.command(), &String::from_utf8_lossy(&path));
                self.clamd.shared.scanner.path(job, scan, path);
            }
            Request::Descriptor => match self.input.descriptor.take() {
                Some(descriptor) => {
                    let job = self.job(tag, "FILDES", "");
                    self.clamd.shared.scanner.descriptor(job, descriptor);
                }
                None => {
                    self.say(tag, &Reply::NO_DESCRIPTOR);
                    self.server.close();
                }
            },
            Request::Version { .. } if !settings.version => self.say(tag, &Reply::UNAVAILABLE),
            Request::Version { commands } => {
                let list = if commands { format!("| COMMANDS: {}", clamd::commands()) } else { String::new() };
                let text = self.shared.runtime.borrow().signatures.clamd_version() + &list;
                self.say(tag, &Reply::Text(&text));
            }
            Request::Stats if !settings.stats => self.say(tag, &Reply::UNAVAILABLE),
            Request::Stats => {
                let shared = &self.clamd.shared;
                let _place = shared.queue.enter("STATS", "");
                let text = shared.queue.text(shared.scanner.threads);
                self.say(tag, &Reply::Text(&text));
            }
            Request::Reload if !settings.reload.holds(self.guest.client.address()) => {
                self.say(tag, &Reply::UNAVAILABLE)
            }
            Request::Reload => {
                self.clamd.shared.reload.notify_one();
                self.say(tag, &Reply::RELOADING);
            }
            Request::Shutdown if !settings.shutdown => self.say(tag, &Reply::UNAVAILABLE),
            Request::Shutdown => {
                tracing::info!(client = %self.client, "SHUTDOWN received");
                self.clamd.shared.shutdown.notify_one();
                self.server.done(self.now());
            }
            // There are none: clamd says nothing then.
            Request::Detections => self.server.done(self.now()),
        }
    }

    /// Answers a request by one line.
    fn say(&mut self, tag: Tag, reply: &Reply<'_>) {
        self.server.answer(tag, reply);
        self.server.done(self.now());
    }

    /// Makes the job of a scan.
    fn job(&mut self, tag: Tag, command: &'static str, subject: &str) -> Job {
        let answers = self.answers.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(ANSWERS_MAX);
            Answers { sender, receiver }
        });
        let runtime = self.shared.runtime.borrow();
        Job {
            tag,
            answers: answers.sender.clone(),
            inspector: runtime.means.inspector.clone(),
            settings: self.clamd.settings.clone(),
            client: self.client.clone(),
            metrics: runtime.metrics.clone(),
            _place: self.clamd.shared.queue.enter(command, subject),
        }
    }

    fn hear(&mut self, answer: Answer) {
        match answer {
            Answer::Line(tag, Line { subject, outcome }) => {
                let reply = match &outcome {
                    Outcome::Clean => Reply::Clean(&subject),
                    Outcome::Found(name) => Reply::Found(&subject, name),
                    Outcome::Failed(reason) => Reply::Failed(&subject, reason),
                    Outcome::Excluded => Reply::Excluded(&subject),
                };
                self.server.answer(tag, &reply);
            }
            Answer::Done => {
                self.server.done(self.now());
                if self.server.is_idle() {
                    self.answers = None;
                }
            }
        }
    }

    /// Hands a stream's next piece on. A scan that is gone takes nothing: it has told of that itself.
    fn pass(&mut self, permit: Option<mpsc::OwnedPermit<Segment>>) {
        let Some(stream) = &mut self.stream else { return };
        if stream.content.is_empty() {
            permit.map(|permit| permit.send(Segment::End));
            self.stream = None;
            return;
        }
        let content = std::mem::take(&mut stream.content);
        permit.map(|permit| permit.send(Segment::Content(content)));
    }

    fn late(&mut self) {
        let event = self.server.timeout(self.now());
        self.heed(event);
    }

    fn read(&mut self, wire: &Wire) -> std::io::Result<()> {
        let filled = self.input.bytes.capacity();
        let wanted = if self.stream.is_some() { (2 * filled).clamp(INPUT_BYTES, INPUT_BYTES_MAX) } else { INPUT_BYTES };
        self.input.bytes.resize(wanted, 0);
        match wire.try_read(&mut self.input.bytes) {
            Ok((count, descriptor)) => {
                self.input.bytes.truncate(count);
                self.input.descriptor = descriptor;
                if count == 0 {
                    self.input.ended = true;
                    let event = self.server.finish(self.now());
                    self.heed(event);
                }
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                self.input.bytes.clear();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends what the client takes.
    fn send(&mut self, wire: &Wire) -> std::io::Result<()> {
        while !self.server.outbox().is_empty() {
            match wire.try_write(self.server.outbox()) {
                Ok(count) => {
                    self.blocked = None;
                    self.server.sent(count);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.blocked.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Milliseconds since the session began.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}
