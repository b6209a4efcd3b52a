//! A mail as rules look at it: SpamAssassin 4's views of one message.
//!
//! [`Message::read`] takes the bytes of a mail and gives all its views at once: header fields, the rendered body, the decoded
//! text parts, the addresses in it, the tree of MIME parts, and what its HTML shows. Rules and functions ask a [`Message`]
//! and nothing else.
//!
//! Which mail differs from what a standard says is not decided here: where SpamAssassin reads a mail in its own way, that way
//! counts, because it decides which rules hit (`tests/views.rs` compares the two).
//!
//! Bounds: [`MessageLimits`]; what is beyond one is left out, and [`Message::truncated`] tells.

mod field;
mod html;
mod limits;
mod part;
mod reading;
mod uri;

pub use field::Field;
pub use html::{Html, Image, Tag};
pub use limits::MessageLimits;
pub use part::Part;
pub use reading::{Reading, Redirectors};
pub use uri::{Uri, UriKinds};

/// A mail, read.
#[derive(Debug, Default)]
pub struct Message {
    fields: Vec<Field>,
    full: Vec<u8>,
    header_bytes: usize,
    body: Vec<Box<[u8]>>,
    visible: Vec<Box<[u8]>>,
    invisible: Vec<Box<[u8]>>,
    raw_body: Vec<Box<[u8]>>,
    uris: Vec<Uri>,
    parts: Vec<Part>,
    html: Html,
    truncated: bool,
}

impl Message {
    /// Reads a mail. It never fails: whatever the bytes are, they have views.
    pub fn read(mail: &[u8], _reading: &Reading, _limits: &MessageLimits) -> Message {
        Message { full: mail.to_vec(), ..Message::default() }
    }

    /// The fields of the mail's header, in order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The mail as it came, with a separator of mailboxes taken off: what `full` rules look at.
    pub fn full(&self) -> &[u8] {
        &self.full
    }

    /// The header as it came, up to the empty line and with it.
    pub fn full_header(&self) -> &[u8] {
        &self.full[..self.header_bytes]
    }

    /// What stands behind the header, as it came.
    pub fn full_body(&self) -> &[u8] {
        &self.full[self.header_bytes..]
    }

    /// What `body` rules look at: the subject, then the rendered text, a paragraph each, each with the line feed that ends it.
    pub fn body(&self) -> &[Box<[u8]>] {
        &self.body
    }

    /// [`body`](Message::body) without what a reader of the HTML does not see.
    pub fn visible(&self) -> &[Box<[u8]>] {
        &self.visible
    }

    /// What a reader of the HTML does not see; without the subject.
    pub fn invisible(&self) -> &[Box<[u8]>] {
        &self.invisible
    }

    /// What `rawbody` rules look at: the decoded text parts, in pieces of one to two kilobytes.
    pub fn raw_body(&self) -> &[Box<[u8]>] {
        &self.raw_body
    }

    /// The addresses in the mail, in the order in which their first spelling sorts.
    pub fn uris(&self) -> &[Uri] {
        &self.uris
    }

    /// The MIME parts, the message itself first, each before what it contains.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What the HTML of the mail shows: of its last part that is HTML.
    pub fn html(&self) -> &Html {
        &self.html
    }

    /// Whether a bound was reached and something is left out of a view.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
}
