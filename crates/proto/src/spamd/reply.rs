//! The replies, in spamd's words.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::request::{Request, Verb};

/// Result for a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// Whether it is spam.
    pub is_spam: bool,
    /// Its score, as it is shown.
    pub score: &'a str,
    /// From which score on it is spam, as it is shown.
    pub required: &'a str,
}

/// A verdict, and what was asked for with it: a report, a list of rules, a mail; nothing with [`Verb::Check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Result for the mail.
    pub verdict: Verdict<'a>,
    /// Body of the reply.
    pub body: &'a [u8],
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense.
    Protocol(String),
    /// It cannot be had now, or not at all.
    Unavailable(String),
    /// The check took too long.
    Timeout(String),
}

impl Answer<'_> {
    /// As it stands on the wire.
    pub(super) fn bytes(&self, request: &Request) -> Vec<u8> {
        let Verdict { is_spam, score, required } = self.verdict;
        let (yes, no) = if request.verb == Verb::ReportIfSpam { ("Yes", "No") } else { ("True", "False") };
        let spam = format!("Spam: {} ; {score} / {required}\r\n", if is_spam { yes } else { no });
        let length = format!("Content-length: {}\r\n", self.body.len());
        let gives_back = matches!(request.verb, Verb::Process | Verb::Headers);
        let head = match (request.verb, request.version) {
            (Verb::Check, _) => format!("SPAMD/1.1 0 EX_OK\r\n{spam}\r\n"),
            (_, 13..) => format!("SPAMD/1.1 0 EX_OK\r\n{length}{spam}\r\n"),
            (_, 12) if gives_back => format!("SPAMD/1.1 0 EX_OK\r\n{length}\r\n"),
            _ if gives_back => "SPAMD/1.0 0 EX_OK\r\n".into(),
            _ => format!("SPAMD/1.1 0 EX_OK\r\n{spam}\r\n"),
        };
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(if request.verb == Verb::Check { &[] } else { self.body });
        if request.verb == Verb::Symbols && request.version < 13 {
            bytes.extend_from_slice(b"\r\n");
        }
        bytes
    }
}

impl Refusal {
    /// As it stands on the wire, with the codes of sysexits(3).
    pub(super) fn bytes(&self) -> Vec<u8> {
        let line = match self {
            Refusal::Protocol(why) => format!("SPAMD/1.0 76 Bad header line: {why}\r\n"),
            Refusal::Unavailable(why) => format!("SPAMD/1.0 69 Service Unavailable: {why}\r\n"),
            Refusal::Timeout(why) => format!("SPAMD/1.0 79 Timeout: {why}\r\n"),
        };
        line.into_bytes()
    }
}
