//! The connection to the server that has the mailboxes, up to where the client takes over.

use std::io;
use std::time::Duration;

use proto::imap::{Client, ClientEvent, Command, Kind, Status, Verb, offers};
use tokio::time::timeout;

use crate::net::wire::Wire;
use crate::settings::ForwardTls;
use crate::upstream::route::Route;

/// How long the server may take to connect, and for each reply before the client has its say.
const SERVER_WAIT: Duration = Duration::from_secs(30);

/// A server that has greeted.
pub struct Upstream {
    /// The connection.
    pub wire: Wire,
    /// Our half of it.
    pub client: Client,
    /// Greeting of the server.
    pub greeting: Status,
    /// Current capabilities of the server.
    pub capabilities: Vec<Vec<u8>>,
}

impl Upstream {
    /// A connection that is encrypted as the route asks for.
    ///
    /// # Errors
    /// When the server cannot be reached, does not want to talk, or not in TLS where that is required.
    pub async fn connect(route: &Route) -> io::Result<Upstream> {
        let upstream = Upstream::greet(route).await?;
        // Who is logged in from the start can begin no TLS.
        let starttls = offers(&upstream.capabilities, "STARTTLS") && upstream.greeting.kind == Kind::Ok;
        if upstream.wire.is_encrypted() {
            return Ok(upstream);
        }
        match route.connector.starttls {
            ForwardTls::Require if !starttls => Err(io::Error::other("it offers no STARTTLS, and TLS is required")),
            ForwardTls::Require => upstream.start_tls(route).await,
            ForwardTls::Opportunistic if starttls => match upstream.start_tls(route).await {
                Ok(upstream) => Ok(upstream),
                Err(error) => {
                    tracing::warn!(server = %route.forward, %error, "no TLS with the server");
                    Upstream::greet(route).await
                }
            },
            _ => Ok(upstream),
        }
    }

    /// A connection that has greeted and said what it offers.
    async fn greet(route: &Route) -> io::Result<Upstream> {
        let address = route.mailboxes().ok_or_else(|| io::Error::other("no server with mailboxes"))?;
        let mut stream = timeout(SERVER_WAIT, route.dial(address)).await??;
        if route.connector.implicit {
            stream = route.connector.secure(stream).await?;
        }
        let greeting = Status { tagged: false, kind: Kind::Ok, code: Vec::new(), text: Vec::new() };
        let mut upstream =
            Upstream { wire: Wire::new(stream), client: Client::new(), greeting, capabilities: Vec::new() };
        upstream.greeting = upstream.status().await?;
        if !matches!(upstream.greeting.kind, Kind::Ok | Kind::Preauth) {
            return Err(said(&upstream.greeting));
        }
        upstream.capabilities = capabilities_in(&upstream.greeting.code).unwrap_or_default();
        if upstream.capabilities.is_empty() {
            upstream.ask(Verb::Capability, "CAPABILITY").await?;
        }
        Ok(upstream)
    }

    async fn start_tls(mut self, route: &Route) -> io::Result<Upstream> {
        self.ask(Verb::Starttls, "STARTTLS").await?;
        self.wire.connect_tls(&route.connector).await?;
        self.capabilities.clear();
        self.ask(Verb::Capability, "CAPABILITY").await?;
        Ok(self)
    }

    async fn ask(&mut self, verb: Verb, name: &'static str) -> io::Result<()> {
        self.client.command(&Command::plain(verb, name));
        self.wire.write(self.client.outbox()).await?;
        self.client.sent();
        let status = self.status().await?;
        if status.kind == Kind::Ok { Ok(()) } else { Err(said(&status)) }
    }

    async fn hear_more(&mut self) -> io::Result<()> {
        let came = timeout(SERVER_WAIT, self.wire.read()).await??;
        if came { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Waits for the answer to a command, or for the greeting.
    async fn status(&mut self) -> io::Result<Status> {
        loop {
            let (taken, event) = self.client.step(self.wire.input());
            self.wire.take(taken);
            match event {
                ClientEvent::Status(status) if status.tagged || !self.client.is_waiting() => return Ok(status),
                ClientEvent::Status(Status { kind: Kind::Bye | Kind::Preauth, .. }) => {
                    return Err(io::Error::other("it speaks out of turn"));
                }
                ClientEvent::Capability(words) => self.capabilities = words,
                ClientEvent::Broken(reason) => return Err(io::Error::other(reason)),
                ClientEvent::Idle if taken == 0 => self.hear_more().await?,
                // Nothing else matters yet.
                _ => {}
            }
        }
    }
}

/// The capabilities in the code of a status, if it lists them.
pub fn capabilities_in(code: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = code.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let first = words.next()?;
    first.eq_ignore_ascii_case(b"CAPABILITY").then(|| words.map(Vec::from).collect())
}

fn said(status: &Status) -> io::Error {
    io::Error::other(format!("it said {} {}", status.kind.name(), String::from_utf8_lossy(&status.text)))
}
