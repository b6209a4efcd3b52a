//! The words of one text.
//!
//! Letters, digits and a few signs are kept, all else is a blank; runs of dots and dashes between letters stand alone; the
//! beginning of a sentence is written small in bodies. Then each word is taken whole, and in those forms that it may have
//! elsewhere: without signs, in small letters, a domain by each of its ends.

use crate::tokens::{Collector, Region};

/// Shorter words are left out.
const WORD_BYTES_MIN: usize = 3;

/// Letters that are kept of a word that is too long.
const KEPT_LETTERS: usize = 7;

impl Collector<'_> {
    /// Takes the words of a text, `prefix` before each.
    pub(crate) fn line(&mut self, text: &[u8], prefix: &[u8], region: Region) {
        if self.is_full(region) {
            return;
        }
        let mut text = apart(&apart(&plain(text), b'.', 3), b'-', 2);
        if region != Region::Header {
            text = without_titles(&text);
        }
        for word in text.split(|&byte| byte == b' ') {
            self.word(trimmed(word), prefix, region);
        }
    }

    fn word(&mut self, word: &[u8], prefix: &[u8], region: Region) {
        if word.len() < WORD_BYTES_MIN || self.is_stop_word(word) {
            return;
        }
        let in_body = region != Region::Header;
        if in_body && is_within(word, |sign| sign == b'@', |_| true) {
            addresses(word, |part| self.take(b"", part, region));
        } else if in_body && is_within(word, |sign| sign == b'.', |byte| byte.is_ascii_alphabetic()) {
            let mut rest = Some(word);
            while let Some(domain) = rest {
                self.take(b"UD:", domain, region);
                rest = behind_label(domain);
            }
        }
        let mut shortened = None;
        if word.len() > self.terms.word_bytes_max && !word.contains(&b'*') {
            if self.long_letters(word, prefix, region) {
                return;
            }
            shortened = if region == Region::Uri { None } else { beginning(word) };
        }
        let word = shortened.as_deref().unwrap_or(word);
        if in_body {
            self.decomposed(word, prefix, region);
        }
        self.take(prefix, word, region);
    }

    /// A long word in letters of three or four bytes is taken letter by letter; whether it is one.
    fn long_letters(&mut self, word: &[u8], prefix: &[u8], region: Region) -> bool {
        if !word.windows(2).any(|two| two.iter().all(|byte| is_continuation(*byte))) {
            return false;
        }
        let (mut at, mut is_one) = (0, false);
        while let Some(rest) = word.get(at..).filter(|rest| !rest.is_empty()) {
            match letter(rest) {
                length @ (3 | 4) => {
                    self.take(&[prefix, b"u8:"].concat(), &rest[..length], region);
                    (at, is_one) = (at + length, true);
                }
                _ => at += 1,
            }
        }
        is_one
    }

    /// A word without signs, and in small letters.
    fn decomposed(&mut self, word: &[u8], prefix: &[u8], region: Region) {
        let is_sign = |byte: &u8| !is_word_byte(*byte) && *byte != b':' && *byte != b'*';
        let has_signs = word.iter().any(is_sign);
        let without = |word: &[u8]| word.iter().copied().filter(|byte| !is_sign(byte)).collect::<Vec<u8>>();
        if has_signs {
            self.take(prefix, &without(word), region);
        }
        if word.iter().any(u8::is_ascii_uppercase) {
            let small = word.to_ascii_lowercase();
            self.take(prefix, &small, region);
            if has_signs {
                self.take(prefix, &without(&small), region);
            }
        }
    }
}

/// Splits a mail address: local part, and the domain by each of its suffixes.
pub(crate) fn addresses(word: &[u8], mut take: impl FnMut(&[u8])) {
    let Some(last) = word.len().checked_sub(1) else { return };
    // Something stands on both sides of the sign.
    let Some(at) = word[..last].iter().rposition(|&byte| byte == b'@').filter(|&at| at > 0) else { return };
    take(&[b"U*", &word[..at]].concat());
    let mut rest = Some(&word[at + 1..]);
    while let Some(domain) = rest {
        take(&[b"D*", domain].concat());
        rest = behind_label(domain);
    }
}

/// The part of a domain after its first label, if it has two.
fn behind_label(domain: &[u8]) -> Option<&[u8]> {
    let dot = domain.iter().position(|&byte| byte == b'.')?;
    domain.get(dot + 1..).filter(|rest| dot > 0 && !rest.is_empty())
}

/// Whether a sign stands behind a byte and before one that fits.
fn is_within(word: &[u8], is_sign: impl Fn(u8) -> bool, fits: impl Fn(u8) -> bool) -> bool {
    word.windows(3).any(|three| is_sign(three[1]) && fits(three[2]))
}

/// Replaces all but letters by blanks; letters beyond ASCII are kept whole, as UTF-8 or as a byte.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let length = letter(rest);
        match () {
            () if is_kept(byte) => out.push(byte),
            () if length > 1 => out.extend_from_slice(&rest[..length]),
            () if byte >= 0xa1 => out.push(byte),
            () => out.push(b' '),
        }
        rest = &rest[length..];
    }
    out
}

fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b",@*!_'\"$. -".contains(&byte)
}

fn is_continuation(byte: u8) -> bool {
    (0x80..=0xbf).contains(&byte)
}

pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// How long the letter is that begins a text, if it has the form of UTF-8; else 1.
fn letter(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return 1,
    };
    let is_whole = text.get(1..length).is_some_and(|rest| rest.iter().all(|byte| is_continuation(*byte)));
    if is_whole { length } else { 1 }
}

/// Runs of a sign, of `least` to six, with blanks around them where they stand between letters.
fn apart(text: &[u8], sign: u8, least: usize) -> Vec<u8> {
    const MOST: usize = 6;
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let run = text[at + 1..].iter().take_while(|&&byte| byte == sign).count();
        let behind = text.get(at + 1 + run).copied().filter(|byte| is_word_byte(*byte));
        out.push(byte);
        at += 1;
        if let Some(behind) = behind
            && is_word_byte(byte)
            && (least..=MOST).contains(&run)
        {
            out.push(b' ');
            out.extend(std::iter::repeat_n(sign, run));
            out.extend([b' ', behind]);
            at += run + 1;
        }
    }
    out
}

/// Without capital letters that begin a sentence in which no other stands, up to its last blank.
fn without_titles(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let begin = match byte {
            _ if at == 0 && byte.is_ascii_uppercase() => Some(0),
            b'.' => {
                let blanks = text[at + 1..].iter().take_while(|&&byte| byte == b' ').count();
                Some(at + 1 + blanks).filter(|_| blanks > 0)
            }
            _ => None,
        };
        match begin.and_then(|begin| Some((begin, title_end(text, begin)?))) {
            Some((begin, end)) => {
                out.push(b' ');
                out.push(text[begin].to_ascii_lowercase());
                out.extend_from_slice(&text[begin + 1..end]);
                out.push(b' ');
                at = (end + 1).min(text.len());
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Returns the end of a title that begins with a capital letter: the last blank before the next title, or the end of
/// the text.
fn title_end(text: &[u8], begin: usize) -> Option<usize> {
    if !text.get(begin)?.is_ascii_uppercase() {
        return None;
    }
    let rest = &text[begin + 1..];
    let run = rest.iter().take_while(|byte| !byte.is_ascii_uppercase()).count();
    if run == rest.len() {
        return (run > 0).then_some(text.len());
    }
    let blank = rest[..run].iter().rposition(|&byte| byte == b' ').filter(|&blank| blank > 0)?;
    Some(begin + 1 + blank)
}

fn trimmed(word: &[u8]) -> &[u8] {
    let is_edge = |byte: &u8| b"-'\".,".contains(byte);
    let start = word.iter().take_while(|byte| is_edge(byte)).count();
    let rest = &word[start..];
    let end = rest.iter().rev().take_while(|byte| is_edge(byte)).count();
    &rest[..rest.len() - end]
}

/// The beginning of a word that is too long, marked as one; none where too little is left out.
fn beginning(word: &[u8]) -> Option<Vec<u8>> {
    let mut at = 0;
    for _ in 0..KEPT_LETTERS {
        at += letter(word.get(at..).filter(|rest| !rest.is_empty())?);
    }
    (word.len() >= at + 2).then(|| [b"sk:", &word[..at]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn what_is_no_word_is_a_blank() {
        assert_eq!(text(plain("a:b\u{e9}\n<c>\u{20ac}".as_bytes())), "a b\u{e9}  c \u{20ac}");
        assert_eq!(plain(b"\x80\xa0\xa1\xc3"), b"  \xa1\xc3");
    }

    #[test]
    fn runs_of_signs_stand_alone() {
        for (given, wanted) in
            [("a...b...c", "a ... b...c"), ("a..b", "a..b"), ("a.......b", "a.......b"), ("...b", "...b")]
        {
            assert_eq!(text(apart(given.as_bytes(), b'.', 3)), wanted);
        }
        assert_eq!(text(apart(b"a--b", b'-', 2)), "a -- b");
    }

    #[test]
    fn the_beginning_of_a_sentence_is_written_small() {
        for (given, wanted) in [
            ("Hello world. Foo bar", " hello world. Foo bar"),
            ("Hello", " hello "),
            ("HELLO there", "HELLO there"),
            ("see. This is it", "see this is it "),
            ("see. This is It", "see this is It"),
            ("A", "A"),
        ] {
            assert_eq!(text(without_titles(given.as_bytes())), wanted, "{given}");
        }
    }

    #[test]
    fn long_words_are_cut_after_seven_letters() {
        assert_eq!(beginning(b"abcdefghi").as_deref(), Some(&b"sk:abcdefg"[..]));
        assert_eq!(beginning(b"abcdefgh"), None);
        assert_eq!(beginning("\u{e9}bcdefghi".as_bytes()), Some("sk:\u{e9}bcdefg".as_bytes().to_vec()));
    }

    #[test]
    fn addresses_and_domains_are_taken_by_their_ends() {
        let mut parts = Vec::new();
        addresses(b"a@b@mail.example.org", |part| parts.push(text(part.to_vec())));
        assert_eq!(parts, ["U*a@b", "D*mail.example.org", "D*example.org", "D*org"]);
        assert_eq!(behind_label(b".org"), None);
        addresses(b"@b", |_| panic!("nobody"));
        addresses(b"", |_| panic!("nobody"));
    }
}
