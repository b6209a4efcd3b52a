//! Faults of a service.

use crate::http;

/// A fault for which an answer of a service is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A head, or the chunks of the body: as in HTTP.
    Http(http::Refusal),
    /// The first line is no status line of ICAP/1.0.
    StatusLine,
    /// The service answers with this status.
    Status(u16),
    /// `Encapsulated` is missing, malformed, or does not fit the question or the head that follows.
    Encapsulated,
    /// An answer that was not asked for: 204 or 100 where they are not allowed, or bytes behind the answer.
    Unexpected,
    /// The connection ended within an answer.
    Incomplete,
}

impl Fault {
    /// A sentence for the log.
    pub fn reason(self) -> &'static str {
        match self {
            Fault::Http(refusal) => refusal.reason(),
            Fault::StatusLine => "malformed status line",
            Fault::Status(_) => "unusable status",
            Fault::Encapsulated => "missing or malformed Encapsulated",
            Fault::Unexpected => "unexpected answer",
            Fault::Incomplete => "connection ended within the answer",
        }
    }
}

impl From<http::Refusal> for Fault {
    fn from(refusal: http::Refusal) -> Fault {
        Fault::Http(refusal)
    }
}
