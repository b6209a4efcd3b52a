//! The edge's side: what whoever supervises this process has given it, and is asked for.
//!
//! There is one supervisor or none, for the whole life of the process: [`lead`]. Without one it is its own, as it was
//! before there were supervisors.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use edge::net::listening;
use tokio::sync::Notify;

use super::channel::{Channel, Packet};

/// How the process that compiles is called in the arguments.
pub const COMPILER: [&str; 2] = ["database", "worker"];

/// How a process has ended that has done what it was to do.
pub const SUCCESS: &str = "exit status 0";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The supervisor of this process.
pub struct Lead {
    channel: Channel,
    heard: Mutex<Heard>,
    news: Condvar,
    /// One asks for a process at a time.
    asking: Mutex<()>,
    /// It is gone, or wants nothing any more.
    pub over: Notify,
    /// It wants everything read anew.
    pub reload: Notify,
    /// The last request to reload.
    requested: AtomicU64,
}

#[derive(Default)]
struct Heard {
    /// The process that was started last.
    started: Option<u32>,
    ended: HashMap<u32, String>,
    is_over: bool,
}

static LEAD: OnceLock<Lead> = OnceLock::new();

/// The supervisor of this process, if it has one.
pub fn lead() -> Option<&'static Lead> {
    LEAD.get()
}

/// Takes over what the supervisor has on the standard input: to be called once, before anything is opened.
///
/// # Errors
/// When it is gone, or makes no sense.
pub fn follow() -> io::Result<()> {
    let channel = Channel::from(io::stdin().as_fd().try_clone_to_owned()?);
    loop {
        let Packet { line, beside } = channel.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.split_once(' ') {
            Some(("socket", name)) => listening::inherit(name.into(), beside),
            None if line == "begin" => break,
            _ => return Err(io::Error::other(format!("the supervisor makes no sense: {line:?}"))),
        }
    }
    let lead = LEAD.get_or_init(|| Lead {
        channel,
        heard: Mutex::default(),
        news: Condvar::new(),
        asking: Mutex::default(),
        over: Notify::new(),
        reload: Notify::new(),
        requested: AtomicU64::new(0),
    });
    std::thread::Builder::new().name("lead".into()).spawn(|| lead.listen())?;
    Ok(())
}

impl Lead {
    fn listen(&self) {
        while let Ok(Some(packet)) = self.channel.receive() {
            let mut words = packet.line.splitn(3, ' ');
            let (what, pid) = (words.next(), words.next().and_then(|word| word.parse::<u32>().ok()));
            let mut heard = self.lock();
            match (what, pid) {
                (Some("started"), Some(pid)) => heard.started = Some(pid),
                (Some("reload"), Some(number)) => {
                    self.requested.store(number.into(), Ordering::Relaxed);
                    self.reload.notify_one();
                }
                (Some("ended"), Some(pid)) => {
                    heard.ended.insert(pid, words.next().unwrap_or_default().into());
                }
                _ => {}
            }
            self.news.notify_all();
        }
        self.lock().is_over = true;
        self.news.notify_all();
        self.over.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for what `find` finds.
    fn wait<T>(&self, mut find: impl FnMut(&mut Heard) -> Option<T>) -> Option<T> {
        let mut found = None;
        let is_waiting = |heard: &mut Heard| {
            found = find(heard);
            found.is_none() && !heard.is_over
        };
        drop(self.news.wait_timeout_while(self.lock(), PATIENCE, is_waiting));
        found
    }

    fn say(&self, line: &str, beside: &[BorrowedFd<'_>]) {
        if let Err(error) = self.channel.send(line, beside) {
            tracing::debug!(%error, "the supervisor cannot be told");
        }
    }

    /// Has a process started, and waits until it is.
    fn start(&'static self, what: &str, beside: &[BorrowedFd<'_>]) -> io::Result<Started> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().started = None;
        self.channel.send(what, beside)?;
        match self.wait(|heard| heard.started.take()) {
            Some(pid @ 1..) => Ok(Started { lead: self, pid }),
            _ => Err(io::Error::other(format!("the supervisor could not start a process ({what})"))),
        }
    }

    /// Has a process started that compiles signatures, with these as its standard input, output and error.
    ///
    /// # Errors
    /// When the supervisor does not.
    pub fn compile(&'static self, descriptors: [&OwnedFd; 3]) -> io::Result<Started> {
        self.start("compile", &descriptors.map(AsFd::as_fd))
    }

    /// Has the process of the store started, with this as its standard input.
    ///
    /// # Errors
    /// When the supervisor does not.
    pub fn keep_store(&'static self, way: &OwnedFd) -> io::Result<Started> {
        self.start("store", &[way.as_fd()])
    }

    /// Clients are served.
    pub fn ready(&self) {
        self.say("ready", &[]);
    }

    /// The number of the last request to reload.
    pub fn requested(&self) -> u64 {
        self.requested.load(Ordering::Relaxed)
    }

    /// Says what became of requests to reload: `reloaded`, `failed` or `replace`.
    pub fn answer(&self, outcome: &str, up_to: u64, text: &str) {
        self.say(&format!("{outcome} {up_to} {text}"), &[]);
    }

    /// Tells the service manager something.
    pub fn notify(&self, text: &str) {
        self.say(&format!("notify {text}"), &[]);
    }

    /// Has sockets kept for whoever follows.
    pub fn keep(&self, name: &str, sockets: &[OwnedFd]) {
        let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
        self.say(&format!("keep {name}"), &sockets);
    }

    /// Names all sockets that are wanted.
    pub fn names(&self, names: &[String]) {
        self.say(&format!("names\n{}", names.join("\n")), &[]);
    }
}

/// The template of jails is started by the supervisor.
impl jail::Launch for &'static Lead {
    fn launch(&self, host: OwnedFd) -> io::Result<Box<dyn jail::Launched>> {
        Ok(Box::new(self.start("template", &[host.as_fd()])?))
    }
}

/// A process that the supervisor has started.
pub struct Started {
    lead: &'static Lead,
    pid: u32,
}

impl Started {
    /// Waits for its end, which is near, and says how it has ended.
    pub fn wait(&self) -> String {
        self.lead.wait(|heard| heard.ended.remove(&self.pid)).unwrap_or_else(|| "unknown".into())
    }
}

impl jail::Launched for Started {
    fn end(&mut self) -> String {
        self.lead.say(&format!("end {}", self.pid), &[]);
        self.wait()
    }
}
