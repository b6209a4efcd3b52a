//! Whether a request may be made, and where it goes.

use std::net::IpAddr;

use proto::http::{Framing, Request, Target};

use super::head::{self, Manner};
use super::object;
use super::session::{Refused, Session};
use crate::message::trace;
use crate::porch::filter::{Decision, RequestFacts};
use crate::settings::{MismatchedNames, Mode, Ranges, UnknownCodings};
use crate::upstream::destination::{Destination, Failure};

/// A request that may be made.
pub struct Order {
    /// Where it goes.
    pub destination: Destination,
    /// The request as the origin gets it.
    pub request: Request,
    /// What is asked for, as a whole URL.
    pub url: Vec<u8>,
}

impl Order {
    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        has_body(&self.request)
    }

    /// Whether it may be made twice (RFC 9110, section 9.2.2), and can be.
    pub fn is_repeatable(&self) -> bool {
        !self.has_body() && matches!(self.request.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

/// Whether a request has a body.
pub fn has_body(request: &Request) -> bool {
    !matches!(request.framing, Framing::Empty | Framing::Length(0))
}

/// What is asked for, as a whole URL.
pub fn url(request: &Request) -> Vec<u8> {
    let authority = request.authority().unwrap_or_default();
    match &request.target {
        Target::Authority(authority) => authority.clone(),
        Target::Absolute { scheme, .. } => [scheme.as_bytes(), b"://", authority, request.path()].concat(),
        Target::Origin(_) | Target::Asterisk => [b"http://", authority, request.path()].concat(),
    }
}

impl Session {
    /// Whether a request may be made, and where it goes.
    pub(super) async fn vet(&self, request: &Request) -> Result<Order, Refused> {
        let runtime = self.shared.runtime.borrow().clone();
        let hostname = &*runtime.settings.hostname;
        if head::is_loop(&request.fields, hostname) {
            return Err(Refused::new(508, "The request has been here already: proxies send it in a circle."));
        }
        if request.method == "TRACE" {
            return Err(Refused::new(405, "TRACE is not passed on."));
        }
        if request.fields.lists("upgrade", "websocket") {
            return Err(Refused::new(501, "WebSocket is not passed on in the clear: use wss."));
        }
        let may_be_coded = self.settings.unknown_codings == UnknownCodings::Pass;
        if has_body(request) && !may_be_coded && object::codings(&request.fields).is_none() {
            return Err(Refused::new(415, "The content is in a coding that is not known here."));
        }
        let destination = self.destination(request).await?;
        self.filter(request, &destination)?;
        let client = (self.settings.mode == Mode::Reverse).then(|| (self.peer.ip(), self.wire.is_encrypted()));
        let manner = Manner { hostname, passes_ranges: self.settings.ranges == Ranges::Pass, client };
        Ok(Order { destination, request: head::for_origin(request, &manner), url: url(request) })
    }

    /// Where a request goes.
    async fn destination(&self, request: &Request) -> Result<Destination, Refused> {
        let authority = request.authority().unwrap_or_default();
        let asked = || Destination::parse(authority, 80).ok_or_else(|| Refused::new(400, "No server has this name."));
        match (self.settings.mode, &request.target) {
            (Mode::Explicit, Target::Absolute { scheme, .. }) if scheme == "http" => self.check_port(asked()?),
            (Mode::Explicit, Target::Absolute { .. }) => {
                Err(Refused::new(501, "Only http is passed on by this way; https goes by CONNECT."))
            }
            (Mode::Explicit, _) => Err(Refused::new(400, "This is a proxy: the request has to name a server.")),
            (_, Target::Absolute { scheme, .. }) if scheme != "http" && scheme != "https" => {
                Err(Refused::new(400, "No such server is here."))
            }
            (Mode::Reverse, _) => {
                let upstream = self.settings.upstream.as_deref().unwrap_or_default();
                Destination::parse(upstream.as_bytes(), 80).ok_or_else(|| Refused::new(502, "There is no server."))
            }
            (Mode::Transparent, _) => {
                let server = self.door.meant_for().ok_or_else(|| Refused::new(400, "It was meant for nobody."))?;
                self.check_host(asked()?, server.ip()).await?;
                Ok(Destination { host: server.ip().to_string(), port: server.port() })
            }
        }
    }

    fn check_port(&self, destination: Destination) -> Result<Destination, Refused> {
        let is_allowed = self.settings.ports.contains(&destination.port);
        if is_allowed { Ok(destination) } else { Err(Refused::from(&Failure::Forbidden)) }
    }

    /// Whether the address that an intercepted connection was meant for is one of the host that it asks for. The connection goes
    /// to the address in any case.
    async fn check_host(&self, asked: Destination, meant: IpAddr) -> Result<(), Refused> {
        let found = self.addresses(&asked).await.unwrap_or_default();
        if found.iter().any(|address| address.ip() == meant.to_canonical()) {
            return Ok(());
        }
        tracing::info!(client = %self.peer.ip(), host = asked.host, server = %meant, "Host has another address");
        match self.settings.mismatched_names {
            MismatchedNames::Log => Ok(()),
            MismatchedNames::Refuse => Err(Refused::new(421, "The server has another address.")),
        }
    }

    /// What lists say of a request.
    pub(super) fn filter(&self, request: &Request, destination: &Destination) -> Result<(), Refused> {
        let named = request.authority().and_then(|authority| Destination::parse(authority, destination.port));
        let named = named.as_ref().unwrap_or(destination);
        let facts = RequestFacts {
            client: self.peer.ip(),
            method: &request.method,
            host: &named.host,
            port: named.port,
            path: request.path(),
            fields: &request.fields,
        };
        match self.shared.runtime.borrow().filter.request(&facts) {
            Decision::Allow => Ok(()),
            Decision::Block { reason, category } => {
                Err(Refused { status: 403, words: reason, detail: trace::printable(&category).into() })
            }
        }
    }
}
