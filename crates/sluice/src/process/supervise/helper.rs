//! Processes that a supervisor starts on an edge's behalf, of the edge's own program.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::process::privileges;

/// Starts this program with these arguments, and nothing but these descriptors; root's becomes nobody.
///
/// # Errors
/// When it cannot be started.
pub fn spawn(program: &OwnedFd, words: &[&str], beside: Vec<OwnedFd>) -> io::Result<u32> {
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    let title = if words.first() == Some(&"jail") { "sluice: jail" } else { "sluice" };
    command.arg0(title).args(words).env_clear().current_dir("/").process_group(0);
    jail::instructions::hand_on(&mut command);
    let mut beside = beside.into_iter();
    command.stdin(beside.next().ok_or(io::ErrorKind::InvalidData)?);
    command.stdout(beside.next().map_or_else(Stdio::null, Stdio::from));
    if let Some(error) = beside.next() {
        command.stderr(error);
    }
    if privileges::is_root() {
        command.uid(privileges::NOBODY).gid(privileges::NOBODY);
    }
    Ok(command.spawn()?.id())
}

/// Starts the process of the store as an edge is started: it becomes the user by itself.
///
/// # Errors
/// As [`spawn`].
pub fn keep(program: &OwnedFd, beside: Vec<OwnedFd>) -> io::Result<u32> {
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.arg0("sluice: keep").arg("keep").args(std::env::args_os().skip(1)).process_group(0);
    ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"].iter().for_each(|name| _ = command.env_remove(name));
    command.stdin(beside.into_iter().next().ok_or(io::ErrorKind::InvalidData)?);
    Ok(command.spawn()?.id())
}
