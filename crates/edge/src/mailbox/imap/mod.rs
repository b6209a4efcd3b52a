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
//! Bounds: one command; a head window for the one message that is under way; `OWED_MAX` messages whose parts are
//! fetched one by one; [`flow::Parts::PLACES_MAX`] parts of a message that is not clean.

mod append;
mod appending;
mod fetch;
mod fetching;
mod items;
mod overwrite;
mod parts;
mod requests;
mod responses;
mod session;
mod told;
mod upstream;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use session::Session;
use upstream::Upstream;

/// Bytes gathered for a side before they are sent.
const OUTBOX_BYTES: usize = 32 << 10;

/// Messages of one FETCH that are not known to be clean.
const OWED_MAX: usize = 10_000;

/// Runs a session from its first byte to its last.
pub async fn run(shared: Rc<Shared>, door: Arc<Door>, client: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    if let Err(error) = converse(&shared, &door, client, ticket, stream).await {
        tracing::debug!(%client, %error, "session aborted");
    }
}

async fn converse(
    shared: &Rc<Shared>,
    door: &Arc<Door>,
    client: SocketAddr,
    ticket: Ticket,
    stream: Stream,
) -> std::io::Result<()> {
    let begin = async {
        let tls = shared.runtime.borrow().tls.clone();
        let (wire, door) = door.clone().begin(tls, stream).await?;
        let upstream = Upstream::connect(&door.route).await;
        std::io::Result::Ok((wire, door, upstream))
    };
    let (mut wire, door, upstream) = tokio::select! {
        begun = begin => begun?,
        () = ticket.lost() => return Err(std::io::Error::other("another client has the place")),
    };
    match upstream {
        Ok(upstream) => Box::new(Session::new(shared.clone(), door, (client, ticket), wire, upstream)).run().await,
        Err(error) => {
            tracing::warn!(server = %door.route.forward, %error, "the server cannot be reached");
            wire.write(b"* BYE [UNAVAILABLE] The server cannot be reached now\r\n").await?;
            wire.close().await;
            Ok(())
        }
    }
}
