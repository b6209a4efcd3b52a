//! HTTP/1.1 (RFC 9112), and HTTP/2 where TLS is opened: a proxy that clients know of, one that stands before a server, or one that connections are sent to.
//!
//! Each message is read, and written again in one canonical form: what was read here is what the next reader reads. Bodies are
//! inspected in both directions. What fits into the head window is answered when all of it was inspected; what is larger goes on as
//! it is inspected, but for its end, and what is found then breaks it off.
//!
//! Not here: caching.
//! Bounds: the head window for each body in flight; two heads of 64 KiB; 64 KiB read from either side.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proto::http::{Request, ServerEvent, Version};
use proto::tls::is_handshake;
use tokio::time::{Instant, timeout_at};

use super::head;
use super::http2;
use super::language::Language;
use super::session::{SILENCE_WAIT, Session};
use super::vet::has_body;
use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::net::tls::{HTTP_2, for_web};
use crate::porch::door::Door;
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::{HttpListener, Mode};

/// How long a client may take for a head.
const HEAD_WAIT: Duration = Duration::from_secs(30);

/// Runs a connection from its first byte to its last.
pub async fn run(
    shared: Rc<Shared>,
    door: Arc<Door>,
    settings: Arc<HttpListener>,
    peer: SocketAddr,
    ticket: Ticket,
    stream: Stream,
) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let is_known_proxy = settings.mode == Mode::Explicit;
    let tls = shared.runtime.borrow().tls.as_deref().map(|tls| for_web(tls, is_known_proxy));
    let outcome = match door.clone().begin(tls, stream).await {
        Ok((wire, door)) => {
            let session = Session::new(shared, door, settings, peer, wire, None);
            session.run_to_its_end().await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        tracing::debug!(%peer, %error, "connection aborted");
    }
    drop(ticket);
}

impl Session {
    /// Begins with TLS where an intercepted client does, and with requests otherwise.
    async fn run_to_its_end(mut self) -> io::Result<()> {
        if self.settings.mode != Mode::Transparent {
            return self.speak().await;
        }
        if !self.begins_with_tls().await? {
            return if self.is_foreign() { self.end().await } else { self.speak().await };
        }
        match self.intercepted_tls().await? {
            Some(opened) => opened.speak().await,
            None => Ok(()),
        }
    }

    /// Goes on in the version that both sides have agreed on.
    async fn speak(self) -> io::Result<()> {
        match self.wire.agreed_protocol() {
            Some(HTTP_2) => http2::run(self).await,
            _ => self.converse().await,
        }
    }

    /// A conversation that nobody waits for.
    pub(super) async fn converse_logged(self) {
        let peer = self.peer;
        if let Err(error) = self.converse().await {
            tracing::debug!(%peer, %error, "stream aborted");
        }
    }

    async fn begins_with_tls(&mut self) -> io::Result<bool> {
        let has_come = !self.wire.input().is_empty() || self.read(Instant::now() + HEAD_WAIT).await?;
        Ok(has_come && is_handshake(self.wire.input()))
    }

    async fn converse(mut self) -> io::Result<()> {
        while let Some(request) = self.next_request().await? {
            self.began = Instant::now();
            self.shared.runtime.borrow().metrics.http_requests_total.add(1);
            if request.method == "CONNECT" {
                match self.tunnel(&request).await? {
                    Some(opened) => return Box::pin(opened.speak()).await,
                    None => return Ok(()),
                }
            }
            if let Err(error) = self.serve(&request).await {
                // It would be an end like any other.
                if self.is_cut && self.is_old {
                    self.wire.reset();
                }
                return Err(error);
            }
            self.send().await?;
            if self.server.is_over() {
                break;
            }
        }
        self.end().await
    }

    /// Waits for the next request; none where the connection is over.
    async fn next_request(&mut self) -> io::Result<Option<Box<Request>>> {
        let mut deadline = Instant::now() + SILENCE_WAIT;
        let mut is_idle = true;
        loop {
            let (taken, event) = self.server.step(self.wire.input());
            self.wire.take(taken);
            match event {
                ServerEvent::Request(request) => return Ok(Some(request)),
                ServerEvent::Refused(refusal) => {
                    tracing::info!(client = %self.peer.ip(), reason = refusal.reason(), "request refused");
                    self.is_sending = true;
                    return Ok(None);
                }
                ServerEvent::Closed | ServerEvent::Tunnel => return Ok(None),
                ServerEvent::Idle if taken == 0 => {
                    self.send().await?;
                    if std::mem::replace(&mut is_idle, self.server.is_idle()) && !is_idle {
                        deadline = Instant::now() + HEAD_WAIT;
                    }
                    if !self.read(deadline).await? {
                        self.server.finish();
                        return Ok(None);
                    }
                }
                ServerEvent::Idle | ServerEvent::Content | ServerEvent::End(_) => {}
            }
        }
    }

    /// Waits for more of the client; whether any came. Between two requests it ends when the program stops.
    async fn read(&mut self, deadline: Instant) -> io::Result<bool> {
        let mut control = self.shared.control.clone();
        let is_idle = self.server.is_idle();
        tokio::select! {
            outcome = timeout_at(deadline, self.wire.read()) => outcome?,
            _ = control.wait_for(|control| control.stopping), if is_idle => Ok(false),
        }
    }

    /// Answers a request.
    async fn serve(&mut self, request: &Request) -> io::Result<()> {
        self.is_old = request.version < Version::Http11;
        self.is_sending = has_body(request);
        self.language = Language::of(&request.fields);
        if !self.is_sending {
            // A request without a body is complete.
            self.server.step(b"");
        }
        if let Some(script) = self.proxy_script(request) {
            return self.answer_script(request, &script).await;
        }
        let admitted = match self.log_in(request).await {
            Ok(()) => self.vet(request).await,
            Err(refused) => Err(refused),
        };
        match admitted {
            Ok(_) if head::forwards_left(request) == Some(0) => self.answer_options(request).await,
            Ok(order) => self.exchange(&order).await,
            Err(refused) => {
                let url = self.url(request);
                self.refuse(&refused, &request.method, &url).await
            }
        }
    }
}
