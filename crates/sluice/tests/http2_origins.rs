//! HTTP/2 with servers: nginx, and servers that send what no good one does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use tokio_rustls::rustls::{ServerConnection, StreamOwned};

use crate::harness::nginx::Nginx;
use crate::harness::tls::Certificate;
use crate::harness::web::{Answered, zip_of};
use crate::harness::{Gateway, eicar, wait_for};
use crate::https::{Client, Site, get, sluice};

fn curl(site: &Site, gateway: &Gateway, arguments: &[&str]) -> Output {
    let authority = sluice(&["web", "ca", "export", site.path("own.pem").to_str().unwrap()]);
    fs::write(site.path("own.crt"), authority).unwrap();
    let ran = Command::new("curl")
        .args(["-sS", "--http2", "--cacert"])
        .arg(site.path("own.crt"))
        .args(["--proxy", &format!("http://{}", gateway.address)])
        .args(arguments)
        .output();
    ran.unwrap()
}

#[test]
fn requests_of_many_clients_share_a_connection_to_nginx() {
    let site = Site::new();
    let certificate = Certificate::issued(Some(&site.servers), "localhost", (-1, 20));
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let bad = [&large[..], &zip_of(&eicar())].concat();
    let files: [(&str, &[u8]); 4] = [("small", b"small"), ("large", &large), ("bad", &bad), ("eicar", &eicar())];
    let Some(nginx) = Nginx::start_http_2(&files, &certificate) else { return };
    let port = nginx.address.port();
    let gateway = site.gateway(&[port], "");
    let url = |path: &str| format!("https://localhost:{port}/{path}");
    for version in ["--http2", "--http1.1"] {
        assert_eq!(curl(&site, &gateway, &[version, &url("small")]).stdout, b"small");
        assert_eq!(curl(&site, &gateway, &[version, &url("large")]).stdout, large);
        assert_eq!(curl(&site, &gateway, &[version, "--data-binary", "x", &url("up")]).stdout, b"taken");
        let head = String::from_utf8(curl(&site, &gateway, &[version, "-I", &url("large")]).stdout).unwrap();
        assert!(head.to_ascii_lowercase().contains("content-length: 3000000\r\n"), "{head}");
        let blocked = curl(&site, &gateway, &[version, "-w", "%{http_code}", "-o", "/dev/null", &url("eicar")]);
        assert_eq!(blocked.stdout, b"403");
    }
    let cut = curl(&site, &gateway, &["-o", "/dev/null", &url("bad")]);
    assert_eq!(cut.status.code(), Some(92), "the stream is reset: {cut:?}");
    let many: Vec<String> = (0..30).map(|_| url("large")).collect();
    let many: Vec<&str> = ["--parallel"].into_iter().chain(many.iter().map(String::as_str)).collect();
    assert_eq!(curl(&site, &gateway, &many).stdout.len(), 30 * large.len());
    let log = wait_for(|| Some(nginx.log()).filter(|log| log.lines().count() >= 41), "the log of nginx");
    assert!(log.lines().all(|line| line.starts_with("HTTP/2.0 ")), "{log}");
    let of = |connection: &str| log.lines().filter(|line| line.split(' ').nth(1) == Some(connection)).count();
    let most = log.lines().filter_map(|line| line.split(' ').nth(1)).map(of).max();
    assert!(most >= Some(10), "requests share a connection: {log}");
}

/// The answer to a request on a stream, by the number of the connection: frames, or a message of HTTP/1.1.
type Answer = dyn Fn(u32, usize) -> Vec<u8> + Send + Sync;

/// A server that agrees to HTTP/2, and answers each request by these bytes; it counts its connections of both versions.
fn server(certificate: &Certificate, answer: impl Fn(u32, usize) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let (certificate, answer, kept): (_, Arc<Answer>, _) = (certificate.clone(), Arc::new(answer), counts.clone());
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = StreamOwned::new(certificate.serving(&["h2", "http/1.1"]), stream.unwrap());
            let (answer, counts) = (answer.clone(), kept.clone());
            // The proxy ends it.
            thread::spawn(move || _ = converse(stream, &*answer, number, &counts));
        }
    });
    Server { address, counts }
}

struct Server {
    address: SocketAddr,
    counts: Arc<[AtomicUsize; 2]>,
}

impl Server {
    /// Requests in HTTP/1.1 and in HTTP/2.
    fn requests(&self) -> [usize; 2] {
        [0, 1].map(|version| self.counts[version].load(Ordering::SeqCst))
    }
}

fn converse(
    mut stream: StreamOwned<ServerConnection, TcpStream>,
    answer: &Answer,
    number: usize,
    counts: &[AtomicUsize; 2],
) -> std::io::Result<()> {
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    if stream.conn.alpn_protocol() != Some(b"h2") {
        let (mut said, mut byte) = (Vec::new(), [0]);
        while !said.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte)?;
            said.push(byte[0]);
        }
        counts[0].fetch_add(1, Ordering::SeqCst);
        return stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nold");
    }
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    stream.write_all(&frame(SETTINGS, 0, 0, b""))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload)?;
        match (head[3], head[4] & 1) {
            (SETTINGS, 0) => stream.write_all(&frame(SETTINGS, 1, 0, b""))?,
            (HEADERS, _) => {
                counts[1].fetch_add(1, Ordering::SeqCst);
                let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                stream.write_all(&answer(id, number))?;
            }
            _ => {}
        }
        stream.flush()?;
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// Flags of the last frame of a stream, of a whole head, and of both.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const BOTH: u8 = END_STREAM | END_HEADERS;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A head, each field as a literal that is not indexed (RFC 7541, section 6.2.2).
fn head(flags: u8, stream: u32, fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let lines = fields.iter().map(|(name, value)| [vec![0], text(name), text(value)].concat());
    frame(HEADERS, flags, stream, &lines.collect::<Vec<_>>().concat())
}

/// Answer through the proxy, from a server that answers so.
fn asked(site: &Site, answer: impl Fn(u32, usize) -> Vec<u8> + Send + Sync + 'static) -> Answered {
    let server = server(&Certificate::issued(Some(&site.servers), "localhost", (-1, 20)), answer);
    let port = server.address.port();
    let gateway = site.gateway(&[port], "");
    let mut wire = Client::trusting(site.own()).connect(&gateway, port, "localhost").unwrap();
    get(&mut wire, &format!("localhost:{port}"), "/")
}

/// Fields of a head.
type Fields = &'static [(&'static str, &'static str)];

const OK: (&str, &str) = (":status", "200");

#[test]
fn a_response_that_no_good_server_sends_is_not_handed_on() {
    let site = Site::new();
    let answer = asked(&site, |stream, _| {
        let late = head(BOTH, stream, &[("x-trailer", "1")]);
        let begin = head(END_HEADERS, stream, &[OK, ("x-a", "b")]);
        [begin, frame(DATA, 0, stream, b"hello"), late].concat()
    });
    assert!(answer.is_whole && answer.status() == "200" && answer.text() == "hello", "{answer:?}");
    let bad: [(&str, Fields, &'static [u8]); 8] = [
        ("a body that is too short", &[("content-length", "9")], b"hello"),
        ("a body that is too long", &[("content-length", "3")], b"hello"),
        ("two lengths", &[("content-length", "5"), ("content-length", "5")], b"hello"),
        ("no length", &[("content-length", "+5")], b"hello"),
        ("chunks", &[("transfer-encoding", "chunked")], b"0\r\n\r\n"),
        ("a field of the connection", &[("connection", "close")], b"hello"),
        ("a line end in a value", &[("x-a", "b\r\nset-cookie: c")], b"hello"),
        ("a blank in a name", &[("x a", "x")], b"hello"),
    ];
    for (what, fields, body) in bad {
        let answer = asked(&site, move |stream, _| {
            [head(END_HEADERS, stream, &[&[OK][..], fields].concat()), frame(DATA, END_STREAM, stream, body)].concat()
        });
        assert!(answer.is_whole && answer.status() == "502", "{what}: {answer:?}");
        assert!(!answer.head.to_ascii_lowercase().contains("set-cookie"), "{what}: {answer:?}");
    }
    let answer = asked(&site, |stream, _| head(BOTH, stream, &[(":status", "101"), ("upgrade", "websocket")]));
    assert_eq!(answer.status(), "502", "no version follows");
}

#[test]
fn interim_responses_of_a_server_go_on() {
    let site = Site::new();
    let server = server(&Certificate::issued(Some(&site.servers), "localhost", (-1, 20)), |stream, _| {
        let early = head(END_HEADERS, stream, &[(":status", "103"), ("link", "</a>")]);
        let begin = head(END_HEADERS, stream, &[OK]);
        [early.repeat(2), begin, frame(DATA, END_STREAM, stream, b"hello")].concat()
    });
    let port = server.address.port();
    let gateway = site.gateway(&[port], "");
    let mut wire = Client::trusting(site.own()).connect(&gateway, port, "localhost").unwrap();
    let mut answer = get(&mut wire, &format!("localhost:{port}"), "/");
    for _ in 0..2 {
        assert!(answer.status() == "103" && answer.head.contains("link: </a>\n"), "{answer:?}");
        answer = wire.answer(false);
    }
    assert!(answer.is_whole && answer.status() == "200" && answer.text() == "hello", "{answer:?}");
    let told = curl(&site, &gateway, &["-v", &format!("https://localhost:{port}/")]);
    let heads = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.stdout == b"hello" && heads.contains("< HTTP/2 103"), "{heads}");
}

#[test]
fn a_response_that_is_reset_has_no_end() {
    let site = Site::new();
    let answer = asked(&site, |stream, _| {
        let piece = frame(DATA, 0, stream, &[b'x'; 16_000]);
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        // More than what is held back, and less than what may be sent ahead.
        [head(END_HEADERS, stream, &[OK]), piece.repeat(4), reset].concat()
    });
    assert!(!answer.is_whole || answer.status() == "502", "{} {}", answer.head, answer.body.len());
}

#[test]
fn a_server_that_goes_away_or_takes_http_1_1_alone_is_asked_again() {
    let site = Site::new();
    let certificate = Certificate::issued(Some(&site.servers), "localhost", (-1, 20));
    let hello = |stream: u32| [head(END_HEADERS, stream, &[OK]), frame(DATA, END_STREAM, stream, b"hello")].concat();
    let going = server(&certificate, move |stream, _| match stream {
        1 => [hello(1), frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])].concat(),
        _ => Vec::new(),
    });
    let old = server(&certificate, |stream, _| frame(RST_STREAM, 0, stream, &13_u32.to_be_bytes()));
    let gateway = site.gateway(&[going.address.port(), old.address.port()], "");
    let client = Client::trusting(site.own());
    let ask = |server: &Server| {
        let port = server.address.port();
        let mut wire = client.connect(&gateway, port, "localhost").unwrap();
        let texts = [(); 2].map(|()| get(&mut wire, &format!("localhost:{port}"), "/").text());
        (texts, server.requests())
    };
    assert_eq!(ask(&going), (["hello".into(), "hello".into()], [0, 2]));
    assert_eq!(ask(&old), (["old".into(), "old".into()], [2, 1]), "it is asked in HTTP/2 once");
    assert_eq!(ask(&old), (["old".into(), "old".into()], [4, 1]), "and never again");
}
