//! The steps before a session: tests of the client, the handshake, and what the next hop offers.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use proto::smtp::Reply;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::{Auth, ListenerTls};
use crate::smtp::client::Came;
use crate::smtp::session::Session;
use crate::smtp::vetting::Vetting;
use crate::smtp::wire::{REPLY_WAIT, secure, write};
use crate::upstream::hop::Hop;
use crate::upstream::smtp_hop::Leases;

/// How long a client waits for its greeting, at most, where it is not known yet what the next hop offers.
const LEARN_WAIT: Duration = Duration::from_secs(5);

/// Runs a session from its first byte to its last.
pub async fn run(shared: Rc<Shared>, came: Came, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let client = came.client;
    match admit(shared, came, ticket, stream).await {
        Ok(Some((session, stream))) => session.run(stream).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(%client, %error, "session not begun"),
    }
}

/// A session that may begin, and its stream; none if the client was turned away.
type Admitted = std::io::Result<Option<(Box<Session>, Stream)>>;

/// Steps before a session, in a box that is freed when it begins.
fn admit(shared: Rc<Shared>, came: Came, ticket: Ticket, stream: Stream) -> Pin<Box<dyn Future<Output = Admitted>>> {
    Box::pin(steps(shared, came, ticket, stream))
}

/// Shakes hands where that comes first. A client that wanted to go to a server is greeted when the server has greeted.
async fn steps(shared: Rc<Shared>, came: Came, ticket: Ticket, mut stream: Stream) -> Admitted {
    let Came { mut door, settings, client } = came;
    let begun = Vetting::begin(&shared.runtime.borrow(), &door.listener, client);
    let vetting = match begun {
        Ok(vetting) => vetting,
        Err(refusal) => return turn_away(&door, stream, refusal).await.map(|()| None),
    };
    if door.listener.place.tls == ListenerTls::Implicit {
        stream = secure(&shared, client, stream).await?;
        door = door.asked_for(stream.server_name());
    }
    let mut leases = shared.upstreams.clone();
    if door.route.is_private {
        leases = Leases::default();
    }
    let asks_for_mechanisms = door.listener.auth() != Auth::Off && door.route.facts.extensions().is_none();
    if door.listener.hop.transparent.is_some() || asks_for_mechanisms {
        let hostname = shared.runtime.borrow().settings.hostname.clone();
        if let Err(reply) = Hop::probe(&door.route, &hostname, &leases).await
            && door.listener.hop.transparent.is_some()
        {
            let farewell = format!("421 4.4.1 {}\r\n", reply.text);
            write(&mut stream, farewell.as_bytes()).await?;
            stream.close().await;
            return Ok(None);
        }
    } else if door.route.facts.extensions().is_none() {
        let hostname = shared.runtime.borrow().settings.hostname.clone();
        let _ = timeout(LEARN_WAIT, Hop::know(&door.route, &hostname, &leases)).await;
    }
    let cipher = stream.cipher();
    let mut session = Box::new(Session::new(shared, Came { door, settings, client }, ticket, cipher));
    session.client.leases = leases;
    session.vetting = vetting;
    Ok(Some((session, stream)))
}

/// Tells a client that it may not come. One that expects a handshake would not understand a word.
async fn turn_away(door: &Door, mut stream: Stream, refusal: Reply) -> std::io::Result<()> {
    if door.listener.place.tls == ListenerTls::Implicit {
        return Ok(());
    }
    let mut line = Vec::new();
    refusal.write(&mut line);
    timeout(REPLY_WAIT, stream.write_all(&line)).await??;
    stream.close().await;
    Ok(())
}
