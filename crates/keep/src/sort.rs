//! SORT and its words (RFC 5256): when a mail was sent, what its subject is without `Re:` and the like.
//!
//! Texts are compared by `i;unicode-casemap` (RFC 5051). What is equal stays in the order of the mailbox.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use text::date;
use text::normal::caseless;

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
        By::Subject => Value::Text(caseless(&subject(message).0).into_bytes()),
        By::From => address(message, b"from"),
        By::To => address(message, b"to"),
        By::Cc => address(message, b"cc"),
    }
}

/// The mailbox of the first address.
fn address<M: Messages>(message: &Message<'_, M>, name: &[u8]) -> Value {
    let field = message.field(name).next().unwrap_or_default();
    let mut mailbox = first_mailbox(&field);
    mailbox.truncate(SUBJECT_BYTES_MAX);
    Value::Text(caseless(&String::from_utf8_lossy(&mailbox)).into_bytes())
}

/// When a message was sent, in seconds since 1970; if it does not say, when it came.
pub(crate) fn sent<M: Messages>(message: &Message<'_, M>) -> i64 {
    let field = message.field(b"date").next();
    field.and_then(|field| sent_at(&field)).unwrap_or(message.entry().date)
}

/// A date without a time is one of midnight, and of no zone.
fn sent_at(field: &[u8]) -> Option<i64> {
    match date::parse_message(field) {
        Some((seconds, _)) => Some(seconds),
        None => date::parse_sent(field)?.checked_mul(DAY),
    }
}

/// The base subject of a message in capitals, and whether it is a reply or was forwarded.
pub(crate) fn subject<M: Messages>(message: &Message<'_, M>) -> (String, bool) {
    let field = message.field(b"subject").next().unwrap_or_default();
    text::subject::base(&mime::header_text(&field, SUBJECT_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_compared_where_they_were_written() {
        assert_eq!(sent_at(b"Thu, 1 Jan 1970 01:00:30 +0100"), Some(30));
        assert_eq!(sent_at(b"1 Jan 1970 00:01 -0030"), Some(1_860));
        assert_eq!(sent_at(b"1 Jan 1970 00:00:07 GMT (odd)"), Some(7));
        assert_eq!(sent_at(b"2 Jan 1970 24:00"), Some(DAY));
        assert_eq!(sent_at(b"1 Jan 1970 00:00:00 EST"), Some(5 * 3_600));
        assert_eq!(sent_at(b"yesterday"), None);
    }
}
