//! The connection to the server that has the mailbox, up to where the client takes over.

use std::io;
use std::time::Duration;

use proto::pop3::{Client, ClientEvent, Command, Verb, offers};
use proto::smtp::LineReader;
use stream::Window;
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
    /// Greeting of the server: with APOP, the client needs it unchanged.
    pub greeting: Vec<u8>,
}

impl Upstream {
    /// A connection that is encrypted as the route asks for.
    ///
    /// # Errors
    /// When the server cannot be reached, does not want to talk, or not in TLS where that is required.
    pub async fn connect(route: &Route) -> io::Result<Upstream> {
        let (upstream, stls) = Upstream::greet(route).await?;
        if upstream.wire.is_encrypted() {
            return Ok(upstream);
        }
        match route.connector.starttls {
            ForwardTls::Require if !stls => Err(io::Error::other("it offers no STLS, and TLS is required")),
            ForwardTls::Require => upstream.start_tls(route).await,
            ForwardTls::Opportunistic if stls => match upstream.start_tls(route).await {
                Ok(upstream) => Ok(upstream),
                Err(error) => {
                    tracing::warn!(server = %route.forward, %error, "no TLS with the server");
                    Ok(Upstream::greet(route).await?.0)
                }
            },
            _ => Ok(upstream),
        }
    }

    /// A connection that has greeted, and whether it offers STLS.
    async fn greet(route: &Route) -> io::Result<(Upstream, bool)> {
        let address = route.mailboxes().ok_or_else(|| io::Error::other("no server with mailboxes"))?;
        let mut stream = timeout(SERVER_WAIT, route.dial(address)).await??;
        if route.connector.implicit {
            stream = route.connector.secure(stream).await?;
        }
        let mut upstream = Upstream { wire: Wire::new(stream), client: Client::new(), greeting: Vec::new() };
        upstream.greeting = upstream.ask(None).await?.remove(0);
        // A server that does not know CAPA offers neither.
        let offered = upstream.ask(Some(Command::plain(Verb::Capa))).await.unwrap_or_default();
        if offered.iter().any(|line| offers(line, "PIPELINING")) {
            upstream.client.pipeline();
        }
        let stls = offered.iter().any(|line| offers(line, "STLS"));
        Ok((upstream, stls))
    }

    async fn start_tls(mut self, route: &Route) -> io::Result<Upstream> {
        self.ask(Some(Command::plain(Verb::Stls))).await?;
        self.wire.connect_tls(&route.connector).await?;
        Ok(self)
    }

    /// Waits for the reply to a command, or for the greeting: its text and the lines behind it.
    async fn ask(&mut self, command: Option<Command>) -> io::Result<Vec<Vec<u8>>> {
        const LINES_MAX: usize = 100;
        command.into_iter().for_each(|command| self.client.command(command));
        self.wire.write(self.client.outbox()).await?;
        self.client.sent();
        let mut window = Window::with_capacity(LineReader::ROOM_MIN);
        let mut lines = Vec::new();
        loop {
            let (taken, event) = self.client.step(self.wire.input(), &mut window);
            self.wire.take(taken);
            match event {
                ClientEvent::Status { ok: true, text, more } => {
                    lines.push(text);
                    if !more {
                        return Ok(lines);
                    }
                }
                ClientEvent::Line(line) if lines.len() < LINES_MAX => lines.push(line),
                ClientEvent::End => return Ok(lines),
                ClientEvent::Idle if taken == 0 => {
                    if !timeout(SERVER_WAIT, self.wire.read()).await?? {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                ClientEvent::Idle => {}
                ClientEvent::Status { text, .. } => {
                    return Err(io::Error::other(format!("it said {}", String::from_utf8_lossy(&text))));
                }
                _ => return Err(io::Error::other("it speaks no POP3")),
            }
        }
    }
}
