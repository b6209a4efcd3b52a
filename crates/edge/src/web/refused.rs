//! Why a request is not passed on.

use crate::message::trace;
use crate::porch::filter::Reason;
use crate::upstream::destination::Failure;

/// Why a request is answered by a page of ours.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The status.
    pub status: u16,
    /// A sentence for the client.
    pub words: Box<str>,
    /// What the log says besides.
    pub detail: Box<str>,
    /// A field of the answer.
    pub field: Option<(&'static str, Box<[u8]>)>,
}

impl Refused {
    /// With this status and sentence.
    pub fn new(status: u16, words: &str) -> Refused {
        Refused { status, words: words.into(), detail: words.trim_end_matches('.').into(), field: None }
    }
}

impl From<&Failure> for Refused {
    fn from(failure: &Failure) -> Refused {
        Refused { detail: failure.detail().into(), ..Refused::new(failure.status(), failure.words()) }
    }
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Refused {
        let detail = [&*reason.detail, &*reason.category].join(" ");
        Refused { status: 403, words: reason.words, detail: trace::printable(detail.trim()).into(), field: None }
    }
}
