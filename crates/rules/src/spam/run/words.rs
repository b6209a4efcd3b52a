//! Many short strings in one pass: which of them stand in a text, and where.
//!
//! The plain way: compare every string with every place. Instead each string is known by its rarest four bytes in a row (three
//! or two where it has no more); a bitmap of these says "no" to nearly all places, a small table to most of the rest, and only
//! then is compared.

use memchr::memmem::Finder;
use pattern::expression::rarest_gram;

/// Where strings have their gram, by how many bytes it has.
#[derive(Debug, Default)]
pub(super) struct Words {
    bytes: Vec<u8>,
    /// Offset of the bytes of each string; one more at the end.
    starts: Vec<u32>,
    /// Strings with grams of two, three and four bytes.
    grams: [Grams; 3],
    /// A bit for each two bytes with which a gram of two or three begins.
    pairs: Vec<u64>,
    /// Searchers for single strings, if there are few.
    few: Vec<Finder<'static>>,
}

/// So few strings are looked for one after the other, which vectors do.
const FEW_MAX: usize = 4;

/// Strings by grams of one length.
#[derive(Debug, Default)]
struct Grams {
    /// A bit for each hash of a gram that there is.
    bits: Vec<u64>,
    /// Shift that reduces a hash to its bit.
    shift: u32,
    /// Index of the first string among `entries` for each set bit, in order: first by words of `bits`.
    ranks: Vec<u32>,
    firsts: Vec<u32>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    gram: u32,
    word: u32,
    /// Where in the string the gram stands.
    offset: u32,
    /// Up to four bytes after the gram in the string, and a mask of those that count.
    behind: u32,
    mask: u32,
}

impl Entry {
    fn new(number: u32, word: &[u8]) -> Entry {
        let length = word.len().min(GRAM_MAX);
        let offset = rarest_gram(word, length);
        let end = offset + length;
        let behind = &word[end..word.len().min(end + 4)];
        let mask = u32::MAX.checked_shr(32 - 8 * behind.len() as u32).unwrap_or(0);
        Entry { gram: gram(&word[offset..end]), word: number, offset: offset as u32, behind: gram(behind), mask }
    }

    /// Whether the string may stand where its gram does, by what stands behind that; at the end of a text nobody looks.
    fn goes_on(&self, behind: Option<u32>) -> bool {
        behind.is_none_or(|behind| (behind ^ self.behind) & self.mask == 0)
    }
}

/// The most bytes of a gram.
const GRAM_MAX: usize = 4;

/// Words that have a bit for each two bytes.
const PAIR_WORDS: usize = 1 << 10;

/// Zeros that stand behind a text, so that four bytes can be read everywhere.
pub(super) const PADDING: usize = 3;

impl Words {
    /// The table of the strings, which are known by their places from here on. They have two bytes or more.
    pub(super) fn new(words: &[&[u8]]) -> Words {
        let mut table = Words { starts: vec![0], ..Words::default() };
        let mut entries: [Vec<Entry>; 3] = Default::default();
        for (number, word) in (0..).zip(words) {
            table.bytes.extend_from_slice(word);
            table.starts.push(table.bytes.len() as u32);
            let length = word.len().min(GRAM_MAX);
            if length >= 2 {
                entries[length - 2].push(Entry::new(number, word));
            }
        }
        if words.len() <= FEW_MAX {
            table.few = words.iter().map(|word| Finder::new(word).into_owned()).collect();
            return table;
        }
        table.pairs = vec![0; PAIR_WORDS];
        for entry in entries[..2].iter().flatten() {
            let pair = (entry.gram & 0xffff) as usize;
            table.pairs[pair / 64] |= 1 << (pair % 64);
        }
        table.grams = entries.map(Grams::new);
        table
    }

    /// How many strings there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn word(&self, word: u32) -> &[u8] {
        let place = word as usize;
        &self.bytes[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// Tells every place of every string, by its number and where it begins. Behind the text are [`PADDING`] zeros, in which
    /// none begins.
    pub(super) fn find(&self, padded: &[u8], mut found: impl FnMut(u32, usize)) {
        if !self.few.is_empty() {
            let text = &padded[..padded.len().saturating_sub(PADDING)];
            for (word, finder) in (0..).zip(&self.few) {
                let mut from = 0;
                while let Some(at) = text.get(from..).and_then(|rest| finder.find(rest)) {
                    found(word, from + at);
                    from += at + 1;
                }
            }
            return;
        }
        let [two, three, four] = &self.grams;
        let pairs = self.pairs.first_chunk::<PAIR_WORDS>().unwrap_or(&[0; PAIR_WORDS]);
        for (at, window) in padded.windows(PADDING + 1).enumerate() {
            let Some(bytes) = window.first_chunk() else { continue };
            let gram = u32::from_le_bytes(*bytes);
            let pair = (gram & 0xffff) as usize;
            if pairs[pair / 64] >> (pair % 64) & 1 != 0 {
                for (grams, gram) in [(two, gram & 0xffff), (three, gram & 0x00ff_ffff)] {
                    if grams.may_have(gram) {
                        self.entries(grams, gram, at, padded, &mut found);
                    }
                }
            }
            if four.may_have(gram) {
                self.entries(four, gram, at, padded, &mut found);
            }
        }
    }

    /// Tells the strings that have the gram that stands at `at`, and whose bit is set.
    fn entries(&self, grams: &Grams, gram: u32, at: usize, padded: &[u8], found: &mut impl FnMut(u32, usize)) {
        let behind = padded.get(at + GRAM_MAX..).and_then(<[u8]>::first_chunk).map(|bytes| u32::from_le_bytes(*bytes));
        for entry in grams.entries_of(gram).filter(|entry| entry.goes_on(behind)) {
            let Some(start) = at.checked_sub(entry.offset as usize) else { continue };
            if padded[start..].starts_with(self.word(entry.word)) {
                found(entry.word, start);
            }
        }
    }
}

impl Grams {
    fn new(mut entries: Vec<Entry>) -> Grams {
        if entries.is_empty() {
            return Grams::default();
        }
        // About one bit in eighty is set.
        let bits = (entries.len() * 64).next_power_of_two().clamp(64, 1 << 20);
        let mut grams = Grams { bits: vec![0; bits / 64], shift: 32 - bits.trailing_zeros(), ..Grams::default() };
        entries.sort_by_key(|entry| (grams.hash(entry.gram), entry.gram, entry.word));
        for entry in &entries {
            let hash = grams.hash(entry.gram);
            grams.bits[hash / 64] |= 1 << (hash % 64);
        }
        let mut sum = 0;
        for word in &grams.bits {
            grams.ranks.push(sum);
            sum += word.count_ones();
        }
        let mut last = usize::MAX;
        for (place, entry) in (0..).zip(&entries) {
            let hash = grams.hash(entry.gram);
            if hash != last {
                grams.firsts.push(place);
                last = hash;
            }
        }
        grams.firsts.push(entries.len() as u32);
        grams.entries = entries;
        grams
    }

    #[inline]
    fn hash(&self, gram: u32) -> usize {
        (gram.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    #[inline]
    fn may_have(&self, gram: u32) -> bool {
        let hash = self.hash(gram);
        self.bits.get(hash / 64).is_some_and(|word| word >> (hash % 64) & 1 != 0)
    }

    /// The entries of a gram whose bit is set.
    fn entries_of(&self, gram: u32) -> impl Iterator<Item = &Entry> {
        let hash = self.hash(gram);
        let below = self.bits[hash / 64] & ((1 << (hash % 64)) - 1);
        let rank = (self.ranks[hash / 64] + below.count_ones()) as usize;
        let entries = &self.entries[self.firsts[rank] as usize..self.firsts[rank + 1] as usize];
        entries.iter().filter(move |entry| entry.gram == gram)
    }
}

/// At most four bytes as a number, the first lowest.
fn gram(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |gram, &byte| gram << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(words: &[&str], text: &str) -> Vec<(u32, usize)> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let padded = [text.as_bytes(), &[0; PADDING]].concat();
        let mut found = Vec::new();
        Words::new(&words).find(&padded, |word, at| found.push((word, at)));
        found.sort_unstable();
        found
    }

    #[test]
    fn strings_of_all_lengths_are_found_wherever_they_stand() {
        let words = ["ab", "abc", "abcd", "bcdef", "viagra", "ra"];
        assert_eq!(places(&words, "abcdef"), [(0, 0), (1, 0), (2, 0), (3, 1)]);
        assert_eq!(places(&words, "viagra"), [(4, 0), (5, 4)]);
        assert_eq!(places(&words, "viagr"), []);
        assert_eq!(places(&words, "abab"), [(0, 0), (0, 2)]);
        assert_eq!(places(&words, ""), []);
        assert_eq!(places(&[], "abc"), []);
        assert_eq!(places(&["aa", "ab"], "aaab\0"), [(0, 0), (0, 1), (1, 2)], "few are told as many are");
    }

    #[test]
    fn it_finds_what_comparing_finds() {
        // All strings of two to five letters of three, in a text of all of them.
        let mut words = vec![String::new()];
        for length in 1..=5 {
            let longer: Vec<String> = words
                .iter()
                .filter(|word| word.len() == length - 1)
                .flat_map(|word| ["a", "b", "c"].map(|letter| word.clone() + letter))
                .collect();
            words.extend(longer);
        }
        words.retain(|word| word.len() >= 2);
        let text: String = words.iter().step_by(7).map(String::as_str).collect();
        let all: Vec<&str> = words.iter().map(String::as_str).collect();
        let plain = |word: &str| (0..text.len()).filter(|&at| text[at..].starts_with(word)).collect::<Vec<_>>();
        let expected: Vec<(u32, usize)> =
            (0..).zip(&all).flat_map(|(number, word)| plain(word).into_iter().map(move |at| (number, at))).collect();
        assert_eq!(places(&all, &text), expected);
    }
}
