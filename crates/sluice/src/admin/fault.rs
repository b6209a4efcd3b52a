//! Reasons why something is not done, for pages and for programs.

use serde_json::Value;

use crate::output::Failure;

/// A reason why something is not done: a status of HTTP, and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub status: u16,
    pub text: String,
}

/// An answer, or why there is none.
pub type Outcome = Result<Value, Fault>;

impl Fault {
    /// A fault of the request.
    pub fn wrong(text: impl ToString) -> Fault {
        Fault { status: 400, text: text.to_string() }
    }

    /// A thing that is not there.
    pub fn missing(text: &str) -> Fault {
        Fault { status: 404, text: text.into() }
    }

    /// A right that is lacking.
    pub fn forbidden() -> Fault {
        Fault { status: 403, text: "this is not among your rights".into() }
    }

    /// A thing that does not work now.
    pub fn away(text: impl ToString) -> Fault {
        Fault { status: 503, text: text.to_string() }
    }
}

/// A failure of a command's code as a fault that the log has in full.
pub fn away(error: Failure) -> Fault {
    Fault::away(error)
}
