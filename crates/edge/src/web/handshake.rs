//! Handshakes of TLS that is opened: with the server, and with the client in the server's place.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use proto::http::{Limits, Server};

use super::opened::{End, Opened};
use super::refused::Refused;
use super::session::Session;
use crate::net::opener::{Opener, is_distrust};
use crate::net::stream::Stream;
use crate::porch::runtime::Runtime;
use crate::settings::Pinned;
use crate::upstream::destination::{Destination, Failure};
use crate::upstream::origin::Origin;

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
        meant: Option<SocketAddr>,
        reached: Result<(Stream, SocketAddr), Refused>,
    ) -> io::Result<Result<Session, Session>> {
        let host = &*destination.host;
        let Some(end) = self.far_end(opener, host, reached).await else { return Ok(Err(self)) };
        let (shown, fault) = match &end {
            End::Server(proof, _) => (opener.mirror.of_server(proof), proof.fault.clone()),
            End::Refused(refused) => (opener.mirror.of_host(host), Some(refused.detail.clone())),
        };
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
        self.opened = Some(Rc::new(Opened { destination, meant, end }));
        Ok(Ok(self))
    }

    /// Shakes hands with the server; none where it cannot be opened, and may be reached all the same.
    async fn far_end(
        &self,
        opener: &Opener,
        host: &str,
        reached: Result<(Stream, SocketAddr), Refused>,
    ) -> Option<End> {
        let (stream, address) = match reached {
            Ok(reached) => reached,
            Err(refused) => return Some(End::Refused(refused)),
        };
        match opener.secure(stream, host).await {
            Ok(stream) => {
                let proof = opener.proof(&stream, host);
                let origin = Origin::new(stream, address);
                // It may have waited too long when there is a request.
                let origin = Origin { is_proved: proof.fault.is_none(), is_reused: true, ..origin };
                Some(End::Server(proof, RefCell::new(Some(Box::new(origin)))))
            }
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
        destination: &Destination,
        stream: Stream,
        address: SocketAddr,
    ) -> Result<Origin, Failure> {
        let opener = runtime.opener.as_ref().ok_or(Failure::Forbidden)?;
        let stream = opener.secure(stream, &destination.host).await.map_err(Failure::Handshake)?;
        let proof = opener.proof(&stream, &destination.host);
        match &proof.fault {
            None => Ok(Origin::new(stream, address)),
            Some(_) if self.opened.as_ref().is_some_and(|opened| opened.is_known(destination, &proof)) => {
                Ok(Origin { is_proved: false, ..Origin::new(stream, address) })
            }
            Some(fault) => Err(Failure::Proof(fault.clone())),
        }
    }
}
