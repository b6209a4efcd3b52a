//! A tunnel to a server: by `CONNECT` (RFC 9110, section 9.3.6), or TLS of an intercepted connection.
//!
//! Its host is checked as that of any other request. What the client says first is looked at for the server that its handshake of TLS
//! names; that is written down, and compared with the request. Bytes go through as they are, unless the door opens TLS: then a tunnel has
//! TLS, or HTTP in the clear.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proto::http::{Fields, Limits, Request, Response, Server, Target};
use proto::tls::{Hello, client_hello};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::head;
use super::language::Language;
use super::opened::{End, Opened};
use super::refused::Refused;
use super::session::Session;
use crate::message::trace::{self, new_id};
use crate::net::opener::Opener;
use crate::net::stream::Stream;
use crate::porch::filter::{Identity, Notice};
use crate::porch::login::User;
use crate::settings::{Https, MismatchedNames, Mode, Pinned};
use crate::upstream::destination::{Destination, Failure, connect};
use crate::upstream::origin::Origin;
use crate::upstream::origins;

/// How long the client may take for its handshake, where it has to be one; and where it need not.
const HELLO_WAIT: Duration = Duration::from_secs(30);
const HELLO_WAIT_SHORT: Duration = Duration::from_secs(3);

/// How long nothing may go through a tunnel.
const SILENCE_WAIT: Duration = Duration::from_secs(1_800);

/// Letters of a method.
const METHOD_BYTES_MAX: usize = 32;

/// Bytes read at a time in each direction.
const PIECE_BYTES: usize = 16 << 10;

/// Where a tunnel leads.
struct Way {
    destination: Destination,
    /// The server that an intercepted connection was meant for.
    meant: Option<SocketAddr>,
    method: &'static str,
    /// Decision of the lists about opening the tunnel.
    opens: Option<bool>,
    /// How far the host is known.
    identity: Identity,
}

impl Way {
    fn url(&self) -> String {
        self.destination.authority()
    }
}

/// A server that was reached, and where.
type Reached = Result<(Stream, SocketAddr), Refused>;

impl Session {
    /// Opens a tunnel. Where its TLS is opened, what comes back is the session within; otherwise it is over.
    pub(super) async fn tunnel(mut self, request: &Request) -> io::Result<Option<Session>> {
        let url = self.url(request);
        self.language = Language::of(&request.fields);
        if let Err(refused) = self.log_in(request).await {
            return self.turn_away(&refused, &request.method, &url).await;
        }
        let (way, reached) = match self.way(request) {
            Err(refused) => return self.turn_away(&refused, &request.method, &url).await,
            Ok(destination) => self.reach_as_allowed(request, destination, (None, Identity::Proved)).await,
        };
        if let (Err(refused), None) = (&reached, self.opener()) {
            return self.turn_away(refused, &request.method, &url).await;
        }
        self.server.respond(&Response::new(200));
        self.send().await?;
        self.go_through(way, reached).await
    }

    /// Goes on with TLS that was meant for another server.
    pub(super) async fn intercepted_tls(mut self) -> io::Result<Option<Session>> {
        let meant = self.door.meant_for().ok_or(io::ErrorKind::NotConnected)?;
        let name = match self.hello().await? {
            Hello::Client { server_name: Some(name), .. } => name,
            _ => meant.ip().to_string(),
        };
        let named = Destination { host: name, port: meant.port(), is_tls: false }.authority();
        let Some(destination) = Destination::parse(named.as_bytes(), 443) else {
            return Err(io::Error::other("the handshake names no host"));
        };
        let request = Request::new("CONNECT", Target::Authority(named.into_bytes()));
        let (way, reached) = match self.check_host(&destination, meant).await {
            Ok(identity) => {
                let is_awaited = identity == Identity::Claimed && self.opener().is_some();
                let identity = if is_awaited { Identity::Awaited } else { identity };
                self.reach_as_allowed(&request, destination, (Some(meant), identity)).await
            }
            Err(refused) => {
                let identity = Identity::Claimed;
                (Way { destination, meant: Some(meant), method: "TLS", opens: Some(true), identity }, Err(refused))
            }
        };
        self.go_through(way, reached).await
    }

    /// Whether an intercepted client has begun with neither TLS nor a request; then the log says so, and it is over.
    pub(super) fn is_foreign(&self) -> bool {
        let (said, meant) = (self.wire.input(), self.door.meant_for());
        let is_foreign = is_no_request(said);
        if let Some(meant) = meant.filter(|_| is_foreign) {
            let destination =
                Destination { host: meant.ip().to_canonical().to_string(), port: meant.port(), is_tls: false };
            let way = Way { destination, meant: Some(meant), method: "TCP", opens: None, identity: Identity::Proved };
            let line = Line { is_other: false, ..self.line(&way, Hello::Other) };
            line.write("refuse", Some("it begins with neither TLS nor a request of HTTP"), 0, Instant::now());
        }
        is_foreign
    }

    /// Where `CONNECT` leads.
    fn way(&self, request: &Request) -> Result<Destination, Refused> {
        let destination = Destination::parse(request.authority().unwrap_or_default(), 443);
        let destination = destination.ok_or_else(|| Refused::from(&Failure::Name))?;
        let is_allowed = self.settings.mode == Mode::Explicit
            && self.opened.is_none()
            && self.settings.connect_ports.contains(&destination.port)
            && !head::is_loop(&request.fields, &self.shared.runtime.borrow().settings.hostname);
        if is_allowed { Ok(destination) } else { Err(Refused::from(&Failure::Forbidden)) }
    }

    /// Reaches a server, if the lists allow it.
    async fn reach_as_allowed(
        &self,
        request: &Request,
        destination: Destination,
        (meant, identity): (Option<SocketAddr>, Identity),
    ) -> (Way, Reached) {
        let method = if meant.is_some() { "TLS" } else { "CONNECT" };
        let pass = self.filter(request, identity);
        let opens = pass.as_ref().map_or(Some(true), |pass| pass.opens);
        let way = Way { destination, meant, method, opens, identity };
        let reached = match pass {
            Ok(_) => self.reach(&way, &request.fields).await,
            Err(refused) => Err(refused),
        };
        (way, reached)
    }

    async fn reach(&self, way: &Way, asked: &Fields) -> Reached {
        let runtime = self.shared.runtime.borrow().clone();
        let named = &way.destination;
        if let Some(proxy) = self.ahead(named, &named.host).await.map_err(|failure| Refused::from(&failure))? {
            let reached = self.tunnel_ahead(&proxy, &named.authority(), asked).await;
            return reached.map_err(|failure| Refused::from(&failure));
        }
        let addresses = match way.meant {
            Some(meant) if self.may_reach(&runtime, meant) => vec![meant],
            Some(_) => return Err(Refused::from(&Failure::Forbidden)),
            None => self.allowed(&runtime, &way.destination).await.map_err(|failure| Refused::from(&failure))?,
        };
        connect(&addresses).await.map_err(|failure| Refused::from(&failure))
    }

    async fn turn_away(mut self, refused: &Refused, method: &str, url: &[u8]) -> io::Result<Option<Session>> {
        self.server.close();
        // A client that asks for a tunnel follows nobody elsewhere.
        let refused = match &refused.notice {
            Notice::Redirect(_) => &Refused { status: 403, notice: Notice::default(), ..refused.clone() },
            _ => refused,
        };
        self.refuse(refused, method, url).await?;
        self.end().await.map(|()| None)
    }

    /// Opener of TLS, if this door opens it.
    pub(super) fn opener(&self) -> Option<Arc<Opener>> {
        let opener = || self.shared.runtime.borrow().opener.clone();
        (self.settings.https == Https::Inspect).then(opener).flatten()
    }

    /// Goes on behind the beginning of a tunnel.
    async fn go_through(mut self, way: Way, mut reached: Reached) -> io::Result<Option<Session>> {
        let hello = self.hello().await?;
        let is_other = !names(&hello, &way.destination);
        let is_refused = is_other && self.settings.mismatched_names == MismatchedNames::Refuse;
        if hello == Hello::Other && self.opener().is_some() && begins_with_method(self.wire.input()) {
            self.line(&way, hello).write("open", None, 0, Instant::now());
            return Ok(Some(self.in_the_clear(way, reached)));
        }
        if let Some(opener) = self.opener().filter(|opener| !is_refused && self.opens(opener, &way, is_other)) {
            let Hello::Client { server_name, .. } = &hello else {
                let reason = Some(refusal(&hello));
                self.line(&way, hello).write("refuse", reason, 0, Instant::now());
                return Ok(None);
            };
            let host = server_name.clone().unwrap_or_else(|| way.destination.host.clone());
            let destination = Destination { host, is_tls: true, ..way.destination };
            let is_nameless = destination.host.parse::<IpAddr>().is_ok();
            let at = reached.as_ref().ok().map(|(_, address)| *address).filter(|_| is_other || is_nameless);
            let is_looked_up = way.identity == Identity::Proved && !is_other;
            match self.open_tls(&opener, destination, (way.meant.or(at), is_looked_up), reached).await? {
                Ok(opened) => return Ok(Some(opened)),
                Err(session) => self = session,
            }
            reached = self.reach(&way, &Fields::default()).await;
        }
        let began = Instant::now();
        let server = reached.ok().filter(|_| !is_refused);
        let (action, reason) = match &server {
            Some(_) => ("pass", None),
            None if is_refused => ("refuse", Some(refusal(&hello))),
            None => ("refuse", Some("the server cannot be reached")),
        };
        let (runtime, line) = (self.shared.runtime.borrow().clone(), self.line(&way, hello));
        let bytes = match server {
            Some((server, address)) => {
                self.tell_handshake(Some(address), None);
                self.pass(server).await
            }
            None => 0,
        };
        runtime.metrics.http_tunnels_total.add(1);
        runtime.metrics.http_tunnel_bytes_total.add(bytes);
        line.write(action, reason, bytes, began);
        Ok(None)
    }

    /// Goes on with HTTP that a tunnel has in the clear. Its requests have to be for the host of the tunnel.
    fn in_the_clear(mut self, way: Way, reached: Reached) -> Session {
        let end = match reached {
            Ok((stream, address)) => {
                let mut origin = Origin::new(stream, address);
                // It may have waited too long when there is a request.
                origin.is_reused = true;
                End::Plain(RefCell::new(Some(origins::Reached::Alone(Box::new(origin)))))
            }
            Err(refused) => End::Refused(refused),
        };
        self.server = Server::new(Limits::default());
        let Way { destination, meant, identity, .. } = way;
        self.opened = Some(Rc::new(Opened { destination, meant, is_looked_up: identity == Identity::Proved, end }));
        self
    }

    fn line(&self, way: &Way, hello: Hello) -> Line {
        let is_other = !names(&hello, &way.destination) || way.identity != Identity::Proved;
        let (door, client) = (self.door.listener.protocol().name(), self.peer.ip());
        let user = self.user.clone();
        Line { door, client, user, method: way.method, url: way.url(), hello, is_other }
    }

    /// Whether the TLS of a tunnel is opened. What is let alone by its name has to have that name.
    fn opens(&self, opener: &Opener, way: &Way, is_other: bool) -> bool {
        let host = &*way.destination.host;
        let is_exempt = self.settings.is_tunnelled(host) && way.identity == Identity::Proved;
        let is_let_alone = way.opens == Some(false) || is_exempt;
        let is_closed = self.settings.pinned == Pinned::Tunnel && opener.is_closed(self.peer.ip(), host);
        is_other || !(is_let_alone || is_closed)
    }

    /// Waits for the first message of the client. It stays in the input.
    async fn hello(&mut self) -> io::Result<Hello> {
        let has_to_be_one = self.settings.mismatched_names == MismatchedNames::Refuse
            || self.settings.https == Https::Inspect
            || self.settings.mode == Mode::Transparent;
        let wait = if has_to_be_one { HELLO_WAIT } else { HELLO_WAIT_SHORT };
        let deadline = Instant::now() + wait;
        loop {
            let hello = client_hello(self.wire.input());
            if hello != Hello::Incomplete {
                return Ok(hello);
            }
            match tokio::time::timeout_at(deadline, self.wire.read()).await {
                Ok(Ok(true)) => {}
                Ok(Err(error)) => return Err(error),
                Ok(Ok(false)) | Err(_) => return Ok(Hello::Incomplete),
            }
        }
    }

    /// Lets bytes pass in both directions until both sides have ended, nothing comes any more, or the program stops; how many.
    async fn pass(self, mut server: Stream) -> u64 {
        let mut control = self.shared.control.clone();
        let Some((mut client, said)) = self.wire.into_parts() else { return 0 };
        let moved = Moved { bytes: Cell::new(said.len() as u64), last: Cell::new(Instant::now()) };
        if !matches!(timeout(HELLO_WAIT, server.write_all(&said)).await, Ok(Ok(()))) {
            return 0;
        }
        let (client_reads, client_writes) = tokio::io::split(&mut client);
        let (server_reads, server_writes) = tokio::io::split(&mut server);
        let both = async {
            let up = copy(client_reads, server_writes, &moved);
            let down = copy(server_reads, client_writes, &moved);
            tokio::try_join!(up, down)
        };
        tokio::select! {
            _ = both => {}
            () = moved.ended() => {}
            _ = control.wait_for(|control| control.stopping) => {}
        }
        moved.bytes.get()
    }
}

/// Whether what a client says begins like a request of HTTP: by capital letters, and a blank behind them if that has come.
fn begins_with_method(input: &[u8]) -> bool {
    let end = input.iter().position(|&byte| byte == b' ').unwrap_or(input.len());
    let is_letter = |byte: &u8| byte.is_ascii_uppercase() || *byte == b'-';
    (1..=METHOD_BYTES_MAX).contains(&end) && input[..end].iter().all(is_letter)
}

/// Whether what a client says first is certainly no request of HTTP: a byte of it is of no text, or its first line names no version.
fn is_no_request(said: &[u8]) -> bool {
    let begin = said.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(said.len());
    let rest = &said[begin..];
    let end = rest.iter().position(|&byte| byte == b'\n');
    let line = &rest[..end.unwrap_or(rest.len())];
    let is_text = |&byte: &u8| matches!(byte, b'\t' | b'\r' | b' '..=b'~' | 0x80..);
    let is_versioned = || line.windows(5).any(|part| part.eq_ignore_ascii_case(b"HTTP/"));
    !line.iter().all(is_text) || end.is_some() && !is_versioned()
}

/// Whether a handshake names the host of the request. An address has no name.
fn names(hello: &Hello, destination: &Destination) -> bool {
    match hello {
        Hello::Client { server_name: Some(name), .. } => *name == destination.host,
        Hello::Client { server_name: None, .. } => destination.host.parse::<std::net::IpAddr>().is_ok(),
        Hello::Incomplete | Hello::Other => false,
    }
}

/// Log line of a tunnel.
struct Line {
    door: &'static str,
    client: IpAddr,
    user: Option<Arc<User>>,
    method: &'static str,
    url: String,
    hello: Hello,
    is_other: bool,
}

impl Line {
    fn write(&self, action: &str, reason: Option<&str>, bytes: u64, began: Instant) {
        let (server_name, is_encrypted) = match &self.hello {
            Hello::Client { server_name, is_encrypted } => {
                (server_name.as_deref().map(trace::printable), *is_encrypted)
            }
            Hello::Incomplete | Hello::Other => (None, false),
        };
        tracing::info!(
            id = new_id(),
            door = self.door,
            client = %self.client,
            user = self.user.as_ref().map(|user| &*user.name),
            method = self.method,
            url = trace::printable(&self.url),
            server_name,
            tls = matches!(self.hello, Hello::Client { .. }),
            ech = is_encrypted,
            mismatch = self.is_other,
            bytes,
            action,
            reason,
            ms = began.elapsed().as_millis() as u64,
            "tunnel"
        );
    }
}

/// Why a tunnel is refused whose client begins so.
const fn refusal(hello: &Hello) -> &'static str {
    match hello {
        Hello::Incomplete => "no TLS handshake has come",
        Hello::Other => "it does not begin with a TLS handshake",
        Hello::Client { server_name: None, .. } => "the TLS handshake has no name",
        Hello::Client { .. } => "the TLS handshake has another name",
    }
}

/// Counts of a tunnel.
struct Moved {
    bytes: Cell<u64>,
    last: Cell<Instant>,
}

impl Moved {
    /// Resolves when nothing has moved for long.
    async fn ended(&self) {
        loop {
            let until = self.last.get() + SILENCE_WAIT;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// Copies one direction to its end.
async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, moved: &Moved) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = from.read(&mut piece).await?;
        moved.last.set(Instant::now());
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..count]).await?;
        to.flush().await?;
        moved.bytes.set(moved.bytes.get().saturating_add(count as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_the_clear_is_known_by_its_method() {
        for said in ["G", "GET", "GET / HTTP/1.1", "M-SEARCH *"] {
            assert!(begins_with_method(said.as_bytes()), "{said}");
        }
        for said in ["", " GET", "SSH-2.0-OpenSSH_9.2", "\x16\x03\x01", "get /", &"A".repeat(33)] {
            assert!(!begins_with_method(said.as_bytes()), "{said}");
        }
    }

    #[test]
    fn another_protocol_is_known_by_its_first_line() {
        for said in ["SSH-2.0-OpenSSH_9.2\r\n", "EHLO a.test\r\n", "\0\x01", "\r\n\x12\x01", "GET /\r\n"] {
            assert!(is_no_request(said.as_bytes()), "{said:?}");
        }
        for said in
            ["", "G", "SSH-2.0", "\r\nGET /a", "GET / HTTP/1.1\r\n", "GET /\u{e9} http/1.0\n", "PRI * HTTP/2.0\r\n"]
        {
            assert!(!is_no_request(said.as_bytes()), "{said:?}");
        }
    }

    #[test]
    fn a_refused_tunnel_has_a_reason() {
        let named = |name: Option<&str>| Hello::Client { server_name: name.map(Into::into), is_encrypted: false };
        for (hello, reason) in [
            (Hello::Other, "it does not begin with a TLS handshake"),
            (Hello::Incomplete, "no TLS handshake has come"),
            (named(None), "the TLS handshake has no name"),
            (named(Some("b.test")), "the TLS handshake has another name"),
        ] {
            assert_eq!(refusal(&hello), reason);
        }
    }
}
