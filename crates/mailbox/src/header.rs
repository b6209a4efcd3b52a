//! The header of a mail that is submitted or named in the log: fields taken out, fields added, ids.

use keep::header::{fields, is_named};
use memchr::{memchr, memmem};
use text::date;

use crate::site::seconds;

/// The header of a mail that is submitted, without what recipients are not to see, and without results that only this host tells:
/// of its authentication (RFC 8601, section 5) and of its filters.
pub(crate) fn cleaned(header: &[u8], hostname: &str) -> Vec<u8> {
    const HIDDEN: [&[u8]; 3] = [b"bcc", b"resent-bcc", b"return-path"];
    let host = hostname.to_ascii_lowercase().into_bytes();
    let is_forged = |field: &[u8]| {
        let field = field.to_ascii_lowercase();
        let is_of_us = is_named(&field, b"authentication-results") && memmem::find(&field, &host).is_some();
        is_of_us || field.starts_with(b"x-spam-") || field.starts_with(b"x-sluice-")
    };
    let is_kept = |field: &&[u8]| !HIDDEN.iter().any(|name| is_named(field, name)) && !is_forged(field);
    fields(header).filter(is_kept).flatten().copied().collect()
}

/// Fields that the header of a new mail lacks; its author is this address, with a name before it or without.
pub(crate) fn missing(header: &[u8], author: &str, hostname: &str) -> String {
    let has = |name: &[u8]| fields(header).any(|field| is_named(field, name));
    let now = seconds();
    let mut trace = String::new();
    if !has(b"date") {
        trace.push_str(&format!("Date: {}\r\n", date::message(now)));
    }
    if !has(b"from") {
        let author = if author.ends_with('>') { author.to_owned() } else { format!("<{author}>") };
        trace.push_str(&format!("From: {author}\r\n"));
    }
    if !has(b"message-id") {
        trace.push_str(&format!("Message-ID: <{now}.{}@{hostname}>\r\n", random()));
    }
    trace
}

/// Letters that nobody else has.
pub(crate) fn random() -> String {
    let random = crate::password::random::<12>().unwrap_or_default();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The id in the first `Received` field (RFC 5321, section 4.4); at most 100 printable characters.
pub(crate) fn id(header: &[u8]) -> Option<String> {
    let trace = value(header, b"received")?;
    let id = trace.split_once(" id ")?.1;
    printable(id.split([';', ' ', '\t']).next()?, 100)
}

/// The Message-ID; at most 200 printable characters.
pub(crate) fn message_id(header: &[u8]) -> Option<String> {
    printable(value(header, b"message-id")?.trim(), 200)
}

fn value(header: &[u8], name: &[u8]) -> Option<String> {
    fields(header).find_map(|field| {
        let colon = memchr(b':', field)?;
        let is_meant = field.get(..colon)?.trim_ascii().eq_ignore_ascii_case(name);
        is_meant
            .then(|| String::from_utf8_lossy(&mime::unfolded(field.get(colon + 1..).unwrap_or_default())).into_owned())
    })
}

fn printable(text: &str, characters_max: usize) -> Option<String> {
    let safe = |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
    Some(text.chars().map(safe).take(characters_max).collect()).filter(|text: &String| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_named_by_its_trace_and_its_message_id() {
        let header = b"Return-Path: <a@b>\r\nReceived: from x ([192.0.2.1])\r\n\tby mx (Sluice) with ESMTP id 1m83mscsb0000;\r\n\tdate\r\n\
                       message-ID:\r\n <a\x1b@b>\r\nReceived: by y id other; date\r\n\r\n";
        assert_eq!(id(header).as_deref(), Some("1m83mscsb0000"));
        assert_eq!(message_id(header).as_deref(), Some("<a?@b>"));
        assert_eq!((id(b"A: b\r\n\r\n"), message_id(b"Message-ID:\r\n\r\n")), (None, None));
    }

    #[test]
    fn what_only_this_host_tells_is_taken_out() {
        let header = b"Resent-Bcc: a@b\r\nAuthentication-Results:\r\n (x) MX.Test; dkim=pass\r\nX-Spam-Status: No\r\n\
                       x-sluice-status: clean\r\nAuthentication-Results: other.test; spf=pass\r\nX-Spammer: y\r\n\r\n";
        let kept = b"Authentication-Results: other.test; spf=pass\r\nX-Spammer: y\r\n\r\n";
        assert_eq!(cleaned(header, "mx.test"), kept);
    }

    #[test]
    fn what_is_missing_is_added_and_bcc_is_taken_out() {
        let header = b"To: a@b\r\nbCC: secret@b,\r\n more@b\r\nReturn-Path: <x>\r\nDate: x\r\n\r\n";
        assert_eq!(cleaned(header, "mx.test"), b"To: a@b\r\nDate: x\r\n\r\n");
        let trace = missing(header, "ann@mx.test", "mx.test");
        assert!(trace.starts_with("From: <ann@mx.test>\r\nMessage-ID: <") && !trace.contains("Date:"), "{trace}");
        assert_eq!(missing(b"Date: x\r\nFrom: y\r\nMessage-Id: z\r\n\r\n", "", "mx.test"), "");
    }
}
