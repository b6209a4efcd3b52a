//! Notifications of what became of a mail (RFC 3461, 3464): that it was not delivered, that it waits, that it was delivered or relayed.
//!
//! One names all recipients that an attempt has settled. Of a mail that a script has sent on it names the address that the sender
//! has written to, and neither the one that its owner has it sent on to, nor what was said there. Texts of others stand in it as one
//! line each, in ASCII.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use keep::content::Reader as _;
use keep::header::end_of_header;
use proto::imap::date;
use proto::smtp::Return;

use super::content::open;
use crate::header::random;
use crate::outbox::{Entry, Recipient};
use crate::relay::Fate;
use crate::site::{Site, seconds};

/// Bytes of a header that are sent back.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Bytes of a mail that is sent back whole, where that was asked for; of a longer one the header is.
const WHOLE_BYTES_MAX: u64 = 256 << 10;

/// The field of a part with other bytes than ASCII, and of the parts around it.
const EIGHT_BIT: &str = "Content-Transfer-Encoding: 8bit\r\n";

/// Characters of a reason that are told.
const WHY_CHARACTERS_MAX: usize = 300;

/// The outcome of a recipient, as its sender may be told.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub kind: Kind,
    /// A host has refused it for ever.
    pub is_refused: bool,
    pub recipient: Recipient,
    pub fate: Fate,
}

/// Kinds of outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It came into a mailbox here.
    Delivered,
    /// A next hop has it.
    Relayed,
    Failed,
    /// It waits for long.
    Delayed,
    /// It waits; nobody is told.
    Waits,
}

impl Kind {
    const fn action(self) -> &'static str {
        match self {
            Kind::Delivered => "delivered",
            Kind::Relayed => "relayed",
            Kind::Failed => "failed",
            Kind::Delayed | Kind::Waits => "delayed",
        }
    }

    /// The subject of a notification, and its first sentence.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Delivered | Kind::Relayed => {
                ("Your mail was delivered", "Your mail was delivered, or handed on, to:")
            }
            Kind::Failed => ("Undelivered mail", "Your mail could not be delivered to:"),
            Kind::Delayed | Kind::Waits => (
                "Your mail is delayed",
                "Your mail waits, and is tried again. You need not send it again. It waits for:",
            ),
        }
    }
}

impl Event {
    /// Whether the sender is told of it.
    pub fn is_told(&self, entry: &Entry) -> bool {
        let of = match self.kind {
            Kind::Waits => return false,
            Kind::Relayed if self.fate.host_notifies => return false,
            Kind::Delivered | Kind::Relayed => "SUCCESS",
            Kind::Failed => "FAILURE",
            Kind::Delayed => "DELAY",
        };
        if entry.has_sender() {
            return self.recipient.notifies(of);
        }
        // Of what a script redirects, its sender is told that it was given up: nobody else has it.
        let is_redirect = !entry.account.is_empty() && !entry.is_stored && !entry.from.is_empty();
        is_redirect && self.kind == Kind::Failed
    }
}

/// A sender as the log and a command show it.
pub(crate) fn shown(from: &str) -> &str {
    if from.is_empty() { "<>" } else { from }
}

/// The text of a notification, from the first field on.
pub(super) fn write(site: &Site, mail: u32, entry: &Entry, events: &[&Event]) -> Vec<u8> {
    let (hostname, now) = (&site.hostname, seconds());
    // Another one than the mail may hold that comes back in it.
    let boundary = format!("notice.{}", random());
    let is_redirect = !entry.account.is_empty() && !entry.is_written;
    let original = original(site, mail, entry, events);
    let is_ascii = original.as_ref().is_none_or(|part| part.is_ascii());
    let kind = events.iter().map(|event| event.kind).find(|kind| *kind == Kind::Failed);
    let (subject, _) = kind.or(events.first().map(|event| event.kind)).unwrap_or(Kind::Failed).words();
    let mut head = format!(
        "From: Mail Delivery System <MAILER-DAEMON@{hostname}>\r\nTo: <{to}>\r\nSubject: {subject}\r\n\
         Date: {date}\r\nMessage-ID: <{now}.{id}@{hostname}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=\"{boundary}\"\r\n{encoding}\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n",
        to = ascii(&entry.from),
        id = random(),
        date = date::message(now),
        encoding = if is_ascii { "" } else { EIGHT_BIT },
    );
    put_text(&mut head, entry, events, is_redirect);
    let _ = write!(
        head,
        "\r\n--{boundary}\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; {hostname}\r\n\
         Arrival-Date: {}\r\n",
        date::message(entry.since)
    );
    if let Some(envid) = xtext(&entry.envid) {
        let _ = write!(head, "Original-Envelope-Id: {}\r\n", line(&envid));
    }
    let until = entry.since.saturating_add(site.patience.whole);
    for event in events {
        put_recipient(&mut head, entry, event, is_redirect, until);
    }
    let mut text = head.into_bytes();
    if let Some(part) = original {
        text.extend(format!("\r\n--{boundary}\r\n").bytes());
        text.extend(part);
    }
    text.extend(format!("\r\n--{boundary}--\r\n").bytes());
    text
}

/// The recipients for whoever reads it, each kind with its sentence.
fn put_text(head: &mut String, entry: &Entry, events: &[&Event], is_redirect: bool) {
    for kind in [Kind::Failed, Kind::Delayed, Kind::Relayed, Kind::Delivered] {
        for (at, event) in events.iter().filter(|event| event.kind == kind).enumerate() {
            if at == 0 {
                let _ = write!(head, "{}\r\n\r\n", kind.words().1);
            }
            let _ = match is_redirect {
                true => write!(head, "  {}\r\n", ascii(&entry.address)),
                false => write!(head, "  {}\r\n  {}\r\n\r\n", ascii(&event.recipient.to), line(&event.fate.why)),
            };
        }
    }
}

fn put_recipient(head: &mut String, entry: &Entry, event: &Event, is_redirect: bool, until: i64) {
    let Event { kind, recipient, fate, .. } = event;
    head.push_str("\r\n");
    if let Some((kind, address)) = recipient.orcpt.split_once(';').filter(|_| !is_redirect) {
        let address = if kind.eq_ignore_ascii_case("utf-8") { Some(address.to_owned()) } else { xtext(address) };
        let _ = write!(head, "Original-Recipient: {};{}\r\n", line(kind), line(&address.unwrap_or_default()));
    }
    let final_recipient = if is_redirect { &entry.address } else { &recipient.to };
    let address_type = if final_recipient.is_ascii() { "rfc822" } else { "utf-8" };
    // Of what a host said now and not for ever, the last word is ours: it was tried for too long (RFC 3463: 4.4.7).
    let status = match kind {
        Kind::Failed if !event.is_refused => (4, 4, 7),
        _ => fate.status,
    };
    let (class, subject, detail) = status;
    let _ = write!(
        head,
        "Final-Recipient: {address_type}; {}\r\nAction: {}\r\nStatus: {class}.{subject}.{detail}\r\n",
        ascii(final_recipient),
        kind.action()
    );
    // Words of ours are not those of a host (RFC 3464, sections 2.3.5 and 2.3.6).
    let _ = match &fate.host {
        _ if is_redirect => Ok(()),
        Some(host) => {
            let host = line(&remote(host));
            write!(head, "Remote-MTA: dns; {host}\r\nDiagnostic-Code: smtp; {}\r\n", line(&fate.why))
        }
        None if matches!(kind, Kind::Failed | Kind::Delayed) => {
            write!(head, "Diagnostic-Code: X-Sluice; {}\r\n", line(&fate.why))
        }
        None => Ok(()),
    };
    if *kind == Kind::Delayed {
        let _ = write!(head, "Will-Retry-Until: {}\r\n", date::message(until));
    }
}

/// The part with the mail, or its header (RFC 3461, section 6.2); of a mail with REQUIRETLS its header (RFC 8689, section 5). It has the fields
/// that it has got here, by which a client knows its mail.
fn original(site: &Site, mail: u32, entry: &Entry, events: &[&Event]) -> Option<Vec<u8>> {
    let mut body = open(site, mail)?;
    let is_failure = events.iter().any(|event| event.kind == Kind::Failed);
    let bytes = body.size().saturating_sub(entry.skipped);
    let is_whole = entry.ret == Some(Return::Full) && !entry.require_tls && is_failure && bytes <= WHOLE_BYTES_MAX;
    let mut original = vec![0; if is_whole { WHOLE_BYTES_MAX as usize } else { HEADER_BYTES_MAX }];
    let mut length = 0;
    while let Ok(more @ 1..) =
        tokio::task::block_in_place(|| body.read(entry.skipped + length as u64, &mut original[length..]))
    {
        length += more;
    }
    original.truncate(length);
    let trace = if entry.is_ours() { entry.trace.as_str() } else { "" };
    Some(part(trace, original, is_whole, entry.is_written))
}

/// A part of a mail, from its fields on: all of it, or its header. A body that is not in ASCII goes to accounts here alone, since another host
/// may not take it; a header that is not is quoted (RFC 6533, section 5), and stands for the whole.
fn part(trace: &str, mut original: Vec<u8>, is_whole: bool, is_to_account: bool) -> Vec<u8> {
    let last = || original.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let end = end_of_header(&original, 0).unwrap_or_else(last);
    if !trace.is_ascii() || !original[..end].is_ascii() {
        let header = format!("{trace}{}", String::from_utf8_lossy(&original[..end]));
        return [b"Content-Type: message/global-headers\r\n".as_slice(), &mime::encoded_text(header.trim_end())]
            .concat();
    }
    let is_whole = is_whole && (is_to_account || original.is_ascii());
    if !is_whole {
        original.truncate(end);
    }
    let kind = if is_whole { "message/rfc822" } else { "text/rfc822-headers" };
    let encoding = if original.is_ascii() { "" } else { EIGHT_BIT };
    [format!("Content-Type: {kind}\r\n{encoding}\r\n{trace}").as_bytes(), &original].concat()
}

/// A host without its port, as a domain or an address in brackets (RFC 3464, section 2.1.2).
fn remote(host: &str) -> String {
    let address = host.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| host.parse());
    match address {
        Ok(IpAddr::V4(address)) => format!("[{address}]"),
        Ok(IpAddr::V6(address)) => format!("[IPv6:{address}]"),
        Err(_) => host.split(':').next().unwrap_or_default().to_owned(),
    }
}

/// Text of others as one line in ASCII.
fn line(text: &str) -> String {
    let safe = |letter: char| if letter.is_ascii() && !letter.is_ascii_control() { letter } else { '?' };
    text.chars().map(safe).take(WHY_CHARACTERS_MAX).collect()
}

/// An address in ASCII (RFC 6533, section 3): other characters as `\x{...}`.
fn ascii(address: &str) -> String {
    address.chars().fold(String::new(), |mut text, letter| {
        if letter.is_ascii() && !letter.is_ascii_control() {
            text.push(letter);
        } else {
            let _ = write!(text, "\\x{{{:X}}}", u32::from(letter));
        }
        text
    })
}

/// Decodes xtext (RFC 3461, section 4); none where there is none, or it is malformed.
fn xtext(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'+' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = rest.get(2..)?;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_comes_back_whole_or_as_its_header() {
        let mail = |text: &str| text.as_bytes().to_vec();
        let told = |original, is_whole, is_to_account| {
            String::from_utf8(part("Date: x\r\n", original, is_whole, is_to_account)).unwrap()
        };
        let (plain, umlaut) = ("A: b\r\n\r\nbody\r\n", "A: b\r\n\r\ngr\u{fc}n\r\n");
        let header = "Content-Type: text/rfc822-headers\r\n\r\nDate: x\r\nA: b\r\n\r\n";
        let whole = "Content-Type: message/rfc822\r\n\r\nDate: x\r\nA: b\r\n\r\nbody\r\n";
        let eight_bit = "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\nDate: x\r\nA: b\r\n\r\ngr\u{fc}n\r\n";
        assert_eq!(told(mail(plain), true, false), whole);
        assert_eq!(told(mail(plain), false, true), header);
        assert_eq!(told(mail(umlaut), true, false), header, "a host that may not take it");
        assert_eq!(told(mail(umlaut), true, true), eight_bit);
        let quoted = "Content-Type: message/global-headers\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nDate: x\r\nA: =C3=BC\r\n";
        assert_eq!(told(mail("A: \u{fc}\r\n\r\nbody\r\n"), true, true), quoted);
        assert!(told(b"A: \xfc\r\n\r\n".to_vec(), false, false).ends_with("A: =EF=BF=BD\r\n"));
        // A header that goes on beyond what was read.
        assert!(told(mail("A: b\r\nC: d"), false, false).ends_with("\r\nA: b\r\n"));
    }

    #[test]
    fn a_host_is_named_without_its_port() {
        let named =
            ["mx.test", "mx.test:2525", "192.0.2.1:25", "192.0.2.1", "[2001:db8::1]:25", "2001:db8::1"].map(remote);
        assert_eq!(
            named,
            ["mx.test", "mx.test", "[192.0.2.1]", "[192.0.2.1]", "[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"]
        );
    }

    #[test]
    fn xtext_is_decoded_and_addresses_become_ascii() {
        assert_eq!(xtext("QQ+2B314+3Dx").as_deref(), Some("QQ+314=x"));
        assert_eq!((xtext(""), xtext("a+2"), xtext("a+zz")), (None, None, None));
        assert_eq!(ascii("gr\u{fc}n@x\r"), "gr\\x{FC}n@x\\x{D}");
        assert_eq!(line("451 a\r\nTo: b\u{fc}"), "451 a??To: b?");
    }
}
