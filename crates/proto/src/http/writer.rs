//! Messages in canonical form.
//!
//! The framing is the writer's own: `Content-Length`, `Transfer-Encoding`, `Connection` and their old relatives are left out of
//! the fields that are handed in, and written as the connection needs them.

use alloc::format;
use alloc::vec::Vec;

use super::Version;
use super::body::Framing;
use super::field::Fields;
use super::request::Request;
use super::response::Response;

/// Fields that only the writer sets.
const OWN: [&str; 5] = ["content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection"];

/// The body that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Writing {
    /// None.
    #[default]
    Nothing,
    /// A body of which this many bytes are still to be written.
    Counted(u64),
    Chunked,
    /// A body that the end of the connection ends.
    Endless,
}

impl Writing {
    /// Appends content. Bytes beyond a promised length are dropped: they would be the next message.
    pub fn content(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Writing::Nothing => {}
            Writing::Counted(left) => {
                let count = super::chunks::part(left, bytes);
                out.extend_from_slice(bytes.get(..count).unwrap_or_default());
            }
            Writing::Chunked if bytes.is_empty() => {}
            Writing::Chunked => {
                out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Writing::Endless => out.extend_from_slice(bytes),
        }
    }

    /// Ends the body. Returns false when it is shorter than promised: then the connection must be closed.
    pub fn end(&mut self, trailer: &Fields, out: &mut Vec<u8>) -> bool {
        match core::mem::take(self) {
            Writing::Nothing | Writing::Counted(0) => true,
            Writing::Chunked => {
                out.extend_from_slice(b"0\r\n");
                trailer.write(out);
                out.extend_from_slice(b"\r\n");
                true
            }
            Writing::Counted(_) | Writing::Endless => false,
        }
    }
}

/// Writes the head of a request, and returns the body that has to follow.
pub(super) fn request(request: &Request, out: &mut Vec<u8>) -> Writing {
    out.extend_from_slice(request.method.as_bytes());
    out.push(b' ');
    request.target.write(out);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    out.extend_from_slice(request.authority().unwrap_or_default());
    out.extend_from_slice(b"\r\n");
    let is_upgrade = request.fields.get("upgrade").is_some();
    let connection: &[u8] = if is_upgrade { b"Connection: upgrade\r\n" } else { b"" };
    fields(&request.fields, &["host"], out);
    out.extend_from_slice(connection);
    let has_body = !matches!(request.method.as_str(), "GET" | "HEAD" | "CONNECT" | "OPTIONS" | "DELETE" | "TRACE");
    match request.framing {
        // A method that usually has a body says that there is none (RFC 9110, section 8.6).
        Framing::Empty if !has_body => ending(None, out),
        Framing::Empty => ending(Some(0), out),
        Framing::Length(bytes) => ending(Some(bytes), out),
        // A request cannot end with its connection.
        Framing::Chunked | Framing::Close => chunked(out),
    }
}

/// Facts of a request that shape its response.
pub(super) struct Answered<'r> {
    pub method: &'r str,
    pub version: Version,
    /// Whether the connection is to go on.
    pub keeps_alive: bool,
}

/// Writes the head of a response, and returns the body that has to follow, and whether the connection goes on.
pub(super) fn response(response: &Response, to: &Answered<'_>, out: &mut Vec<u8>) -> (Writing, bool) {
    status_line(response, out);
    fields(&response.fields, &[], out);
    let status = response.status;
    if status.opens_tunnel(to.method) {
        let upgrade: &[u8] = if status.0 == 101 { b"Connection: upgrade\r\n\r\n" } else { b"\r\n" };
        out.extend_from_slice(upgrade);
        return (Writing::Nothing, false);
    }
    let is_old = to.version < Version::Http11;
    let ends_with_connection =
        matches!(response.framing, Framing::Close) || (is_old && response.framing == Framing::Chunked);
    let is_bodiless = status.is_bodiless(to.method);
    let keeps_alive = to.keeps_alive && (is_bodiless || !ends_with_connection);
    match (keeps_alive, is_old) {
        (false, _) => out.extend_from_slice(b"Connection: close\r\n"),
        (true, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (true, false) => {}
    }
    let writing = match response.framing {
        _ if status.0 == 204 => ending(None, out),
        Framing::Length(bytes) => ending(Some(bytes), out),
        // To HEAD and with 304, a length is that of the response to GET, and may be left out.
        _ if is_bodiless => ending(None, out),
        Framing::Empty => ending(Some(0), out),
        Framing::Chunked if !ends_with_connection => chunked(out),
        Framing::Chunked | Framing::Close => {
            out.extend_from_slice(b"\r\n");
            Writing::Endless
        }
    };
    (if is_bodiless { Writing::Nothing } else { writing }, keeps_alive)
}

/// Writes an interim response.
pub(super) fn interim(response: &Response, out: &mut Vec<u8>) {
    status_line(response, out);
    fields(&response.fields, &[], out);
    out.extend_from_slice(b"\r\n");
}

fn status_line(response: &Response, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("HTTP/1.1 {} ", response.status.0).as_bytes());
    out.extend_from_slice(&response.reason);
    out.extend_from_slice(b"\r\n");
}

fn fields(fields: &Fields, except: &[&str], out: &mut Vec<u8>) {
    let is_left_out = |name: &str| OWN.iter().chain(except).any(|other| other.eq_ignore_ascii_case(name));
    for (name, value) in fields.iter().filter(|(name, _)| !is_left_out(name)) {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(piece);
        }
    }
}

/// Ends a head with a length, or without.
fn ending(length: Option<u64>, out: &mut Vec<u8>) -> Writing {
    if let Some(bytes) = length {
        out.extend_from_slice(format!("Content-Length: {bytes}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    Writing::Counted(length.unwrap_or(0))
}

fn chunked(out: &mut Vec<u8>) -> Writing {
    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    Writing::Chunked
}
