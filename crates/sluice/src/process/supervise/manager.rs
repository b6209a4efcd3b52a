//! Telling the service manager how we are (sd_notify(3)): ready, reloading, stopping, and alive.
//!
//! Where there is no `NOTIFY_SOCKET`, nothing is told. The service manager listens to the process alone that it has started, so an
//! edge has its supervisor pass it on.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr};

use super::lead::{Lead, lead};

/// Descriptors in one message.
const STORED_AT_A_TIME: usize = 32;

/// The way to the service manager.
pub enum Manager {
    /// No service manager.
    None,
    /// The one that the environment names.
    Socket(UnixDatagram, SocketAddr),
    /// By way of the supervisor.
    Lead(&'static Lead),
}

impl Manager {
    /// The one that there is.
    pub fn find() -> Manager {
        if let Some(lead) = lead() {
            return Manager::Lead(lead);
        }
        let named = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
                _ => SocketAddr::from_pathname(&name),
            };
            Some(Manager::Socket(UnixDatagram::unbound().ok()?, address.ok()?))
        });
        named.unwrap_or(Manager::None)
    }

    /// Everything is open; `status` is shown to people.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is being read anew; [`Manager::ready`] follows.
    pub fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Sessions come to their end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=waiting for sessions to end");
    }

    /// Has it keep sockets by this name, in place of those that it has by the same.
    pub fn store(&self, name: &str, sockets: &[BorrowedFd<'_>]) {
        let Manager::Socket(socket, address) = self else { return };
        self.forget(name);
        let to = match address.as_abstract_name() {
            Some(name) => SocketAddrUnix::new_abstract_name(name),
            None => SocketAddrUnix::new(address.as_pathname().unwrap_or(std::path::Path::new("/"))),
        };
        let text = format!("FDSTORE=1\nFDNAME={name}\nFDPOLL=0");
        for piece in sockets.chunks(STORED_AT_A_TIME) {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STORED_AT_A_TIME))];
            let mut with = SendAncillaryBuffer::new(&mut space);
            with.push(SendAncillaryMessage::ScmRights(piece));
            let Ok(to) = &to else { return };
            let sent = sendmsg_addr(socket, to, &[IoSlice::new(text.as_bytes())], &mut with, SendFlags::NOSIGNAL);
            if let Err(error) = sent {
                tracing::debug!(%error, "the service manager does not keep a socket");
            }
        }
    }

    /// Has it close what it keeps by this name.
    pub fn forget(&self, name: &str) {
        self.tell(&format!("FDSTOREREMOVE=1\nFDNAME={name}"));
    }

    /// Tells it this.
    pub fn tell(&self, text: &str) {
        match self {
            Manager::None => {}
            Manager::Lead(lead) => lead.notify(text),
            Manager::Socket(socket, address) => {
                if let Err(error) = socket.send_to_addr(text.as_bytes(), address) {
                    tracing::debug!(%error, "cannot notify the service manager");
                }
            }
        }
    }
}
