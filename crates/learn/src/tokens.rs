//! The words of a mail, collected, and the keys under which they are kept.

use std::collections::{HashMap, HashSet};

use pattern::expression::Expression;

use crate::expression::matches;
use crate::room::Room;

/// The key of a word: the last five bytes of its SHA-1, as SpamAssassin stores it.
pub type Key = [u8; 5];

/// Maximum number of words of one mail; further ones are left out.
pub const KEYS_MAX: usize = 32_768;

/// Maximum number of words of the visible and of the hidden text, each; beyond it no further line is read.
const BODY_WORDS_MAX: usize = 50_000;

/// Words that are taken of addresses, and of the header, each.
const OTHER_WORDS_MAX: usize = 10_000;

/// Settings of cutting mails, and the minimum of learned mails.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Words that match one of them say nothing (`bayes_stopword_...`).
    pub stop_words: Vec<Expression>,
    /// The longest word, in bytes; of longer ones the beginning counts (`bayes_max_token_length`).
    pub word_bytes_max: usize,
    /// Header fields that are not looked at, in lower case (`bayes_ignore_header`).
    pub ignored_fields: HashSet<Box<[u8]>>,
    /// Sources of words (`bayes_token_sources`).
    pub sources: Sources,
    /// Whether words count that were in one mail only (`bayes_use_hapaxes`).
    pub hapaxes: bool,
    /// Below so many mails of ham, nothing is asked (`bayes_min_ham_num`).
    pub ham_min: u64,
    /// Below so many mails of spam, nothing is asked (`bayes_min_spam_num`).
    pub spam_min: u64,
}

/// Sources of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// The header.
    pub header: bool,
    /// Visible text of the body.
    pub visible: bool,
    /// Invisible text of the body.
    pub invisible: bool,
    /// Addresses.
    pub uri: bool,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources { header: true, visible: true, invisible: true, uri: true }
    }
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            stop_words: Vec::new(),
            word_bytes_max: 15,
            ignored_fields: HashSet::new(),
            sources: Sources::default(),
            hapaxes: true,
            ham_min: 200,
            spam_min: 200,
        }
    }
}

/// The keys of a mail's words, each once, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens(Vec<Key>);

impl Tokens {
    /// The keys.
    pub fn keys(&self) -> &[Key] {
        &self.0
    }

    /// Sorts keys given in any order; beyond [`KEYS_MAX`] they are left out.
    pub fn of(mut keys: Vec<Key>) -> Tokens {
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(KEYS_MAX);
        Tokens(keys)
    }
}

/// Cuts a mail into words. Its parts may come in any order.
#[derive(Debug)]
pub struct Collector<'t> {
    pub(crate) terms: &'t Terms,
    keys: HashSet<Key>,
    pub(crate) room: &'t mut Room,
    /// Words that were looked for among the stop words.
    known: HashMap<Box<[u8]>, bool>,
    counts: [usize; 4],
}

/// Where a text is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Visible,
    Invisible,
    Uri,
    Header,
}

impl Region {
    const fn place(self) -> usize {
        match self {
            Region::Visible => 0,
            Region::Invisible => 1,
            Region::Uri => 2,
            Region::Header => 3,
        }
    }

    const fn words_max(self) -> usize {
        match self {
            Region::Visible | Region::Invisible => BODY_WORDS_MAX,
            Region::Uri | Region::Header => OTHER_WORDS_MAX,
        }
    }
}

impl<'t> Collector<'t> {
    /// Nothing is collected yet; the room is one for the stop words of these terms.
    pub fn new(terms: &'t Terms, room: &'t mut Room) -> Collector<'t> {
        Collector { terms, keys: HashSet::new(), room, known: HashMap::new(), counts: [0; 4] }
    }

    /// Takes a paragraph that a reader sees; the subject counts as a paragraph.
    pub fn visible(&mut self, line: &[u8]) {
        if self.terms.sources.visible {
            self.line(line, b"", Region::Visible);
        }
    }

    /// A paragraph that no reader sees.
    pub fn invisible(&mut self, line: &[u8]) {
        if self.terms.sources.invisible {
            self.line(line, b"I*:", Region::Invisible);
        }
    }

    /// An address, decoded.
    pub fn uri(&mut self, uri: &[u8]) {
        if self.terms.sources.uri {
            self.line(uri, b"", Region::Uri);
        }
    }

    /// Returns the collected tokens.
    pub fn finish(self) -> Tokens {
        Tokens::of(self.keys.into_iter().collect())
    }

    /// Returns whether this region has so many words that no further text is read.
    pub(crate) fn is_full(&self, region: Region) -> bool {
        self.counts[region.place()] >= region.words_max() || self.keys.len() >= KEYS_MAX
    }

    /// Adds a word with its prefix.
    pub(crate) fn take(&mut self, prefix: &[u8], word: &[u8], region: Region) {
        self.counts[region.place()] += 1;
        if !(prefix.is_empty() && word.is_empty()) {
            self.keys.insert(key(&[prefix, word].concat()));
        }
    }

    /// Returns whether a word is a stop word.
    pub(crate) fn is_stop_word(&mut self, word: &[u8]) -> bool {
        if self.terms.stop_words.is_empty() {
            return false;
        }
        if let Some(&known) = self.known.get(word) {
            return known;
        }
        let is_one = self.room.stop_words.iter_mut().any(|search| matches(search, word));
        self.known.insert(word.into(), is_one);
        is_one
    }
}

/// The key of a word.
pub(crate) fn key(word: &[u8]) -> Key {
    let [.., a, b, c, d, e] = digest::sha1::digest(word);
    [a, b, c, d, e]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_end_of_the_digest() {
        // SHA-1 of "abc" ends in 9cd0d89d.
        assert_eq!(key(b"abc"), [0x6c, 0x9c, 0xd0, 0xd8, 0x9d]);
    }

    #[test]
    fn a_mail_of_many_words_is_cut() {
        let terms = Terms::default();
        let mut room = Room::new(&terms.stop_words);
        let mut collector = Collector::new(&terms, &mut room);
        for number in 0..100_000 {
            collector.visible(format!("word{number}").as_bytes());
        }
        assert_eq!(collector.finish().keys().len(), KEYS_MAX);
    }
}
