//! Keys: what the mail says that may open what is encrypted in it.
//!
//! Readers are given the candidates when they begin: a password behind the archive comes too late.

use stream::{FileType, Kind};

use super::Inspection;
use super::observers::Sight;
use crate::node::{Node, Reader, Work};
use crate::words::Text;

/// The longest header field that is looked at.
pub(super) const FIELD_BYTES_MAX: usize = 1024;

impl Inspection {
    /// Keeps what may tell a password of what begins: its text. Its name was read before its readers began.
    pub(super) fn keep_words(&mut self, node: &mut Node, sight: &Sight) {
        let is_text = matches!(sight.content, FileType::Text | FileType::Html);
        if is_text || sight.is_page && sight.content != FileType::Xml {
            let text = Text::new(sight.content == FileType::Html || sight.is_page);
            node.readers.push(Reader::new("words", Work::Words(Box::new(text))));
        }
    }

    /// Takes over the text of what is over.
    pub(super) fn take_words(&mut self, node: &mut Node) {
        if let Some(text) = node.text() {
            self.words.add(text);
        }
    }

    /// Takes over a header field, if it is the subject.
    pub(super) fn take_field(&mut self, field: &[u8]) {
        const SUBJECT: &[u8] = b"subject:";
        let Some((name, subject)) = field.split_at_checked(SUBJECT.len()) else { return };
        if name.eq_ignore_ascii_case(SUBJECT) {
            let mut text = Text::new(false);
            let subject = &subject[..subject.len().min(FIELD_BYTES_MAX)];
            text.read(mime::header_text(subject, FIELD_BYTES_MAX).as_bytes());
            self.words.add(text);
        }
    }

    /// Looks for candidates in what has come so far, where something begins that may be encrypted. A text is not; an
    /// archive within one is tried with those that are known already.
    pub(super) fn renew_passwords(&mut self, node: &Node, file_type: FileType) {
        use FileType::{Empty, Html, Mail, Text, Xml};
        let is_part = matches!(node.object.kind, Kind::Part | Kind::Embedded);
        if is_part {
            node.object.names().for_each(|name| self.words.name(name));
        }
        if matches!(file_type, Empty | Html | Mail | Text | Xml) {
            return;
        }
        if let Some(candidates) = self.words.candidates(&self.context.passwords) {
            self.passwords = self.passwords.with(candidates);
        }
    }
}

/// Keeps more of a header field, up to so many bytes.
pub(super) fn collect(field: &mut Vec<u8>, bytes: &[u8], bytes_max: usize) {
    let room = bytes_max.saturating_sub(field.len());
    field.extend_from_slice(&bytes[..bytes.len().min(room)]);
}
