//! `tflags NAME word...`: how a rule is run and counted.

use super::words;

/// The flags of a rule. A later line replaces them all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    words: Box<[u8]>,
}

impl Flags {
    /// Takes the words as they stand; a word that nobody knows has no effect.
    pub fn read(text: &[u8]) -> Flags {
        Flags { words: text.into() }
    }

    /// Adds words to those that are there.
    pub fn add(&mut self, text: &[u8]) {
        let blank: &[u8] = if self.words.is_empty() { b"" } else { b" " };
        self.words = [&self.words, blank, text].concat().into();
    }

    /// Whether one of them is `flag`.
    pub fn has(&self, flag: &str) -> bool {
        words(&self.words).any(|word| word == flag.as_bytes())
    }

    /// The value of `flag=value`.
    pub fn value(&self, flag: &str) -> Option<&[u8]> {
        words(&self.words).find_map(|word| word.strip_prefix(flag.as_bytes())?.strip_prefix(b"="))
    }

    /// How many hits are counted: one, or with `multiple` as many as there are, up to `maxhits=N`.
    pub fn hits_max(&self) -> u32 {
        if !self.has("multiple") {
            return 1;
        }
        let limit = self.value("maxhits").and_then(|value| core::str::from_utf8(value).ok()?.parse().ok());
        limit.filter(|&limit| limit > 0).unwrap_or(u32::MAX)
    }

    /// The words that are not in [`KNOWN`].
    pub fn unknown(&self) -> impl Iterator<Item = &[u8]> {
        words(&self.words).filter(|word| {
            let name = word.split(|&byte| byte == b'=').next().unwrap_or(word);
            !KNOWN.iter().any(|known| known.as_bytes() == name)
        })
    }

    /// As they stand.
    pub fn as_bytes(&self) -> &[u8] {
        &self.words
    }
}

/// The flags that mean something to SpamAssassin or to its rules' authors.
pub const KNOWN: [&str; 24] = [
    "net",
    "nice",
    "userconf",
    "learn",
    "noautolearn",
    "autolearn_force",
    "autolearn_header",
    "autolearn_body",
    "noawl",
    "multiple",
    "maxhits",
    "nosubject",
    "notrim",
    "ips_only",
    "domains_only",
    "ns",
    "a",
    "nolog",
    "publish",
    "nopublish",
    "range",
    "concat",
    "lang",
    "noreturn",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_counted_as_far_as_it_says() {
        let hits = |text: &str| Flags::read(text.as_bytes()).hits_max();
        assert_eq!(hits("nice maxhits=3"), 1);
        assert_eq!(hits("multiple"), u32::MAX);
        assert_eq!(hits("multiple  maxhits=3"), 3);
        assert_eq!(hits("multiple maxhits=x"), u32::MAX);
        assert_eq!(Flags::read(b"nice whatever net").unknown().collect::<Vec<_>>(), [b"whatever"]);
    }
}
