//! Requests.

use alloc::string::String;
use alloc::vec::Vec;

use super::Version;
use super::body::Framing;
use super::field::Fields;
use super::grammar::{is_authority, is_target, is_token};
use super::head;
use super::limits::Limits;
use super::refusal::Refusal;

/// A request whose head is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method: a token, compared with case.
    pub method: String,
    /// The target.
    pub target: Target,
    /// The version.
    pub version: Version,
    /// The header fields.
    pub fields: Fields,
    /// The way in which the body ends.
    pub framing: Framing,
}

/// The four forms of a target (RFC 9112, section 3.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A path with its query.
    Origin(Vec<u8>),
    /// A whole URI, as clients of a proxy send it.
    Absolute {
        /// The scheme in lower case.
        scheme: String,
        /// Host and port.
        authority: Vec<u8>,
        /// Path and query; `/` where there is none.
        path: Vec<u8>,
    },
    /// Host and port, for `CONNECT`.
    Authority(Vec<u8>),
    /// `*`, for `OPTIONS`.
    Asterisk,
}

impl Request {
    /// Makes a request of HTTP/1.1 without fields.
    pub fn new(method: &str, target: Target) -> Request {
        let fields = Fields::default();
        Request { method: method.into(), target, version: Version::Http11, fields, framing: Framing::Empty }
    }

    /// Parses a complete head.
    pub(crate) fn parse(head: &[u8], limits: &Limits) -> Result<Request, Refusal> {
        let (line, fields) = head::split(head, limits)?;
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Refusal::StartLine);
        };
        let version = Version::parse(version)?;
        if method.is_empty() || !method.iter().all(|&byte| is_token(byte)) {
            return Err(Refusal::Method);
        }
        if target.len() > limits.target_bytes_max {
            return Err(Refusal::TargetTooLong);
        }
        let method = String::from_utf8_lossy(method).into_owned();
        let target = Target::parse(target, &method)?;
        check_host(&fields, version)?;
        let framing = Framing::declared(&fields, version)?.unwrap_or(Framing::Empty);
        if fields.elements("expect").any(|wanted| !wanted.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::Expectation);
        }
        Ok(Request { method, target, version, fields, framing })
    }

    /// Host and port that are asked for: the target's, else those of `Host`.
    pub fn authority(&self) -> Option<&[u8]> {
        match &self.target {
            Target::Absolute { authority, .. } | Target::Authority(authority) => Some(authority),
            Target::Origin(_) | Target::Asterisk => self.fields.get("host"),
        }
    }

    /// Path and query; nothing for `CONNECT` and `*`.
    pub fn path(&self) -> &[u8] {
        match &self.target {
            Target::Origin(path) | Target::Absolute { path, .. } => path,
            Target::Authority(_) | Target::Asterisk => b"",
        }
    }

    /// True when the client waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1).
    pub fn expects_continue(&self) -> bool {
        self.version >= Version::Http11
            && !matches!(self.framing, Framing::Empty | Framing::Length(0))
            && self.fields.lists("expect", "100-continue")
    }

    /// True when the connection may carry another request after this one (RFC 9112, section 9.3).
    pub fn keeps_alive(&self) -> bool {
        self.fields.keeps_alive(self.version)
    }
}

impl Target {
    fn parse(text: &[u8], method: &str) -> Result<Target, Refusal> {
        if text.is_empty() || !text.iter().all(|&byte| is_target(byte) && byte != b'#') {
            return Err(Refusal::Target);
        }
        if method == "CONNECT" {
            let has_port = text.last().is_some_and(u8::is_ascii_digit) && text.contains(&b':');
            return if has_port && is_authority(text) {
                Ok(Target::Authority(text.to_vec()))
            } else {
                Err(Refusal::Target)
            };
        }
        match text {
            b"*" if method == "OPTIONS" => Ok(Target::Asterisk),
            [b'/', ..] => Ok(Target::Origin(text.to_vec())),
            _ => Target::absolute(text),
        }
    }

    fn absolute(text: &[u8]) -> Result<Target, Refusal> {
        let colon = memchr::memmem::find(text, b"://").ok_or(Refusal::Target)?;
        let (scheme, rest) = text.split_at(colon);
        let rest = rest.get(3..).unwrap_or_default();
        let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let end = rest.iter().position(|&byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if !is_scheme || !is_authority(authority) {
            return Err(Refusal::Target);
        }
        let scheme = String::from_utf8_lossy(scheme).to_ascii_lowercase();
        let mut whole = Vec::with_capacity(path.len().saturating_add(1));
        if path.first() != Some(&b'/') {
            whole.push(b'/');
        }
        whole.extend_from_slice(path);
        Ok(Target::Absolute { scheme, authority: authority.to_vec(), path: whole })
    }

    /// Writes the target as it stands on a request line.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Target::Origin(text) | Target::Authority(text) => out.extend_from_slice(text),
            Target::Asterisk => out.push(b'*'),
            Target::Absolute { scheme, authority, path } => {
                for piece in [scheme.as_bytes(), b"://", authority, path] {
                    out.extend_from_slice(piece);
                }
            }
        }
    }
}

/// `Host` (RFC 9112, section 3.2): once in HTTP/1.1, at most once in HTTP/1.0.
fn check_host(fields: &Fields, version: Version) -> Result<(), Refusal> {
    let mut hosts = fields.all("host");
    match (hosts.next(), hosts.next()) {
        // Empty where the target has no authority (RFC 9110, section 7.2).
        (Some(host), None) if host.is_empty() || is_authority(host) => Ok(()),
        (None, _) if version < Version::Http11 => Ok(()),
        _ => Err(Refusal::Host),
    }
}
