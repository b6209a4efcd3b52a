//! Search without an index: envelopes and contents as they stand, one message after the other.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use store::Mailbox;

use crate::Keep;
use crate::digest::Text;

/// Bytes of a message that are looked through.
const BYTES_MAX: u64 = 1 << 20;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Words of a search, each with the field that it is looked for in, if one was named.
pub struct Words(Vec<(Option<&'static str>, String)>);

impl Words {
    /// Reads at most `words_max` words, apart by blanks; `from:`, `to:`, `cc:` and `subject:` name a field.
    pub fn new(text: &str, words_max: usize) -> Words {
        Words(text.split_whitespace().take(words_max).map(word).collect())
    }

    /// Each in small letters, with the name of its field.
    pub fn iter(&self) -> impl Iterator<Item = (Option<&'static str>, &str)> {
        self.0.iter().map(|(field, word)| (*field, word.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn word(text: &str) -> (Option<&'static str>, String) {
    let (name, rest) = text.split_once(':').unwrap_or(("", text));
    let field = ["from", "to", "cc", "subject"].into_iter().find(|field| *field == name && !rest.is_empty());
    let wanted = if field.is_some() { rest } else { text };
    (field, wanted.to_lowercase())
}

/// The UIDs of the messages of a mailbox that have all words, ascending. At most `messages_max` are looked at, the newest.
pub fn scan(keep: &mut impl Keep, mailbox: &Mailbox, words: &Words, messages_max: usize) -> Vec<u32> {
    let entries: Vec<(u32, u64)> = mailbox.from(0).map(|(uid, entry)| (uid, entry.message.get())).collect();
    let newest = entries.get(entries.len().saturating_sub(messages_max)..).unwrap_or_default();
    newest.iter().filter(|(_, message)| has_all(keep, *message, words)).map(|(uid, _)| *uid).collect()
}

fn has_all(keep: &mut impl Keep, message: u64, words: &Words) -> bool {
    let mut text = None;
    let digest = keep.digest(message).unwrap_or_default();
    let envelope = Text::Envelope.of(&digest).unwrap_or_default();
    let envelope = mime::header_text(envelope, usize::MAX).to_lowercase();
    words.iter().all(|(field, word)| {
        envelope.contains(word)
            || (field.is_none() && text.get_or_insert_with(|| lowered(keep, message)).contains(word))
    })
}

/// The first [`BYTES_MAX`] of a message in small letters.
fn lowered(keep: &mut impl Keep, message: u64) -> String {
    let (mut content, mut chunk) = (Vec::new(), vec![0; CHUNK_BYTES]);
    while (content.len() as u64) < BYTES_MAX {
        match keep.read(message, content.len() as u64, &mut chunk) {
            Ok(length @ 1..) => content.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            _ => break,
        }
    }
    String::from_utf8_lossy(&content).to_lowercase()
}
