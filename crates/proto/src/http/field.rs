//! Header and trailer fields: names and values in order, in one buffer.

use alloc::vec::Vec;
use core::ops::Range;

use super::Version;
use super::grammar::is_token;
use super::refusal::Refusal;

/// Fields in their order. Names are kept as they were written and compared without case; values have no white space around
/// them.
#[derive(Clone, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Clone)]
struct Span {
    name: Range<u32>,
    value: Range<u32>,
}

/// Fields that speak of this connection alone and are never forwarded (RFC 9110, section 7.6.1), with the old
/// `Proxy-Connection` and `Keep-Alive`. `Trailer` names fields that go on (section 6.6.2).
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
    "proxy-authorization",
];

impl Fields {
    /// Appends a field. Returns false, and appends nothing, when the name is no token or the value holds CR, LF or NUL: a
    /// value of a peer's never becomes a field of its own.
    pub fn push(&mut self, name: &str, value: &[u8]) -> bool {
        self.append(name.as_bytes(), value).is_ok()
    }

    /// Parses `name: value`, a line without its end.
    pub(super) fn push_line(&mut self, line: &[u8]) -> Result<(), Refusal> {
        if line.first().is_some_and(|&byte| byte == b' ' || byte == b'\t') {
            return Err(Refusal::FieldFolded);
        }
        let colon = memchr::memchr(b':', line).ok_or(Refusal::FieldName)?;
        let (name, rest) = line.split_at(colon);
        self.append(name, rest.get(1..).unwrap_or_default())
    }

    /// Parses a line of a response; whether it is kept. Blanks before its colon are taken away, and a fold is a blank, which in a
    /// request are refused (RFC 9112, sections 5.1 and 5.2). A fold that others take for a field is refused here, too. A line without
    /// a valid name is dropped with its folds (`is_dropped`: the one before was), unless the name may be one by which the message is framed.
    pub(super) fn push_response_line(&mut self, line: &[u8], is_dropped: bool) -> Result<bool, Refusal> {
        if line.first().is_some_and(|&byte| matches!(byte, b' ' | b'\t')) && (is_dropped || !self.is_empty()) {
            let more = trim(line);
            let name = more.iter().take_while(|&&byte| is_token(byte)).count();
            return match more.get(name) {
                Some(b':') => Err(Refusal::FieldFolded),
                _ if is_dropped => Ok(false),
                _ => self.extend_last(more).map(|()| true),
            };
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, rest) = line.split_at(colon);
        let name = name.trim_ascii_end();
        if is_name(name) && !rest.is_empty() {
            self.append(name, rest.get(1..).unwrap_or_default())?;
            return Ok(true);
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return Err(Refusal::FieldFolded);
        }
        if may_frame(name) { Err(Refusal::FieldName) } else { Ok(false) }
    }

    /// Appends to the value of the last field, whose bytes are the last.
    fn extend_last(&mut self, more: &[u8]) -> Result<(), Refusal> {
        let blank: &[u8] = if more.is_empty() { b"" } else { b" " };
        let end = self.store(&[blank, more].concat())?.end;
        if let Some(span) = self.spans.last_mut() {
            span.value.end = end;
        }
        Ok(())
    }

    fn append(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        if !is_name(name) {
            return Err(Refusal::FieldName);
        }
        let value = trim(value);
        if value.iter().any(|&byte| matches!(byte, 0 | b'\r' | b'\n')) {
            return Err(Refusal::ControlByte);
        }
        let span = Span { name: self.store(name)?, value: self.store(value)? };
        self.spans.push(span);
        Ok(())
    }

    fn store(&mut self, bytes: &[u8]) -> Result<Range<u32>, Refusal> {
        let begin = u32::try_from(self.bytes.len()).map_err(|_| Refusal::HeadTooLong)?;
        self.bytes.extend_from_slice(bytes);
        let end = u32::try_from(self.bytes.len()).map_err(|_| Refusal::HeadTooLong)?;
        Ok(begin..end)
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True without fields.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.spans.iter().map(|span| (self.name(span), self.at(&span.value)))
    }

    /// The value of the first field of this name, compared without case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The values of all fields of this name.
    pub fn all<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The elements of a comma-separated list (RFC 9110, section 5.6.1) over all fields of this name. Not for values with
    /// quoted commas.
    pub fn elements<'f>(&'f self, name: &'f str) -> impl Iterator<Item = &'f [u8]> {
        let split = |value: &'f [u8]| value.split(|&byte| byte == b',').map(trim);
        self.all(name).flat_map(split).filter(|element| !element.is_empty())
    }

    /// True when the list of this name holds the token, compared without case.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.elements(name).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
    }

    /// True when the connection goes on after a message with these fields (RFC 9112, section 9.3).
    pub(super) fn keeps_alive(&self, version: Version) -> bool {
        let says = |token| self.lists("connection", token);
        match version {
            Version::Http11 => !says("close"),
            Version::Http10 => says("keep-alive") && !says("close"),
        }
    }

    /// Removes all fields of this name.
    pub fn remove(&mut self, name: &str) {
        let bytes = &self.bytes;
        self.spans.retain(|span| !slice(bytes, &span.name).eq_ignore_ascii_case(name.as_bytes()));
    }

    /// Replaces all fields of this name by one.
    pub fn set(&mut self, name: &str, value: &[u8]) -> bool {
        self.remove(name);
        self.push(name, value)
    }

    /// Removes what speaks of one connection: the fields that `Connection` names, and those that always do (RFC 9110,
    /// section 7.6.1). `Content-Length` stays, whatever `Connection` says: a peer that names it wants the framing lost.
    pub fn remove_hop_by_hop(&mut self) {
        let named: Vec<Vec<u8>> = self.elements("connection").map(<[u8]>::to_vec).collect();
        let bytes = &self.bytes;
        self.spans.retain(|span| {
            let name = slice(bytes, &span.name);
            let is_named = named.iter().any(|other| other.eq_ignore_ascii_case(name));
            let is_kept = ["content-length", "host"].iter().any(|kept| kept.as_bytes().eq_ignore_ascii_case(name));
            let is_hop = HOP_BY_HOP.iter().any(|hop| hop.as_bytes().eq_ignore_ascii_case(name));
            is_kept || !(is_named || is_hop)
        });
    }

    /// Writes the fields, each with its line end.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(piece);
            }
        }
    }

    fn name(&self, span: &Span) -> &str {
        // Tokens are ASCII.
        core::str::from_utf8(self.at(&span.name)).unwrap_or_default()
    }

    fn at(&self, span: &Range<u32>) -> &[u8] {
        slice(&self.bytes, span)
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Fields) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Fields {}

impl core::fmt::Debug for Fields {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_map().entries(self.iter().map(|(name, value)| (name, value.escape_ascii()))).finish()
    }
}

fn slice<'b>(bytes: &'b [u8], span: &Range<u32>) -> &'b [u8] {
    bytes.get(span.start as usize..span.end as usize).unwrap_or_default()
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token(byte))
}

/// Whether the letters of a name are those of a field that frames the message, or its first ones: others may read it as that field.
fn may_frame(name: &[u8]) -> bool {
    const FRAMING: [&[u8]; 2] = [b"contentlength", b"transferencoding"];
    let letters: Vec<u8> = name.iter().filter(|byte| byte.is_ascii_alphabetic()).map(u8::to_ascii_lowercase).collect();
    FRAMING.iter().any(|framing| letters.starts_with(framing))
}

/// Removes blanks and tabs around a value.
pub(super) fn trim(value: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let begin = value.iter().position(|byte| !is_blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_blank(byte)).map_or(begin, |last| last.saturating_add(1));
    value.get(begin..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_speak_of_the_connection_are_removed() {
        let mut fields = Fields::default();
        for (name, value) in [
            ("Connection", "x-own, Content-Length, close"),
            ("X-Own", "1"),
            ("X-Other", "2"),
            ("Content-Length", "3"),
            ("TE", "trailers"),
            ("Trailer", "X-Sum"),
        ] {
            assert!(fields.push(name, value.as_bytes()));
        }
        fields.remove_hop_by_hop();
        assert_eq!(fields.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["X-Other", "Content-Length", "Trailer"]);
    }

    #[test]
    fn a_value_cannot_end_its_line() {
        let mut fields = Fields::default();
        for (name, value) in [("A", "b\r\nC: d"), ("A", "\n"), ("A\r\nB", ""), ("", "x"), ("A ", "x"), ("A", "\0")] {
            assert!(!fields.push(name, value.as_bytes()), "{name:?} {value:?}");
        }
        assert!(fields.is_empty());
    }
}
