//! Handshakes of TLS that is opened: with the server, and with the client in the server's place.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use proto::http::{Limits, Server};

use super::opened::{End, Opened};
use super::refused::Refused;
use super::session::Session;
use super::vet::Order;
use crate::net::opener::{Opener, is_distrust};
use crate::net::stream::Stream;
use crate::porch::runtime::Runtime;
use crate::settings::Pinned;
use crate::upstream::destination::{Destination, Failure};
use crate::upstream::origin::Origin;
use crate::upstream::origins::Reached;

impl Session {
    /// Opens the TLS that the client has begun, towards a server at the end of this stream, or to say why there is none. The session
    /// comes back as it was where the server cannot be opened, and may be reached all the same.
    ///
    /// # Errors
    /// When the client does not go along.
    pub(super) async fn open_tls(
        mut self,
        opener: &Opener,
        destination: Destination,
        (meant, is_looked_up): (Option<SocketAddr>, bool),
        reached: Result<(Stream, SocketAddr), Refused>,
    ) -> io::Result<Result<Session, Session>> {
        let host = &*destination.host;
        let address = reached.as_ref().ok().map(|(_, address)| *address);
        let Some(end) = self.far_end(opener, &destination, reached).await else { return Ok(Err(self)) };
        let (shown, fault) = match &end {
            End::Server(proof, _) => (opener.mirror.of_server(proof), proof.fault.clone()),
            End::Refused(refused) => (opener.mirror.of_host(host), Some(refused.detail.clone())),
            End::Plain(_) => (opener.mirror.of_host(host), None),
        };
        if let End::Server(proof, _) = &end {
            self.tell_handshake(address, Some(proof));
        }
        let (client, door) = (self.peer.ip(), self.door.listener.protocol().name());
        if let Err(error) = self.wire.accept_begun_tls(shown.map_err(io::Error::other)?).await {
            tracing::info!(door, %client, user = self.user(), server_name = host, reason = %error, action = "refuse", "tunnel");
            if is_distrust(&error) {
                opener.close(Some(client), host);
            }
            return Err(error);
        }
        tracing::info!(door, %client, user = self.user(), server_name = host, fault = fault.as_deref(), action = "open", "tunnel");
        self.shared.runtime.borrow().metrics.http_opened_total.add(1);
        self.server = Server::new(Limits::default());
        self.is_encrypted = true;
        self.opened = Some(Rc::new(Opened { destination, meant, is_looked_up, end }));
        Ok(Ok(self))
    }

    /// Shakes hands with the server; none where it cannot be opened, and may be reached all the same.
    async fn far_end(
        &self,
        opener: &Opener,
        destination: &Destination,
        reached: Result<(Stream, SocketAddr), Refused>,
    ) -> Option<End> {
        let host = &*destination.host;
        let (stream, address) = match reached {
            Ok(reached) => reached,
            Err(refused) => return Some(End::Refused(refused)),
        };
        let secured = async {
            let stream = opener.secure(stream, host, self.shared.origins.is_old(destination)).await?;
            let proof = opener.proof(&stream, host);
            let mut first = Reached::over(stream, address, proof.fault.is_none()).await?;
            if let Reached::Alone(origin) = &mut first {
                // It may have waited too long when there is a request.
                origin.is_reused = true;
            }
            Ok::<_, io::Error>(End::Server(proof, RefCell::new(Some(first))))
        };
        match secured.await {
            Ok(end) => Some(end),
            Err(_) if self.settings.pinned == Pinned::Tunnel => {
                opener.close(None, host);
                None
            }
            Err(error) => Some(End::Refused(Refused::from(&Failure::Handshake(error)))),
        }
    }

    /// A connection to a server in TLS: one that proves itself, or has been seen by the client as it is.
    pub(super) async fn secured(
        &self,
        runtime: &Runtime,
        order: &Order,
        stream: Stream,
        address: SocketAddr,
    ) -> Result<Origin, Failure> {
        let (destination, origins) = (&order.destination, &self.shared.origins);
        let opener = runtime.opener.as_ref().ok_or(Failure::Forbidden)?;
        let is_old = !order.need().may_share || origins.is_old(destination);
        let stream = opener.secure(stream, &destination.host, is_old).await.map_err(Failure::Handshake)?;
        let proof = opener.proof(&stream, &destination.host);
        if let Some(fault) = &proof.fault
            && !self.opened.as_ref().is_some_and(|opened| opened.is_known(destination, &proof))
        {
            return Err(Failure::Proof(fault.clone()));
        }
        let reached = Reached::over(stream, address, proof.fault.is_none()).await.map_err(Failure::Handshake)?;
        Ok(origins.begin(&order.route(), reached))
    }
}
