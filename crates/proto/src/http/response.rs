//! Responses.

use alloc::vec::Vec;

use super::Version;
use super::body::{Framing, declared_by_response};
use super::field::Fields;
use super::head;
use super::limits::Limits;
use super::refusal::Refusal;
use super::status::Status;

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
    pub(crate) fn parse(head: &[u8], method: &str, limits: &Limits) -> Result<Response, Refusal> {
        let (line, mut fields) = head::split_response(head, limits)?;
        let (version, rest) = line.split_at_checked(8).ok_or(Refusal::StartLine)?;
        let version = Version::parse(version)?;
        // Several blanks are one (RFC 9112, section 4).
        let blanks = rest.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t')).count();
        let rest = rest.get(blanks.saturating_sub(1)..).unwrap_or_default();
        let (code, reason) = rest.split_at_checked(4).ok_or(Refusal::StartLine)?;
        let status = match (code, reason.first()) {
            // Codes beyond 599 are read as 5xx by whoever does not know them (RFC 9110, section 15).
            (&[b' ' | b'\t', first @ b'1'..=b'9', second @ b'0'..=b'9', third @ b'0'..=b'9'], None | Some(b' ')) => {
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
        let framing = declared_by_response(&fields)?.unwrap_or(undeclared);
        let is_odd = fields.get("content-length").is_some() || fields.elements("transfer-encoding").nth(1).is_some();
        if framing == Framing::Chunked && (is_odd || version < Version::Http11) {
            // Others read another end, so nothing follows on this connection.
            fields.remove("content-length");
            fields.set("Connection", b"close");
        }
        Ok(Response { version, status, reason, fields, framing })
    }
}
