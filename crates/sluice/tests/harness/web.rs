//! The two ends of a proxy: an origin that remembers what it was asked, and a client that takes an answer apart.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::Wire;
use super::tls::Certificate;

/// An origin server.
pub struct Origin {
    pub address: SocketAddr,
    /// Bytes received on each connection, in order.
    said: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// The answer to a request, of which this is the head and the body; nothing: the connection ends.
type Answer = dyn Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync;

/// Both directions of a connection.
type Both = (Box<dyn Read + Send>, Box<dyn Write + Send>);

impl Origin {
    /// Answers each request as `answer` says.
    pub fn start(answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Origin {
        Origin::at("127.0.0.1:0", answer)
    }

    /// The same at this address.
    pub fn at(address: &str, answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Origin {
        Origin::serve(address, Duration::ZERO, answer)
    }

    /// The same at this address in TLS, with this certificate.
    pub fn in_tls(
        address: &str,
        certificate: &Certificate,
        answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Origin {
        let certificate = certificate.clone();
        Origin::accept(address, Duration::ZERO, answer, move |stream| {
            let secured = certificate.server()(stream.try_clone().unwrap());
            (Box::new(secured.clone()), Box::new(secured))
        })
    }

    /// The same, with a pause after each 16 KiB.
    fn serve(
        address: &str,
        pause: Duration,
        answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Origin {
        Origin::accept(address, pause, answer, |stream| {
            (Box::new(stream.try_clone().unwrap()), Box::new(stream.try_clone().unwrap()))
        })
    }

    /// The same, over what `role` makes of each connection.
    fn accept(
        address: &str,
        pause: Duration,
        answer: impl Fn(&str, &[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
        role: impl Fn(&TcpStream) -> Both + Send + 'static,
    ) -> Origin {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let said: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let (memory, answer) = (said.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut said = memory.lock().unwrap();
                let number = said.len();
                said.push(Vec::new());
                let (memory, answer) = (memory.clone(), answer.clone());
                let stream = stream.unwrap();
                let both = role(&stream);
                thread::spawn(move || converse(&stream, both, pause, number, &memory, &*answer));
            }
        });
        Origin { address, said }
    }

    /// Answers each path with its content, and closes.
    pub fn of_objects(objects: Vec<(&'static str, Vec<u8>)>) -> Origin {
        Origin::serve("127.0.0.1:0", Duration::ZERO, move |head, _| {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let body = objects.iter().find(|(name, _)| *name == path).map(|(_, body)| &body[..]).unwrap_or_default();
            Some(response("Connection: close\r\n", body))
        })
    }

    /// Text received on the connections.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().iter().map(|said| String::from_utf8_lossy(said).into_owned()).collect()
    }

    /// How many bytes each connection has said.
    pub fn counts(&self) -> Vec<usize> {
        self.said.lock().unwrap().iter().map(Vec::len).collect()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A response with this body and its length.
pub fn response(fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn converse(
    stream: &TcpStream,
    (mut reader, mut writer): Both,
    pause: Duration,
    number: usize,
    memory: &Mutex<Vec<Vec<u8>>>,
    answer: &Answer,
) {
    let (mut said, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        while let Some((head, body, end)) = request(&said) {
            let Some(reply) = answer(&head, &body) else { return };
            for piece in reply.chunks(if pause.is_zero() { usize::MAX } else { 16 << 10 }) {
                // A proxy may have broken it off.
                _ = writer.write_all(piece).and_then(|()| writer.flush());
                thread::sleep(pause);
            }
            said.drain(..end);
            if reply.windows(17).any(|part| part == b"Connection: close") {
                stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
                _ = stream.shutdown(std::net::Shutdown::Write);
            }
        }
        match reader.read(&mut piece) {
            Ok(count @ 1..) => {
                said.extend_from_slice(&piece[..count]);
                memory.lock().unwrap()[number].extend_from_slice(&piece[..count]);
            }
            _ => return,
        }
    }
}

/// The first whole request of what was said: its head, its body, and where it ends.
fn request(said: &[u8]) -> Option<(String, Vec<u8>, usize)> {
    let end = said.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let lower = head.to_ascii_lowercase();
    if lower.contains("\r\ntransfer-encoding: chunked\r\n") {
        let (body, used) = chunks(&said[end..])?;
        return Some((head, body, end + used));
    }
    let length = lower.split("\r\ncontent-length: ").nth(1).and_then(|rest| rest.split('\r').next()?.parse().ok());
    let length: usize = length.unwrap_or(0);
    let body = said.get(end..end + length)?.to_vec();
    Some((head, body, end + length))
}

/// The content of chunks, and where they end.
pub fn chunks(said: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let line = said[at..].windows(2).position(|two| two == b"\r\n")?;
        let size = std::str::from_utf8(&said[at..at + line]).ok()?;
        let size = usize::from_str_radix(size.split(';').next()?, 16).ok()?;
        at += line + 2;
        if size == 0 {
            let end = match said.get(at..at + 2)? {
                b"\r\n" => at + 2,
                _ => at + said[at..].windows(4).position(|four| four == b"\r\n\r\n")? + 4,
            };
            return Some((body, end));
        }
        body.extend_from_slice(said.get(at..at + size)?);
        at += size + 2;
    }
}

/// An answer that a client got.
#[derive(Debug)]
pub struct Answered {
    pub head: String,
    pub body: Vec<u8>,
    /// It has its end.
    pub is_whole: bool,
}

impl Answered {
    pub fn status(&self) -> &str {
        self.head.get(9..12).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Wire {
    /// The next answer; `is_bodiless`: to HEAD or CONNECT.
    pub fn answer(&mut self, is_bodiless: bool) -> Answered {
        let mut head = String::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            head += &line;
            head.push('\n');
        }
        let lower = head.to_ascii_lowercase();
        let status = head.get(9..12).unwrap_or_default();
        let (mut body, mut is_whole) = (Vec::new(), true);
        if is_bodiless || matches!(status, "204" | "304") || status.starts_with('1') {
        } else if lower.contains("transfer-encoding: chunked") {
            is_whole = false;
            while let Some(size) = self.whole_line().and_then(|line| usize::from_str_radix(&line, 16).ok()) {
                let mut piece = vec![0; size];
                if size == 0 {
                    while self.whole_line().is_some_and(|line| !line.is_empty()) {}
                    is_whole = true;
                    break;
                }
                if self.try_exactly(&mut piece).is_err() {
                    break;
                }
                body.extend(piece);
                self.whole_line();
            }
        } else if let Some(length) = lower.split("content-length: ").nth(1) {
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            let mut piece = [0; 1];
            while body.len() < length && self.try_exactly(&mut piece).is_ok() {
                body.push(piece[0]);
            }
            is_whole = body.len() == length;
        } else {
            body = self.rest();
        }
        Answered { head, body, is_whole }
    }

    /// Sends a request, and waits for its answer.
    pub fn ask(&mut self, request: &str) -> Answered {
        self.send(request.as_bytes());
        self.answer(request.starts_with("HEAD") || request.starts_with("CONNECT"))
    }
}

/// A zip archive of Python's with one member, which is stored.
pub fn zip_of(content: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let (member, archive) = (folder.path().join("eicar.com"), folder.path().join("a.zip"));
    fs::write(&member, content).unwrap();
    let made = Command::new("python3").args(["-m", "zipfile", "-c"]).arg(&archive).arg(&member).status().unwrap();
    assert!(made.success());
    fs::read(archive).unwrap()
}
