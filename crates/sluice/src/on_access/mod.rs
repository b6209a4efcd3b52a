//! Inspections on access: `sluice mount` and `sluice watch`. What passes is decided in the crate `avfs`; what a content holds,
//! by the inspection of `scan` and the doors.

pub mod helper;
pub mod mount;
mod renewal;
pub mod watch;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use avfs::{End, Hit, Judge, Judging, Unjudged};
use edge::inspector::examine::{self, Examination, Look, NoVerdict};
use flow::{Action, Inspector, NOBODY, Policy};
use inspect::Engine;
use jail::{Children, Counts, Jails, Local, Memory, Suspects};
use stream::Limits;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::{OnAccess, OnAccessLog, OnDoubt};
use crate::config::{Log, LogFormat};
use crate::database::Loaded;
use crate::logging;
use crate::output::Failure;
use crate::process::held::Held;
use crate::process::privileges;
use crate::process::supervise::manager::Manager;

/// The least memory that inspections can do with.
const MEMORY_BYTES_MIN: usize = 64 << 20;

/// The processor time for one file.
const CPU_MS_MAX: u64 = 120_000;

/// How low the priority of what nobody waits for is: the lowest.
const NICE: i32 = 19;

/// The fewest threads that wait for inspections.
const THREADS_MIN: usize = 16;

/// Threads that wait for inspections: a slow one keeps one of them, and no core.
fn threads() -> usize {
    (4 * cores()).max(THREADS_MIN)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A descriptor of its own of a folder that is held.
fn opened(held: &Option<Held>) -> io::Result<Option<OwnedFd>> {
    held.as_ref().map(|held| held.as_fd().try_clone_to_owned()).transpose()
}

/// Starts the log. In the background, where standard error is no file that somebody has named, it goes to the journal: mount(8) and
/// systemd wait for nobody who holds theirs.
fn start_log(args: &OnAccess) {
    let format = if args.log_format == OnAccessLog::Json { LogFormat::Json } else { LogFormat::Human };
    let journal = Path::new(logging::SOCKET);
    let is_lost = args.detached && !is_file(io::stderr()).unwrap_or(false);
    let journal = (is_lost && journal.exists()).then(|| journal.to_owned());
    logging::start(&Log { format, journal, ..Log::default() });
}

fn is_file(descriptor: impl AsFd) -> io::Result<bool> {
    Ok(fs::File::from(descriptor.as_fd().try_clone_to_owned()?).metadata()?.is_file())
}

/// This program, by the path that gives the process its name; by the kernel's link where another file has taken its place.
fn program() -> PathBuf {
    let own = std::env::current_exe().ok().filter(|path| path.is_file());
    own.unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Starts the same once more, and returns when that has said `ready`.
fn in_background(ready: &str) -> Result<ExitCode, Failure> {
    let wanted = |argument: &OsString| argument != "-b" && argument != "--background";
    let mut arguments = std::env::args_os().skip(1).filter(wanted);
    let mut child = Command::new(program())
        .arg0("sluice")
        .args(arguments.next())
        .arg("--detached")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said)?;
    }
    if said.trim_end() == ready {
        return Ok(ExitCode::SUCCESS);
    }
    let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.filter(|&code| code != 0).unwrap_or(2)))
}

/// Waits for SIGTERM or SIGINT, from when it is made; from then on SIGHUP ends nothing, either.
struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// With the signal that something is to be read anew.
    fn new() -> io::Result<(Signals, Signal)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let hangup = signal(SignalKind::hangup())?;
        drop(inside);
        Ok((Signals { runtime, terminate, interrupt }, hangup))
    }

    /// Until one of them comes, or what is served ends by itself; meanwhile this is done.
    fn wait(self, end: Option<End>, meanwhile: impl Future<Output = ()>) {
        let Signals { runtime, mut terminate, mut interrupt } = self;
        let ended = async {
            match end {
                Some(end) => _ = tokio::task::spawn_blocking(|| end.wait()).await,
                None => std::future::pending().await,
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
                () = ended => {}
                () = meanwhile => {}
            }
        });
        // Whoever waits for the end may wait longer than we do.
        runtime.shutdown_timeout(Duration::ZERO);
    }
}

/// Standard error of a process in the background, until it is let go.
struct Detached {
    errors: Option<OwnedFd>,
}

impl Detached {
    /// Where standard error is no file, it is `/dev/null` from here on, for all that is started, too: whoever reads from it
    /// would wait for the end.
    fn begin(args: &OnAccess) -> io::Result<Detached> {
        let errors = io::stderr();
        if !args.detached || is_file(&errors)? {
            return Ok(Detached { errors: None });
        }
        let kept = errors.as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stderr(fs::File::options().write(true).open("/dev/null")?)?;
        Ok(Detached { errors: Some(kept) })
    }

    /// An error of the start is told where it is expected.
    fn tell<T>(self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        if let (Err(_), Some(errors)) = (&outcome, self.errors) {
            rustix::stdio::dup2_stderr(errors)?;
        }
        outcome
    }
}

/// Tells whoever has started it that it has begun.
fn tell_ready(word: &str) {
    println!("{word}");
    Manager::find().ready(word);
}

/// Inspects as the doors do.
pub struct Inspections {
    inspector: Arc<dyn Inspector>,
    look: Look,
    stall: Duration,
    generation: Vec<u8>,
}

impl Inspections {
    /// With these signatures, in as many processes as there are cores.
    ///
    /// # Errors
    /// When the processes cannot be started.
    pub fn new(args: &OnAccess, loaded: &Loaded) -> Result<Inspections, Failure> {
        Inspections::in_processes(cores(), args, loaded)
    }

    /// The same in a process of the lowest priority, for what nobody waits for.
    ///
    /// # Errors
    /// As [`Inspections::new`].
    pub fn aside(args: &OnAccess, loaded: &Loaded) -> Result<Inspections, Failure> {
        // Whatever a thread starts has its priority.
        let start = || {
            rustix::process::setpriority_process(None, NICE)?;
            Inspections::in_processes(1, args, loaded).map_err(|error| io::Error::other(error.to_string()))
        };
        let started = std::thread::scope(|scope| scope.spawn(start).join());
        Ok(started.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))?)
    }

    fn in_processes(count: usize, args: &OnAccess, loaded: &Loaded) -> Result<Inspections, Failure> {
        let limits = Limits { cpu_ms_max: CPU_MS_MAX, ..Limits::default() };
        let memory_bytes = usize::try_from(args.memory).unwrap_or(usize::MAX).max(MEMORY_BYTES_MIN);
        let mut generation = loaded.identity();
        generation.extend(
            format!("{} {} {:?} {:?}", env!("CARGO_PKG_VERSION"), args.strict, args.on_limit, args.database.pua)
                .bytes(),
        );
        let when = |counts| if counts { Action::Reject } else { Action::Pass };
        let policy = Policy {
            on_infected: Action::Reject,
            signatures: Arc::default(),
            on_forbidden: Action::Pass,
            on_limit: when(args.on_limit == OnDoubt::Refuse),
            on_ambiguous: when(args.strict),
            on_unopened: when(args.strict),
            on_encrypted: when(args.strict),
            on_external: Action::Pass,
            on_partial: when(args.strict),
            on_malformed: Action::Pass,
        };
        let inspector: Arc<dyn Inspector> = if args.no_isolation {
            let engine = Engine { database: loaded.database.clone(), limits };
            Arc::new(Local::new(Arc::new(engine), Some(Arc::new(Memory::new(memory_bytes)))))
        } else {
            let user = privileges::is_root().then_some(privileges::NOBODY);
            let launch = Box::new(Children { user });
            let bells = Arc::default();
            let settings = jail::Settings { count, limits, memory_bytes, launch, bells };
            let (counts, suspects) = (Arc::new(Counts::default()), Arc::new(Suspects::default()));
            let (jails, confined) = Jails::start(settings, loaded.signatures()?, counts, suspects)?;
            tracing::info!(processes = count, %confined, "inspections are isolated");
            Arc::new(jails)
        };
        let look = Look { policy, first_match: true, ..Look::default() };
        Ok(Inspections { inspector, look, stall: Duration::from_secs(args.stall), generation })
    }
}

impl Judge for Inspections {
    fn begin(&self) -> Box<dyn Judging> {
        let examination = Examination::new(&*self.inspector, &self.look);
        Box::new(Reading {
            state: State::Open(Box::new(examination)),
            policy: self.look.policy.clone(),
            stall: self.stall,
        })
    }

    fn generation(&self) -> Vec<u8> {
        self.generation.clone()
    }

    fn kind(&self, head: &[u8]) -> &'static str {
        unpack::recognise(head).name()
    }
}

/// One content.
struct Reading {
    state: State,
    policy: Policy,
    stall: Duration,
}

enum State {
    Open(Box<Examination>),
    Over(Result<Option<Hit>, Unjudged>),
}

impl Judging for Reading {
    fn feed(&mut self, mut piece: &[u8]) -> Result<Option<Hit>, Unjudged> {
        while let State::Open(examination) = &mut self.state
            && !piece.is_empty()
        {
            piece = &piece[examination.take(piece)..];
            let worked = work(examination, self.stall);
            let is_decided = examination.is_decided();
            match worked {
                Err(why) => self.state = State::Over(Err(why)),
                Ok(()) if is_decided => self.end(),
                Ok(()) => {}
            }
        }
        self.outcome()
    }

    fn feed_ahead(&mut self, mut piece: &[u8]) -> Result<Option<Hit>, Unjudged> {
        let mut since = Instant::now();
        while let State::Open(examination) = &mut self.state
            && !piece.is_empty()
        {
            let progress = poll(examination);
            let count = examination.take(piece);
            piece = &piece[count..];
            match progress {
                Poll::Ready(Err(why)) => self.state = State::Over(Err(Unjudged(why.to_string()))),
                _ if examination.is_decided() => self.end(),
                Poll::Pending if count == 0 && since.elapsed() > self.stall => {
                    self.state = State::Over(Err(stalled(self.stall)));
                }
                Poll::Pending if count == 0 => std::thread::park_timeout(PARKED_MAX),
                _ => since = Instant::now(),
            }
        }
        if let State::Open(examination) = &mut self.state {
            // Whoever inspects elsewhere hears that there is something to do.
            let _ = examination.poll(&mut Context::from_waker(NOBODY));
        }
        self.outcome()
    }

    fn finish(mut self: Box<Self>) -> Result<Option<Hit>, Unjudged> {
        self.end();
        match self.state {
            State::Open(_) => Err(Unjudged("no verdict".into())),
            State::Over(outcome) => outcome,
        }
    }
}

impl Reading {
    fn outcome(&self) -> Result<Option<Hit>, Unjudged> {
        match &self.state {
            State::Open(_) => Ok(None),
            State::Over(outcome) => outcome.clone(),
        }
    }

    /// No more is wanted, or there is no more: the verdict.
    fn end(&mut self) {
        let before = std::mem::replace(&mut self.state, State::Over(Err(Unjudged("no verdict".into()))));
        self.state = match before {
            State::Over(outcome) => State::Over(outcome),
            State::Open(mut examination) => {
                examination.close();
                State::Over(work(&mut examination, self.stall).map(|()| hit(*examination, &self.policy)))
            }
        };
    }
}

fn hit(examination: Examination, policy: &Policy) -> Option<Hit> {
    let verdict = examination.conclude().verdict;
    let told = examine::told(&verdict, policy, false);
    let spotted = told.first().filter(|_| verdict.action > Action::Pass)?;
    let within = spotted.path.iter().map(|name| name.to_string()).collect();
    Some(Hit { name: spotted.finding.name.to_string(), within })
}

/// How long this thread waits at a time for another process.
const PARKED_MAX: Duration = Duration::from_millis(100);

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Unpark>) {
        self.0.unpark();
    }
}

/// Lets it work; it wakes this thread when it is to be asked again.
fn poll(examination: &mut Examination) -> Poll<Result<bool, NoVerdict>> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    examination.poll(&mut Context::from_waker(&waker))
}

fn stalled(stall: Duration) -> Unjudged {
    Unjudged(format!("no progress for {} s", stall.as_secs()))
}

/// Works on what was fed, in this thread or in another process; not for longer than `stall` without a step.
fn work(examination: &mut Examination, stall: Duration) -> Result<(), Unjudged> {
    let mut since = Instant::now();
    loop {
        match poll(examination) {
            Poll::Ready(Ok(true)) => return Ok(()),
            Poll::Ready(Ok(false)) => since = Instant::now(),
            Poll::Ready(Err(why)) => return Err(Unjudged(why.to_string())),
            Poll::Pending if since.elapsed() > stall => {
                return Err(stalled(stall));
            }
            Poll::Pending => std::thread::park_timeout(PARKED_MAX),
        }
    }
}
