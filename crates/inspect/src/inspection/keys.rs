//! Keys: what the mail says that may open what is encrypted in it.
//!
//! Readers are given the candidates when they begin: a password behind the archive comes too late.

use stream::{FileType, Kind};

use super::Inspection;
use crate::node::{Node, Reader, Work};
use crate::words::WordReader;

/// The longest header field that is looked at.
const FIELD_BYTES_MAX: usize = 1024;

impl Inspection {
    /// Looks for words in what begins: in its name, and in its text.
    pub(super) fn look_for_words(&mut self, node: &mut Node, file_type: FileType) {
        let is_part = matches!(node.object.kind, Kind::Part | Kind::Embedded);
        if let Some(name) = node.object.name.as_deref().filter(|_| is_part)
            && self.words.name(name)
        {
            self.renew_passwords();
        }
        if matches!(file_type, FileType::Text | FileType::Html) {
            let is_declared = node.object.media_type.as_deref() == Some("text/html");
            let reader = WordReader::new(file_type == FileType::Html || is_declared);
            node.readers.push(Reader::new("words", Work::Words(Box::new(reader))));
        }
    }

    /// Takes over the words of what is over.
    pub(super) fn learn_words(&mut self, node: &mut Node) {
        if node.words().is_some_and(|words| self.words.add(words)) {
            self.renew_passwords();
        }
    }

    /// Learns the words of a header field, if it is the subject.
    pub(super) fn learn_field(&mut self, field: &[u8]) {
        const SUBJECT: &[u8] = b"subject:";
        let Some((name, subject)) = field.split_at_checked(SUBJECT.len()) else { return };
        if name.eq_ignore_ascii_case(SUBJECT) {
            let mut reader = WordReader::default();
            reader.read(subject);
            reader.finish();
            if self.words.add(reader.words) {
                self.renew_passwords();
            }
        }
    }

    fn renew_passwords(&mut self) {
        self.passwords = self.passwords.with(self.words.candidates(&self.context.passwords));
    }
}

/// Keeps more of a header field.
pub(super) fn collect(field: &mut Vec<u8>, bytes: &[u8]) {
    let room = FIELD_BYTES_MAX.saturating_sub(field.len());
    field.extend_from_slice(&bytes[..bytes.len().min(room)]);
}
