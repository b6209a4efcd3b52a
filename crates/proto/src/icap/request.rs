//! Requests, and the heads in them.

use alloc::string::String;
use alloc::vec::Vec;

use super::encapsulated::Encapsulated;
use super::method::Method;
use super::refusal::Refusal;
use crate::http::{self, Fields, Limits, head};

/// A request whose heads are complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path of the service without its query: `/respmod`.
    pub service: String,
    /// The fields of ICAP.
    pub fields: Fields,
    /// The head of HTTP's request, if it was sent.
    pub http_request: Option<Head>,
    /// The head of HTTP's response, if it was sent.
    pub http_response: Option<Head>,
    /// True when a body follows.
    pub has_body: bool,
    /// The bytes of the body's beginning that come first; the client sends the rest when it is asked to.
    pub preview: Option<u64>,
    /// True when the client takes 204 for an answer to a whole body too.
    pub allows_204: bool,
    /// True when the client takes 206, with the rest of the body as it has it.
    pub allows_206: bool,
}

/// A head of HTTP, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    bytes: Vec<u8>,
    line_bytes: usize,
    /// Its fields.
    pub fields: Fields,
}

impl Request {
    /// Parses a complete head; the encapsulated heads are added by [`Request::add_heads`].
    pub(super) fn parse(text: &[u8], limits: &Limits) -> Result<(Request, Encapsulated), Refusal> {
        let (line, fields) = head::split(text, limits)?;
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(http::Refusal::StartLine.into());
        };
        if version != b"ICAP/1.0" {
            return Err(if version.starts_with(b"ICAP/") { Refusal::Version } else { http::Refusal::StartLine.into() });
        }
        let method = match method {
            b"OPTIONS" => Method::Options,
            b"REQMOD" => Method::Reqmod,
            b"RESPMOD" => Method::Respmod,
            _ => return Err(Refusal::Method),
        };
        if target.len() > limits.target_bytes_max {
            return Err(http::Refusal::TargetTooLong.into());
        }
        let encapsulated = Encapsulated::parse(&fields, method)?;
        let request = Request {
            method,
            service: service(target)?,
            preview: preview(&fields)?,
            allows_204: fields.lists("allow", "204"),
            allows_206: fields.lists("allow", "206"),
            has_body: encapsulated.has_body,
            http_request: None,
            http_response: None,
            fields,
        };
        Ok((request, encapsulated))
    }

    /// Parses the heads that follow, which are `bytes`.
    pub(super) fn add_heads(
        &mut self,
        bytes: &[u8],
        encapsulated: &Encapsulated,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        let (first, second) =
            bytes.split_at_checked(encapsulated.request_bytes.unwrap_or(0)).ok_or(Refusal::Encapsulated)?;
        self.http_request = encapsulated.request_bytes.map(|_| Head::parse(first, limits)).transpose()?;
        self.http_response = encapsulated.response_bytes.map(|_| Head::parse(second, limits)).transpose()?;
        Ok(())
    }

    /// The head of the message that is asked about.
    pub fn subject(&self) -> Option<&Head> {
        match self.method {
            Method::Options => None,
            Method::Reqmod => self.http_request.as_ref(),
            Method::Respmod => self.http_response.as_ref(),
        }
    }

    /// True when the client has the whole body at hand until it is answered, so that nothing of it has to go back. Squid says `Allow: 206`
    /// behind a preview too, and does not take it after the preview.
    pub fn keeps_body(&self) -> bool {
        self.allows_204 || (self.allows_206 && self.preview.is_none())
    }

    /// True when the connection goes on after this request.
    pub(super) fn keeps_alive(&self) -> bool {
        !self.fields.lists("connection", "close")
    }
}

impl Head {
    fn parse(bytes: &[u8], limits: &Limits) -> Result<Head, Refusal> {
        let lines = lines(bytes, limits)?;
        let (line, fields) = head::split(&lines, limits)?;
        Ok(Head { bytes: bytes.to_vec(), line_bytes: line.len(), fields })
    }

    /// All of it, with the empty line.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first line without its end.
    pub fn line(&self) -> &[u8] {
        self.bytes.get(..self.line_bytes).unwrap_or_default()
    }

    /// The target of a request: its second word; of a response the status.
    pub fn second_word(&self) -> &[u8] {
        self.line().split(|&byte| byte == b' ').nth(1).unwrap_or_default()
    }
}

/// The lines of a head that is all of these bytes, without the empty one at its end.
pub(super) fn lines(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Refusal> {
    let mut buffer = head::HeadBuffer::trailer(head::Manner::Strict);
    let mut rest = bytes;
    loop {
        let (count, complete) = buffer.take(rest, limits)?;
        rest = rest.get(count..).unwrap_or_default();
        match complete {
            Some(lines) if rest.is_empty() => return Ok(lines),
            Some(_) => return Err(Refusal::Encapsulated),
            None if rest.is_empty() => return Err(Refusal::Encapsulated),
            None => {}
        }
    }
}

/// The path of `icap://host/path?query`, or of a path alone.
fn service(target: &[u8]) -> Result<String, Refusal> {
    let text = core::str::from_utf8(target).map_err(|_| Refusal::Target)?;
    let path = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("icap") || scheme.eq_ignore_ascii_case("icaps") => {
            rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/")
        }
        None if text.starts_with('/') => text,
        _ => return Err(Refusal::Target),
    };
    Ok(path.split(['?', '#']).next().unwrap_or_default().into())
}

/// `Preview`: the number of bytes.
fn preview(fields: &Fields) -> Result<Option<u64>, Refusal> {
    let Some(digits) = fields.get("preview") else { return Ok(None) };
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = core::str::from_utf8(digits).ok().filter(|_| is_number).ok_or(Refusal::Preview)?;
    text.parse().map(Some).map_err(|_| Refusal::Preview)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_a_path() {
        for (target, path) in [
            ("icap://127.0.0.1:1344/respmod", "/respmod"),
            ("ICAP://a/x/y?profile=1", "/x/y"),
            ("icap://a", "/"),
            ("/svc", "/svc"),
        ] {
            assert_eq!(service(target.as_bytes()).as_deref(), Ok(path), "{target}");
        }
        for target in ["http://a/b", "svc", "", "\u{ff}"] {
            assert_eq!(service(target.as_bytes()), Err(Refusal::Target), "{target}");
        }
    }
}
