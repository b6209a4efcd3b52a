//! SORT and its words (RFC 5256): when a mail was sent, what its subject is without `Re:` and the like.
//!
//! Texts are compared as SEARCH does, in ASCII letters of either case. What is equal stays in the order of the mailbox.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use text::date;

use crate::content::Messages;
use crate::digest::first_mailbox;
use crate::find::Message;

const DAY: i64 = 86_400;

/// The bytes of a subject and of an address that are compared.
const SUBJECT_BYTES_MAX: usize = 1_000;

/// One property that messages are put in order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of IMAP's SORT")]
pub enum By {
    Arrival,
    Cc,
    Date,
    From,
    Size,
    Subject,
    To,
}

/// One criterion of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Criterion {
    /// The property.
    pub by: By,
    /// The last first.
    pub reverse: bool,
}

/// The properties of a message that the criteria ask for.
pub struct Line {
    number: u32,
    uid: u32,
    keys: Vec<Value>,
}

impl Line {
    /// Reads of a message what the criteria ask for.
    pub fn new<M: Messages>(message: &Message<'_, M>, criteria: &[Criterion]) -> Line {
        let keys = criteria.iter().map(|criterion| value(message, criterion.by)).collect();
        Line { number: message.number(), uid: message.uid(), keys }
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Number(i64),
    Text(Vec<u8>),
}

/// The numbers and UIDs of messages in order.
pub fn in_order(mut lines: Vec<Line>, criteria: &[Criterion]) -> (Vec<u32>, Vec<u32>) {
    lines.sort_by(|one, other| {
        let pairs = one.keys.iter().zip(&other.keys).zip(criteria);
        let orders = pairs.map(|((one, other), criterion)| match criterion.reverse {
            true => other.cmp(one),
            false => one.cmp(other),
        });
        orders.fold(Ordering::Equal, Ordering::then)
    });
    lines.into_iter().map(|line| (line.number, line.uid)).unzip()
}

fn value<M: Messages>(message: &Message<'_, M>, by: By) -> Value {
    match by {
        By::Arrival => Value::Number(message.entry().date),
        By::Date => Value::Number(sent(message)),
        By::Size => Value::Number(i64::try_from(message.size()).unwrap_or(i64::MAX)),
        By::Subject => Value::Text(subject(message).0.into_bytes()),
        By::From => address(message, b"from"),
        By::To => address(message, b"to"),
        By::Cc => address(message, b"cc"),
    }
}

/// The mailbox of the first address.
fn address<M: Messages>(message: &Message<'_, M>, name: &[u8]) -> Value {
    let field = message.field(name).next().unwrap_or_default();
    let mut mailbox = first_mailbox(&field).to_ascii_uppercase();
    mailbox.truncate(SUBJECT_BYTES_MAX);
    Value::Text(mailbox)
}

/// When a message was sent, in seconds since 1970; if it does not say, when it came.
pub(crate) fn sent<M: Messages>(message: &Message<'_, M>) -> i64 {
    let field = message.field(b"date").next();
    field.and_then(|field| sent_at(&field)).unwrap_or(message.entry().date)
}

fn sent_at(field: &[u8]) -> Option<i64> {
    let midnight = date::parse_sent(field)?.checked_mul(DAY)?;
    let text = core::str::from_utf8(field).ok()?;
    let text = text.split_once(',').map_or(text, |(_, rest)| rest);
    let mut words = text.split_ascii_whitespace().skip(3);
    let mut parts = words.next().unwrap_or_default().split(':').map(|part| part.parse::<u8>().ok().map(i64::from));
    let mut part = || parts.next().flatten().unwrap_or(0);
    let seconds = part() * 3_600 + part() * 60 + part();
    let zone = words.next().and_then(zone).unwrap_or(0);
    midnight.checked_add(seconds)?.checked_sub(zone)
}

/// `+0130` in seconds; names of zones are taken for UTC.
fn zone(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let number: i64 = digits.parse::<u16>().ok()?.into();
    let seconds = number / 100 * 3_600 + number % 100 * 60;
    match sign {
        "+" => Some(seconds),
        "-" => Some(-seconds),
        _ => None,
    }
}

/// The base subject of a message in upper case, and whether it is a reply or was forwarded.
pub(crate) fn subject<M: Messages>(message: &Message<'_, M>) -> (String, bool) {
    let field = message.field(b"subject").next().unwrap_or_default();
    base(&mime::header_text(&field, SUBJECT_BYTES_MAX))
}

/// RFC 5256, section 2.1.
fn base(subject: &str) -> (String, bool) {
    let words: Vec<&str> = subject.split_whitespace().collect();
    let whole = words.join(" ").to_ascii_uppercase();
    let mut rest = whole.as_str();
    let mut is_reply = false;
    loop {
        rest = rest.trim_end();
        if let Some(before) = rest.strip_suffix("(FWD)") {
            (rest, is_reply) = (before, true);
            continue;
        }
        rest = rest.trim_start();
        if let Some(behind) = leader(rest) {
            (rest, is_reply) = (behind, true);
            continue;
        }
        if let Some(behind) = blob(rest).filter(|behind| !behind.trim().is_empty()) {
            rest = behind;
            continue;
        }
        match rest.strip_prefix("[FWD:").and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => (rest, is_reply) = (inner, true),
            None => return (rest.to_owned(), is_reply),
        }
    }
}

/// Strips `[list] Re: ` and the like from the beginning.
fn leader(text: &str) -> Option<&str> {
    let mut rest = text;
    while let Some(behind) = blob(rest) {
        rest = behind;
    }
    let words = ["RE", "FWD", "FW"];
    words.iter().find_map(|word| {
        let behind = rest.strip_prefix(word)?.trim_start();
        blob(behind).unwrap_or(behind).strip_prefix(':')
    })
}

/// Strips `[list] ` from the beginning.
fn blob(text: &str) -> Option<&str> {
    let (inside, behind) = text.strip_prefix('[')?.split_once(']')?;
    (!inside.contains('[') && !inside.starts_with("FWD:")).then(|| behind.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_the_same_with_and_without_what_was_added() {
        for (subject, wanted) in [
            ("hello", ("HELLO", false)),
            ("Re: hello", ("HELLO", true)),
            ("RE :  [list] Fwd[2]: hello  (fwd) ", ("HELLO", true)),
            ("[list] hello", ("HELLO", false)),
            ("[list]", ("[LIST]", false)),
            ("[fwd: hello]", ("HELLO", true)),
            ("Reply", ("REPLY", false)),
            ("re:", ("", true)),
            ("[[x]", ("[[X]", false)),
        ] {
            let (text, is_reply) = base(subject);
            assert_eq!((text.as_str(), is_reply), wanted, "{subject}");
        }
    }

    #[test]
    fn dates_are_compared_where_they_were_written() {
        assert_eq!(sent_at(b"Thu, 1 Jan 1970 01:00:30 +0100"), Some(30));
        assert_eq!(sent_at(b"1 Jan 1970 00:01 -0030"), Some(1_860));
        assert_eq!(sent_at(b"1 Jan 1970 00:00:07 GMT (odd)"), Some(7));
        assert_eq!(sent_at(b"yesterday"), None);
    }
}
