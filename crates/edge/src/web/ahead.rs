//! Servers through a proxy ahead (`upstream`): requests in the clear are its requests, all else goes through a tunnel.
//!
//! Names are looked up by the proxy ahead. An address that this door may not reach is not asked of it, either.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use proto::http::{Client, ClientEvent, Fields, Limits, Request, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::exchange::is_own;
use super::head::is_loop;
use super::session::Session;
use crate::net::stream::Stream;
use crate::upstream::destination::{Destination, Failure, connect};

/// How long the proxy may take to answer for a tunnel, which waits for the server behind it.
const TUNNEL_WAIT: Duration = Duration::from_secs(60);

/// Bytes of its answer.
const ANSWER_BYTES_MAX: usize = 16 << 10;

impl Session {
    /// The proxy ahead through which a destination is reached; none where it is reached directly. `name`: the host as the
    /// client calls it.
    ///
    /// # Errors
    /// When nobody may go there.
    pub(super) async fn ahead(&self, to: &Destination, name: &str) -> Result<Option<Destination>, Failure> {
        let Some(proxy) = self.settings.proxy_ahead() else { return Ok(None) };
        let proxy = Destination::parse(proxy.as_bytes(), 80).ok_or(Failure::Name)?;
        if self.settings.is_reached_directly(&to.host) || self.settings.is_reached_directly(name) {
            return Ok(None);
        }
        if let Ok(address) = to.host.parse::<IpAddr>() {
            let runtime = self.shared.runtime.borrow().clone();
            return match self.may_reach(&runtime, SocketAddr::new(address, to.port)) {
                true => Ok(Some(proxy)),
                false => Err(Failure::Forbidden),
            };
        }
        if self.settings.near_networks().next().is_some() {
            let found = self.addresses(to).await.unwrap_or_default();
            if found.iter().any(|address| self.settings.is_near(address.ip())) {
                return Ok(None);
            }
        }
        Ok(Some(proxy))
    }

    /// The request as the proxy ahead gets it.
    pub(super) fn for_proxy(&self, request: &mut Request) {
        let authority = request.authority().unwrap_or_default().to_vec();
        if let Target::Origin(path) = &request.target {
            request.target = Target::Absolute { scheme: "http".into(), authority, path: path.clone() };
        }
        self.log_in_ahead(&mut request.fields);
    }

    /// Connects to the proxy ahead.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub(super) async fn connect_ahead(&self, proxy: &Destination) -> Result<(Stream, SocketAddr), Failure> {
        let runtime = self.shared.runtime.borrow().clone();
        let mut addresses = self.addresses(proxy).await?;
        addresses.retain(|&address| !is_own(&runtime, address));
        if addresses.is_empty() {
            return Err(Failure::Forbidden);
        }
        connect(&addresses).await
    }

    /// Connects to a server by a tunnel through the proxy ahead, which is told which proxies were `asked` before: it may be one of them.
    ///
    /// # Errors
    /// When the proxy cannot be reached, or opens no tunnel.
    pub(super) async fn tunnel_ahead(
        &self,
        proxy: &Destination,
        authority: &str,
        asked: &Fields,
    ) -> Result<(Stream, SocketAddr), Failure> {
        let (mut stream, address) = self.connect_ahead(proxy).await?;
        let mut request = Request::new("CONNECT", Target::Authority(authority.into()));
        request.fields.push("Host", authority.as_bytes());
        asked.all("via").for_each(|via| _ = request.fields.push("Via", via));
        let hostname = self.shared.runtime.borrow().settings.hostname.clone();
        if !is_loop(&request.fields, &hostname) {
            request.fields.push("Via", format!("1.1 {hostname}").as_bytes());
        }
        self.log_in_ahead(&mut request.fields);
        let mut client = Client::new(Limits::default());
        client.request(&request);
        client.end(&Fields::default());
        timeout(TUNNEL_WAIT, open(&mut stream, &mut client)).await.map_err(|_| Failure::Late)??;
        Ok((stream, address))
    }

    fn log_in_ahead(&self, fields: &mut Fields) {
        if let Some(login) = self.settings.login_ahead() {
            fields.set("Proxy-Authorization", format!("Basic {}", proto::base64::encode(login.as_bytes())).as_bytes());
        }
    }
}

/// Asks for a tunnel, and reads the answer to its last byte and no further: what follows is the server's.
async fn open(stream: &mut Stream, client: &mut Client) -> Result<(), Failure> {
    stream.write_all(client.outbox()).await.map_err(|_| Failure::Ended)?;
    stream.flush().await.map_err(|_| Failure::Ended)?;
    client.sent();
    let (mut input, mut count) = (Vec::new(), 0);
    loop {
        let (taken, event) = client.step(&input);
        input.drain(..taken);
        match event {
            ClientEvent::Idle if taken == 0 && count < ANSWER_BYTES_MAX => {
                count += 1;
                input.push(stream.read_u8().await.map_err(|_| Failure::Ended)?);
            }
            ClientEvent::Response(response) if (200..300).contains(&response.status.0) => return Ok(()),
            ClientEvent::Response(response) => return Err(Failure::Ahead(response.status.0)),
            ClientEvent::Refused(refusal) => return Err(Failure::Malformed(refusal)),
            ClientEvent::Idle | ClientEvent::Interim(_) if count < ANSWER_BYTES_MAX => {}
            _ => return Err(Failure::Ended),
        }
    }
}
