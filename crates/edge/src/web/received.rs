//! Heads of messages as they have come, for intrusion rules: before the door changes them for who is next.

use flow::Head;
use proto::http::{Fields, Request, Response, Version};

/// The head of a request, as it has come.
pub(super) fn of_request(request: &Request) -> Head {
    let version: &[u8] = if request.version < Version::Http11 { b" HTTP/1.0" } else { b" HTTP/1.1" };
    let line = [request.method.as_bytes(), b" ", request.path(), version].concat();
    Head { line: line.into(), fields: lines(&request.fields) }
}

/// The head of a response, as it has come.
pub(super) fn of_response(response: &Response) -> Head {
    let status = response.status.0.to_string();
    let line = [b"HTTP/1.1 ", status.as_bytes(), b" ", &response.reason].concat();
    Head { line: line.into(), fields: lines(&response.fields) }
}

/// Fields as lines.
pub(super) fn lines(fields: &Fields) -> Box<[u8]> {
    let mut lines = Vec::new();
    for (name, value) in fields.iter() {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines.into()
}
