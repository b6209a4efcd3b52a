//! The IMAP door: a client, the server that has its mailboxes, and the inspection of each message between them.
//!
//! A session is one task. One command is in flight at a time; what the client sends ahead waits in its socket. Whole
//! messages are inspected as they stream. A part or a range goes to the client only of a message that is known to be
//! clean; of another one that is not known yet the whole is fetched and inspected first, and of one that is not clean the
//! same bytes are fetched as ranges of the whole and overwritten where they have to be.
//!
//! ```text
//!  client ─ imap::Server ─ Command ─► Work ─► imap::Client ─ server
//!         ◄──────── Retrieval, Overwriter ◄── Section, Content
//!         ─ Append ─► Appending ────────────► APPEND
//! ```
//!
//! Bounds: one command; a head window for the one message that is under way; [`OWED_MAX`] messages whose parts are
//! fetched one by one; [`flow::Parts::PLACES_MAX`] parts of a message that is not clean.

mod append;
mod fetch;
mod items;
mod overwrite;
mod parts;
mod requests;
mod responses;
mod session;
mod upstream;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use super::door::{Door, Ticket};
use super::edge::Edge;
use super::stream::Stream;
use super::wire::Wire;
use crate::serve::metrics::SessionOpen;
use session::Session;
use upstream::Upstream;

/// Messages of one FETCH that are not known to be clean.
const OWED_MAX: usize = 10_000;

/// Runs a session from its first byte to its last.
pub async fn run(edge: Rc<Edge>, door: Arc<Door>, client: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&edge.runtime.borrow().metrics);
    if let Err(error) = converse(&edge, &door, client, stream).await {
        tracing::debug!(%client, %error, "session broken off");
    }
    drop(ticket);
}

async fn converse(edge: &Rc<Edge>, door: &Arc<Door>, client: SocketAddr, stream: Stream) -> std::io::Result<()> {
    let (mut wire, door) = Wire::begin(edge, door, stream).await?;
    match Upstream::connect(&door.route).await {
        Ok(upstream) => Box::new(Session::new(edge.clone(), door, client, wire, upstream)).run().await,
        Err(error) => {
            tracing::warn!(server = %door.route.forward, %error, "the server cannot be reached");
            wire.write(b"* BYE [UNAVAILABLE] The server cannot be reached now\r\n").await?;
            wire.close().await;
            Ok(())
        }
    }
}
