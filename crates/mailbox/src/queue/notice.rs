//! A notice to the sender of a mail that could not be sent on (RFC 3464).
//!
//! It names the address that the sender has written to, and not the one that its owner has it sent on to.

use proto::imap::date;

use super::{Entry, place};
use crate::content::Body;
use crate::header::end_of_header;
use crate::site::{Site, seconds};

/// Bytes of a header that are sent back.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Characters of a reason that are told.
const WHY_CHARACTERS_MAX: usize = 300;

/// Its text, from the first field on.
pub(super) fn write(site: &Site, uid: u32, entry: &Entry) -> Vec<u8> {
    let days = seconds().saturating_sub(entry.since) / 86_400;
    let address = &entry.address;
    let text = format!("Your mail to {address} was to be sent on from there, and could not be in {days} days.");
    report(site, uid, entry, address, "4.4.7", &text)
}

/// The same for a mail that an account has written here: to the account, with the reason.
pub(super) fn write_to_writer(site: &Site, uid: u32, entry: &Entry, why: &str) -> Vec<u8> {
    // A reply of a server is text of others: one line, as it can stand in a body.
    let why: String = why.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WHY_CHARACTERS_MAX).collect();
    let text = format!("Your mail to {} could not be sent.\r\n{why}", entry.to);
    report(site, uid, entry, &entry.to, "5.0.0", &text)
}

fn report(site: &Site, uid: u32, entry: &Entry, address: &str, status: &str, text: &str) -> Vec<u8> {
    let (hostname, now) = (&site.hostname, seconds());
    let boundary = format!("{now}.{uid}.notice");
    let head = format!(
        "From: Mail Delivery System <MAILER-DAEMON@{hostname}>\r\nTo: <{to}>\r\nSubject: Undelivered mail\r\n\
         Date: {date}\r\nMessage-ID: <bounce.{now}.{uid}@{hostname}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=\"{boundary}\"\r\n\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
         {text}\r\n\
         It was not delivered.\r\n\r\n\
         --{boundary}\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; {hostname}\r\nArrival-Date: {since}\r\n\r\n\
         Final-Recipient: rfc822; {address}\r\nAction: failed\r\nStatus: {status}\r\n\r\n\
         --{boundary}\r\nContent-Type: text/rfc822-headers\r\n\r\n",
        to = entry.from,
        date = date::message(now),
        since = date::message(entry.since),
    );
    let mut text = head.into_bytes();
    text.extend(header(site, uid, entry));
    text.extend(format!("\r\n--{boundary}--\r\n").bytes());
    text
}

/// The header of the mail, if it can be read: whole fields.
fn header(site: &Site, uid: u32, entry: &Entry) -> Vec<u8> {
    let state = site.store.state();
    let mailbox = place(&state).and_then(|(_, mailbox)| state.mailbox(mailbox));
    let number = mailbox.and_then(|mailbox| mailbox.entry(uid)).map(|entry| entry.message.get());
    let Some(mut body) = number.and_then(|number| Body::open(&site.store, number)) else { return Vec::new() };
    let mut header = vec![0; HEADER_BYTES_MAX];
    let read = tokio::task::block_in_place(|| body.read(entry.skipped, &mut header)).unwrap_or(0);
    header.truncate(read);
    match end_of_header(&header, 0) {
        Some(end) => header.truncate(end),
        None => {
            let end = header.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            header.truncate(end);
        }
    }
    header
}
