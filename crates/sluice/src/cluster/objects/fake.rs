//! An S3 server in this process, with faults, for tests.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What comes in place of a right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done.
    Status(u16, &'static str),
    /// It is done, and the connection is reset in the middle of the answer.
    Reset,
    /// It is done, and the answer has half of its bytes.
    Short,
    /// It is done, and a byte of the answer is another.
    Damaged,
    /// It is done, and the connection ends without an answer.
    Silent,
    /// The object does not show yet.
    Stale,
    /// The answer comes late.
    Slow,
}

pub const FAULTS: [Fault; 8] = [
    Fault::Status(500, "InternalError"),
    Fault::Status(503, "SlowDown"),
    Fault::Reset,
    Fault::Short,
    Fault::Damaged,
    Fault::Silent,
    Fault::Stale,
    Fault::Slow,
];

/// Says for each method and path whether there is a fault.
pub type Weather = Box<dyn FnMut(&str, &str) -> Option<Fault> + Send>;

pub struct Server {
    pub port: u16,
    inner: Arc<Mutex<Inner>>,
}

pub struct Inner {
    /// Bytes, and the sum that came with them.
    pub objects: BTreeMap<String, (Vec<u8>, String)>,
    pub weather: Weather,
    pub knows_sums: bool,
    /// Names under which other bytes came later.
    pub overwritten: Vec<String>,
    pub requests: usize,
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Server {
    pub fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Mutex::new(Inner {
            objects: BTreeMap::new(),
            weather: Box::new(|_, _| None),
            knows_sums: true,
            overwritten: Vec::new(),
            requests: 0,
        }));
        let shared = inner.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Server { port, inner }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub fn weather(&self, weather: impl FnMut(&str, &str) -> Option<Fault> + Send + 'static) {
        self.lock().weather = Box::new(weather);
    }
}

fn serve(stream: &TcpStream, inner: &Mutex<Inner>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let fault = {
            let mut inner = inner.lock().unwrap();
            inner.requests += 1;
            (inner.weather)(&request.method, &request.path)
        };
        let (status, fields, mut body) = match fault {
            Some(Fault::Status(status, code)) => (status, String::new(), error(code)),
            Some(Fault::Stale) if request.method != "PUT" => (404, String::new(), error("NoSuchKey")),
            _ => done(&request, &mut inner.lock().unwrap()),
        };
        // An answer to HEAD has the length of what it does not have.
        let (is_head, length) = (request.method == "HEAD", body.len());
        if fault == Some(Fault::Slow) {
            std::thread::sleep(Duration::from_millis(300));
        }
        if fault == Some(Fault::Damaged)
            && let Some(byte) = body.last_mut()
        {
            *byte ^= 1;
        }
        if is_head {
            body.clear();
        }
        let head = format!("HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\n{fields}\r\n");
        let mut answer = [head.as_bytes(), &body].concat();
        match fault {
            Some(Fault::Silent) => return,
            Some(Fault::Short | Fault::Reset) => answer.truncate(answer.len() / 2),
            _ => {}
        }
        let sent = (&*stream).write_all(&answer);
        match fault {
            Some(Fault::Short) => return,
            Some(Fault::Reset) => {
                let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
                return;
            }
            _ if sent.is_err() => return,
            _ => {}
        }
    }
}

fn read(reader: &mut BufReader<&TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim().split_once(": ") {
            Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.to_owned()),
            None => break,
        }
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body })
}

fn done(request: &Request, inner: &mut Inner) -> (u16, String, Vec<u8>) {
    let Request { method, path, query, headers, body } = request;
    if !headers.get("authorization").is_some_and(|value| value.starts_with("AWS4-HMAC-SHA256 Credential=id/")) {
        return (403, String::new(), error("AccessDenied"));
    }
    let Some(name) = path.strip_prefix("/mail/").filter(|name| !name.is_empty()) else {
        return (200, String::new(), list(query, inner));
    };
    match &**method {
        "PUT" => {
            let sum = headers.get("x-amz-checksum-sha256").cloned().unwrap_or_default();
            if inner.objects.get(name).is_some_and(|(known, _)| known != body) {
                inner.overwritten.push(name.to_owned());
            }
            inner.objects.insert(name.to_owned(), (body.clone(), sum));
            (200, String::new(), Vec::new())
        }
        "DELETE" => {
            inner.objects.remove(name);
            (204, String::new(), Vec::new())
        }
        _ => match inner.objects.get(name) {
            Some((bytes, sum)) if inner.knows_sums => (200, format!("x-amz-checksum-sha256: {sum}\r\n"), bytes.clone()),
            Some((bytes, _)) => (200, String::new(), bytes.clone()),
            None => (404, String::new(), error("NoSuchKey")),
        },
    }
}

/// Pages of three.
fn list(query: &str, inner: &Inner) -> Vec<u8> {
    let value = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or("").replace("%2F", "/")
    };
    let (prefix, after) = (value("prefix"), value("start-after"));
    let names = inner.objects.keys().filter(|name| name.starts_with(&prefix) && **name > after).take(3);
    let keys: String = names.map(|name| format!("<Contents><Key>{name}</Key></Contents>")).collect();
    format!("<ListBucketResult>{keys}</ListBucketResult>").into_bytes()
}

fn error(code: &str) -> Vec<u8> {
    format!("<Error><Code>{code}</Code><Message>So it is.</Message></Error>").into_bytes()
}
