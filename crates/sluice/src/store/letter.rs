//! A mail with a report that was made here: packed, in the attachment of a few words, and handed to the queue.
//!
//! It is signed there if the domain of its sender has keys. Of a letter that does not arrive nobody is told.

use std::io::{Cursor, Read as _, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use mailbox::Site;
use mailbox::queue::{Handover, Untaken, hand_over};
use text::base64;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

/// Columns of Base64.
const COLUMNS: usize = 76;

/// A letter.
pub struct Letter<'a> {
    /// Its sender.
    pub from: &'a str,
    /// Its recipients.
    pub to: &'a [String],
    /// Its `Message-ID`, without angle brackets.
    pub id: &'a str,
    /// Its subject.
    pub subject: &'a str,
    /// Further fields, with their line ends.
    pub fields: &'a str,
    /// Its `Content-Type`, without the boundary.
    pub kind: &'a str,
    /// Words in front of the attachment.
    pub words: &'a str,
    /// Media type of the attachment.
    pub media_type: &'a str,
    /// File name of the attachment.
    pub name: &'a str,
    /// Content of the attachment, not packed yet.
    pub content: &'a [u8],
}

impl Letter<'_> {
    /// The mail.
    pub fn write(&self) -> String {
        let Letter { from, id, subject, fields, kind, words, media_type, name, .. } = self;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let _ = packed.write_all(self.content);
        let packed = base64::encode(&packed.finish().unwrap_or_default());
        let mut lines = String::with_capacity(packed.len() + packed.len() / COLUMNS * 2 + 2);
        for line in packed.as_bytes().chunks(COLUMNS).filter_map(|line| std::str::from_utf8(line).ok()) {
            lines.push_str(line);
            lines.push_str("\r\n");
        }
        let (now, to) = (OffsetDateTime::now_utc().format(&Rfc2822).unwrap_or_default(), self.to.join(", "));
        // No line of Base64 has a dot.
        let boundary = "a.report";
        format!(
            "From: <{from}>\r\nTo: {to}\r\nDate: {now}\r\nMessage-ID: <{id}>\r\nSubject: {subject}\r\n{fields}\
             Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: {kind}; boundary=\"{boundary}\"\r\n\r\n\
             --{boundary}\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n{words}\r\n\r\n\
             --{boundary}\r\nContent-Type: {media_type}\r\nContent-Transfer-Encoding: base64\r\n\
             Content-Disposition: attachment; filename=\"{name}\"\r\n\r\n{lines}--{boundary}--\r\n"
        )
    }

    /// Hands a mail that was written to the queue, as the work of `user`.
    ///
    /// # Errors
    /// As [`hand_over`].
    pub async fn send(&self, site: &Site, user: &str, mail: String) -> Result<(), Untaken> {
        let mut content = Cursor::new(mail.into_bytes());
        let handover = Handover {
            user: user.into(),
            is_trusted: true,
            from: Some(self.from.into()),
            recipients: self.to.to_vec(),
            notify: "NEVER".into(),
            ..Handover::default()
        };
        hand_over(site, handover, |piece| content.read(piece)).await
    }
}
