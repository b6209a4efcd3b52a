//! The small HTTP server: it shows a page at a path, one request a connection, and knows nothing else.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What is answered.
pub struct Page {
    status: &'static str,
    text: String,
}

impl Page {
    /// All is well.
    pub const fn ok(text: String) -> Page {
        Page { status: "200 OK", text }
    }

    /// Not now.
    pub const fn unavailable(text: String) -> Page {
        Page { status: "503 Service Unavailable", text }
    }
}

/// How long a request and its answer may take.
const WAIT: Duration = Duration::from_secs(10);

/// Answers one request; `page` says what is at a path.
///
/// # Errors
/// When the connection fails, or takes too long.
pub async fn answer(stream: TcpStream, page: impl Fn(&[u8]) -> Option<Page>) -> io::Result<()> {
    timeout(WAIT, converse(stream, page)).await?
}

async fn converse(mut stream: TcpStream, page: impl Fn(&[u8]) -> Option<Page>) -> io::Result<()> {
    let mut request = [0; 2048];
    let mut len = 0;
    while len < request.len() && !request[..len].windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut request[len..]).await? {
            0 => break,
            count => len += count,
        }
    }
    let path = request[..len].split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let nothing = || Page { status: "404 Not Found", text: "not found\n".into() };
    let Page { status, text } = page(path).unwrap_or_else(nothing);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await
}
