//! Listening sockets that the service manager keeps while the service is restarted, and those that it has opened itself.
//!
//! With `FileDescriptorStoreMax=` systemd keeps what it is handed (`FDSTORE=1`, sd_notify(3)) until the service is stopped for good,
//! and hands it to the next process (sd_listen_fds(3)). So whoever connects during `systemctl restart`, or while a package is
//! upgraded, waits for the next program and is not refused. A `sluice.socket` hands over sockets in the same way, and they are
//! told by their addresses.
//!
//! UNIX sockets are not kept: their files go with the process that has opened them.

use std::net::TcpListener;
use std::os::fd::{AsFd as _, OwnedFd};

use listenfd::ListenFd;
use rustix::io::FdFlags;

use super::Kept;

/// Characters that systemd refuses in names, and their substitutes. No address has either.
const STAND_INS: [(char, char); 2] = [(':', '='), ('\t', '|')];

/// Name of a socket at the service manager; none if it is not to be kept.
pub fn name_there(name: &str) -> Option<String> {
    let plain =
        |c: char| (c.is_ascii_graphic() || c == ' ' || c == '\t') && !STAND_INS.iter().any(|(_, other)| c == *other);
    if name.starts_with("unix:") || name.len() > 255 || !name.chars().all(plain) {
        return None;
    }
    Some(STAND_INS.iter().fold(name.into(), |name: String, (ours, theirs)| name.replace(*ours, &theirs.to_string())))
}

fn name_here(name: &str) -> String {
    STAND_INS.iter().fold(name.into(), |name: String, (ours, theirs)| name.replace(*theirs, &ours.to_string()))
}

/// The sockets that the service manager has for this process.
pub fn handed_over() -> Vec<Kept> {
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut given = ListenFd::from_env();
    let mut all: Vec<Kept> = Vec::new();
    for index in 0..given.len() {
        let name = names.next().unwrap_or_default();
        // What is no listening socket of TCP is not ours.
        let Ok(Some(socket)) = given.take_tcp_listener(index) else { continue };
        let Some(name) = name_of(name, &socket) else { continue };
        if rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC).is_err() || socket.set_nonblocking(true).is_err() {
            continue;
        }
        let socket = OwnedFd::from(socket);
        match all.iter_mut().find(|kept| kept.name == name) {
            Some(kept) => kept.sockets.push(socket),
            None => all.push(Kept { name, sockets: vec![socket] }),
        }
    }
    all
}

/// The name of ours that a socket was stored by; another's is told by its address.
fn name_of(name: &str, socket: &TcpListener) -> Option<String> {
    if name.contains(['=', '|']) {
        return Some(name_here(name));
    }
    let address = socket.local_addr().ok()?;
    Some(format!("{address}\t{address}"))
}

/// The same sockets, to be stored.
pub fn borrowed(kept: &Kept) -> Vec<std::os::fd::BorrowedFd<'_>> {
    kept.sockets.iter().map(OwnedFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were() {
        for name in
            ["127.0.0.1:25\t127.0.0.1:25", "[::]:25\t[::]:25", "metrics 127.0.0.1:9425", "127.0.0.1:0\t127.0.0.1:4711"]
        {
            let there = name_there(name).unwrap();
            assert!(!there.contains([':', '\t']), "{there}");
            assert_eq!(name_here(&there), name);
        }
        assert_eq!(name_there("unix:/run/a\tunix:/run/a"), None);
        assert_eq!(name_there("a=b"), None);
    }
}
