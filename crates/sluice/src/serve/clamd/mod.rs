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
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use self::scanner::Scanner;
use self::session::Session;
use self::stats::Queue;
use self::wire::Wire;
use super::edge::Edge;
use super::listening::{Owner, Socket, Sockets};
use super::stream::Stream;
use crate::clamd_settings::ClamdSettings;

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
            let Some(socket) = sockets.take() else { continue };
            match socket {
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

async fn accept(edge: Rc<Edge>, socket: Socket) {
    loop {
        match socket.accept().await {
            Ok((stream, client)) => {
                let (wire, client) = match stream {
                    Stream::Unix(stream) => (Wire::Unix(stream), "local".into()),
                    Stream::Tcp(stream) => (Wire::Tcp(stream), client.to_string().into()),
                    Stream::Tls(_) => continue,
                };
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
