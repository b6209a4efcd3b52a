//! The steps before a session: tests of the client, the handshake, and what the next hop offers.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use proto::smtp::Reply;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::net::stream::Stream;
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::{Auth, ListenerTls};
use crate::smtp::session::{Came, REPLY_WAIT, Session, write};
use crate::smtp::vetting::Vetting;
use crate::upstream::hop::Hop;
use crate::upstream::smtp_hop::Leases;

/// How long a client waits for its greeting, at most, where it is not known yet what the next hop offers.
const LEARN_WAIT: Duration = Duration::from_secs(5);

/// A session that may begin, and its stream; none if the client was turned away.
pub type Admitted = std::io::Result<Option<(Box<Session>, Stream)>>;

/// Steps before a session, in a box that is freed when it begins.
pub fn admit(
    shared: Rc<Shared>,
    came: Came,
    ticket: Ticket,
    stream: Stream,
) -> Pin<Box<dyn Future<Output = Admitted>>> {
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

/// Shakes hands with a client.
pub async fn secure(shared: &Shared, client: SocketAddr, stream: Stream) -> std::io::Result<Stream> {
    let tls = shared.runtime.borrow().tls.clone();
    let tls = tls.ok_or_else(|| std::io::Error::other("no certificate any more"))?;
    let secured = stream.accept_tls(tls).await;
    secured.inspect_err(|error| tracing::debug!(%client, %error, "handshake failed"))
}
