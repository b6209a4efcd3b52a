//! The sockets of an address: TCP or UNIX, one for each event loop.
//!
//! The sockets of one TCP address share it by SO_REUSEPORT, which by itself would let another program of the same user
//! share it too, and take its part of the clients. So the first of them asks for the address alone, listens, and only
//! then lets in the others: wherever somebody listens already, with SO_REUSEPORT or without, it fails.
//!
//! Whoever started this process may have opened sockets for it, which listen already ([`inherit`]): those of an address that is
//! asked for are taken in place of new ones, so that no client finds nobody there.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use nix::unistd::Group;
use socket2::{Domain, Protocol, Type};

use crate::net::occupant;
use crate::net::stream::{Stream, set_transparent};
use crate::settings::{Address, SocketMode};

/// Sockets that whoever started this process has opened for it, until they are asked for.
static INHERITED: Mutex<Vec<(String, Vec<OwnedFd>)>> = Mutex::new(Vec::new());

/// Whether somebody else goes on to listen when this process ends.
static HANDED_OVER: AtomicBool = AtomicBool::new(false);

/// Sockets that listen already, by the [name](Sockets::name) that they had.
pub fn inherit(name: String, sockets: Vec<OwnedFd>) {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner).push((name, sockets));
}

/// Closes inherited sockets that no listener has taken.
pub fn forget_inherited() {
    INHERITED.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Somebody else goes on to listen: the files of UNIX sockets stay.
pub fn hand_over() {
    HANDED_OVER.store(true, Relaxed);
}

/// Inherited sockets of this configured address, if there are any; each is handed out once.
pub fn inherited(configured: &str) -> Option<Vec<OwnedFd>> {
    let mut all = INHERITED.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|(name, _)| name.split('\t').next() == Some(configured))?;
    Some(all.remove(at).1).filter(|sockets| !sockets.is_empty())
}

/// The sockets of one address: one for each event loop, until it takes it.
pub struct Sockets {
    /// As configured.
    pub configured: Address,
    /// As it is, with the port that the system chose.
    pub address: Address,
    waiting: Mutex<Vec<Listening>>,
    /// The file of a UNIX socket: another one may have its place when it goes.
    inode: Option<u64>,
}

enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Owner of a UNIX socket, who may connect.
pub struct Owner<'a> {
    /// Its permissions.
    pub mode: SocketMode,
    /// Its group; none: that of the program.
    pub group: Option<&'a str>,
}

impl Sockets {
    /// Opens them; those of TCP may be for connections that were meant for other addresses.
    ///
    /// # Errors
    /// When the address cannot be had; the message names it.
    pub fn open(configured: &Address, owner: &Owner<'_>, threads: usize, transparent: bool) -> Result<Sockets, String> {
        let failed = |error| format!("cannot listen on {configured}: {error}");
        if let Some(sockets) = inherited(&configured.to_string()) {
            return Sockets::of(configured, &sockets, threads).map_err(failed);
        }
        let (address, waiting, inode) = match configured {
            Address::Tcp(address) => {
                let first = bind_first(*address, transparent).map_err(failed)?;
                let address = first.local_addr().map_err(failed)?;
                let more = (1..threads).map(|_| bind(address, transparent, Sharing::Shared).map(Listening::Tcp));
                let all = std::iter::once(Ok(Listening::Tcp(first))).chain(more);
                (Address::Tcp(address), all.collect::<Result<_, _>>().map_err(failed)?, None)
            }
            Address::Unix(path) => {
                let first = bind_unix(path, owner).map_err(failed)?;
                // They share one queue: whichever event loop has time takes the next client.
                let all = (0..threads).map(|_| first.try_clone().map(Listening::Unix));
                (configured.clone(), all.collect::<Result<_, _>>().map_err(failed)?, inode_of(path))
            }
        };
        Ok(Sockets { configured: configured.clone(), address, waiting: Mutex::new(waiting), inode })
    }

    /// Uses sockets that listen already. If they are fewer than event loops, some loops share one.
    fn of(configured: &Address, sockets: &[OwnedFd], threads: usize) -> io::Result<Sockets> {
        let all = sockets.iter().cycle().take(threads).map(OwnedFd::try_clone);
        let (address, inode) = match configured {
            Address::Tcp(_) => (Address::Tcp(TcpListener::from(sockets[0].try_clone()?).local_addr()?), None),
            Address::Unix(path) => (configured.clone(), inode_of(path)),
        };
        let listening = |socket| match configured {
            Address::Tcp(_) => Listening::Tcp(TcpListener::from(socket)),
            Address::Unix(_) => Listening::Unix(UnixListener::from(socket)),
        };
        let waiting = all.map(|socket| socket.map(listening)).collect::<Result<_, _>>()?;
        Ok(Sockets { configured: configured.clone(), address, waiting: Mutex::new(waiting), inode })
    }

    /// Name among all sockets of the program: the address as configured, and as bound.
    pub fn name(&self) -> String {
        format!("{}\t{}", self.configured, self.address)
    }

    /// Another hold on those that no event loop has taken yet.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn copies(&self) -> io::Result<Vec<OwnedFd>> {
        let waiting = self.waiting.lock().expect("no holder panics");
        let copy = |socket: &Listening| match socket {
            Listening::Tcp(socket) => socket.as_fd().try_clone_to_owned(),
            Listening::Unix(socket) => socket.as_fd().try_clone_to_owned(),
        };
        waiting.iter().map(copy).collect()
    }

    /// The socket of one more event loop; none if all of them have theirs.
    pub fn take(&self) -> Option<io::Result<Socket>> {
        let socket = self.waiting.lock().expect("no holder panics").pop()?;
        Some(match socket {
            Listening::Tcp(socket) => tokio::net::TcpListener::from_std(socket).map(Socket::Tcp),
            Listening::Unix(socket) => tokio::net::UnixListener::from_std(socket).map(Socket::Unix),
        })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address
            && !HANDED_OVER.load(Relaxed)
            && inode_of(path) == self.inode
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn inode_of(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|facts| facts.ino())
}

/// Whether a socket begins alone on its address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// It has the address for itself until it listens; others of ours may follow then.
    Alone,
    /// Other sockets of ours listen there.
    Shared,
}

/// The first socket on an address. What only we ourselves have, for all addresses or from before a reload, we share.
fn bind_first(address: SocketAddr, transparent: bool) -> io::Result<TcpListener> {
    let error = match bind(address, transparent, Sharing::Alone) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
        outcome => return outcome,
    };
    let occupants = occupant::of(address);
    if !occupants.is_empty() && occupants.iter().all(occupant::Occupant::is_us) {
        return bind(address, transparent, Sharing::Shared);
    }
    Err(match occupants.iter().find(|occupant| !occupant.is_us()) {
        Some(occupant) => io::Error::new(error.kind(), format!("address in use by {occupant}")),
        None => error,
    })
}

/// One socket of several on the same address: the kernel spreads connections over the event loops.
fn bind(address: SocketAddr, transparent: bool, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if transparent {
        set_transparent(&socket, address.is_ipv4())?;
    }
    // What is left of connections of an earlier run is no hindrance, whoever listens is.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    if sharing == Sharing::Shared {
        socket.set_reuse_port(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    if sharing == Sharing::Alone {
        socket.set_reuse_port(true)?;
    }
    Ok(socket.into())
}

/// A UNIX socket with its permissions. What an earlier run has left there is removed, if nobody answers at it.
fn bind_unix(path: &Path, owner: &Owner<'_>) -> io::Result<UnixListener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let socket = UnixListener::bind(path)?;
    permit(path, owner)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Gives a socket that we have made its group and mode by a descriptor: in a folder of somebody else's the name may lead to
/// another file by now.
fn permit(path: &Path, owner: &Owner<'_>) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, chownat, openat};
    let file = openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let facts = std::fs::File::from(file.try_clone()?).metadata()?;
    let is_ours = facts.uid() == rustix::process::geteuid().as_raw() && facts.nlink() == 1;
    if !facts.file_type().is_socket() || !is_ours {
        return Err(io::Error::other("another file has taken the place of the socket"));
    }
    if let Some(group) = owner.group {
        chownat(&file, "", None, Some(Gid::from_raw(group_number(group)?)), AtFlags::EMPTY_PATH)?;
    }
    let way = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::set_permissions(way, std::fs::Permissions::from_mode(owner.mode.0))
}

/// The number of a group, by its name or as a number.
///
/// # Errors
/// When there is no such group.
pub fn group_number(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let group = Group::from_name(name)?;
    group.map(|group| group.gid.as_raw()).ok_or_else(|| io::Error::other(format!("there is no group {name:?}")))
}

/// A socket of an event loop.
pub enum Socket {
    /// TCP.
    Tcp(tokio::net::TcpListener),
    /// A UNIX socket.
    Unix(tokio::net::UnixListener),
}

impl Socket {
    /// Waits for a client: its stream, and where it is. On a UNIX socket it is on this machine.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        match self {
            Socket::Tcp(socket) => {
                let (stream, client) = socket.accept().await?;
                let _ = stream.set_nodelay(true);
                // On a socket for both versions of IP, IPv4 looks like IPv6.
                Ok((Stream::Tcp(stream), SocketAddr::new(client.ip().to_canonical(), client.port())))
            }
            Socket::Unix(socket) => Ok((Stream::Unix(socket.accept().await?.0), LOCAL)),
        }
    }
}

/// The address of a client; a client on a UNIX socket has none.
pub fn network_address(client: SocketAddr) -> Option<std::net::IpAddr> {
    (client != LOCAL).then_some(client.ip())
}

/// Address of clients on UNIX sockets. Port 0 occurs in no TCP address.
pub const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn permissions_go_to_the_socket_and_to_no_file_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("socket"), folder.path().join("other"));
        let owner = Owner { mode: SocketMode(0o666), group: None };
        let _socket = bind_unix(&path, &owner).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o666);
        fs::write(&other, "secret").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(permit(&path, &owner).is_err());
        fs::remove_file(&path).unwrap();
        fs::hard_link(&other, &path).unwrap();
        assert!(permit(&path, &owner).is_err());
        assert_eq!(mode(&other), 0o600);
    }
}
