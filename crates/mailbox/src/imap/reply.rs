//! Results of commands, and their tagged replies.

use std::io;

use store::{Error, Refused};

use crate::labour::Cut;

/// A tagged reply: `OK`, `NO` or `BAD`, and its text.
pub(super) type Reply = Result<String, Refusal>;

#[derive(Debug)]
pub(super) enum Refusal {
    No(String),
    Bad(&'static str),
    /// The connection is of no more use.
    Broken(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Broken(error)
    }
}

impl From<Cut> for Refusal {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Gone(error) => Refusal::Broken(error),
            Cut::TooLong => no("[LIMIT] This takes too long"),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Refused(Refused::OverQuota) => "[OVERQUOTA] ",
            Error::Refused(Refused::NoSuchMailbox) => "[NONEXISTENT] ",
            // RFC 5530: another session has taken it out, which this one has not been told yet.
            Error::Refused(Refused::NoSuchMessage) => "[EXPUNGEISSUED] ",
            Error::Refused(Refused::Exists) => "[ALREADYEXISTS] ",
            Error::Refused(Refused::TooMany | Refused::TooManyKeywords | Refused::TransactionTooLarge) => "[LIMIT] ",
            Error::Refused(Refused::Name) => "[CANNOT] ",
            Error::Refused(_) => "",
            Error::Full => "[UNAVAILABLE] ",
            error => {
                tracing::error!(%error, "the store failed");
                return Refusal::No("[SERVERBUG] The store failed".into());
            }
        };
        Refusal::No(format!("{code}{error}"))
    }
}

pub(super) fn no(text: &str) -> Refusal {
    Refusal::No(text.into())
}

/// Result of a command that succeeded.
pub(super) struct Done {
    pub text: String,
    /// UIDs whose flags need not be told: the client knows.
    pub untold: Vec<u32>,
}

pub(super) fn done(text: &str) -> Result<Done, Refusal> {
    Ok(Done { text: text.into(), untold: Vec::new() })
}

pub(super) fn nonexistent() -> Refusal {
    no("[NONEXISTENT] No such mailbox")
}
