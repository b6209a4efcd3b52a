//! The edge's side: what whoever supervises this process has given it, and is asked for.
//!
//! There is one supervisor or none, for the whole life of the process: [`lead`]. Without one it is its own, as it was
//! before there were supervisors.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use edge::net::listening;
use tokio::sync::Notify;

use super::channel::{Channel, Packet};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The supervisor of this process.
pub struct Lead {
    channel: Channel,
    heard: Mutex<Heard>,
    news: Condvar,
    /// One asks for a jail at a time.
    asking: Mutex<()>,
    /// It is gone, or wants nothing any more.
    pub over: Notify,
}

#[derive(Default)]
struct Heard {
    /// The process that was started last.
    jail: Option<u32>,
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
    });
    std::thread::Builder::new().name("lead".into()).spawn(|| lead.listen())?;
    Ok(())
}

impl Lead {
    fn listen(&self) {
        while let Ok(Some(packet)) = self.channel.receive() {
            let mut words = packet.line.splitn(3, ' ');
            let (what, pid) = (words.next(), words.next().and_then(|word| word.parse().ok()));
            let mut heard = self.lock();
            match (what, pid) {
                (Some("jail"), Some(pid)) => heard.jail = Some(pid),
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
            tracing::debug!(%error, "the supervisor does not listen");
        }
    }

    /// Clients are served.
    pub fn ready(&self) {
        self.say("ready", &[]);
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

    /// These are all that are wanted.
    pub fn names(&self, names: &[String]) {
        self.say(&format!("names\n{}", names.join("\n")), &[]);
    }
}

/// Jails are started by the supervisor.
impl jail::Launch for &'static Lead {
    fn launch(&self, number: usize, host: OwnedFd) -> io::Result<Box<dyn jail::Launched>> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().jail = None;
        self.channel.send(&format!("jail {number}"), &[host.as_fd()])?;
        match self.wait(|heard| heard.jail.take()) {
            Some(pid @ 1..) => Ok(Box::new(Started { lead: self, pid })),
            _ => Err(io::Error::other("the supervisor has not started an inspection process")),
        }
    }
}

struct Started {
    lead: &'static Lead,
    pid: u32,
}

impl jail::Launched for Started {
    fn id(&self) -> u32 {
        self.pid
    }

    fn end(&mut self) -> String {
        self.lead.say(&format!("end {}", self.pid), &[]);
        let ended = self.lead.wait(|heard| heard.ended.remove(&self.pid));
        ended.unwrap_or_else(|| "unknown".into())
    }
}
