//! Heads of HTTP that break the rules of RFC 9112, by the names that Suricata has for such events.
//!
//! Only heads are looked at here; the reader of bodies tells of sizes that it cannot read.

use super::super::buffer::Direction;
use super::head::{Head, request_line};

/// The event of a chunk without a size.
pub(super) const fn chunk_size(direction: Direction) -> &'static str {
    match direction {
        Direction::ToServer => "INVALID_REQUEST_CHUNK_LEN",
        Direction::ToClient => "INVALID_RESPONSE_CHUNK_LEN",
    }
}

/// The event of a response without a request.
pub(super) const UNASKED: &str = "UNABLE_TO_MATCH_RESPONSE_TO_REQUEST";

/// Events of a request.
pub(super) fn of_request(head: &Head) -> Vec<&'static str> {
    let (.., protocol) = request_line(&head.first);
    let hosts = count(head, b"host");
    let own = [
        (protocol.is_empty() && !head.fields.is_empty(), "REQUEST_LINE_MISSING_PROTOCOL"),
        (protocol == b"HTTP/1.1" && hosts == 0, "MISSING_HOST_HEADER"),
        (hosts > 1, "REQUEST_HEADER_HOST_INVALID"),
        (lacks_colon(head), "REQUEST_FIELD_MISSING_COLON"),
        (count(head, b"content-length") > 1, "DUPLICATE_CONTENT_LENGTH_FIELD_IN_REQUEST"),
        (has_bad_length(head), "INVALID_CONTENT_LENGTH_FIELD_IN_REQUEST"),
        (has_bad_coding(head), "INVALID_TRANSFER_ENCODING_VALUE_IN_REQUEST"),
    ];
    named(own)
}

/// Events of a response.
pub(super) fn of_response(head: &Head) -> Vec<&'static str> {
    named([
        (lacks_colon(head), "RESPONSE_FIELD_MISSING_COLON"),
        (count(head, b"content-length") > 1, "DUPLICATE_CONTENT_LENGTH_FIELD_IN_RESPONSE"),
        (has_bad_length(head), "INVALID_CONTENT_LENGTH_FIELD_IN_RESPONSE"),
        (has_bad_coding(head), "INVALID_TRANSFER_ENCODING_VALUE_IN_RESPONSE"),
    ])
}

fn named<const N: usize>(events: [(bool, &'static str); N]) -> Vec<&'static str> {
    events.into_iter().filter_map(|(holds, name)| holds.then_some(name)).collect()
}

/// The lines of a head that are not folded onto others.
fn lines(head: &Head) -> impl Iterator<Item = &[u8]> {
    let lines = head.raw.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| line.first().is_some_and(|byte| !matches!(byte, b' ' | b'\t')))
}

fn lacks_colon(head: &Head) -> bool {
    lines(head).any(|line| !line.contains(&b':'))
}

fn count(head: &Head, name: &[u8]) -> usize {
    let names = lines(head).filter_map(|line| line.split(|&byte| byte == b':').next());
    names.filter(|known| known.trim_ascii().eq_ignore_ascii_case(name)).count()
}

fn has_bad_length(head: &Head) -> bool {
    let first = head.field(b"content-length").and_then(|value| value.split(|&byte| byte == b',').next());
    first.is_some_and(|value| !value.trim_ascii().first().is_some_and(u8::is_ascii_digit))
}

fn has_bad_coding(head: &Head) -> bool {
    head.field(b"transfer-encoding").is_some_and(|value| !value.trim_ascii().eq_ignore_ascii_case(b"chunked"))
}
