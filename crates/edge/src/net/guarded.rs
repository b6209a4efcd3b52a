//! HTTP to servers that strangers name: mails name lists to leave and pictures to show.
//!
//! ```text
//!  URL ─ http or https? ─ port? ─ name ─► addresses ─ each checked ─► a connection to a checked one ─► response, bounded
//!   ▲                                                                                                     │
//!   └──────────────────────────────────── a redirection begins anew ──────────────────────────────────────┘
//! ```
//! A server is reached if its address is one of the open Internet ([`is_public`]) and not this machine's ([`is_own`]), and its port is 80
//! or 443; servers within the networks that are named are reached at any port. The connection goes to the address that was
//! checked: a name that changes its address meanwhile gains nothing. A request tells no more than its URL: no cookie, no `Referer`, no
//! password, one `User-Agent` for all, and it goes through no proxy.
//!
//! The client knows nothing of mails, and resolves no names: it gets a [`Lookup`]. Bounds: those of [`Bounds`], five
//! redirections, eight addresses of a name. Known gap: a translator of IPv6 with a prefix of its own network (RFC 6052) is not recognised.

use std::fmt::{self, Debug, Formatter};
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::{Method, Request, Response, StatusCode, Uri};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body, Error};

use super::agent;
use super::reference::moved;
use crate::settings::Network;

/// Redirections of a GET that are followed; a POST is not sent on.
const REDIRECTIONS_MAX: u32 = 5;

/// Addresses of a name that are looked at.
const ADDRESSES_MAX: usize = 8;

/// Ports of servers on the open Internet: a mail could make others speak to a door of another protocol.
const PORTS: [u16; 2] = [80, 443];

/// The longest head of a response, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// The addresses of a name, asked for in the thread that fetches, and waited for until then.
pub type Lookup = Box<dyn Fn(&str, Instant) -> Vec<IpAddr> + Send + Sync>;

/// Bounds of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of a body; a longer one is refused.
    pub body_bytes_max: usize,
    /// Time for all of it, look-ups and redirections too.
    pub wait: Duration,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The URL leads nowhere that is reached: by its scheme, its port, or its address.
    Place,
    /// The server answered with this status.
    Status(u16),
    /// The body is longer than it may be.
    TooLong,
    /// The exchange failed, for this reason.
    Failed(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Place => f.write_str("the URL leads to no server of the open Internet"),
            Refused::Status(status) => write!(f, "the server answers {status}"),
            Refused::TooLong => f.write_str("the response is too long"),
            Refused::Failed(why) => f.write_str(why),
        }
    }
}

/// A client for URLs of strangers.
pub struct Guarded(Agent);

impl Guarded {
    /// Servers have to show a certificate from `authorities`. `own_name` is the name of this server: its addresses are not reached even where
    /// another machine has them for us. `destinations` are networks that are reached although they are not of the open Internet.
    ///
    /// # Errors
    /// When the authorities cannot be read.
    pub fn new(
        authorities: &Path,
        lookup: Lookup,
        own_name: &str,
        destinations: Vec<Network>,
    ) -> Result<Guarded, String> {
        let config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .max_idle_connections(0)
            .max_response_header_size(HEAD_BYTES_MAX)
            .http_status_as_error(false)
            .user_agent("Sluice")
            .tls_config(agent::tls(authorities, true)?)
            .build();
        let guard = Guard { lookup, own_name: own_name.to_ascii_lowercase(), destinations };
        Ok(Guarded(Agent::with_parts(config, DefaultConnector::default(), guard)))
    }

    /// The body of a response, of one of the types `accept`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get(&self, url: &str, accept: &str, bounds: Bounds) -> Result<Vec<u8>, Refused> {
        let (mut url, until) = (url.to_owned(), Instant::now() + bounds.wait);
        for _ in 0..=REDIRECTIONS_MAX {
            let request = Request::get(&url).header("Accept", accept).body(()).map_err(|_| Refused::Place)?;
            let left = until.saturating_duration_since(Instant::now());
            let request = self.0.configure_request(request).timeout_global(Some(left)).build();
            let mut response = self.0.run(request).map_err(refused)?;
            match response.status() {
                StatusCode::OK => return read(&mut response, bounds.body_bytes_max),
                status if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) => {
                    let place = response.headers().get("location").and_then(|place| place.to_str().ok());
                    url = place.and_then(|place| moved(&url, place.trim())).ok_or(Refused::Place)?;
                }
                status => return Err(Refused::Status(status.as_u16())),
            }
        }
        Err(Refused::Failed("too many redirections".into()))
    }

    /// Sends a form. Its response counts by its status alone; a redirection is a refusal.
    ///
    /// # Errors
    /// When the server has not taken it.
    pub fn post(&self, url: &str, form: &'static str, bounds: Bounds) -> Result<(), Refused> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form)
            .map_err(|_| Refused::Place)?;
        let request = self.0.configure_request(request).timeout_global(Some(bounds.wait)).build();
        let status = self.0.run(request).map_err(refused)?.status();
        if status.is_success() { Ok(()) } else { Err(Refused::Status(status.as_u16())) }
    }
}

impl Debug for Guarded {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}

fn read(response: &mut Response<Body>, bytes_max: usize) -> Result<Vec<u8>, Refused> {
    let mut body = Vec::new();
    let mut reader = response.body_mut().as_reader().take((bytes_max as u64).saturating_add(1));
    reader.read_to_end(&mut body).map_err(|error| Refused::Failed(error.to_string()))?;
    if body.len() > bytes_max { Err(Refused::TooLong) } else { Ok(body) }
}

fn refused(error: Error) -> Refused {
    match error {
        Error::HostNotFound | Error::BadUri(_) | Error::Http(_) => Refused::Place,
        error => Refused::Failed(error.to_string()),
    }
}

/// The resolver of a guarded client, asked before each connection.
struct Guard {
    lookup: Lookup,
    own_name: String,
    destinations: Vec<Network>,
}

impl Debug for Guard {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl Resolver for Guard {
    fn resolve(&self, uri: &Uri, _config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let default = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(Error::HostNotFound),
        };
        // A name and a password would be sent on.
        if uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(Error::HostNotFound);
        }
        let port = uri.port_u16().unwrap_or(default);
        // As long as there is time for the whole exchange.
        let now = Instant::now();
        let until = now.checked_add(*timeout.after).unwrap_or(now);
        let mut found = self.empty();
        for address in self.addresses(uri.host().unwrap_or_default(), until).into_iter().take(ADDRESSES_MAX) {
            if self.leads_to(address, port, until) {
                found.push(SocketAddr::new(address, port));
            }
        }
        if found.is_empty() { Err(Error::HostNotFound) } else { Ok(found) }
    }
}

impl Guard {
    /// The addresses of a host as a URL spells it. A number that is no address in the usual form is a name, and there is no such name.
    fn addresses(&self, host: &str, until: Instant) -> Vec<IpAddr> {
        let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match literal.parse() {
            Ok(address) => vec![address],
            Err(_) => (self.lookup)(host.trim_end_matches('.'), until),
        }
    }

    fn leads_to(&self, address: IpAddr, port: u16, until: Instant) -> bool {
        if self.destinations.iter().any(|network| network.holds(address)) {
            return true;
        }
        PORTS.contains(&port) && is_public(address) && !is_own(address) && !self.is_ours_elsewhere(address, until)
    }

    /// Whether address translation in front of this host leads connections to an address back here.
    fn is_ours_elsewhere(&self, address: IpAddr, until: Instant) -> bool {
        !self.own_name.is_empty() && (self.lookup)(&self.own_name, until).contains(&address)
    }
}

/// Whether an address is one of this machine's: sockets can be bound to those alone.
pub fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address.to_canonical(), 0)).is_ok()
}

/// Whether an address is one machine of the open Internet, by the registries of special addresses of IANA; an address of IPv6 that leads to
/// one of IPv4 is as that.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_4(address),
        IpAddr::V6(address) => is_public_6(address),
    }
}

fn is_public_4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224.., ..]
            | [100, 64..128, ..]
            | [169, 254, ..]
            | [172, 16..32, ..]
            | [192, 168, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
    )
}

fn is_public_6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let inner = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match (a, b) {
        // Translated (RFC 6052), by the prefix that all networks know.
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && is_public_4(inner(g, h)),
        // 6to4, Teredo and other registries of the protocol, documentation.
        (0x2002, _) | (0x2001, 0..0x200) | (0x2001, 0xdb8) | (0x3fff, 0..0x1000) => false,
        // ISATAP (RFC 5214).
        (0x2000..0x4000, _) if (e & !0x0300, f) == (0, 0x5efe) => is_public_4(inner(g, h)),
        (0x2000..0x4000, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    const BOUNDS: Bounds = Bounds { body_bytes_max: 1_000, wait: Duration::from_secs(20) };

    #[test]
    fn no_form_of_an_address_leads_into_our_own_network() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::192.168.0.1",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:0:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2a00:1450::5efe:10.0.0.1",
            "2a00:1450::200:5efe:192.168.0.1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2a00:1450::5efe:8.8.8.8",
            "2606:4700::1111",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    /// A client that finds each name at an address.
    fn client(address: &'static str, destinations: &[&str]) -> Guarded {
        let authorities = tempfile::NamedTempFile::new().unwrap();
        let lookup = Box::new(|_: &str, _| vec![address.parse().unwrap()]);
        let destinations = destinations.iter().map(|network| network.parse().unwrap()).collect();
        Guarded::new(authorities.path(), lookup, "", destinations).unwrap()
    }

    /// A server that gives one response after another, and its requests.
    fn server(responses: Vec<String>) -> (u16, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let mut heads = Vec::new();
            for response in responses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty());
                heads.push(head.collect::<Vec<_>>().join("\n"));
                let _ = stream.write_all(response.replace("PORT", &port.to_string()).as_bytes());
            }
            heads
        };
        (port, thread::spawn(serve))
    }

    fn said(status: &str, more: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{more}\r\n{body}", body.len())
    }

    #[test]
    fn no_spelling_of_this_machine_is_connected_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let guarded = client("127.0.0.1", &[]);
        for host in [
            "localhost",
            "rebinds.example",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0.0.0.0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "user:password@127.0.0.1",
            "a@b@127.0.0.1",
            "127.0.0.1.",
            "127.0.0.1%00.example",
            "[fe80::1%25lo]",
        ] {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}:{port}/");
                assert_eq!(guarded.get(&url, "*/*", BOUNDS), Err(Refused::Place), "{url}");
                assert_eq!(guarded.post(&url, "a=b", BOUNDS), Err(Refused::Place), "{url}");
            }
        }
        for url in ["file:///etc/passwd", "ftp://8.8.8.8/", "gopher://8.8.8.8/", "http:///", "//8.8.8.8/", "/", ""] {
            assert_eq!(guarded.get(url, "*/*", BOUNDS), Err(Refused::Place), "{url}");
        }
        assert!(listener.accept().is_err(), "somebody has connected");
    }

    #[test]
    fn a_port_of_another_protocol_is_not_spoken_to() {
        let guard = |own: &str| Guard {
            lookup: Box::new(|_, _| vec!["8.8.8.8".parse().unwrap()]),
            own_name: own.into(),
            destinations: vec!["10.0.0.0/8".parse().unwrap()],
        };
        let leads = |own, address: &str, port| guard(own).leads_to(address.parse().unwrap(), port, Instant::now());
        assert!(leads("", "8.8.8.8", 443) && !leads("", "8.8.8.8", 25) && !leads("", "8.8.8.8", 6_379));
        assert!(leads("", "10.0.0.1", 8_080) && !leads("", "192.168.0.1", 80), "a network that is named");
        assert!(!leads("mx.example", "8.8.8.8", 443) && leads("mx.example", "8.8.4.4", 443), "our own name");
    }

    #[test]
    fn a_request_tells_nothing_and_each_redirection_is_checked() {
        let moved = said("302 Found", "Location: http://there.example:PORT/b\r\nSet-Cookie: a=b\r\n", "");
        let (port, requests) = server(vec![moved, said("200 OK", "", "body")]);
        let guarded = client("127.0.0.1", &["127.0.0.1"]);
        assert_eq!(guarded.get(&format!("http://here.example:{port}/a"), "image/png", BOUNDS), Ok(b"body".to_vec()));
        let heads = requests.join().unwrap();
        assert!(heads[1].starts_with("GET /b HTTP/1.1"), "{heads:?}");
        for head in heads {
            let names: Vec<&str> = head.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
            let is_known = |name: &&str| ["host", "accept", "user-agent"].contains(&&*name.to_ascii_lowercase());
            assert!(names.iter().all(is_known), "{head}");
            assert!(head.lines().any(|line| line.eq_ignore_ascii_case("user-agent: sluice")), "{head}");
        }
        for place in ["http://127.0.0.2:PORT/", "http://a:b@127.0.0.1:PORT/", "file:///etc/passwd", "//127.0.0.2/"] {
            let (port, requests) = server(vec![said("302 Found", &format!("Location: {place}\r\n"), "")]);
            let away = guarded.get(&format!("http://127.0.0.1:{port}/"), "*/*", BOUNDS);
            assert!(away.is_err(), "{place}");
            assert_eq!(requests.join().unwrap().len(), 1, "{place}");
        }
    }

    #[test]
    fn redirections_of_other_schemes_and_too_many_end() {
        let (port, requests) = server(vec![said("302 Found", "Location: file:///etc/passwd\r\n", "")]);
        let guarded = client("127.0.0.1", &["127.0.0.1"]);
        let url = format!("http://127.0.0.1:{port}/r/x");
        assert_eq!(guarded.get(&url, "*/*", BOUNDS), Err(Refused::Place));
        assert_eq!(requests.join().unwrap().len(), 1);
        let away = |_| said("302 Found", "Location: /again\r\n", "");
        let (port, requests) = server((0..=REDIRECTIONS_MAX).map(away).collect());
        assert!(matches!(guarded.get(&format!("http://127.0.0.1:{port}/"), "*/*", BOUNDS), Err(Refused::Failed(_))));
        assert_eq!(requests.join().unwrap().len(), 1 + REDIRECTIONS_MAX as usize);
    }

    #[test]
    fn a_response_is_bounded_and_a_form_is_not_sent_on() {
        let long = "x".repeat(1_001);
        let moved = said("307 Temporary Redirect", "Location: http://127.0.0.1:PORT/again\r\n", "");
        let (port, requests) =
            server(vec![said("200 OK", "", &long), said("404 Not Found", "", ""), moved, said("200 OK", "", "taken")]);
        let (guarded, url) = (client("127.0.0.1", &["127.0.0.1"]), format!("http://127.0.0.1:{port}/"));
        assert_eq!(guarded.get(&url, "*/*", BOUNDS), Err(Refused::TooLong));
        assert_eq!(guarded.get(&url, "*/*", BOUNDS), Err(Refused::Status(404)));
        assert_eq!(guarded.post(&url, "a=b", BOUNDS), Err(Refused::Status(307)));
        assert_eq!(guarded.post(&url, "a=b", BOUNDS), Ok(()));
        assert!(requests.join().unwrap()[3].starts_with("POST / HTTP/1.1"));
    }

    #[test]
    fn a_name_is_looked_up_within_the_time_of_the_exchange() {
        let (tell, told) = std::sync::mpsc::channel();
        let lookup = Box::new(move |_: &str, until: Instant| {
            tell.send(until).unwrap();
            Vec::new()
        });
        let authorities = tempfile::NamedTempFile::new().unwrap();
        let guarded = Guarded::new(authorities.path(), lookup, "", Vec::new()).unwrap();
        let (before, wait) = (Instant::now(), Duration::from_secs(7));
        assert_eq!(guarded.get("http://a.example/", "*/*", Bounds { wait, ..BOUNDS }), Err(Refused::Place));
        let until = told.recv().unwrap();
        assert!(until > before && until <= Instant::now() + wait, "{:?}", until - before);
    }

    #[test]
    fn a_name_is_looked_up_once_for_a_connection() {
        let asked = std::sync::Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let (port, requests) = server(vec![said("200 OK", "", "first")]);
        // The second answer would lead elsewhere.
        let lookup = Box::new(move |_: &str, _| {
            let address = if count.fetch_add(1, Relaxed) == 0 { "127.0.0.1" } else { "127.0.0.3" };
            vec![address.parse().unwrap()]
        });
        let authorities = tempfile::NamedTempFile::new().unwrap();
        let guarded = Guarded::new(authorities.path(), lookup, "", vec!["127.0.0.1".parse().unwrap()]).unwrap();
        let url = format!("http://rebinds.example:{port}/");
        assert_eq!(guarded.get(&url, "*/*", BOUNDS), Ok(b"first".to_vec()));
        assert_eq!(asked.load(Relaxed), 1);
        requests.join().unwrap();
    }
}
