//! Accepting the clients of clamd's door.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::session::Session;
use super::wire::Wire;
use crate::net::accept::accepted;
use crate::net::listening::Socket;
use crate::net::stream::Stream;
use crate::porch::shared::Shared;
use crate::scanner::door::Client;

/// The sockets that an event loop accepts on.
#[derive(Default)]
pub struct Accepting {
    tasks: HashMap<String, JoinHandle<()>>,
}

impl Accepting {
    /// Starts to accept on the sockets that are new, and stops on those that are gone.
    pub fn open(&mut self, shared: &Rc<Shared>) {
        let clamd = shared.runtime.borrow().clamd.clone();
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
                    self.tasks.insert(address, tokio::task::spawn_local(accept(shared.clone(), socket)));
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

async fn accept(shared: Rc<Shared>, socket: Socket) {
    loop {
        let (stream, client) = accepted("clamd", || socket.accept()).await;
        let clamd = shared.runtime.borrow().clamd.clone();
        let (peer, wire, client): (_, _, Arc<str>) = match stream {
            Stream::Unix(stream) => (Client::of(&stream), Wire::Unix(stream), "local".into()),
            Stream::Tcp(stream) => (Client::Address(client.ip()), Wire::Tcp(stream), client.to_string().into()),
            Stream::Tls(_) | Stream::Within(_) => continue,
        };
        let Some(guest) = clamd.let_in(peer) else {
            tracing::info!(%client, "client not in the access list");
            shared.runtime.borrow().metrics.sessions_refused_total.add(1);
            continue;
        };
        let Ok(permit) = clamd.shared.connections.clone().acquire_owned().await else { return };
        let session = Session::new(shared.clone(), clamd, (client, guest), permit);
        tokio::task::spawn_local(session.run(wire));
    }
}
