//! Fields that the gateway adds to a mail, and the names in them.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use flow::{Spotted, Verdict};
use proto::smtp::Reply;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// A name for a message: in every reply and log line about it. Unique as long as fewer than a million come in a
/// millisecond.
pub fn new_id() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let mut number = now << 20 | u64::from(COUNT.fetch_add(1, Relaxed) & 0xf_ffff);
    let mut digits = [0; 13];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghjkmnpqrstvwxyz"[(number & 31) as usize];
        number >>= 5;
    }
    digits.iter().map(|&digit| char::from(digit)).skip_while(|&digit| digit == '0').collect()
}

/// The time as mails write it (RFC 5322, section 3.3).
pub fn date() -> String {
    OffsetDateTime::now_utc().format(&Rfc2822).expect("the present can be written in RFC 2822's form")
}

/// Where a mail came from.
pub struct Origin<'a> {
    /// Name in the client's HELO or EHLO.
    pub hello: &'a str,
    /// Where it came from.
    pub address: IpAddr,
    /// `ESMTP`, `SMTP`, `LMTP`; with an `S` behind it if the stream was encrypted, and an `A` if the client has
    /// logged in (RFC 3848).
    pub with: &'a str,
    /// This gateway.
    pub hostname: &'a str,
    /// The message's name.
    pub id: &'a str,
}

/// The trace field (RFC 5321, section 4.4).
pub fn received(origin: &Origin<'_>) -> String {
    let literal = match origin.address {
        IpAddr::V4(address) => format!("[{address}]"),
        IpAddr::V6(address) => format!("[IPv6:{address}]"),
    };
    let hello: String =
        origin.hello.chars().filter(|c| c.is_ascii_graphic() && !"();<>\"\\".contains(*c)).take(255).collect();
    let Origin { with, hostname, id, .. } = origin;
    format!("Received: from {hello} ({literal})\r\n\tby {hostname} (Sluice) with {with} id {id};\r\n\t{}\r\n", date())
}

/// The field of mails that were inspected and go on, as other scanners write it.
pub const SCANNED: &str = "X-Virus-Scanned";

/// Value of the field.
pub fn scanned(hostname: &str) -> String {
    format!("Sluice at {}", printable(hostname))
}

/// Text in front of a mail for rules: its sender, and its origin.
pub fn for_rules(sender: &str, origin: &Origin<'_>) -> Box<[u8]> {
    let sender: String = sender.chars().filter(|letter| !letter.is_control()).collect();
    format!("Return-Path: <{sender}>\r\n{}", received(origin)).into_bytes().into()
}

/// The field that marks a mail: what was found in it.
pub fn status(verdict: &Verdict) -> String {
    let mut field = String::from("X-Sluice-Status: found");
    for spotted in verdict.findings.iter().take(8) {
        let _ = write!(field, ";\r\n\t{} ({})", printable(&spotted.finding.name), spotted.finding.class.name());
    }
    field.push_str("\r\n");
    field
}

/// A finding in one line: its name, and where it is.
pub fn describe(spotted: &Spotted) -> String {
    let mut text = printable(&spotted.finding.name);
    if let Some(name) = spotted.path.last() {
        let _ = write!(text, " in {}", printable(name));
    }
    text
}

/// Adds the message's name to a refusal: it leads to the line in the log.
pub fn sign(reply: &mut Reply, id: &str) {
    if !reply.is_positive() && !reply.text.contains(id) {
        reply.text = format!("{} (id {id})", reply.text).into();
    }
}

/// The address of an envelope as each log line writes it: without angle brackets, and `<>` for the null sender.
pub fn address(path: &str) -> String {
    match path {
        "" => "<>".into(),
        path => printable(path),
    }
}

/// Text that is safe in a reply, a header field and a log line: printable ASCII, at most 200 characters.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_sort_by_time() {
        let (first, second) = (new_id(), new_id());
        assert!(first < second && first.len() <= 13, "{first} {second}");
    }

    #[test]
    fn hostile_names_cannot_break_a_line() {
        let origin = Origin {
            hello: "evil)\r\nX: y",
            address: [192, 0, 2, 1].into(),
            with: "ESMTP",
            hostname: "mx.example",
            id: "abc",
        };
        let field = received(&origin);
        assert!(field.starts_with("Received: from evilX:y ([192.0.2.1])\r\n\tby mx.example"), "{field}");
        assert_eq!(printable("a\r\nb\u{e9}"), "a??b?");
    }
}
