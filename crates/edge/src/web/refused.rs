//! Why a request is not passed on.

use crate::message::trace;
use crate::porch::filter::{Notice, Reason};
use crate::upstream::destination::Failure;

/// Why a request is answered by a page of ours.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The status.
    pub status: u16,
    /// A sentence for the client.
    pub words: Box<str>,
    /// Details for the log.
    pub detail: Box<str>,
    /// A field of the answer.
    pub field: Option<(&'static str, Box<[u8]>)>,
    /// Notice for the client.
    pub notice: Notice,
    /// A token may let the client past it.
    pub may_bypass: bool,
}

impl Refused {
    /// With this status and sentence.
    pub fn new(status: u16, words: &str) -> Refused {
        Refused {
            status,
            words: words.into(),
            detail: words.trim_end_matches('.').into(),
            field: None,
            notice: Notice::default(),
            may_bypass: false,
        }
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
        Refused {
            detail: trace::printable(detail.trim()).into(),
            notice: reason.notice,
            may_bypass: reason.may_bypass,
            ..Refused::new(403, &reason.words)
        }
    }
}
