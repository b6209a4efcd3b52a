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

/// Its text, from the first field on.
pub(super) fn write(site: &Site, uid: u32, entry: &Entry) -> Vec<u8> {
    let (hostname, address, now) = (&site.hostname, &entry.address, seconds());
    let boundary = format!("{now}.{uid}.notice");
    let head = format!(
        "From: Mail Delivery System <MAILER-DAEMON@{hostname}>\r\nTo: <{to}>\r\nSubject: Undelivered mail\r\n\
         Date: {date}\r\nMessage-ID: <bounce.{now}.{uid}@{hostname}>\r\nAuto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=\"{boundary}\"\r\n\r\n\
         --{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n\
         Your mail to {address} was to be sent on from there, and could not be in {days} days.\r\n\
         It was not delivered.\r\n\r\n\
         --{boundary}\r\nContent-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; {hostname}\r\nArrival-Date: {since}\r\n\r\n\
         Final-Recipient: rfc822; {address}\r\nAction: failed\r\nStatus: 4.4.7\r\n\r\n\
         --{boundary}\r\nContent-Type: text/rfc822-headers\r\n\r\n",
        to = entry.from,
        date = date::message(now),
        since = date::message(entry.since),
        days = now.saturating_sub(entry.since) / 86_400,
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
