//! The listeners of an event loop: for each address a task that accepts.

use std::collections::HashMap;

use tokio::task::{JoinHandle, spawn_local};

use crate::net::accept::{Handler, accept};
use crate::net::listening::Sockets;

/// Tasks that accept, by their addresses.
#[derive(Default)]
pub struct Listeners(HashMap<String, JoinHandle<()>>);

impl Listeners {
    /// Accepts at an address, if its sockets have one left for this event loop; false if not.
    pub fn open(&mut self, sockets: &Sockets, handler: impl Handler + 'static) -> bool {
        let address = sockets.address.to_string();
        match sockets.take() {
            Some(Ok(socket)) => {
                let name = address.clone();
                self.0.insert(address, spawn_local(async move { accept(name, &socket, &handler).await }));
                true
            }
            Some(Err(error)) => {
                tracing::error!(%address, %error, "cannot accept");
                false
            }
            None => false,
        }
    }

    /// Adds a task that accepts at an address by itself.
    pub fn add(&mut self, address: String, task: JoinHandle<()>) {
        self.0.insert(address, task);
    }

    /// Closes all but these; false if none is left.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) -> bool {
        self.0.retain(|address, task| {
            let stays = stays(address);
            if !stays {
                task.abort();
            }
            stays
        });
        !self.0.is_empty()
    }
}
