//! The head of a message of HTTP: its first line, its fields, and the buffers that they fill.

use std::sync::Arc;

use super::super::buffer::{Buffer, Direction};
use super::uri;

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

    /// The head of a message of HTTP/2 for a record: with its host, and without the other pseudo-header fields.
    pub fn told_without_pseudo(&self) -> Arc<flow::Head> {
        let lines = self.fields.iter().filter_map(|(name, value)| match &name[..] {
            b":authority" => Some([b"host: ", &value[..], b"\r\n"].concat()),
            [b':', ..] => None,
            _ => Some([name, &b": "[..], value, b"\r\n"].concat()),
        });
        let fields: Vec<u8> = lines.flatten().collect();
        Arc::new(flow::Head { line: self.first.as_slice().into(), fields: fields.into() })
    }

    pub fn field(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &value[..])
    }
}

/// Method, target and protocol; the target may have blanks where a protocol of HTTP stands behind them.
pub(super) fn request_line(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (method, rest) = word(line.trim_ascii());
    let last = rest.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    if names_http(&rest[last..]) {
        return (method, rest[..last].trim_ascii(), &rest[last..]);
    }
    let (target, protocol) = word(rest);
    (method, target, protocol)
}

/// Methods of requests that are known at any port (RFC 9110, RFC 4918, RFC 5789, and the older ones of libhtp).
const METHODS: &[&[u8]] = &[
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"REPORT",
    b"SEARCH",
    b"VERSION-CONTROL",
    b"CHECKOUT",
    b"UNCHECKOUT",
    b"CHECKIN",
    b"UPDATE",
    b"LABEL",
    b"MKWORKSPACE",
    b"MKACTIVITY",
    b"BASELINE-CONTROL",
    b"MERGE",
    b"INVALID",
    b"ERROR",
    b"PURGE",
    b"NOTIFY",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"M-SEARCH",
    b"MKCALENDAR",
    b"ACL",
    b"BIND",
    b"RPC_IN_DATA",
    b"RPC_OUT_DATA",
    b"CCM_POST",
    b"BPROPFIND",
];
/// Ports of web servers and proxies, where each word is a method.
const WEB_PORTS: &[u16] = &[80, 81, 3128, 8000, 8008, 8080, 8081, 8888];

/// Whether the first bytes of a client, whose first word is so long, are a request: the method is known, or the line names HTTP.
pub(super) fn is_request(bytes: &[u8], word: usize, port: u16) -> bool {
    let has_target = word > 0 && bytes.get(word).is_some_and(|byte| matches!(byte, b' ' | b'\t'));
    let names_http = || {
        let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
        memchr::memmem::find(&line.to_ascii_uppercase(), b" HTTP/").is_some()
    };
    let is_known = || METHODS.iter().any(|method| method.eq_ignore_ascii_case(&bytes[..word]));
    has_target && (WEB_PORTS.contains(&port) || is_known() || names_http())
}

/// Protocol, status and message of the first line of a response.
pub(super) fn status_line(line: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (protocol, rest) = word(line);
    let (status, message) = word(rest);
    (protocol, status, message)
}

/// The first word, and what stands behind it without the blanks around.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    (&line[..end], line[end..].trim_ascii())
}

/// Whether a word is a protocol of HTTP.
pub(super) fn names_http(word: &[u8]) -> bool {
    word.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"HTTP/"))
}

/// Whether a request is a line without a protocol.
pub(super) fn is_simple(pending: &[u8]) -> bool {
    let line = pending.strip_suffix(b"\n").filter(|line| !line.contains(&b'\n'));
    line.map(request_line).is_some_and(|(method, _, protocol)| method == b"GET" && !names_http(protocol))
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

/// Fills what a request has, its first line and its fields as they are on the wire.
pub(in crate::ids) fn fill_request(line: &[u8], fields: &[u8], fill: &mut dyn FnMut(Buffer, &[u8])) {
    request_head(&Head { first: line.to_vec(), fields: joined(fields), raw: fields.to_vec() }, fill);
}

/// Fills what a response has.
pub(in crate::ids) fn fill_response(line: &[u8], fields: &[u8], fill: &mut dyn FnMut(Buffer, &[u8])) {
    response_head(&Head { first: line.to_vec(), fields: joined(fields), raw: fields.to_vec() }, fill);
}

pub(super) fn request_head(head: &Head, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let (method, target, protocol) = request_line(&head.first);
    fill(Buffer::Method, method);
    fill(Buffer::UriRaw, target);
    if method != b"CONNECT" {
        let normalised = uri::normalised(target);
        fill(Buffer::Uri, &normalised);
        // Suricata has the URI of HTTP/2 as it was sent.
        if protocol == b"HTTP/2" && normalised != target {
            fill(Buffer::Uri, target);
        }
    }
    fill(Buffer::RequestLine, &head.first);
    fill_some(Buffer::Protocol, protocol, fill);
    // A URL inside a query or a path is not the target.
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let scheme = memchr::memmem::find(target, b"://").filter(|at| target[..*at].iter().all(is_of_scheme));
    let of_target = scheme.map(|at| &target[at + 3..]);
    let of_target = of_target.or((method == b"CONNECT").then_some(target));
    let of_target = of_target.and_then(|rest| rest.split(|byte| matches!(byte, b'/' | b'?')).next());
    // A login stands in front of the host.
    let authority = of_target.or(head.field(b":authority"));
    let authority = authority.and_then(|authority| authority.rsplit(|&byte| byte == b'@').next());
    if let Some(host) = authority.or(head.field(b"host")) {
        let name = host
            .iter()
            .rposition(|&byte| byte == b':')
            .filter(|at| !host[*at..].contains(&b']'))
            .map_or(host, |at| &host[..at]);
        let name = name.to_ascii_lowercase();
        fill_some(Buffer::Host, &name, fill);
        // Of a target it is the name, too.
        let raw = of_target.map_or(head.field(b":authority").unwrap_or(host), |_| &name[..]);
        fill(Buffer::HostRaw, raw);
    }
    common(head, Direction::ToServer, fill);
}

pub(super) fn response_head(head: &Head, fill: &mut dyn FnMut(Buffer, &[u8])) {
    interim_head(head, fill);
    fill_some(Buffer::Protocol, status_line(&head.first).0, fill);
    common(head, Direction::ToClient, fill);
}

/// Fills what the first line of a response has, also of one before the response proper.
pub(super) fn interim_head(head: &Head, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let (_, status, message) = status_line(&head.first);
    fill(Buffer::ResponseLine, &head.first);
    fill(Buffer::StatCode, status);
    fill_some(Buffer::StatMsg, message, fill);
}

/// Fills a buffer that is absent where it would be empty.
fn fill_some(buffer: Buffer, bytes: &[u8], fill: &mut dyn FnMut(Buffer, &[u8])) {
    if !bytes.is_empty() {
        fill(buffer, bytes);
    }
}

/// Fills the fields again with those behind the chunks of a body.
pub(super) fn trailer(raw: &[u8], trailer: &[u8], direction: Direction, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let whole = [raw, trailer].concat();
    let head = Head { first: Vec::new(), fields: joined(&whole), raw: whole };
    common(&head, direction, &mut |buffer, bytes| {
        if matches!(buffer, Buffer::Header | Buffer::HeaderRaw | Buffer::HeaderNames) {
            fill(buffer, bytes);
        }
    });
    let each = each_field(direction);
    joined(trailer).iter().for_each(|(name, value)| fill(each, &[name, &b": "[..], value].concat()));
}

/// The buffer of single fields.
fn each_field(direction: Direction) -> Buffer {
    if direction == Direction::ToServer { Buffer::RequestHeader } else { Buffer::ResponseHeader }
}

/// Fields whose lines may be folded anywhere, even in front of the colon. Fields that say how a body is framed count where they
/// look folded, too: some readers see them.
fn lenient_fields(raw: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for (line, is_behind_return) in pieces(raw) {
        let has_colon = line.contains(&b':');
        let is_blank_first = line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'));
        // Any other line without a colon is no part of the field before it.
        let is_value = !has_colon && lines.last().is_some_and(|before| is_open_framing(before));
        let looks_folded = is_blank_first || is_value;
        let is_framing = |name: &&[u8]| {
            let Some((first, rest)) = line.trim_ascii().split_at_checked(name.len()) else { return false };
            let rest = rest.trim_ascii_start();
            first.eq_ignore_ascii_case(name) && (rest.is_empty() || rest.starts_with(b":"))
        };
        let frames = FRAMING.iter().any(is_framing);
        match lines.last_mut().filter(|_| (looks_folded || is_behind_return) && !frames) {
            Some(before) => {
                before.extend_from_slice(if is_behind_return { b"\r" } else { b"" });
                before.extend_from_slice(line);
            }
            None => lines.push(line.to_vec()),
        }
    }
    let field = |line: Vec<u8>| {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            // Its name is empty.
            return Some((Vec::new(), line.trim_ascii().to_vec())).filter(|(_, value)| !value.is_empty());
        };
        let name: Vec<u8> = line[..colon].iter().copied().filter(|byte| *byte != 0).collect();
        Some((name.trim_ascii().to_vec(), line[colon + 1..].trim_ascii().to_vec()))
    };
    lines.into_iter().filter_map(field).collect()
}

/// Lines, and what stands behind a carriage return within one, which ends none.
fn pieces(raw: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let lines = raw
        .split(|&byte| byte == b'\n')
        .flat_map(|line| line.split(|&byte| byte == b'\r').enumerate().map(|(at, piece)| (piece, at > 0)));
    lines.filter(|(piece, _)| !piece.is_empty())
}

/// Whether a line says how a body is framed and has no value.
fn is_open_framing(line: &[u8]) -> bool {
    let name = line.trim_ascii().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    name.is_some_and(|name| FRAMING.iter().any(|known| name.eq_ignore_ascii_case(known)))
}

const FRAMING: &[&[u8]] = &[b"transfer-encoding", b"content-encoding", b"content-length"];

/// Fields, those of one name joined.
pub(super) fn joined(raw: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, value) in lenient_fields(raw) {
        match all.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(&name)) {
            // A length that is repeated is one.
            Some((_, before)) if name.eq_ignore_ascii_case(b"content-length") && *before == value => {}
            Some((_, before)) => {
                before.extend_from_slice(b", ");
                before.extend_from_slice(&value);
            }
            None => all.push((name, value)),
        }
    }
    all
}

pub(super) fn length(head: &Head) -> Option<u64> {
    let value = head.field(b"content-length")?;
    let value = value.split(|&byte| byte == b',').next()?.trim_ascii();
    let value = value.strip_prefix(b"+").unwrap_or(value);
    let end = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    // Two numbers, as of a fold, are none.
    if value.get(end).is_some_and(u8::is_ascii_whitespace) {
        return None;
    }
    std::str::from_utf8(&value[..end]).ok()?.parse().ok()
}

/// The first line and the fields, each as `Name: value` and those of one name joined; without fields the line alone.
fn start(head: &Head) -> Vec<u8> {
    let mut start = [&head.first[..], b"\r\n"].concat();
    if head.fields.iter().any(|(name, _)| name.starts_with(b":")) {
        // Fields of HTTP/2 were put down in this form.
        start.extend_from_slice(&head.raw);
    } else if !head.fields.is_empty() {
        for (name, value) in &head.fields {
            start.extend([name, &b": "[..], value, b"\r\n"].concat());
        }
        start.extend(b"\r\n");
    }
    start
}

/// Fills what both sides have.
fn common(head: &Head, direction: Direction, fill: &mut dyn FnMut(Buffer, &[u8])) {
    let cookie: &[u8] = if direction == Direction::ToServer { b"cookie" } else { b"set-cookie" };
    let (mut lines, mut names) = (Vec::new(), b"\r\n".to_vec());
    let each = each_field(direction);
    for (name, value) in &head.fields {
        let line = [name, &b": "[..], value].concat();
        fill(each, &line);
        names.extend([&name[..], b"\r\n"].concat());
        match Buffer::of_field(name).filter(|buffer| !matches!(buffer, Buffer::Host | Buffer::Cookie)) {
            Some(buffer) => fill(buffer, value),
            None if name.eq_ignore_ascii_case(cookie) => {
                fill(Buffer::Cookie, value);
                continue;
            }
            None => {}
        }
        lines.extend([&line[..], b"\r\n"].concat());
    }
    names.extend(b"\r\n");
    if !head.fields.is_empty() {
        fill(Buffer::Header, &lines);
        fill(Buffer::HeaderNames, &names);
    }
    fill(Buffer::HeaderRaw, &head.raw);
    fill(Buffer::Start, &start(head));
}
