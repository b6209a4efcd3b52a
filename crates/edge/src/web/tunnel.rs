//! `CONNECT` (RFC 9110, section 9.3.6): a tunnel to a server, through which bytes go as they are.
//!
//! The host of the request is checked as that of any other. What the client says first is looked at for the server that its
//! handshake of TLS names; that is written down, and compared with the request.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use proto::http::{Request, Response};
use proto::tls::{Hello, client_hello};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};

use super::head;
use super::session::{Refused, Session};
use super::vet::url;
use crate::message::trace::{self, new_id};
use crate::net::stream::Stream;
use crate::settings::{MismatchedNames, Mode};
use crate::upstream::destination::{Destination, Failure, connect};

/// How long the client may take for its handshake, where it has to be one; and where it need not.
const HELLO_WAIT: Duration = Duration::from_secs(30);
const HELLO_WAIT_SHORT: Duration = Duration::from_secs(3);

/// How long nothing may go through a tunnel.
const SILENCE_WAIT: Duration = Duration::from_secs(1_800);

/// Bytes read at a time in each direction.
const PIECE_BYTES: usize = 16 << 10;

impl Session {
    /// Opens a tunnel, and lets it go on to its end.
    pub(super) async fn tunnel(mut self, request: &Request) -> io::Result<()> {
        let (destination, server) = match self.open(request).await {
            Ok(opened) => opened,
            Err(refused) => {
                self.server.close();
                self.refuse(&refused, &request.method, &url(request)).await?;
                return self.end().await;
            }
        };
        self.server.respond(&Response::new(200));
        self.send().await?;
        let began = Instant::now();
        let hello = self.hello().await?;
        let is_other = !names(&hello, &destination);
        let is_refused = is_other && self.settings.mismatched_names == MismatchedNames::Refuse;
        let runtime = self.shared.runtime.borrow().clone();
        let (client, door) = (self.peer.ip(), self.door.listener.protocol().name());
        let bytes = if is_refused { 0 } else { self.pass(server).await };
        runtime.metrics.http_tunnels_total.add(1);
        runtime.metrics.http_tunnel_bytes_total.add(bytes);
        let (server_name, is_encrypted) = match &hello {
            Hello::Client { server_name, is_encrypted } => {
                (server_name.as_deref().map(trace::printable), *is_encrypted)
            }
            Hello::Incomplete | Hello::Other => (None, false),
        };
        tracing::info!(
            id = new_id(),
            door,
            %client,
            method = request.method,
            url = trace::printable(&String::from_utf8_lossy(&url(request))),
            server_name,
            tls = matches!(hello, Hello::Client { .. }),
            ech = is_encrypted,
            mismatch = is_other,
            bytes,
            action = if is_refused { "refuse" } else { "pass" },
            ms = began.elapsed().as_millis() as u64,
            "tunnel"
        );
        Ok(())
    }

    /// Connects to the server that the request names.
    async fn open(&self, request: &Request) -> Result<(Destination, Stream), Refused> {
        let runtime = self.shared.runtime.borrow().clone();
        let refused = |failure: Failure| Refused::from(&failure);
        let named = Destination::parse(request.authority().unwrap_or_default(), 443);
        let destination = named.ok_or_else(|| refused(Failure::Name))?;
        let is_allowed = self.settings.mode == Mode::Explicit
            && self.settings.connect_ports.contains(&destination.port)
            && !head::is_loop(&request.fields, &runtime.settings.hostname);
        if !is_allowed {
            return Err(refused(Failure::Forbidden));
        }
        self.filter(request).map(drop)?;
        let mut addresses = self.addresses(&destination).await.map_err(refused)?;
        addresses.retain(|&address| self.may_reach(&runtime, address));
        if addresses.is_empty() {
            return Err(refused(Failure::Forbidden));
        }
        let (stream, _) = connect(&addresses).await.map_err(refused)?;
        Ok((destination, stream))
    }

    /// Waits for the first message of the client. It stays in the input.
    async fn hello(&mut self) -> io::Result<Hello> {
        let has_to_be_one = self.settings.mismatched_names == MismatchedNames::Refuse;
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

/// Whether a handshake names the host of the request. An address has no name.
fn names(hello: &Hello, destination: &Destination) -> bool {
    match hello {
        Hello::Client { server_name: Some(name), .. } => *name == destination.host,
        Hello::Client { server_name: None, .. } => destination.host.parse::<std::net::IpAddr>().is_ok(),
        Hello::Incomplete | Hello::Other => false,
    }
}

/// What has gone through a tunnel.
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
