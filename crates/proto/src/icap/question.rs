//! Questions of a client, and what a service offers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::method::Method;
use crate::http::{Fields, Framing, Request, Response};

/// A message that a service is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'q> {
    /// Fields of ICAP: who the client is.
    pub fields: &'q Fields,
    /// The request.
    pub request: &'q Request,
    /// The URL of the request.
    pub url: &'q [u8],
    /// The response, where that is asked about.
    pub response: Option<&'q Response>,
    /// A body follows.
    pub has_body: bool,
    /// The bytes of the body's beginning that are sent first.
    pub preview: Option<u64>,
    /// 204 is taken for a whole body, too.
    pub allows_204: bool,
}

impl Question<'_> {
    /// The method.
    pub(super) fn method(&self) -> Method {
        if self.response.is_some() { Method::Respmod } else { Method::Reqmod }
    }

    /// Writes the head and the encapsulated ones.
    pub(super) fn write(&self, uri: &str, host: &str, out: &mut Vec<u8>) {
        let (name, kind) = match self.response {
            Some(_) => ("RESPMOD", "res"),
            None => ("REQMOD", "req"),
        };
        let request = request_head(self.request, self.url);
        let response = self.response.map(response_head).unwrap_or_default();
        let heads = if self.response.is_some() { format!(", res-hdr={}", request.len()) } else { String::new() };
        let body = if self.has_body { kind } else { "null" };
        let end = request.len().saturating_add(response.len());
        let allow = if self.allows_204 { "Allow: 204\r\n" } else { "" };
        let preview = self.preview.map(|bytes| format!("Preview: {bytes}\r\n")).unwrap_or_default();
        out.extend_from_slice(
            format!(
                "{name} {uri} ICAP/1.0\r\nHost: {host}\r\n{allow}{preview}Encapsulated: req-hdr=0{heads}, {body}-body={end}\r\n"
            )
            .as_bytes(),
        );
        self.fields.write(out);
        for part in [b"\r\n", &request[..], &response] {
            out.extend_from_slice(part);
        }
    }
}

fn request_head(request: &Request, url: &[u8]) -> Vec<u8> {
    let mut head = [request.method.as_bytes(), b" ", url, b" HTTP/1.1\r\n"].concat();
    fields(&request.fields, request.framing, &mut head);
    head
}

fn response_head(response: &Response) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} ", response.status.0).into_bytes();
    for part in [&response.reason[..], b"\r\n"] {
        head.extend_from_slice(part);
    }
    fields(&response.fields, response.framing, &mut head);
    head
}

/// Writes fields without those of one connection, and the end of the head.
fn fields(fields: &Fields, framing: Framing, out: &mut Vec<u8>) {
    let mut fields = fields.clone();
    fields.remove_hop_by_hop();
    fields.remove("content-length");
    fields.write(out);
    if let Framing::Length(bytes) = framing {
        out.extend_from_slice(format!("Content-Length: {bytes}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// The properties of a service (RFC 3507, section 4.10.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// `ISTag`.
    pub tag: Vec<u8>,
    /// It takes questions about requests.
    pub takes_requests: bool,
    /// It takes questions about responses.
    pub takes_responses: bool,
    /// The bytes of a preview that it wants.
    pub preview: Option<u64>,
    /// It may answer a whole body by 204.
    pub allows_204: bool,
    /// The connections that it takes.
    pub connections_max: Option<u32>,
    /// How long all of this holds, in seconds.
    pub seconds: Option<u32>,
}

impl Offer {
    /// Reads the fields of an answer to OPTIONS. Invalid numbers count as missing.
    pub(super) fn of(fields: &Fields) -> Offer {
        let number = |name| core::str::from_utf8(fields.get(name)?).ok()?.parse::<u32>().ok();
        Offer {
            tag: fields.get("istag").unwrap_or_default().into(),
            takes_requests: fields.lists("methods", "REQMOD"),
            takes_responses: fields.lists("methods", "RESPMOD"),
            preview: number("preview").map(u64::from),
            allows_204: fields.lists("allow", "204"),
            connections_max: number("max-connections"),
            seconds: number("options-ttl"),
        }
    }
}
