//! A mail as rules look at it: SpamAssassin 4's views of one message.
//!
//! [`Message::read`] takes the bytes of a mail and gives all its views at once: header fields, the rendered body, the decoded
//! text parts, the addresses in it, the tree of MIME parts, and what its HTML shows. Rules and functions ask a [`Message`]
//! and nothing else.
//!
//! What a standard says does not decide here: where SpamAssassin reads a mail in its own way, that way counts, because it
//! decides which rules hit (`tests/views.rs` compares the two).
//!
//! Bounds: [`MessageLimits`]; what is beyond one is left out, and [`Message::is_cut`] tells. Time is near linear in the mail.

mod address;
mod alternatives;
mod body;
mod canonical;
mod coding;
mod colour;
mod domain;
pub mod eval;
mod field;
mod fuzz;
mod header;
mod html;
mod limits;
mod links;
mod part;
mod perl;
mod reading;
mod target;
mod tree;
mod uri;

pub use address::{Mailbox, mailboxes};
pub use field::Field;
pub use fuzz::fuzz_message;
pub use html::Html;
pub use limits::MessageLimits;
pub use part::Part;
pub use reading::{Reading, Redirectors};
pub use tree::Structure;
pub use uri::Uri;

pub(crate) use field::{Fold, unfolded};
pub(crate) use header::taken;
use text::host;
pub(crate) use text::host::{ascii, is_address, is_host, shown};

use std::sync::OnceLock;

use alternatives::Alternatives;
use body::Rendered;
use eval::Facts;
use tree::Tree;
use uri::Uris;

/// A mail, read.
#[derive(Debug, Default)]
pub struct Message {
    separator: Option<Vec<u8>>,
    full: Vec<u8>,
    header_bytes: usize,
    structure: Structure,
    body: Vec<Box<[u8]>>,
    /// None where it is the body.
    visible: Option<Vec<Box<[u8]>>>,
    invisible: Vec<Box<[u8]>>,
    raw_body: Vec<Box<[u8]>>,
    uris: Vec<Uri>,
    parts: Vec<Part>,
    pages: Vec<Html>,
    alternatives: Alternatives,
    has_long_uri: bool,
    /// Counts for functions over parts, made once.
    facts: OnceLock<Facts>,
    /// Capitals among the letters, in percent, counted once.
    capitals: OnceLock<Option<f64>>,
    is_cut: bool,
}

impl Message {
    /// Reads a mail. It never fails: whatever the bytes are, they have views.
    pub fn read(mail: &[u8], reading: &Reading, limits: &MessageLimits) -> Message {
        let tree = Tree::read(mail, limits);
        let mut message = Message {
            structure: tree.structure,
            header_bytes: tree.header_bytes,
            is_cut: tree.is_cut,
            ..Message::default()
        };
        let Tree { nodes, full, separator, .. } = tree;
        (message.full, message.separator) = (full, separator);
        message.parts = in_order(nodes);
        let rendered = Rendered::read(&mut message.parts, reading, limits);
        message.raw_body = body::raw(&message.parts, reading);
        let subject = message.subject_line();
        if message.parts.iter().any(|part| !part.has_parts && !part.kind.is_empty()) {
            message.body = body::lines(&subject, &rendered.text);
            // Where nothing is hidden, which is most often so, it is the body.
            let is_body = rendered.visible == rendered.text;
            message.visible = (!is_body).then(|| body::lines(&subject, &rendered.visible));
            message.invisible = body::lines(b"", &rendered.invisible);
        }
        let mut uris = Uris::new(reading, limits);
        uris.text(&message.body);
        rendered.pages.iter().for_each(|page| uris.html(&page.links));
        if reading.parse_dkim_uris {
            for name in [&b"DomainKey-Signature"[..], b"DKIM-Signature"] {
                message.fields().iter().filter(|field| field.is(name)).for_each(|field| uris.signature(&field.value));
            }
        }
        message.is_cut |= uris.is_cut || rendered.is_cut;
        message.has_long_uri = uris.has_long || rendered.pages.iter().any(|page| page.has_long_uri);
        message.alternatives = rendered.alternatives;
        message.uris = uris.found;
        message.pages = rendered.pages.into_iter().map(|page| page.html).collect();
        message
    }

    /// The last subject, with a line feed.
    fn subject_line(&self) -> Vec<u8> {
        self.field(b"subject").map_or(b"\n".to_vec(), Field::line)
    }

    /// The fields of the mail's header, in order.
    pub fn fields(&self) -> &[Field] {
        self.parts.first().map_or(&[], |part| &part.fields)
    }

    /// The last field of that name, whatever its case.
    pub fn field(&self, name: &[u8]) -> Option<&Field> {
        self.fields().iter().rev().find(|field| field.is(name))
    }

    /// The line that separated the mail from the one before it in a mailbox, taken off.
    pub fn separator(&self) -> Option<&[u8]> {
        self.separator.as_deref()
    }

    /// The mail as it came, the separator taken off: what `full` rules look at.
    pub fn full(&self) -> &[u8] {
        &self.full
    }

    /// The header as it came, up to the empty line and with it.
    pub fn full_header(&self) -> &[u8] {
        &self.full[..self.header_bytes]
    }

    /// Body as it came, after the header.
    pub fn full_body(&self) -> &[u8] {
        &self.full[self.header_bytes..]
    }

    /// Oddities in the structure of the mail.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// Text for `body` rules: the subject, then the rendered text, a paragraph each, with the line feed that ends it.
    /// Paragraphs of more than 2,048 bytes are cut.
    pub fn body(&self) -> &[Box<[u8]>] {
        &self.body
    }

    /// [`body`](Message::body) without what a reader of the HTML does not see.
    pub fn visible(&self) -> &[Box<[u8]>] {
        self.visible.as_deref().unwrap_or(&self.body)
    }

    /// Invisible text of the HTML, without the subject.
    pub fn invisible(&self) -> &[Box<[u8]>] {
        &self.invisible
    }

    /// Text for `rawbody` rules: the decoded text parts, in pieces of two to four kilobytes.
    pub fn raw_body(&self) -> &[Box<[u8]>] {
        &self.raw_body
    }

    /// The addresses in the mail, in the order in which they were found.
    pub fn uris(&self) -> &[Uri] {
        &self.uris
    }

    /// The MIME parts, the message itself first, each before what it contains.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// HTML pages of the mail, one for each part that is HTML.
    pub fn pages(&self) -> &[Html] {
        &self.pages
    }

    /// Counts for functions over parts.
    fn facts(&self) -> &Facts {
        self.facts.get_or_init(|| Facts::read(&self.parts))
    }

    /// Whether a bound was reached and something is left out of a view.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// The parts, each before what it contains.
fn in_order(nodes: Vec<tree::Node>) -> Vec<Part> {
    let mut nodes: Vec<Option<tree::Node>> = nodes.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(nodes.len());
    let mut stack = vec![(0usize, 0u16)];
    while let Some((at, depth)) = stack.pop() {
        let Some(node) = nodes.get_mut(at).and_then(Option::take) else { continue };
        let mut part = node.part;
        part.depth = depth;
        part.has_parts = node.children.is_some();
        out.push(part);
        stack.extend(node.children.unwrap_or_default().into_iter().rev().map(|child| (child, depth.saturating_add(1))));
    }
    out
}
