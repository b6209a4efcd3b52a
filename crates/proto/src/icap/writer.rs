//! Answers, and what questions have in common with them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::method::Method;
use super::refusal::Refusal;
use super::request::{Head, Request};
use crate::http::{Fields, Response};

/// The properties of a service, for OPTIONS (RFC 3507, section 4.10).
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// `ISTag`: changes whenever answers may; at most 32 characters, without quotation marks.
    pub tag: String,
    /// The bytes of a preview that it wants.
    pub preview_bytes: u32,
    /// The connections that it takes.
    pub connections_max: u32,
    /// How long all of this holds, in seconds. Below 60 there are clients that take the service for dead.
    pub seconds: u32,
}

/// The line and the fields that every answer has. The empty line is not written.
fn begin(status: u16, tag: &str, closes: bool, out: &mut Vec<u8>) {
    let phrase = match status {
        100 => "Continue",
        200 => "OK",
        204 => "No Modifications Needed",
        206 => "Partial Content",
        400 => "Bad Request",
        404 => "ICAP Service Not Found",
        405 => "Method Not Allowed",
        505 => "ICAP Version Not Supported",
        _ => "Server Error",
    };
    out.extend_from_slice(format!("ICAP/1.0 {status} {phrase}\r\nISTag: \"{tag}\"\r\n").as_bytes());
    if closes {
        out.extend_from_slice(b"Connection: close\r\n");
    }
}

fn end(encapsulated: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("Encapsulated: {encapsulated}\r\n\r\n").as_bytes());
}

/// The answer to OPTIONS. Some clients send previews only of what is named in `Transfer-Preview`.
pub(super) fn options(service: &Service, methods: &str, closes: bool, out: &mut Vec<u8>) {
    begin(200, &service.tag, closes, out);
    let Service { name, preview_bytes, connections_max, seconds, .. } = service;
    out.extend_from_slice(
        format!(
            "Methods: {methods}\r\nService: {name}\r\nMax-Connections: {connections_max}\r\nOptions-TTL: {seconds}\r\n\
             Allow: 204, 206\r\nPreview: {preview_bytes}\r\nTransfer-Preview: *\r\n"
        )
        .as_bytes(),
    );
    end("null-body=0", out);
}

/// The question for the properties of a service.
pub(super) fn ask_options(uri: &str, host: &str, out: &mut Vec<u8>) {
    let head = format!("OPTIONS {uri} ICAP/1.0\r\nHost: {host}\r\nEncapsulated: null-body=0\r\n\r\n");
    out.extend_from_slice(head.as_bytes());
}

/// Asks for the rest of the body.
pub(super) fn proceed(out: &mut Vec<u8>) {
    out.extend_from_slice(b"ICAP/1.0 100 Continue\r\n\r\n");
}

/// Nothing is to be changed.
pub(super) fn unmodified(fields: &Fields, tag: &str, closes: bool, out: &mut Vec<u8>) {
    begin(204, tag, closes, out);
    fields.write(out);
    end("null-body=0", out);
}

/// The message as it came; its body has to follow if it has one.
pub(super) fn original(request: &Request, fields: &Fields, tag: &str, closes: bool, out: &mut Vec<u8>) {
    begin(200, tag, closes, out);
    fields.write(out);
    as_it_came(request, out);
}

/// The sections of the message as it came, and its head, which may be missing.
fn as_it_came(request: &Request, out: &mut Vec<u8>) {
    let kind = if request.method == Method::Reqmod { "req" } else { "res" };
    let body = if request.has_body { kind } else { "null" };
    let head = request.subject().map(Head::bytes).unwrap_or_default();
    let section = if head.is_empty() { String::new() } else { format!("{kind}-hdr=0, ") };
    end(&format!("{section}{body}-body={}", head.len()), out);
    out.extend_from_slice(head);
}

/// The head as it came, and the body that the client has (draft-icap-ext-partial-content, section 3.2).
pub(super) fn partial(request: &Request, fields: &Fields, tag: &str, closes: bool, out: &mut Vec<u8>) {
    begin(206, tag, closes, out);
    fields.write(out);
    as_it_came(request, out);
    last_chunk("; use-original-body=0", &Fields::default(), out);
}

/// A response in the place of the message; its body has to follow.
pub(super) fn replacement(
    response: &Response,
    body_bytes: usize,
    fields: &Fields,
    tag: &str,
    closes: bool,
    out: &mut Vec<u8>,
) {
    let mut head = format!("HTTP/1.1 {} ", response.status.0).into_bytes();
    head.extend_from_slice(&response.reason);
    head.extend_from_slice(b"\r\n");
    response.fields.write(&mut head);
    head.extend_from_slice(format!("Content-Length: {body_bytes}\r\n\r\n").as_bytes());
    begin(200, tag, closes, out);
    fields.write(out);
    let body = if body_bytes == 0 { "null" } else { "res" };
    end(&format!("res-hdr=0, {body}-body={}", head.len()), out);
    out.extend_from_slice(&head);
}

/// A refusal, after which the connection closes.
pub(super) fn refusal(refusal: Refusal, tag: &str, out: &mut Vec<u8>) {
    begin(refusal.status(), tag, true, out);
    end("null-body=0", out);
}

/// Content as a chunk.
pub(super) fn chunk(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The end of a body, with an extension and a trailer.
pub(super) fn last_chunk(extension: &str, trailer: &Fields, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("0{extension}\r\n").as_bytes());
    trailer.write(out);
    out.extend_from_slice(b"\r\n");
}
