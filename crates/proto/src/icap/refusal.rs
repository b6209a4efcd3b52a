//! Reasons for which a request is refused.

use crate::http;

/// A request that is refused: malformed, or beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// A head, or the chunks of the body: as in HTTP.
    Http(http::Refusal),
    /// A method other than OPTIONS, REQMOD and RESPMOD.
    Method,
    /// The target is no `icap:` URI.
    Target,
    /// A version other than ICAP/1.0.
    Version,
    /// `Encapsulated` is missing, malformed, or does not fit the method or the heads that follow.
    Encapsulated,
    /// `Preview` is no number, or the preview is longer than it says.
    Preview,
    /// The service is not here.
    Service,
}

impl Refusal {
    /// The status that the server answers with (RFC 3507, section 4.3.3).
    pub fn status(self) -> u16 {
        match self {
            Refusal::Http(_) | Refusal::Target | Refusal::Encapsulated | Refusal::Preview => 400,
            Refusal::Service => 404,
            Refusal::Method => 405,
            Refusal::Version => 505,
        }
    }

    /// A sentence for the log.
    pub fn reason(self) -> &'static str {
        match self {
            Refusal::Http(refusal) => refusal.reason(),
            Refusal::Method => "unknown method",
            Refusal::Target => "malformed URI of the service",
            Refusal::Version => "unsupported ICAP version",
            Refusal::Encapsulated => "missing or malformed Encapsulated",
            Refusal::Preview => "malformed Preview",
            Refusal::Service => "no such service",
        }
    }
}

impl From<http::Refusal> for Refusal {
    fn from(refusal: http::Refusal) -> Refusal {
        Refusal::Http(refusal)
    }
}
