//! The small HTTP server: it shows a page at a path, one request a connection, and knows nothing else.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::http::{Limits, Response, Server, ServerEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

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

/// Requests answered at a time; more wait their turn.
const REQUESTS_MAX: usize = 64;

/// The type of the text exposition format of Prometheus, which is plain text to everybody else.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4";

/// Shows pages to the clients of a listener until it is dropped; `page` has the page at a path.
pub async fn serve<F>(listener: TcpListener, name: &str, page: F)
where
    F: Fn(&[u8]) -> Option<Page> + Send + Sync + 'static,
{
    let visitors = Visitors { page: Arc::new(page), places: Arc::new(Semaphore::new(REQUESTS_MAX)) };
    accept(name, &Socket::Tcp(listener), &visitors).await;
}

/// Clients of a listener that shows pages.
struct Visitors<F> {
    page: Arc<F>,
    places: Arc<Semaphore>,
}

impl<F: Fn(&[u8]) -> Option<Page> + Send + Sync + 'static> Handler for Visitors<F> {
    type Place = OwnedSemaphorePermit;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<OwnedSemaphorePermit, Option<String>> {
        self.places.clone().acquire_owned().await.map_err(|_| None)
    }

    fn begin(&self, stream: Stream, _peer: SocketAddr, place: OwnedSemaphorePermit) {
        let page = self.page.clone();
        tokio::spawn(async move {
            let _ = timeout(WAIT, converse(stream, &*page)).await;
            drop(place);
        });
    }
}

async fn converse(mut stream: Stream, page: impl Fn(&[u8]) -> Option<Page>) -> io::Result<()> {
    let mut server = Server::new(Limits { head_bytes_max: 8 << 10, target_bytes_max: 2 << 10, ..Limits::default() });
    let (mut piece, mut response) = ([0; 2048], None);
    while !server.is_over() {
        let count = stream.read(&mut piece).await?;
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
