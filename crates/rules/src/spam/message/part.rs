//! A MIME part as SpamAssassin sees it.

use super::Field;

/// A node in the tree of a mail.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// The fields of its header, in order.
    pub fields: Vec<Field>,
    /// How deep in the tree it stands; the message is at 0, and what follows deeper is within.
    pub depth: u16,
    /// The type that its header says, in lower case: `text/plain` where it says none.
    pub kind: Box<str>,
    /// The charset that its header says, in the case that it is written in.
    pub charset: Option<Box<[u8]>>,
    /// The file name that its header says.
    pub name: Option<Box<[u8]>>,
    /// Whether other parts stand in it: it has no content of its own then.
    pub has_parts: bool,
    /// As it came, with its line ends made one, lines of more than 2,048 bytes cut.
    pub raw: Vec<u8>,
    /// Its transfer coding undone, where it has one; [`Part::decoded`] gives either.
    pub(super) decoded: Option<Vec<u8>>,
    /// Whether it is text that is in the rendered body.
    pub is_rendered: bool,
}

impl Part {
    /// The last field of that name.
    pub fn field(&self, name: &[u8]) -> Option<&Field> {
        self.fields.iter().rev().find(|field| field.is(name))
    }

    /// Its content, the transfer coding undone.
    pub fn decoded(&self) -> &[u8] {
        self.decoded.as_deref().unwrap_or(&self.raw)
    }

    /// The type that it is read as: HTML, too, where its name says so.
    pub fn effective_kind(&self) -> &str {
        let name = self.name.as_deref().unwrap_or_default();
        let name = name.strip_suffix(b"\n").unwrap_or(name);
        let ends =
            |end: &str| name.len() >= end.len() && name[name.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes());
        if [".html", ".htm", ".shtml", ".shtm"].iter().any(|end| ends(end)) { "text/html" } else { &self.kind }
    }
}
