//! Accepting the clients of clamd's door.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_local;

use super::session::Session;
use super::wire::Wire;
use crate::net::accept::Handler;
use crate::net::stream::Stream;
use crate::porch::shared::Shared;
use crate::scanner::door::{Clamd, Client, Guest};

/// The way from a socket to a session.
pub struct Entrance(pub Rc<Shared>);

impl Handler for Entrance {
    type Place = (Arc<Clamd>, Guest, OwnedSemaphorePermit);

    async fn enter(&self, stream: &Stream, peer: SocketAddr) -> Result<Self::Place, Option<String>> {
        let clamd = self.0.runtime.borrow().clamd.clone();
        let client = match stream {
            Stream::Unix(stream) => Client::of(stream),
            _ => Client::Address(peer.ip()),
        };
        let Some(guest) = clamd.let_in(client) else {
            tracing::info!(client = %named(stream, peer), "client not in the access list");
            self.0.runtime.borrow().metrics.sessions_refused_total.add(1);
            return Err(None);
        };
        let permit = clamd.shared.connections.clone().acquire_owned().await.map_err(|_| None)?;
        Ok((clamd, guest, permit))
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, (clamd, guest, permit): Self::Place) {
        let client = named(&stream, peer);
        let wire = match stream {
            Stream::Unix(stream) => Wire::Unix(stream),
            Stream::Tcp(stream) => Wire::Tcp(stream),
            Stream::Tls(_) | Stream::Within(_) => return,
        };
        spawn_local(Session::new(self.0.clone(), clamd, (client, guest), permit).run(wire));
    }
}

/// The client as it stands in the log.
fn named(stream: &Stream, peer: SocketAddr) -> Arc<str> {
    match stream {
        Stream::Unix(_) => "local".into(),
        _ => peer.to_string().into(),
    }
}
