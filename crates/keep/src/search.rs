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

/// Quotes that keyboards write.
const QUOTES: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];

/// Words of a search, each with the field that it is looked for in, if one was named.
pub struct Words(Vec<(Option<&'static str>, String)>);

impl Words {
    /// Reads at most `words_max` words, apart by blanks, and phrases in quotes; `from:`, `to:`, `cc:` and `subject:` name a field.
    pub fn new(text: &str, words_max: usize) -> Words {
        let (mut words, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() && words.len() < words_max {
            let (field, behind) = field(rest);
            let (word, behind) = phrase(behind).unwrap_or_else(|| {
                let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                behind.split_at(end)
            });
            rest = behind.trim_start();
            let word = word.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            words.extend(Some((field, word)).filter(|(_, word)| !word.is_empty()));
        }
        Words(words)
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

/// The field that a text begins with, and what is looked for in it.
fn field(text: &str) -> (Option<&'static str>, &str) {
    let (name, behind) = text.split_once(':').unwrap_or(("", text));
    let has_word = behind.starts_with(|c: char| !c.is_whitespace());
    match ["from", "to", "cc", "subject"].into_iter().find(|field| *field == name && has_word) {
        Some(field) => (Some(field), behind),
        None => (None, text),
    }
}

/// The phrase in quotes that a text begins with, and what follows.
fn phrase(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix(QUOTES)?.split_once(QUOTES)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_has_words_phrases_and_fields() {
        for (text, wanted) in [
            (" One  two ", "one|two"),
            ("\"has  Landed\" from:\"Jane Q\" x", "has landed|from=jane q|x"),
            ("\u{201c}a b\u{201d}c subject:d \"\"", "a b|c|subject=d"),
            ("from: \"half x to:", "from:|\"half|x|to:"),
            ("other:\"a b\"", "other:\"a|b\""),
        ] {
            let words = Words::new(text, 10);
            let shown =
                words.iter().map(|(field, word)| field.map_or(word.into(), |field| [field, "=", word].concat()));
            assert_eq!(shown.collect::<Vec<String>>().join("|"), wanted, "{text}");
        }
        assert_eq!(Words::new("a b c", 2).iter().count(), 2);
    }
}
