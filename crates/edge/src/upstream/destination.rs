//! Where a request goes: a host and a port, their addresses, and which of these may be connected to.
//!
//! A name is looked up once, and the connection goes to an address that was checked. Several are tried in turn, each a little
//! later than the one before (RFC 8305), and the first that answers is taken.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use proto::http::Refusal;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::net::stream::Stream;

/// How long a name may take to be looked up.
const LOOKUP_WAIT: Duration = Duration::from_secs(15);

/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(30);

/// How long an address is tried before the next one is tried as well.
const NEXT_WAIT: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Letters of a name (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// A name in lower case without a dot at its end, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// It is spoken to in TLS.
    pub is_tls: bool,
}

/// Why a request has no response of an origin's.
#[derive(Debug)]
pub enum Failure {
    /// The client has gone.
    Client(io::Error),
    /// The name has no address.
    Name,
    /// The name cannot be looked up: no resolver answers, or not in time.
    Lookup(Box<str>),
    /// Its addresses, or its port, may not be connected to.
    Forbidden,
    /// Nobody answers there.
    Unreachable(io::Error),
    /// The origin takes too long.
    Late,
    /// The connection ended before there was a response.
    Ended,
    /// The response is malformed.
    Malformed(Refusal),
    /// The response is a part of the object, and nobody asked for one.
    Part,
    /// The content is in a coding that nobody here knows.
    Coding,
    /// The handshake with the server has failed.
    Handshake(io::Error),
    /// The server does not prove that it is the host.
    Proof(Box<str>),
    /// The server wants a certificate of the client's.
    Certificate,
    /// The proxy ahead answers with this status.
    Ahead(u16),
    /// A service that has to be asked about it gives no answer.
    Service(Box<str>),
    /// A service has made a request of it that the lists do not let through.
    Changed(Box<str>),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Client(error)
    }
}

impl Failure {
    /// The status that the client is told.
    pub const fn status(&self) -> u16 {
        match self {
            Failure::Forbidden | Failure::Changed(_) => 403,
            Failure::Late => 504,
            Failure::Service(_) | Failure::Lookup(_) => 503,
            _ => 502,
        }
    }

    /// A sentence for the client.
    pub const fn words(&self) -> &'static str {
        match self {
            Failure::Client(_) => "The connection has ended.",
            Failure::Name => "The name of the server has no address.",
            Failure::Lookup(_) => "The name of the server cannot be looked up now. Try again later.",
            Failure::Forbidden => "Access to this server or port is not allowed.",
            Failure::Unreachable(_) => "The server does not answer.",
            Failure::Late => "The server takes too long.",
            Failure::Ended => "The server has ended the connection without an answer.",
            Failure::Malformed(_) => "The server has sent a malformed or ambiguous answer.",
            Failure::Part => "The server has sent an unrequested part of the object.",
            Failure::Coding => "The content is in a coding that is not known here.",
            Failure::Handshake(_) => "The TLS handshake with the server has failed.",
            Failure::Proof(_) => "The certificate of the server cannot be verified.",
            Failure::Certificate => {
                "The server wants a certificate of yours, which cannot be shown through this proxy."
            }
            Failure::Ahead(_) => "The proxy ahead does not let it through.",
            Failure::Service(_) => "The content could not be inspected now. Try again later.",
            Failure::Changed(_) => "The request was changed to one that is not allowed.",
        }
    }

    /// Text for the log.
    pub fn detail(&self) -> String {
        match self {
            Failure::Client(error) | Failure::Unreachable(error) | Failure::Handshake(error) => error.to_string(),
            Failure::Proof(fault) | Failure::Service(fault) | Failure::Changed(fault) => fault.to_string(),
            Failure::Lookup(fault) => format!("the name cannot be looked up: {fault}"),
            Failure::Malformed(refusal) => refusal.reason().into(),
            Failure::Ahead(status) => format!("the proxy ahead answers {status}"),
            other => other.words().trim_end_matches('.').into(),
        }
    }
}

impl Destination {
    /// Parses `host[:port]`; none if the host is neither an address nor a name.
    pub fn parse(authority: &[u8], default_port: u16) -> Option<Destination> {
        let text = std::str::from_utf8(authority).ok()?;
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port).filter(|port| !port.is_empty())),
            _ => (text, None),
        };
        let port = port.map_or(Some(default_port), |port| port.parse().ok()).filter(|&port| port != 0)?;
        if let Some(rest) = host.strip_prefix('[') {
            let address = rest.strip_suffix(']').and_then(|host| host.parse::<IpAddr>().ok())?;
            return Some(Destination { host: address.to_canonical().to_string(), port, is_tls: false });
        }
        // Else the resolver would read as an address what was judged as a name.
        if let Some(address) = proto::host::ipv4(host).ok()? {
            return Some(Destination { host: address.to_string(), port, is_tls: false });
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        let is_host = is_name && !host.is_empty() && host.len() <= NAME_BYTES_MAX;
        is_host.then(|| Destination { host: host.to_ascii_lowercase(), port, is_tls: false })
    }

    /// Its host and port in one.
    pub fn authority(&self) -> String {
        let Destination { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The destination with TLS.
    pub fn in_tls(self) -> Destination {
        Destination { is_tls: true, ..self }
    }

    /// Its addresses.
    ///
    /// # Errors
    /// When the name has none, or cannot be looked up in time.
    pub async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address.to_canonical(), self.port)]);
        }
        let found = timeout(LOOKUP_WAIT, tokio::net::lookup_host((self.host.as_str(), self.port))).await;
        let found = found.map_err(|_| Failure::Lookup("no answer in time".into()))?;
        let found = found.map_err(|error| lookup_failed(&error.to_string()))?;
        let found: Vec<_> = found.map(|found| SocketAddr::new(found.ip().to_canonical(), found.port())).collect();
        if found.is_empty() { Err(Failure::Name) } else { Ok(found) }
    }
}

/// The failure of a look-up, by the words of the C library, which are all that is told of it: those of a name without an address are
/// known, and any others are of a resolver that does not answer, or of this machine.
fn lookup_failed(error: &str) -> Failure {
    const NO_ADDRESS: [&str; 5] = [
        "Name or service not known",
        "No address associated with hostname",
        "Name does not resolve",
        "Name has no usable address",
        "Address family for hostname not supported",
    ];
    match NO_ADDRESS.iter().any(|words| error.contains(words)) {
        true => Failure::Name,
        false => Failure::Lookup(error.trim_start_matches("failed to lookup address information: ").into()),
    }
}

/// Connects to the first of these addresses that answers.
///
/// # Errors
/// When none does, or not in time.
pub async fn connect(addresses: &[SocketAddr]) -> Result<(Stream, SocketAddr), Failure> {
    timeout(CONNECT_WAIT, first_of(addresses)).await.map_err(|_| Failure::Late)?
}

async fn first_of(addresses: &[SocketAddr]) -> Result<(Stream, SocketAddr), Failure> {
    let mut waiting = addresses.iter().copied().take(ADDRESSES_MAX).peekable();
    let mut tries = JoinSet::new();
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match waiting.next() {
            Some(address) => _ = tries.spawn_local(async move { (TcpStream::connect(address).await, address) }),
            None if tries.is_empty() => return Err(Failure::Unreachable(error)),
            None => {}
        }
        tokio::select! {
            Some(Ok((outcome, address))) = tries.join_next() => match outcome {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok((Stream::Tcp(stream), address));
                }
                Err(failed) => error = failed,
            },
            () = sleep(NEXT_WAIT), if waiting.peek().is_some() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_that_fails_is_no_name_without_an_address() {
        let failed = |words: &str| lookup_failed(&format!("failed to lookup address information: {words}"));
        for words in ["Name or service not known", "No address associated with hostname", "Name does not resolve"] {
            assert_eq!(failed(words).status(), 502, "{words}");
        }
        for words in ["Temporary failure in name resolution", "Try again", "Non-recoverable failure in name resolution"]
        {
            let failure = failed(words);
            assert_eq!((failure.status(), failure.detail()), (503, format!("the name cannot be looked up: {words}")));
        }
        assert_eq!(lookup_failed("Too many open files (os error 24)").status(), 503);
    }

    #[test]
    fn a_destination_is_a_name_or_an_address_with_a_port() {
        let parse = |text: &str| Destination::parse(text.as_bytes(), 80).map(|found| (found.host, found.port));
        for (text, host, port) in [
            ("O.Test", "o.test", 80),
            ("o.test.:8080", "o.test", 8080),
            ("o.test:", "o.test", 80),
            ("192.0.2.1:81", "192.0.2.1", 81),
            ("[2001:DB8::1]:82", "2001:db8::1", 82),
            ("[::1]", "::1", 80),
        ] {
            assert_eq!(parse(text), Some((host.into(), port)), "{text}");
        }
        for wrong in ["", ":80", "a:0", "a:65536", "a%2e", "b\u{e9}", "[a]", "[::1", "::1:80", "a,b", &"a".repeat(254)]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
