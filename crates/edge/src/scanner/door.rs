//! The door that speaks clamd's protocol: files and streams are scanned for whoever asks.
//!
//! Its addresses, settings and limits are those of `[clamd]`. Sessions live on the event loops; what they ask for is
//! scanned on threads apart (`scanner.rs`). A reload changes settings and signatures for what begins afterwards; what is
//! under way goes on as it began.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UnixStream;
use tokio::sync::{Notify, Semaphore};

use super::stats::Queue;
use super::threads::Scanner;
use crate::net::listening::{Owner, Sockets};
use crate::settings::ClamdSettings;

/// The door, with the settings of one reading of the configuration.
pub struct Clamd {
    /// The settings.
    pub settings: Arc<ClamdSettings>,
    /// Where it listens.
    pub sockets: Vec<Arc<Sockets>>,
    /// State that survives reloads.
    pub shared: Arc<Lasting>,
}

/// State that survives reloads.
pub struct Lasting {
    pub(crate) scanner: Scanner,
    pub(crate) queue: Arc<Queue>,
    /// Connections that may be accepted yet.
    pub(crate) connections: Arc<Semaphore>,
    /// The connections of each client.
    clients: Arc<Mutex<HashMap<Client, usize>>>,
    /// A client wants the signatures to be read anew.
    pub reload: Notify,
    /// A client wants the program to end.
    pub shutdown: Notify,
}

impl Clamd {
    /// Opens the sockets that `old` does not have.
    ///
    /// # Errors
    /// When one cannot be had, or the threads cannot be started; the message says which.
    pub fn load(settings: &ClamdSettings, old: Option<&Clamd>, threads: usize) -> Result<Clamd, String> {
        let shared = match old {
            Some(old) => old.shared.clone(),
            None => Arc::new(Lasting::start(settings)?),
        };
        let owner = Owner { mode: settings.socket_mode, group: settings.socket_group.as_deref() };
        let sockets = settings.addresses.iter().map(|address| {
            let known = old.and_then(|old| old.sockets.iter().find(|sockets| sockets.configured == *address));
            match known {
                Some(sockets) => Ok(sockets.clone()),
                None => Sockets::open(address, &owner, threads, false).map(Arc::new),
            }
        });
        let sockets = sockets.collect::<Result<_, _>>()?;
        Ok(Clamd { settings: Arc::new(settings.clone()), sockets, shared })
    }
}

/// Identity of a client, by which connections are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Client {
    /// Over TCP.
    Address(IpAddr),
    /// Over a UNIX socket: a user of this machine, if it can be told which.
    User(Option<u32>),
}

impl Client {
    pub(crate) fn of(stream: &UnixStream) -> Client {
        Client::User(stream.peer_cred().ok().map(|facts| facts.uid()))
    }

    /// Where it comes from, if over TCP.
    pub const fn address(self) -> Option<IpAddr> {
        match self {
            Client::Address(address) => Some(address),
            Client::User(_) => None,
        }
    }
}

/// A client that was let in, for as long as it stays.
pub struct Guest {
    /// Identity of the client.
    pub client: Client,
    counted: Arc<Mutex<HashMap<Client, usize>>>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut counted = self.counted.lock().expect("no holder panics");
        if let Entry::Occupied(mut count) = counted.entry(self.client) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Clamd {
    /// Counts a client, unless it may not come or has too many connections.
    pub(crate) fn let_in(&self, client: Client) -> Option<Guest> {
        let networks = &self.settings.clients;
        let may = client.address().is_none_or(|from| networks.is_empty() || networks.iter().any(|one| one.holds(from)));
        let mut counted = self.shared.clients.lock().expect("no holder panics");
        let open = counted.get(&client).copied().unwrap_or(0);
        if !may || open >= self.settings.connections_per_client_max {
            return None;
        }
        counted.insert(client, open + 1);
        Some(Guest { client, counted: self.shared.clients.clone() })
    }
}

impl Lasting {
    fn start(settings: &ClamdSettings) -> Result<Lasting, String> {
        let threads = match settings.scan_threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        Ok(Lasting {
            scanner: Scanner::start(threads).map_err(|error| format!("cannot start threads: {error}"))?,
            queue: Arc::default(),
            clients: Arc::default(),
            connections: Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS))),
            reload: Notify::new(),
            shutdown: Notify::new(),
        })
    }
}
