//! Near-duplicates of mails: a sketch of a text, by its shingles.
//!
//! ```text
//! words    = runs of letters, in lower case; without those that have a digit, an @ or a ://
//! shingles = each three words in a row
//! sketch   = for each of 32 hash functions the least value of all shingles
//! ```
//!
//! The share of equal positions of two sketches estimates the share of common shingles (A. Broder, "On the resemblance
//! and containment of documents", 1997; min-wise hashing). A name, link or number that changes from copy to copy costs
//! three shingles. Short texts are similar by chance, so a text of fewer than [`WORDS_MIN`] different words, or of
//! fewer than [`BYTES_MIN`] letters in them, has no sketch.
//!
//! The hash is not secret: a sender can write a text that shares positions with another one, and only makes it look
//! like that one. Bounds: [`WORDS_MAX`] words of a mail.

use std::collections::HashSet;

/// Values of a sketch.
pub const PLACES: usize = 32;

/// Different words at the least.
pub const WORDS_MIN: usize = 24;

/// Letters in them at the least, in bytes.
pub const BYTES_MIN: usize = 120;

/// Words that are looked at.
pub const WORDS_MAX: usize = 20_000;

/// Words in a shingle.
const SHINGLE_WORDS: usize = 3;

/// The sketch of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    values: [u64; PLACES],
}

/// Takes texts, and makes their sketch.
#[derive(Debug, Default)]
pub struct Sketcher {
    words: Vec<u64>,
    different: HashSet<u64>,
    bytes: usize,
}

impl Sketcher {
    /// More of the text.
    pub fn take(&mut self, text: &[u8]) {
        for token in text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()) {
            let varies = |byte: &u8| byte.is_ascii_digit() || *byte == b'@';
            if token.iter().any(varies) || token.windows(3).any(|window| window == b"://") {
                continue;
            }
            for word in token.split(|byte| byte.is_ascii_punctuation() || byte.is_ascii_control()) {
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &[u8]) {
        if word.is_empty() || self.words.len() >= WORDS_MAX {
            return;
        }
        let hash = word.iter().fold(OFFSET, |hash, byte| step(hash, byte.to_ascii_lowercase()));
        if self.different.insert(hash) {
            self.bytes = self.bytes.saturating_add(word.len());
        }
        self.words.push(hash);
    }

    /// The sketch; none where there was too little text.
    pub fn finish(self) -> Option<Sketch> {
        if self.different.len() < WORDS_MIN || self.bytes < BYTES_MIN {
            return None;
        }
        let mut values = [u64::MAX; PLACES];
        for shingle in self.words.windows(SHINGLE_WORDS) {
            let joined = shingle.iter().fold(OFFSET, |hash, word| mixed(hash ^ word));
            let mut seed = OFFSET;
            for value in &mut values {
                seed = seed.wrapping_add(GOLDEN);
                *value = (*value).min(mixed(joined ^ seed));
            }
        }
        Some(Sketch { values })
    }
}

impl Sketch {
    /// A sketch of these values.
    pub fn of(values: [u64; PLACES]) -> Sketch {
        Sketch { values }
    }

    /// Its values, in their places.
    pub fn values(&self) -> &[u64; PLACES] {
        &self.values
    }

    /// In how many places two agree.
    pub fn likeness(&self, other: &Sketch) -> usize {
        self.values.iter().zip(&other.values).filter(|(one, other)| one == other).count()
    }
}

/// FNV-1a's, for words.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;
/// The golden ratio, for seeds.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(PRIME)
}

/// SplitMix64's finish: every bit of the input changes half of those of the output.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Dear Peter, our pharmacy offers the best prices of all for genuine pills without any prescription, shipped \
                        overnight to your door in discreet packages; order today from http://pills.example/a1 and save 70 percent \
                        on every repeated purchase you make during this month with promotion code XK42. Kind regards, Anna Miller";

    fn sketch(text: &str) -> Option<Sketch> {
        let mut sketcher = Sketcher::default();
        sketcher.take(text.as_bytes());
        sketcher.finish()
    }

    #[test]
    fn copies_with_other_names_links_and_numbers_are_alike_and_others_not() {
        let own = sketch(TEXT).unwrap();
        assert_eq!(sketch(&TEXT.to_uppercase()).unwrap(), own);
        assert_eq!(sketch(&TEXT.replace("70", "85").replace("/a1", "/zz9").replace("XK42", "PL77")).unwrap(), own);
        let changed = TEXT.replace("Peter", "Mary").replace("Anna Miller", "Bob Smith");
        assert!(own.likeness(&sketch(&changed).unwrap()) > 20);
        let other: String = TEXT.split(' ').rev().map(|word| word.to_owned() + " ").collect();
        assert!(own.likeness(&sketch(&other).unwrap()) < 3, "the same words in another order");
    }

    #[test]
    fn however_the_text_comes_the_sketch_is_the_same() {
        let own = sketch(TEXT);
        for (at, _) in TEXT.match_indices(' ') {
            let mut sketcher = Sketcher::default();
            sketcher.take(&TEXT.as_bytes()[..at]);
            sketcher.take(&TEXT.as_bytes()[at..]);
            assert_eq!(sketcher.finish(), own, "{at}");
        }
    }

    #[test]
    fn short_and_repeated_texts_have_none() {
        assert_eq!(sketch("buy now"), None);
        assert_eq!(sketch(&"buy now while it lasts ".repeat(100)), None);
        assert_eq!(sketch(&"1234 a@b.example http://x.example ".repeat(100)), None);
        assert!(sketch(&"word ".repeat(10)).is_none() && sketch(&TEXT.repeat(2_000)).is_some());
    }
}
