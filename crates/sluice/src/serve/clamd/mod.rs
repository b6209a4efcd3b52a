//! The door that speaks clamd's protocol: files and streams are scanned for whoever asks.
//!
//! Its addresses, settings and limits are those of `[clamd]`. Sessions live on the event loops; what they ask for is
//! scanned on threads apart ([`scanner`]). A reload changes settings and signatures for what begins afterwards; what is
//! under way goes on as it began.

mod paths;
mod scanner;
mod session;
mod stats;
mod wire;

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use self::scanner::Scanner;
use self::session::Session;
use self::stats::Queue;
use self::wire::Wire;
use super::door;
use super::edge::Edge;
use crate::clamd_settings::{Address, ClamdSettings};

/// The door, with the settings of one reading of the configuration.
pub struct Clamd {
    /// The settings.
    pub settings: Arc<ClamdSettings>,
    /// Where it listens.
    pub sockets: Vec<Arc<Sockets>>,
    /// What stays from reload to reload.
    pub shared: Arc<Shared>,
}

/// What stays from reload to reload.
pub struct Shared {
    scanner: Scanner,
    queue: Arc<Queue>,
    /// Connections that may be accepted yet.
    connections: Arc<Semaphore>,
    /// A client wants the signatures to be read anew.
    pub reload: Notify,
    /// A client wants the program to end.
    pub shutdown: Notify,
}

/// The sockets of one address: one for each event loop, until it takes it.
pub struct Sockets {
    /// As configured.
    configured: Address,
    /// As it is, with the port that the system chose.
    pub address: Address,
    waiting: Mutex<Vec<Listening>>,
}

enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Clamd {
    /// Opens the sockets that `old` does not have.
    ///
    /// # Errors
    /// When one cannot be had, or the threads cannot be started; the message says which.
    pub fn load(settings: &ClamdSettings, old: Option<&Clamd>, threads: usize) -> Result<Clamd, String> {
        let shared = match old {
            Some(old) => old.shared.clone(),
            None => Arc::new(Shared::start(settings)?),
        };
        let sockets = settings.addresses.iter().map(|address| {
            let known = old.and_then(|old| old.sockets.iter().find(|sockets| sockets.configured == *address));
            match known {
                Some(sockets) => Ok(sockets.clone()),
                None => Sockets::open(address, settings, threads).map(Arc::new),
            }
        });
        let sockets = sockets.collect::<Result<_, _>>()?;
        Ok(Clamd { settings: Arc::new(settings.clone()), sockets, shared })
    }
}

impl Shared {
    fn start(settings: &ClamdSettings) -> Result<Shared, String> {
        let threads = match settings.scan_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        Ok(Shared {
            scanner: Scanner::start(threads).map_err(|error| format!("cannot start threads: {error}"))?,
            queue: Arc::default(),
            connections: Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS))),
            reload: Notify::new(),
            shutdown: Notify::new(),
        })
    }
}

impl Sockets {
    fn open(configured: &Address, settings: &ClamdSettings, threads: usize) -> Result<Sockets, String> {
        let failed = |error| format!("cannot listen on {configured}: {error}");
        let (address, waiting) = match configured {
            Address::Tcp(address) => {
                let first = door::bind(*address).map_err(failed)?;
                let address = first.local_addr().map_err(failed)?;
                let more = (1..threads).map(|_| door::bind(address).map(Listening::Tcp));
                let all = std::iter::once(Ok(Listening::Tcp(first))).chain(more);
                (Address::Tcp(address), all.collect::<Result<_, _>>().map_err(failed)?)
            }
            Address::Unix(path) => {
                let first = bind(path, settings).map_err(failed)?;
                // They share one queue: whichever event loop has time takes the next client.
                let all = (0..threads).map(|_| first.try_clone().map(Listening::Unix));
                (configured.clone(), all.collect::<Result<_, _>>().map_err(failed)?)
            }
        };
        Ok(Sockets { configured: configured.clone(), address, waiting: Mutex::new(waiting) })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        if let Address::Unix(path) = &self.address {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A UNIX socket with its permissions. What an earlier run has left there is removed, if nobody answers at it.
fn bind(path: &Path, settings: &ClamdSettings) -> std::io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|facts| facts.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let socket = UnixListener::bind(path)?;
    if let Some(group) = &settings.socket_group {
        std::os::unix::fs::chown(path, None, Some(group_id(group)?))?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(settings.socket_mode.0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The number of a group, by its name in `/etc/group` or as a number.
fn group_id(name: &str) -> std::io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = std::fs::read_to_string("/etc/group")?;
    let line = text.lines().map(|line| line.split(':')).find_map(|mut fields| {
        let known = fields.next() == Some(name);
        fields.nth(1).filter(|_| known)
    });
    let number = line.and_then(|number| number.parse().ok());
    number.ok_or_else(|| std::io::Error::other(format!("there is no group {name:?}")))
}

/// The sockets that an event loop accepts on.
#[derive(Default)]
pub struct Accepting {
    tasks: HashMap<String, JoinHandle<()>>,
}

impl Accepting {
    /// Starts to accept on the sockets that are new, and stops on those that are gone.
    pub fn open(&mut self, edge: &Rc<Edge>) {
        let clamd = edge.site.borrow().clamd.clone();
        let open: Vec<_> = clamd.sockets.iter().map(|sockets| (sockets.address.to_string(), sockets)).collect();
        self.tasks.retain(|address, task| {
            let kept = open.iter().any(|(other, _)| other == address);
            if !kept {
                task.abort();
            }
            kept
        });
        for (address, sockets) in open {
            let Some(socket) = sockets.waiting.lock().expect("no holder panics").pop() else { continue };
            match listen(socket) {
                Ok(socket) => {
                    self.tasks.insert(address, tokio::task::spawn_local(accept(edge.clone(), socket)));
                }
                Err(error) => tracing::error!(%address, %error, "cannot accept"),
            }
        }
    }

    /// Accepts no more.
    pub fn stop(self) {
        self.tasks.into_values().for_each(|task| task.abort());
    }
}

enum Socket {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

fn listen(socket: Listening) -> std::io::Result<Socket> {
    Ok(match socket {
        Listening::Tcp(socket) => Socket::Tcp(tokio::net::TcpListener::from_std(socket)?),
        Listening::Unix(socket) => Socket::Unix(tokio::net::UnixListener::from_std(socket)?),
    })
}

impl Socket {
    async fn accept(&self) -> std::io::Result<(Wire, Arc<str>)> {
        match self {
            Socket::Tcp(socket) => {
                let (stream, client) = socket.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Wire::Tcp(stream), client.to_string().into()))
            }
            Socket::Unix(socket) => Ok((Wire::Unix(socket.accept().await?.0), "local".into())),
        }
    }
}

async fn accept(edge: Rc<Edge>, socket: Socket) {
    loop {
        match socket.accept().await {
            Ok((wire, client)) => {
                let clamd = edge.site.borrow().clamd.clone();
                let Ok(permit) = clamd.shared.connections.clone().acquire_owned().await else { return };
                let session = Session::new(edge.clone(), clamd, client, permit);
                tokio::task::spawn_local(session.run(wire));
            }
            Err(error) => {
                // Out of descriptors, most likely: sessions that end will free some.
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
