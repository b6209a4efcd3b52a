//! From one program to the next: what a supervisor leaves to the one that takes its place, in the same process.
//!
//! What it has lies in a [`Channel`] that is the next one's standard input, said as an edge is told of sockets:
//!
//! | line | beside it | meaning |
//! |---|---|---|
//! | `socket NAME` | sockets | are kept |
//! | `edge PID HELPER...` | the way to it, its program | an edge that serves, and the processes that were started for it |
//! | `begin` | | there is no more |
//!
//! `SLUICE_HEIR` holds the number of the process, and so says that there is such a thing. Signals wait while one program becomes
//! the other ([`signals`]).

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use super::channel::{Channel, Packet};
use super::{Edge, Kept, Supervisor};

/// How long the new program may take to say its version.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

const MARK: &str = "SLUICE_HEIR";

/// Signals blocked meanwhile.
pub fn signals() -> SigSet {
    [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR2, Signal::SIGCHLD].into_iter().collect()
}

/// Whether this process takes the place of another supervisor.
fn is_heir() -> bool {
    std::env::var_os(MARK).is_some_and(|mark| mark == OsStr::new(&std::process::id().to_string()))
}

/// Takes what another has left, if this is its heir.
///
/// # Errors
/// When that makes no sense.
pub fn inherit(supervisor: &mut Supervisor) -> io::Result<()> {
    if !is_heir() {
        return Ok(());
    }
    let channel = Channel::from(io::stdin().as_fd().try_clone_to_owned()?);
    loop {
        let Packet { line, beside } = channel.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.split_once(' ') {
            Some(("socket", name)) => supervisor.kept.push(Kept { name: name.into(), sockets: beside }),
            Some(("edge", pids)) => {
                let mut pids = pids.split(' ').filter_map(|pid| pid.parse().ok());
                let (Some(pid), Ok([way, program])) = (pids.next(), <[OwnedFd; 2]>::try_from(beside)) else {
                    return Err(io::ErrorKind::InvalidData.into());
                };
                let (channel, ears) = supervisor.listen_to(pid, Channel::from(way))?;
                let (channel, ears) = (Some(channel), Some(ears));
                let helpers = pids.collect();
                let began = Instant::now();
                supervisor.edges.push(Edge {
                    pid,
                    channel,
                    ears,
                    began,
                    is_ready: true,
                    program,
                    helpers,
                    drains: false,
                });
            }
            _ if line == "begin" => return Ok(()),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Leaves everything to the program that lies where this one was started from, and becomes it. Returns only if that is not
/// possible, and why.
pub fn bequeath(supervisor: &Supervisor) -> io::Error {
    match prepare(supervisor) {
        Ok(mut command) => {
            if let Err(error) = signals().thread_block() {
                return error.into();
            }
            let error = command.exec();
            let _ = signals().thread_unblock();
            error
        }
        Err(error) => error,
    }
}

fn prepare(supervisor: &Supervisor) -> io::Result<Command> {
    let path = supervisor.path.as_deref().ok_or(io::ErrorKind::NotFound)?;
    answers(path)?;
    let [ours, theirs] = Channel::pair()?;
    // Nobody reads before all is said.
    rustix::net::sockopt::set_socket_send_buffer_size(&ours, 8 << 20)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    for Kept { name, sockets } in &supervisor.kept {
        let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
        ours.send(&format!("socket {name}"), &sockets)?;
    }
    for edge in supervisor.edges.iter().filter(|edge| edge.is_ready) {
        let Some(channel) = &edge.channel else { continue };
        let helpers: String = edge.helpers.iter().map(|helper| format!(" {helper}")).collect();
        ours.send(&format!("edge {}{helpers}", edge.pid), &[channel.as_fd(), edge.program.as_fd()])?;
    }
    ours.send("begin", &[])?;
    let mut command = Command::new(path);
    command.arg0("sluice").args(std::env::args_os().skip(1)).env(MARK, std::process::id().to_string());
    command.stdin(OwnedFd::from(theirs));
    Ok(command)
}

/// Whether a program runs at all.
fn answers(path: &std::path::Path) -> io::Result<()> {
    let mut child = Command::new(path).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let end = Instant::now() + ANSWER_WAIT;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(format!("{}: {status}", path.display()))),
            None if Instant::now() > end => {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::other(format!("{}: does not answer", path.display())));
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
