//! The head of a message of HTTP: its first line and its fields.

use std::sync::Arc;

/// A head.
pub(super) struct Head {
    pub first: Vec<u8>,
    pub raw: Vec<u8>,
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Head {
    /// The head for a record.
    pub fn told(&self) -> Arc<flow::Head> {
        Arc::new(flow::Head { line: self.first.as_slice().into(), fields: self.raw.as_slice().into() })
    }

    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..])
    }
}

/// Method, target and protocol; the target may have blanks.
pub(super) fn request_line(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (method, rest) = line.split_at(end);
    let rest = rest.trim_ascii();
    let last = rest.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    if rest[last..].starts_with(b"HTTP/") {
        return (method, rest[..last].trim_ascii(), &rest[last..]);
    }
    (method, rest, b"")
}
