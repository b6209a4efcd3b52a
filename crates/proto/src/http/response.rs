//! Responses.

use alloc::vec::Vec;

use super::Version;
use super::body::Framing;
use super::field::Fields;
use super::head;
use super::limits::Limits;
use super::refusal::Refusal;

/// A status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Status(pub u16);

impl Status {
    /// True for 1xx.
    pub fn is_interim(self) -> bool {
        self.0 < 200
    }

    /// The phrase of RFC 9110, section 15; empty for a code that is not there.
    pub fn phrase(self) -> &'static str {
        match self.0 {
            100 => "Continue",
            101 => "Switching Protocols",
            200 => "OK",
            204 => "No Content",
            206 => "Partial Content",
            301 => "Moved Permanently",
            302 => "Found",
            303 => "See Other",
            304 => "Not Modified",
            307 => "Temporary Redirect",
            308 => "Permanent Redirect",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            407 => "Proxy Authentication Required",
            408 => "Request Timeout",
            411 => "Length Required",
            413 => "Content Too Large",
            414 => "URI Too Long",
            415 => "Unsupported Media Type",
            416 => "Range Not Satisfiable",
            417 => "Expectation Failed",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            431 => "Request Header Fields Too Large",
            500 => "Internal Server Error",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            505 => "HTTP Version Not Supported",
            _ => "",
        }
    }

    /// True when a response has no body, whatever its fields say (RFC 9112, section 6.3). `method` is the request's.
    pub(super) fn is_bodiless(self, method: &str) -> bool {
        self.is_interim() || matches!(self.0, 204 | 304) || method == "HEAD" || self.opens_tunnel(method)
    }

    /// True when what follows is no HTTP any more.
    pub(super) fn opens_tunnel(self, method: &str) -> bool {
        self.0 == 101 || (method == "CONNECT" && (200..300).contains(&self.0))
    }
}

/// A response whose head is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The version.
    pub version: Version,
    /// The status.
    pub status: Status,
    /// The phrase behind the status.
    pub reason: Vec<u8>,
    /// The header fields.
    pub fields: Fields,
    /// The way in which the body ends; to `HEAD` and with 204 and 304 none follows.
    pub framing: Framing,
}

impl Response {
    /// Makes a response without fields and body.
    pub fn new(status: u16) -> Response {
        let status = Status(status);
        let (reason, fields) = (status.phrase().as_bytes().to_vec(), Fields::default());
        Response { version: Version::Http11, status, reason, fields, framing: Framing::Length(0) }
    }

    /// Makes a response with a body of this type and length.
    pub fn with_body(status: u16, media_type: &str, bytes: u64) -> Response {
        let mut response = Response { framing: Framing::Length(bytes), ..Response::new(status) };
        response.fields.push("Content-Type", media_type.as_bytes());
        response
    }

    /// Parses a complete head. `method` is the request's.
    pub(super) fn parse(head: &[u8], method: &str, limits: &Limits) -> Result<Response, Refusal> {
        let (line, fields) = head::split(head, limits)?;
        let (version, rest) = line.split_at_checked(8).ok_or(Refusal::StartLine)?;
        let version = Version::parse(version)?;
        let (code, reason) = rest.split_at_checked(4).ok_or(Refusal::StartLine)?;
        let status = match (code, reason.first()) {
            (&[b' ', first @ b'1'..=b'5', second @ b'0'..=b'9', third @ b'0'..=b'9'], None | Some(b' ')) => {
                let digit = |byte: u8| u16::from(byte.wrapping_sub(b'0'));
                Status(
                    digit(first)
                        .saturating_mul(100)
                        .saturating_add(digit(second).saturating_mul(10))
                        .saturating_add(digit(third)),
                )
            }
            _ => return Err(Refusal::StartLine),
        };
        let reason = reason.get(1..).unwrap_or_default().to_vec();
        let undeclared = if status.is_bodiless(method) { Framing::Empty } else { Framing::Close };
        let framing = Framing::declared(&fields, version)?.unwrap_or(undeclared);
        Ok(Response { version, status, reason, fields, framing })
    }
}
