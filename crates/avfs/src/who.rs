//! Process behind a request: the kernel's facts about it, and the system's.
//!
//! The process may be gone or another by the time that it is looked up; the numbers of user and thread are the kernel's.
//! What the system says of a process that waits for our answer may itself have to wait until it has it (a process that is just
//! being started closes files while others may not look at it), so a thread of its own looks, and is not waited for long.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use fuser::Request;

/// Bytes of a command line that are kept.
const COMMAND_BYTES_MAX: usize = 1024;

/// How long is waited for what only a report says of a process.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long is waited for what decides something. A thread is asked, and on a machine with more work than processors it may take
/// long until that has its turn. Only a process that is killed while it writes in the background can have it wait in vain.
const RIGHTS_PATIENCE: Duration = Duration::from_secs(2);

/// Threads that look for a report, at a time; whoever is asked for beyond that is not looked up.
const LOOKS_MAX: usize = 16;

static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// One of the [`LOOKS_MAX`].
struct Look;

impl Look {
    fn begin() -> Option<Look> {
        let look = Look;
        (LOOKS.fetch_add(1, Relaxed) < LOOKS_MAX).then_some(look)
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        LOOKS.fetch_sub(1, Relaxed);
    }
}

/// A process.
#[derive(Debug, Default, Clone)]
pub struct Process {
    /// Its number, or that of its thread.
    pub id: u32,
    /// The program that it runs, if that is known.
    pub program: String,
    /// Its command line, as it says itself.
    pub command: String,
}

/// Process behind a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// The thread; 0 where it is in another namespace, or where the kernel itself asks.
    pub thread: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Who {
    /// The process that sent a request.
    pub fn of(request: &Request) -> Who {
        Who { thread: request.pid(), uid: request.uid(), gid: request.gid() }
    }

    /// The file system itself.
    pub fn nobody() -> Who {
        Who { thread: 0, uid: 0, gid: 0 }
    }

    /// The process, as far as it can be looked up without waiting.
    pub fn process(self) -> Process {
        let unknown = Process { id: self.thread, ..Process::default() };
        let Some(begun) = Look::begin() else { return unknown };
        let look = move |thread| {
            let _begun = begun;
            look(thread)
        };
        self.looked_up(PATIENCE, look).unwrap_or(unknown)
    }

    /// Whether it is in a group. Whoever asks holds one of our own threads, so no more are looked up at a time than there are of
    /// those.
    pub fn is_in(self, group: u32) -> bool {
        self.gid == group || self.looked_up(RIGHTS_PATIENCE, groups).is_some_and(|groups| groups.contains(&group))
    }

    /// Facts of the system about a thread; `None` where it takes too long.
    fn looked_up<T: Send + 'static>(
        self,
        patience: Duration,
        look: impl FnOnce(u32) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        let look = move || {
            let _ = tell.send(look(self.thread));
        };
        std::thread::Builder::new().name("sluice: who".into()).spawn(look).ok()?;
        told.recv_timeout(patience).ok()
    }
}

/// The supplementary groups of a thread.
fn groups(thread: u32) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    groups.split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

/// The path of a program, or its name: the kernel tells the path of others to no process that Landlock confines.
fn program(process: u32) -> String {
    if let Ok(path) = fs::read_link(format!("/proc/{process}/exe")) {
        return path.to_string_lossy().into_owned();
    }
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned();
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn look(thread: u32) -> Process {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let id = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    let id = id.unwrap_or(thread);
    let mut command = fs::read(format!("/proc/{thread}/cmdline")).unwrap_or_default();
    command.truncate(COMMAND_BYTES_MAX);
    let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
    Process {
        id,
        program: program(id),
        command: command.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_however_many_are_looked_up_and_however_late() {
        let group = 65_533;
        if rustix::thread::set_thread_groups(&[rustix::process::Gid::from_raw(group)]).is_err() {
            eprintln!("skipped: only root joins a group");
            return;
        }
        let who = Who { thread: rustix::thread::gettid().as_raw_pid().cast_unsigned(), uid: 1, gid: 1 };
        let begun: Vec<Look> = std::iter::from_fn(Look::begin).collect();
        assert_eq!(who.process().program, "", "nobody else is looked up for a report");
        assert!(who.is_in(group) && !who.is_in(group + 1));
        let late = who.looked_up(RIGHTS_PATIENCE, |thread| {
            std::thread::sleep(2 * PATIENCE);
            groups(thread)
        });
        assert_eq!(late, Some(vec![group]));
        drop(begun);
        assert!(Look::begin().is_some());
    }
}
