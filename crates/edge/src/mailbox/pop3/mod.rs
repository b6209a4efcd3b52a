//! The POP3 door: a client, the server that has its mailbox, and the inspection of each message between them.
//!
//! A session is one task. The client's commands go to the server as they come, each answered in its turn; what is ours to
//! answer waits in the same queue. A message is asked for together with its lasting name, by which its fate is remembered.
//!
//! ```text
//!  client ─ pop3::Server ─ Command ─► tasks ─► pop3::Client ─ server
//!         ◄─────────────── Retrieval ◄──────── Content
//! ```
//!
//! Bounds: `TASKS_MAX` commands that are not answered; a head window for the one message that is under way.

mod session;
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

/// Commands of one session that are not answered.
const TASKS_MAX: usize = 64;

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
        Ok(upstream) => Session::new(shared.clone(), door, (client, ticket), wire, upstream).run().await,
        Err(error) => {
            tracing::warn!(server = %door.route.forward, %error, "the server cannot be reached");
            wire.write(b"-ERR [SYS/TEMP] The server cannot be reached now\r\n").await?;
            wire.close().await;
            Ok(())
        }
    }
}
