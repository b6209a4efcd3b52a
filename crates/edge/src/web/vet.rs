//! Whether a request may be made, and where it goes.

use std::net::SocketAddr;

use flow::Head;
use proto::http::{Fields, Framing, Part, Request, Response, Target, Version};

use super::head::{self, Manner};
use super::object;
use super::received;
use super::refused::Refused;
use super::session::Session;
use crate::net::http2;
use crate::porch::filter::{ContentFacts, Decision, Identity, Notice, Pass, RequestFacts};
use crate::settings::{MismatchedNames, Mode, Ranges, UnknownCodings};
use crate::upstream::destination::{Destination, Failure};
use crate::upstream::origins::{Need, Route};

/// A request that may be made.
pub struct Order {
    /// Where it goes.
    pub destination: Destination,
    /// The request as the origin gets it.
    pub request: Request,
    /// Its head as the client has sent it, where intrusion rules look at it.
    pub received: Option<Head>,
    /// The part of the object that the client gets, where the whole is fetched for it.
    pub part: Option<Part>,
    /// Target of the request as a whole URL.
    pub url: Vec<u8>,
    /// The terms of the lists.
    pub pass: Pass,
    /// How far the host of the URL is known.
    pub identity: Identity,
    /// The proxy ahead through which it goes.
    pub ahead: Option<Destination>,
    /// It goes through a tunnel of that.
    pub is_tunnelled: bool,
}

impl Order {
    /// The way of its connection.
    pub fn route(&self) -> Route {
        let proxy = self.ahead.as_ref().filter(|_| self.asks_proxy());
        Route { destination: proxy.unwrap_or(&self.destination).clone(), ahead: self.ahead.clone() }
    }

    /// Whether the proxy ahead gets the request itself.
    pub fn asks_proxy(&self) -> bool {
        self.ahead.is_some() && !self.is_tunnelled
    }

    /// Whether the request has a body.
    pub fn has_body(&self) -> bool {
        has_body(&self.request)
    }

    /// The connection that it needs.
    pub fn need(&self) -> Need {
        let has_form = || http2::request_to(&self.request).is_some();
        let may_share = self.destination.is_tls && !head::asks_for_socket(&self.request) && has_form();
        Need { is_repeatable: self.is_repeatable(), may_share }
    }

    /// Whether it may be made twice (RFC 9110, section 9.2.2), and can be.
    fn is_repeatable(&self) -> bool {
        !self.has_body() && matches!(self.request.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

/// Whether a request has a body.
pub fn has_body(request: &Request) -> bool {
    !matches!(request.framing, Framing::Empty | Framing::Length(0))
}

impl Session {
    /// Target of the request as a whole URL.
    pub(super) fn url(&self, request: &Request) -> Vec<u8> {
        let authority = request.authority().unwrap_or_default();
        let scheme: &[u8] = match &request.target {
            Target::Authority(authority) => return authority.clone(),
            Target::Absolute { scheme, .. } => scheme.as_bytes(),
            Target::Origin(_) | Target::Asterisk if self.is_encrypted => b"https",
            Target::Origin(_) | Target::Asterisk => b"http",
        };
        [scheme, b"://", authority, request.path()].concat()
    }

    /// A request that names no server, as one to the address that its connection was meant for (RFC 9112, section 3.3).
    fn named(&self, request: &Request) -> Option<Request> {
        let is_nameless = request.authority().unwrap_or_default().is_empty();
        let is_meant = is_nameless && self.opened.is_none() && self.settings.mode == Mode::Transparent;
        let server = self.door.meant_for().filter(|_| is_meant)?;
        let address = Destination { host: server.ip().to_canonical().to_string(), port: server.port(), is_tls: false };
        let mut named = request.clone();
        let authority = address.authority();
        named.fields.set("Host", authority.strip_suffix(":80").unwrap_or(&authority).as_bytes());
        Some(named)
    }

    /// Whether a request may be made, and where it goes.
    pub(super) async fn vet(&self, request: &Request) -> Result<Order, Refused> {
        let named = self.named(request);
        let request = named.as_ref().unwrap_or(request);
        let runtime = self.shared.runtime.borrow().clone();
        let hostname = &*runtime.settings.hostname;
        if head::is_loop(&request.fields, hostname) {
            return Err(Refused::new(508, "The request has been here already: proxies send it in a circle."));
        }
        let refused = self.opened.as_ref().map_or(Ok(None), |opened| opened.vet(request))?;
        if request.method == "TRACE" {
            return Err(Refused::new(405, "TRACE is not passed on."));
        }
        let is_socket = head::asks_for_socket(request);
        if is_socket && (request.method != "GET" || has_body(request) || request.version < Version::Http11) {
            return Err(Refused::new(400, "The request for WebSocket is invalid."));
        }
        let may_be_coded = self.settings.unknown_codings == UnknownCodings::Pass;
        if has_body(request) && !may_be_coded && object::codings(&request.fields).is_none() {
            return Err(Refused::new(415, "The content is in a coding that is not known here."));
        }
        let received = runtime.means.sentinel.as_ref().map(|_| received::of_request(request));
        let identity = self.identity(request).await?;
        let pass = self.filter(request, identity)?;
        if let Some(refused) = refused.filter(|_| !pass.is_bypassed) {
            return Err(refused);
        }
        let request = &changed(request, &pass);
        let destination = self.destination(request)?;
        let client = (self.settings.mode == Mode::Reverse).then(|| (self.peer.ip(), self.is_encrypted));
        let manner = Manner { hostname, passes_ranges: self.settings.ranges == Ranges::Pass, client };
        let part = Part::of(request).filter(|_| !manner.passes_ranges);
        let named = Destination::parse(request.authority().unwrap_or_default(), 80);
        let named = named.map(|named| named.host).unwrap_or_default();
        let url = self.url(request);
        let mut request = head::for_origin(request, &manner);
        if is_socket {
            head::ask_for_socket(&mut request.fields);
        }
        let ahead = self.ahead(&destination, &named).await.map_err(|failure| Refused::from(&failure))?;
        let is_tunnelled = destination.is_tls || is_socket;
        if ahead.is_some() && !is_tunnelled {
            self.for_proxy(&mut request);
        }
        Ok(Order { destination, request, received, part, url, pass, identity, ahead, is_tunnelled })
    }

    /// Where a request goes.
    fn destination(&self, request: &Request) -> Result<Destination, Refused> {
        let authority = request.authority().unwrap_or_default();
        let why = if authority.is_empty() { "The request names no host." } else { "No server has this name." };
        let asked = || Destination::parse(authority, 80).ok_or_else(|| Refused::new(400, why));
        if let Some(opened) = &self.opened {
            return opened.asked(request).ok_or_else(|| Refused::new(400, "No server has this name."));
        }
        match (self.settings.mode, &request.target) {
            (Mode::Explicit, Target::Absolute { scheme, .. }) if scheme == "http" => self.check_port(asked()?),
            (Mode::Explicit, Target::Absolute { scheme, .. }) if scheme == "https" && self.opener().is_some() => {
                self.check_https(authority)
            }
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
                let server = self.door.meant_for().ok_or_else(|| Refused::new(400, "No destination is known."))?;
                asked()?;
                Ok(Destination { host: server.ip().to_string(), port: server.port(), is_tls: false })
            }
        }
    }

    /// Where a request goes that asks the proxy itself for TLS, where this door opens TLS.
    fn check_https(&self, authority: &[u8]) -> Result<Destination, Refused> {
        let asked = Destination::parse(authority, 443).ok_or_else(|| Refused::new(400, "No server has this name."))?;
        if self.settings.is_tunnelled(&asked.host) {
            return Err(Refused::new(501, "The TLS of this server is not opened here; it goes by CONNECT."));
        }
        match self.settings.connect_ports.contains(&asked.port) {
            true => Ok(asked.in_tls()),
            false => Err(Refused::from(&Failure::Forbidden)),
        }
    }

    fn check_port(&self, destination: Destination) -> Result<Destination, Refused> {
        let is_allowed = self.settings.ports.contains(&destination.port);
        if is_allowed { Ok(destination) } else { Err(Refused::from(&Failure::Forbidden)) }
    }

    /// How far it is known that a request is for the host that it names.
    ///
    /// # Errors
    /// When the host has another address, and such requests are refused.
    async fn identity(&self, request: &Request) -> Result<Identity, Refused> {
        if let Some(opened) = &self.opened {
            let Some(asked) = opened.asked(request) else { return Ok(Identity::Claimed) };
            let meant = opened.meant.filter(|_| !opened.is_named() && asked.host != opened.destination.host);
            if let Some(meant) = meant.filter(|_| self.settings.mismatched_names == MismatchedNames::Refuse) {
                self.check_host(&asked, meant).await?;
            }
            return Ok(opened.identity(&asked));
        }
        let meant = self.door.meant_for().filter(|_| self.settings.mode == Mode::Transparent);
        let asked = Destination::parse(request.authority().unwrap_or_default(), 80);
        match asked.zip(meant) {
            Some((asked, meant)) => self.check_host(&asked, meant).await,
            None => Ok(Identity::Proved),
        }
    }

    /// Whether the address that an intercepted connection was meant for is one of the host that it asks for. The connection goes
    /// to the address in any case, or through a proxy ahead to the host.
    pub(super) async fn check_host(&self, asked: &Destination, meant: SocketAddr) -> Result<Identity, Refused> {
        let (found, address) = (self.addresses(asked).await.unwrap_or_default(), meant.ip().to_canonical());
        if found.iter().any(|found| found.ip() == address) {
            return Ok(Identity::Proved);
        }
        tracing::info!(client = %self.peer.ip(), host = asked.host, server = %address, "request to a host with another address");
        if self.settings.mismatched_names == MismatchedNames::Refuse {
            return Err(Refused::new(421, "The server has another address."));
        }
        let to = Destination { host: address.to_string(), port: meant.port(), is_tls: false };
        let is_ahead = matches!(self.ahead(&to, &asked.host).await, Ok(Some(_)));
        Ok(if is_ahead { Identity::Proved } else { Identity::Claimed })
    }

    /// Decides on a request by the lists.
    pub(super) fn filter(&self, request: &Request, identity: Identity) -> Result<Pass, Refused> {
        let url = self.url(request);
        decided(self.shared.runtime.borrow().filter.request(&self.facts(request, &url, identity)))
    }

    /// Decides on the head of the response to a request by the lists.
    pub(super) fn filter_content(&self, order: &Order, response: &Response) -> Result<Pass, Refused> {
        let Some(course) = &order.pass.course else { return Ok(Pass::default()) };
        let names = response.fields.get("content-disposition").map(object::file_names).unwrap_or_default();
        let file_names = names.each_ref().map(Option::as_deref);
        let content = ContentFacts { media_type: response.fields.get("content-type"), file_names };
        decided(course.content(&self.facts(&order.request, &order.url, order.identity), &content))
    }

    fn facts<'a>(&'a self, request: &'a Request, url: &'a [u8], identity: Identity) -> RequestFacts<'a> {
        RequestFacts {
            client: Some(self.peer.ip()),
            user: self.user(),
            group: self.user.as_ref().and_then(|user| user.group.as_deref()),
            port: self.door.address.tcp().map_or(0, |address| address.port()),
            method: &request.method,
            url,
            fields: &request.fields,
            is_tls: self.opened.as_ref().is_some_and(|opened| opened.destination.is_tls),
            has_server_name: self.opened.as_ref().is_some_and(|opened| opened.is_named()),
            identity,
            is_icap: false,
            takes_tokens: true,
        }
    }
}

fn decided(decision: Decision) -> Result<Pass, Refused> {
    match decision {
        Decision::Pass(pass) => Ok(pass),
        Decision::Block(reason) => Err(reason.into()),
        Decision::Redirect { location, cookie } => Err(Refused {
            notice: Notice::Redirect(location),
            field: cookie.map(|cookie| ("Set-Cookie", cookie)),
            ..Refused::new(302, "The page is elsewhere.")
        }),
    }
}

/// The request with what the lists change of it.
fn changed(request: &Request, pass: &Pass) -> Request {
    let mut request = request.clone();
    if !pass.fields.is_empty() {
        let mut fields = Fields::default();
        for (at, (name, value)) in request.fields.iter().enumerate() {
            let other = pass.fields.iter().find(|(place, _)| *place == at).map(|(_, value)| &**value);
            let value = other.unwrap_or(value);
            let new =
                pass.renamed.iter().find(|(place, _)| *place == at).map(|(_, name)| String::from_utf8_lossy(name));
            if other.is_none() || !value.is_empty() {
                fields.push(new.as_deref().unwrap_or(name), value);
            }
        }
        request.fields = fields;
    }
    if let Some((name, value)) = &pass.added {
        request.fields.set(&String::from_utf8_lossy(name), value);
    }
    if let Some((scheme, authority, path)) = pass.url.as_deref().and_then(parts) {
        request.target = Target::Absolute { scheme: scheme.into(), authority: authority.into(), path };
    }
    request
}

/// The scheme of a URL of HTTP, its host and port, and its path with the query.
fn parts(url: &[u8]) -> Option<(&'static str, &[u8], Vec<u8>)> {
    let (scheme, rest) = match url.strip_prefix(b"http://") {
        Some(rest) => ("http", rest),
        None => ("https", url.strip_prefix(b"https://")?),
    };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let slash: &[u8] = if path.first() == Some(&b'/') { b"" } else { b"/" };
    let is_clean = url.iter().all(|byte| matches!(byte, b'!'..=b'~' | b'\x80'..));
    (is_clean && !authority.is_empty()).then(|| (scheme, authority, [slash, path].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_changed_as_the_lists_say() {
        let target = |authority: &[u8], path: &[u8]| Target::Absolute {
            scheme: "http".into(),
            authority: authority.into(),
            path: path.into(),
        };
        let mut request = Request::new("GET", target(b"a.test", b"/x"));
        for (name, value) in [("Host", "a.test"), ("A", "1"), ("B", "2"), ("C", "3")] {
            request.fields.push(name, value.as_bytes());
        }
        let pass = Pass {
            url: Some(b"http://b.test:81?q".to_vec()),
            fields: vec![(1, b"other".to_vec()), (2, Vec::new()), (3, b"4".to_vec())],
            renamed: vec![(3, b"D".to_vec())],
            added: Some((b"YouTube-Restrict".to_vec(), b"Strict".to_vec())),
            ..Pass::default()
        };
        let changed = changed(&request, &pass);
        assert_eq!(changed.target, target(b"b.test:81", b"/?q"));
        let fields: Vec<_> = changed.fields.iter().map(|(name, value)| (name, value.to_vec())).collect();
        let wanted = [("Host", "a.test"), ("A", "other"), ("D", "4"), ("YouTube-Restrict", "Strict")];
        assert_eq!(fields, wanted.map(|(name, value)| (name, value.as_bytes().to_vec())));
        for none in ["https://", "http:///x", "http://a.test/a b", "ftp://a"] {
            assert_eq!(parts(none.as_bytes()), None, "{none}");
        }
    }
}
