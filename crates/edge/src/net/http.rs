//! The small HTTP server: it shows a page at a path, one request a connection, and knows nothing else.
//!
//! Clients that say nothing keep nobody away: where all places are taken, the oldest connection without a complete request
//! is closed for the next client.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proto::http::{Limits, Response, Server, ServerEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::accept::{Handler, accept};
use super::listening::Socket;
use super::stream::Stream;

/// A page that is shown.
pub struct Page {
    status: u16,
    text: String,
}

impl Page {
    /// All is well.
    pub const fn ok(text: String) -> Page {
        Page { status: 200, text }
    }

    /// Not now.
    pub const fn unavailable(text: String) -> Page {
        Page { status: 503, text }
    }
}

/// The time for a request and its response.
const WAIT: Duration = Duration::from_secs(10);

/// The time for a request.
const REQUEST_WAIT: Duration = Duration::from_secs(5);

/// Connections at a time; more wait their turn, if all of these have sent a request.
const REQUESTS_MAX: usize = 64;

/// The type of the text exposition format of Prometheus, which is plain text to everybody else.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4";

/// Shows pages to the clients of a listener until it is dropped; `page` has the page at a path.
pub async fn serve<F>(listener: TcpListener, name: &str, page: F)
where
    F: Fn(&[u8]) -> Option<Page> + Send + Sync + 'static,
{
    let visitors = Visitors { page: Arc::new(page), places: Arc::default() };
    accept(name, &Socket::Tcp(listener), &visitors).await;
}

/// Clients of a listener that shows pages.
struct Visitors<F> {
    page: Arc<F>,
    places: Arc<Places>,
}

/// The connections of a listener.
struct Places {
    free: Arc<Semaphore>,
    silent: Mutex<Silent>,
}

impl Default for Places {
    fn default() -> Places {
        Places { free: Arc::new(Semaphore::new(REQUESTS_MAX)), silent: Mutex::default() }
    }
}

/// Connections without a complete request, in the order in which they came.
#[derive(Default)]
struct Silent {
    count: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
}

/// The place of a connection.
struct Place {
    number: u64,
    /// Told when the connection is closed for another.
    given_up: Arc<Notify>,
    places: Arc<Places>,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// A place, for which the oldest silent connection is closed if there is no other.
    async fn take(self: &Arc<Places>) -> Option<Place> {
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let oldest = self.silent.lock().expect("no holder panics").waiting.pop_first();
                oldest.iter().for_each(|(_, given_up)| given_up.notify_one());
                self.free.clone().acquire_owned().await.ok()?
            }
        };
        let given_up = Arc::new(Notify::new());
        let mut silent = self.silent.lock().expect("no holder panics");
        silent.count += 1;
        let number = silent.count;
        silent.waiting.insert(number, given_up.clone());
        Some(Place { number, given_up, places: self.clone(), _permit: permit })
    }
}

impl Place {
    /// The request is complete: the connection stays until it is answered.
    fn speaks(&self) {
        self.places.silent.lock().expect("no holder panics").waiting.remove(&self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.speaks();
    }
}

impl<F: Fn(&[u8]) -> Option<Page> + Send + Sync + 'static> Handler for Visitors<F> {
    type Place = Place;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<Place, Option<String>> {
        self.places.take().await.ok_or(None)
    }

    fn begin(&self, stream: Stream, _peer: SocketAddr, place: Place) {
        let page = self.page.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = place.given_up.notified() => {}
                _ = timeout(WAIT, converse(stream, &*page, &place)) => {}
            }
        });
    }
}

async fn converse(mut stream: Stream, page: impl Fn(&[u8]) -> Option<Page>, place: &Place) -> io::Result<()> {
    let until = Instant::now() + REQUEST_WAIT;
    let mut server = Server::new(Limits { head_bytes_max: 8 << 10, target_bytes_max: 2 << 10, ..Limits::default() });
    let (mut piece, mut response) = ([0; 2048], None);
    while !server.is_over() {
        let count = timeout_at(until, stream.read(&mut piece)).await??;
        let mut rest = &piece[..count];
        loop {
            let (taken, event) = match count {
                0 => (0, server.finish()),
                _ => server.step(rest),
            };
            rest = &rest[taken..];
            match event {
                ServerEvent::Request(request) => response = Some(respond(&request.method, request.path(), &page)),
                ServerEvent::End(_) => {
                    place.speaks();
                    server.close();
                    let (head, text) = response.take().unwrap_or_else(|| respond("", b"", &page));
                    server.answer(&head, text.as_bytes());
                }
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Idle | ServerEvent::Content => {}
                ServerEvent::Refused(_) | ServerEvent::Tunnel | ServerEvent::Closed => break,
            }
        }
        stream.write_all(server.outbox()).await?;
        server.sent();
    }
    stream.shutdown().await
}

/// The response to a request, and its text.
fn respond(method: &str, path: &[u8], page: impl Fn(&[u8]) -> Option<Page>) -> (Response, String) {
    let Page { status, text } = match method {
        "GET" | "HEAD" => page(path).unwrap_or_else(|| Page { status: 404, text: "not found\n".into() }),
        _ => Page { status: 405, text: "not allowed\n".into() },
    };
    let mut response = Response::with_body(status, MEDIA_TYPE, text.len() as u64);
    if status == 405 {
        response.fields.push("Allow", b"GET, HEAD");
    }
    (response, text)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn clients_that_say_nothing_keep_nobody_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let page = |path: &[u8]| (path == b"/metrics").then(|| Page::ok("well\n".into()));
        let server = tokio::spawn(serve(listener, "metrics", page));
        let mut silent = Vec::new();
        for number in 0..200 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if number % 2 == 0 {
                stream.write_all(b"GET /metrics HTTP/1.1\r\n").await.unwrap();
            }
            silent.push(stream);
        }
        let ask = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).await.unwrap();
            reply
        };
        let reply = timeout(Duration::from_secs(4), ask).await.expect("it is answered at once");
        assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("well\n"), "{reply}");
        server.abort();
    }
}
