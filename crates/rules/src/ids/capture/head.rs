//! The head of a message of HTTP: its first line and its fields.

use std::sync::Arc;

/// Bytes of a response that tell whether it has a head.
const STATUS_LINE_BYTES: usize = 64;

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

/// Whether a request is a line without a protocol.
pub(super) fn is_simple(pending: &[u8]) -> bool {
    let line = pending.strip_suffix(b"\n").filter(|line| !line.contains(&b'\n'));
    line.is_some_and(|line| matches!(request_line(line), (b"GET", _, b"")))
}

/// Whether the first line of a response, or as much as tells, has no protocol.
pub(super) fn is_bare(pending: &[u8], is_ended: bool) -> bool {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    let Some(start) = pending.iter().take(STATUS_LINE_BYTES).position(|byte| !is_blank(byte)) else { return false };
    let line = &pending[start..];
    let line = &line[..line.len().min(STATUS_LINE_BYTES)];
    let is_whole = is_ended || line.len() == STATUS_LINE_BYTES || line.contains(&b'\n');
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    is_whole && memchr::memmem::find(&line.to_ascii_uppercase(), b"HTTP/").is_none()
}
