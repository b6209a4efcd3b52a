//! Reloads whose outcome somebody waits for (`sluice reload`).
//!
//! The supervisor listens on an abstract UNIX socket that carries its process id. A connection is the request; the answer
//! is one line, `ok TEXT` or `failed TEXT`, and the connection is closed. Root and the user of the service are answered.
//!
//! ```text
//!  sluice reload ──► supervisor ── reload N ──► edge       reads everything anew
//!                        ▲  reloaded N TEXT ◄────┤          taken over in place
//!                        │  failed N TEXT   ◄────┤          the old configuration stays in force
//!                        │  replace N TEXT  ◄────┘          right, but more than a running edge can take over
//!                        └─ ready, or failed ◄── new edge   the old one drains, or goes on
//! ```
//!
//! Bounded: [`WAITERS_MAX`] wait at a time.

use std::io::{self, Read as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use edge::net::accept::accepted;
use rustix::net::sockopt::socket_peercred;
use tokio::net::{UnixListener, UnixStream};

use crate::cli;
use crate::output::Failure;

/// Name of the socket, before the process id.
const NAME: &str = "sluice-reload-";

/// Requests that wait at a time; more are closed at once.
const WAITERS_MAX: usize = 32;

/// Part of an outcome if the service has credentials: systemd copies them at the start alone.
pub fn note() -> &'static str {
    note_of(std::env::var_os("CREDENTIALS_DIRECTORY").is_some())
}

const fn note_of(has_credentials: bool) -> &'static str {
    match has_credentials {
        true => "; credentials (LoadCredential=) are as of the start: restart to renew them",
        false => "",
    }
}

/// Process ids of the services that take requests here, of the kernel's list of UNIX sockets.
fn listening(sockets: &str) -> Vec<u32> {
    let names = sockets.lines().filter_map(|line| line.rsplit_once('@')?.1.strip_prefix(NAME));
    let mut pids: Vec<u32> = names.filter_map(|pid| pid.parse().ok()).collect();
    // A connection has a line of its own with the name of its listener.
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The one that is meant where none is named.
fn only(pids: &[u32]) -> Result<u32, String> {
    match pids {
        [pid] => Ok(*pid),
        [] => Err("no service runs here".into()),
        several => Err(format!("several services run: give --pid with one of {several:?}")),
    }
}

fn address(pid: u32) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{NAME}{pid}"))
}

/// Requests under way.
#[derive(Default)]
pub struct Waiters {
    listener: Option<UnixListener>,
    waiting: Vec<Waiter>,
    last: u64,
}

struct Waiter {
    number: u64,
    stream: UnixStream,
    /// Whether a new edge decides the outcome.
    is_replacing: bool,
}

impl Waiters {
    /// Listens; where that is not possible, reloads work by signal alone.
    pub fn listen() -> Waiters {
        let listener = address(std::process::id()).and_then(|address| {
            let listener = std::os::unix::net::UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        if let Err(error) = &listener {
            eprintln!("sluice: sluice reload cannot be answered: {error}");
        }
        Waiters { listener: listener.ok(), ..Waiters::default() }
    }

    /// Waits for the next request, and returns its number.
    pub async fn next(&mut self) -> u64 {
        loop {
            let Some(listener) = &self.listener else { return std::future::pending().await };
            // No loop of its own: the supervisor takes one request between two of its other events.
            let (stream, _) = accepted("sluice reload", || listener.accept()).await;
            if let Some(number) = self.admit(stream) {
                return number;
            }
        }
    }

    fn admit(&mut self, stream: UnixStream) -> Option<u64> {
        let user = stream.peer_cred().ok()?.uid();
        let is_allowed = user == 0 || user == rustix::process::geteuid().as_raw();
        if !is_allowed || self.waiting.len() >= WAITERS_MAX {
            return None;
        }
        self.last += 1;
        self.waiting.push(Waiter { number: self.last, stream, is_replacing: false });
        Some(self.last)
    }

    /// A new edge decides for all requests up to this one.
    pub fn replacing(&mut self, up_to: u64) {
        self.waiting.iter_mut().filter(|waiter| waiter.number <= up_to).for_each(|waiter| waiter.is_replacing = true);
    }

    /// Answers those up to this one that wait for the running edge.
    pub fn answer(&mut self, up_to: u64, line: &str) {
        self.tell(line, |waiter| !waiter.is_replacing && waiter.number <= up_to);
    }

    /// Answers those that wait for a new edge.
    pub fn answer_replaced(&mut self, line: &str) {
        self.tell(line, |waiter| waiter.is_replacing);
    }

    /// Answers everybody.
    pub fn answer_all(&mut self, line: &str) {
        self.tell(line, |_| true);
    }

    fn tell(&mut self, line: &str, is_meant: impl Fn(&Waiter) -> bool) {
        let line = format!("{}\n", line.replace('\n', " "));
        self.waiting.retain(|waiter| {
            if is_meant(waiter) {
                // The socket's buffer is empty, and takes a line whole; whoever has gone is not told.
                let _ = waiter.stream.try_write(line.as_bytes());
            }
            !is_meant(waiter)
        });
    }
}

/// `sluice reload`: asks the service for a reload, waits for the outcome and prints it.
pub fn run(args: &cli::Reload) -> Result<ExitCode, Failure> {
    let named = || std::env::var("MAINPID").ok()?.parse().ok();
    let pid = match args.pid.or_else(named) {
        Some(pid) => pid,
        None => only(&listening(&std::fs::read_to_string("/proc/net/unix")?))?,
    };
    let unreachable = |error: io::Error| format!("process {pid} does not take requests to reload: {error}");
    let address = address(pid)?;
    let mut stream = std::os::unix::net::UnixStream::connect_addr(&address).map_err(unreachable)?;
    // Anybody may take a name; who listens is told by the kernel.
    if socket_peercred(&stream)?.pid.as_raw_nonzero().get().unsigned_abs() != pid {
        return Err(format!("another process answers for {pid}").into());
    }
    stream.set_read_timeout(Some(Duration::from_secs(args.timeout)))?;
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    match (read, answer.trim_end().split_once(' ')) {
        (Ok(_), Some(("ok", text))) => {
            println!("{text}");
            Ok(ExitCode::SUCCESS)
        }
        (Ok(_), Some((_, text))) => Err(format!("not reloaded, the old configuration stays in force: {text}").into()),
        (Ok(_), None) => Err("the service ended before it answered".into()),
        (Err(_), _) => Err(format!("no outcome within {} s", args.timeout).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_process_the_only_service_is_meant() {
        let sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 31 @sluice-reload-812\n\
                       0000000000000000: 00000003 00000000 00000000 0001 03 32 @sluice-reload-812\n\
                       0000000000000000: 00000002 00000000 00010000 0001 01 33 /run/other\n";
        assert_eq!(listening(sockets), [812]);
        assert_eq!(only(&[812]), Ok(812));
        assert!(only(&[]).is_err_and(|why| why.contains("no service")));
        assert!(only(&[812, 9]).is_err_and(|why| why.contains("812, 9")));
    }

    #[test]
    fn a_reload_tells_of_credentials_that_are_as_of_the_start() {
        assert_eq!(note_of(false), "");
        assert!(note_of(true).contains("as of the start: restart"));
    }
}
