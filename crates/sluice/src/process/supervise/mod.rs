//! `sluice serve` itself: a process that keeps the listening sockets and starts whoever uses them.
//!
//! ```text
//!  sluice ── keeps sockets, starts, passes on signals and what the service manager is told
//!    ├─ sluice: edge      what `serve` does: configuration, sockets, TLS, protocols
//!    ├─ sluice: keep      on the edge's behalf, the store: volume, passwords, sessions
//!    └─ sluice: jails  on the edge's behalf: `sluice: jail 1` and so on are its copies
//! ```
//!
//! It reads no configuration and no byte of anybody's: it knows sockets by the names that the edge gives them. An edge that
//! dies is followed by another with the same sockets, after a pause that grows with each that does not live. One that ends
//! before clients were served, or as it was asked to, ends the supervisor with the same status.
//!
//! SIGHUP, SIGTERM and SIGINT are passed on. `sluice reload` is SIGHUP with an answer ([`reload`]); where the edge finds that a
//! new configuration is right but more than it can take over, another edge of the same program takes its place. SIGUSR2 hands over to the program that lies where this one was started from: the
//! supervisor becomes it by exec, with its process id, and starts an edge of it; only when that is ready does the old one take no
//! more clients, and ends with its last session. If it does not become ready, the old one goes on.
//!
//! As the first process of a container it takes the status of whoever ends.

pub mod channel;
mod heir;
mod helper;
mod keeper;
pub mod lead;
pub mod manager;
pub mod reload;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::{Channel, Packet};
use jail::Thrift;
use lead::{COMPILER, SUCCESS};
use rustix::process::{Pid, Signal as Sent, WaitOptions, WaitStatus, kill_process, wait};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::output::Failure;
use manager::Manager;
use reload::{Waiters, note};

/// Shortest pause before the next edge, after one that has served: it doubles with each that does not.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long an edge lives that was worth starting.
const LONG_LIFE: Duration = Duration::from_secs(10);

/// Two signals that come so close are one: some send it to a process, and then to its group.
const ECHO: Duration = Duration::from_millis(500);

/// Sockets that are kept.
struct Kept {
    name: String,
    sockets: Vec<OwnedFd>,
}

/// An edge.
struct Edge {
    pid: u32,
    /// The way to it; it is gone when that is closed, or is to come to its end.
    channel: Option<Arc<Channel>>,
    /// Task that reads its messages.
    ears: Option<JoinHandle<()>>,
    began: Instant,
    is_ready: bool,
    /// The program that it is, for processes on its behalf.
    program: OwnedFd,
    /// Its helper processes, which inspect and compile.
    helpers: Vec<u32>,
    /// It was told to take no more clients.
    drains: bool,
}

impl Edge {
    /// Hears all that one which has ended has said.
    fn hear_out(&mut self) {
        // Whoever is its child may still hold the other end.
        if let Some(channel) = &self.channel {
            let _ = rustix::net::shutdown(&**channel, rustix::net::Shutdown::Read);
        }
        if let Some(ears) = self.ears.take() {
            let _ = ears.join();
        }
    }
}

/// Message of an edge, by its process number.
type Heard = (u32, Packet);

/// The supervisor.
struct Supervisor {
    kept: Vec<Kept>,
    /// Living edges, the last of them the one that serves or starts.
    edges: Vec<Edge>,
    heard: mpsc::UnboundedSender<Heard>,
    pause: Duration,
    /// When the next edge is started.
    due: Option<Instant>,
    is_stopping: bool,
    /// When it was last asked to stop.
    asked: Option<Instant>,
    /// The path of the program that takes over.
    path: Option<PathBuf>,
    manager: Manager,
    /// Requests to reload, until they are answered.
    waiters: Waiters,
}

/// Runs until the last edge has ended.
pub fn run() -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(supervise())
}

async fn supervise() -> Result<ExitCode, Failure> {
    let mut signals = Signals::new()?;
    let (heard, mut hears) = mpsc::unbounded_channel();
    let mut supervisor = Supervisor {
        kept: Vec::new(),
        edges: Vec::new(),
        heard,
        pause: PAUSE_MIN,
        due: None,
        is_stopping: false,
        asked: None,
        path: std::env::current_exe().ok(),
        manager: Manager::find(),
        waiters: Waiters::listen(),
    };
    supervisor.kept = keeper::handed_over();
    heir::inherit(&mut supervisor)?;
    signals.unblock()?;
    supervisor.start()?;
    loop {
        let due = supervisor.due;
        tokio::select! {
            Some(heard) = hears.recv() => supervisor.hear(heard),
            number = supervisor.waiters.next() => supervisor.reload(number),
            signal = signals.next() => match signal {
                Asked::Reload => supervisor.pass_on(Sent::HUP),
                Asked::Stop(signal) => supervisor.stop(signal),
                Asked::HandOver => supervisor.hand_over(),
                Asked::Bury => {
                    let ended = supervisor.ended();
                    // What it said before it ended counts: that it serves, or why it does not.
                    while let Ok(heard) = hears.try_recv() {
                        supervisor.hear(heard);
                    }
                    if let Some(code) = supervisor.bury(ended) {
                        return Ok(code);
                    }
                },
            },
            () = until(due) => supervisor.start_again(),
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Request to the supervisor.
enum Asked {
    Reload,
    Stop(Sent),
    HandOver,
    /// A process has ended.
    Bury,
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
    hand_over: Signal,
    child: Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hand_over: signal(SignalKind::user_defined2())?,
            child: signal(SignalKind::child())?,
        })
    }

    /// Delivers signals that came while one program replaced the other.
    fn unblock(&self) -> io::Result<()> {
        heir::signals().thread_unblock().map_err(io::Error::from)
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.hangup.recv() => Asked::Reload,
            _ = self.terminate.recv() => Asked::Stop(Sent::TERM),
            _ = self.interrupt.recv() => Asked::Stop(Sent::INT),
            _ = self.hand_over.recv() => Asked::HandOver,
            _ = self.child.recv() => Asked::Bury,
        }
    }
}

impl Supervisor {
    /// Starts an edge, with all that is kept.
    fn start(&mut self) -> io::Result<()> {
        let [ours, theirs] = Channel::pair()?;
        let mut command = Command::new("/proc/self/exe");
        // Without its number it would be the first signal's of the group, and then once more ours.
        command.arg0("sluice: edge").arg("edge").args(std::env::args_os().skip(1)).process_group(0);
        ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"].iter().for_each(|name| _ = command.env_remove(name));
        let child = command.stdin(OwnedFd::from(theirs)).spawn()?;
        drop(command);
        let pid = child.id();
        let program = std::fs::File::open("/proc/self/exe")?.into();
        let (channel, ears) = self.listen_to(pid, ours)?;
        let (began, is_ready) = (Instant::now(), false);
        let (helpers, drains) = (Vec::new(), false);
        let (to, ears) = (Some(channel.clone()), Some(ears));
        self.edges.push(Edge { pid, channel: to, ears, began, is_ready, program, helpers, drains });
        // If it is gone already, that is heard of in its own time.
        let _ = self.hand_down(&channel);
        Ok(())
    }

    fn hand_down(&self, channel: &Channel) -> io::Result<()> {
        for Kept { name, sockets } in &self.kept {
            let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
            channel.send(&format!("socket {name}"), &sockets)?;
        }
        channel.send("begin", &[])
    }

    /// Hears what an edge says from here on.
    fn listen_to(&self, pid: u32, channel: Channel) -> io::Result<(Arc<Channel>, JoinHandle<()>)> {
        let channel = Arc::new(channel);
        let (hearing, heard) = (Arc::downgrade(&channel), self.heard.clone());
        let fd = channel.as_fd().try_clone_to_owned()?;
        let listen = move || {
            let ears = Channel::from(fd);
            while let Ok(Some(packet)) = ears.receive() {
                if hearing.strong_count() == 0 || heard.send((pid, packet)).is_err() {
                    break;
                }
            }
        };
        let ears = std::thread::Builder::new().name(format!("edge-{pid}")).spawn(listen)?;
        Ok((channel, ears))
    }

    /// The one that serves, or is to.
    fn current(&self) -> Option<&Edge> {
        self.edges.iter().rev().find(|edge| !edge.drains)
    }

    fn hear(&mut self, (pid, packet): (u32, Packet)) {
        let Packet { line, beside } = packet;
        let (what, rest) = line.split_once([' ', '\n']).unwrap_or((&line, ""));
        let is_current = self.current().is_some_and(|edge| edge.pid == pid);
        match what {
            "keep" => {
                self.kept.retain(|kept| kept.name != rest);
                let kept = Kept { name: rest.into(), sockets: beside };
                if let Some(name) = keeper::name_there(rest) {
                    self.manager.store(&name, &keeper::borrowed(&kept));
                }
                self.kept.push(kept);
            }
            "names" if is_current => self.keep_only(rest),
            "ready" => self.is_ready(pid),
            "reloaded" | "failed" | "replace" if is_current => self.reloaded(what, rest),
            "notify" if is_current => self.tell(rest),
            "store" => self.start_helper(pid, &["keep"], beside),
            "template" => self.start_helper(pid, &["jail"], beside),
            "compile" => self.start_helper(pid, &COMPILER, beside),
            "end" => self.end_helper(pid, rest.parse().unwrap_or(0)),
            _ => {}
        }
    }

    /// Closes the sockets that have none of these names.
    fn keep_only(&mut self, names: &str) {
        let manager = &self.manager;
        self.kept.retain(|kept| {
            let is_named = names.lines().any(|name| name == kept.name);
            if let Some(name) = keeper::name_there(&kept.name).filter(|_| !is_named) {
                manager.forget(&name);
            }
            is_named
        });
    }

    /// An edge serves: those before it take no more clients.
    fn is_ready(&mut self, pid: u32) {
        Thrift::default().look();
        self.waiters.answer_replaced(&format!("ok reloaded by a new process{}", note()));
        let mut before = true;
        for edge in &mut self.edges {
            if edge.pid == pid {
                (edge.is_ready, before) = (true, false);
            } else if before {
                // That nobody is there any more tells it.
                edge.drains = true;
                if let Some(channel) = edge.channel.take() {
                    let _ = rustix::net::shutdown(&*channel, rustix::net::Shutdown::Both);
                }
            }
        }
    }

    fn tell(&self, text: &str) {
        self.manager.tell(text);
    }

    /// Passes a request to reload on to the edge that serves.
    fn reload(&mut self, number: u64) {
        let edge = self.current().filter(|edge| edge.is_ready && !self.is_stopping);
        let asked =
            edge.and_then(|edge| edge.channel.clone()).map(|channel| channel.send(&format!("reload {number}"), &[]));
        if !matches!(asked, Some(Ok(()))) {
            self.waiters.answer(number, "failed no process is ready to reload: one is starting or stopping");
        }
    }

    /// Takes the outcome of a reload: `NUMBER TEXT`.
    fn reloaded(&mut self, outcome: &str, rest: &str) {
        let (number, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let number = number.parse().unwrap_or(0);
        match outcome {
            "reloaded" => self.waiters.answer(number, &format!("ok {text}{}", note())),
            "failed" => {
                self.waiters.answer(number, &format!("failed {text}"));
                // An edge that is to take another's place says why it does not.
                self.waiters.answer_replaced(&format!("failed {text}"));
            }
            _ => self.replace(number),
        }
    }

    /// Has another edge of this program take the place of the one that serves, once it is ready.
    fn replace(&mut self, number: u64) {
        self.waiters.replacing(number);
        if let Err(error) = self.start() {
            self.waiters.answer_replaced(&format!("failed cannot start a process: {error}"));
            self.tell("READY=1");
        }
    }

    /// Starts a process on an edge's behalf, of its own program.
    fn start_helper(&mut self, pid: u32, words: &[&str], beside: Vec<OwnedFd>) {
        let Some(edge) = self.edges.iter_mut().find(|edge| edge.pid == pid) else { return };
        let Some(channel) = edge.channel.clone() else { return };
        let started = match words {
            ["keep"] => helper::keep(&edge.program, beside),
            _ => helper::spawn(&edge.program, words, beside),
        };
        if let Ok(helper) = &started {
            edge.helpers.push(*helper);
        }
        if let Err(error) = &started {
            eprintln!("sluice: cannot start a process ({}): {error}", words.join(" "));
        }
        let _ = channel.send(&format!("started {}", started.unwrap_or(0)), &[]);
    }

    /// Ends a process that was started for this edge, and none else.
    fn end_helper(&mut self, pid: u32, helper: u32) {
        let Some(edge) = self.edges.iter().find(|edge| edge.pid == pid) else { return };
        if edge.helpers.contains(&helper) {
            send(helper, Sent::KILL);
        }
    }

    fn pass_on(&self, signal: Sent) {
        self.current().iter().for_each(|edge| send(edge.pid, signal));
    }

    /// Everybody is to end.
    fn stop(&mut self, signal: Sent) {
        let now = Instant::now();
        if self.asked.replace(now).is_some_and(|before| now - before < ECHO) {
            return;
        }
        (self.is_stopping, self.due) = (true, None);
        self.edges.iter().for_each(|edge| send(edge.pid, signal));
        if self.edges.is_empty() {
            // Between two edges nothing is left to wait for.
            std::process::exit(0);
        }
    }

    /// Becomes the program that lies where this one was started from; if that cannot be, everything goes on.
    fn hand_over(&mut self) {
        if self.is_stopping || self.edges.len() != 1 {
            eprintln!("sluice: upgrade refused: an edge is starting or draining");
            return;
        }
        self.manager.reloading();
        let error = heir::bequeath(self);
        eprintln!("sluice: upgrade failed, the old program continues: {error}");
        self.tell("READY=1");
    }

    /// The status of whoever has ended.
    fn ended(&mut self) -> Vec<(u32, WaitStatus)> {
        let mut all = Vec::new();
        // `waitpid` knows all of them, and as the first process of a container those of others too.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get() as u32;
            self.edges.iter_mut().filter(|edge| edge.pid == pid).for_each(Edge::hear_out);
            all.push((pid, status));
        }
        all
    }

    /// Forgets those that have ended; the status of this process, if it is over.
    fn bury(&mut self, ended: Vec<(u32, WaitStatus)>) -> Option<ExitCode> {
        for (pid, status) in ended {
            if let Some(at) = self.edges.iter().position(|edge| edge.pid == pid) {
                let edge = self.edges.remove(at);
                if let Some(code) = self.edge_ended(&edge, status) {
                    return Some(code);
                }
                continue;
            }
            for edge in &mut self.edges {
                if let Some(at) = edge.helpers.iter().position(|helper| *helper == pid) {
                    edge.helpers.swap_remove(at);
                    if let Some(channel) = &edge.channel {
                        let _ = channel.send(&format!("ended {pid} {}", words(status)), &[]);
                    }
                }
            }
        }
        None
    }

    fn edge_ended(&mut self, edge: &Edge, status: WaitStatus) -> Option<ExitCode> {
        // Those that wait for it hear that it is gone; whoever does not is stuck.
        edge.helpers.iter().for_each(|helper| send(*helper, Sent::KILL));
        if edge.drains {
            return None;
        }
        let of_signal = status.terminating_signal().map(|signal| 128 + signal);
        let code = status.exit_status().or(of_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(2);
        if !self.edges.is_empty() {
            // It was to follow another, which goes on.
            if !edge.is_ready {
                let how = words(status);
                eprintln!("sluice: the new edge did not start ({how}), the old one continues");
                self.waiters.answer_replaced(&format!("failed the new process did not start ({how})"));
                self.tell("READY=1");
            }
            return None;
        }
        self.waiters.answer_all(&format!("failed the process ended ({})", words(status)));
        // One that listened and was killed may have served before it said so.
        let was_killed = of_signal.is_some() && !self.kept.is_empty();
        let served = edge.is_ready || was_killed || self.pause > PAUSE_MIN;
        if self.is_stopping || !served || (edge.is_ready && status.exit_status() == Some(0)) {
            return Some(ExitCode::from(code));
        }
        if edge.is_ready && edge.began.elapsed() > LONG_LIFE {
            self.pause = PAUSE_MIN;
        }
        eprintln!("sluice: edge exited ({}), restarting in {} ms", words(status), self.pause.as_millis());
        self.due = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        None
    }

    fn start_again(&mut self) {
        self.due = None;
        if let Err(error) = self.start() {
            eprintln!("sluice: cannot start the edge: {error}");
            self.due = Some(Instant::now() + PAUSE_MAX);
        }
    }
}

fn send(pid: u32, signal: Sent) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}

/// How a process has ended.
fn words(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => SUCCESS.into(),
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "unknown".into(),
    }
}
