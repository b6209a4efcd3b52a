//! Text as Perl holds it: characters, or bytes that stand for the first 256 of them.
//!
//! What is a blank or a letter depends on which of the two it is, and so does what rules see of it in the end.

use std::borrow::Cow;

/// A text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text {
    /// Its characters; of one that is not wide, none beyond U+00FF.
    pub(super) characters: String,
    /// Held as characters and not as bytes.
    pub(super) is_wide: bool,
}

impl Text {
    /// Bytes, one character each.
    pub(super) fn narrow(bytes: &[u8]) -> Text {
        let characters = match std::str::from_utf8(bytes) {
            Ok(text) if text.is_ascii() => text.to_owned(),
            _ => bytes.iter().copied().map(char::from).collect(),
        };
        Text { characters, is_wide: false }
    }

    /// Characters.
    pub(super) fn wide(characters: String) -> Text {
        Text { characters, is_wide: true }
    }

    /// Adds a text to its end.
    pub(super) fn push(&mut self, other: &Text) {
        self.characters.push_str(&other.characters);
        self.is_wide |= other.is_wide;
    }

    /// Bytes of the text as rules see them.
    pub(super) fn bytes(&self) -> Cow<'_, [u8]> {
        bytes(&self.characters, self.is_wide)
    }

    /// Cut off at `characters_max`, near it behind one of `stops` where one comes within 1,024 characters.
    pub(super) fn cut(&mut self, characters_max: usize, stops: &[char]) -> bool {
        if self.characters.len() <= characters_max {
            return false;
        }
        let Some((at, _)) = self.characters.char_indices().nth(characters_max) else { return false };
        let near: Vec<(usize, char)> = self.characters[at..].char_indices().take(1025).collect();
        let stop = stops.iter().find_map(|stop| near.iter().find(|(_, found)| found == stop));
        self.characters.truncate(stop.map_or(at, |(behind, stop)| at + behind + stop.len_utf8()));
        true
    }
}

/// Bytes of characters as rules see them.
pub(super) fn bytes(characters: &str, is_wide: bool) -> Cow<'_, [u8]> {
    if is_wide || characters.is_ascii() {
        return Cow::Borrowed(characters.as_bytes());
    }
    // A character beyond U+00FF is never in a narrow text.
    Cow::Owned(characters.chars().map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?')).collect())
}

/// Matches `\s`.
pub(super) fn is_space(character: char, is_wide: bool) -> bool {
    match character {
        '\t'..='\r' | ' ' => true,
        _ if character.is_ascii() || !is_wide => false,
        _ => matches!(
            character,
            '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        ),
    }
}

/// Matches `\w`.
pub(super) fn is_word(character: char, is_wide: bool) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric() || character == '_';
    }
    is_wide && character.is_alphanumeric()
}

/// Matches `\s` in bytes.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ')
}

/// Matches `\w` in bytes.
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Without blanks around it.
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    trim_end(trim_start(bytes))
}

/// Without blanks before it.
pub(super) fn trim_start(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    &bytes[blanks..]
}

/// Without blanks behind it.
pub(super) fn trim_end(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Whether it begins so, whatever the case.
pub(super) fn begins(bytes: &[u8], lower: &[u8]) -> bool {
    bytes.get(..lower.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(lower))
}

/// Where `lower` stands first from `from` on, whatever the case.
pub(super) fn find(bytes: &[u8], lower: &[u8], from: usize) -> Option<usize> {
    let first = *lower.first()?;
    let mut at = from;
    while let Some(found) = memchr::memchr2(first, first.to_ascii_uppercase(), bytes.get(at..)?) {
        if begins(&bytes[at + found..], lower) {
            return Some(at + found);
        }
        at += found + 1;
    }
    None
}

/// The lines of a text, each with its line feed.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
    let last = (!text.is_empty() && !text.ends_with(b"\n")).then_some(text.len());
    ends.chain(last).map(move |end| &text[std::mem::replace(&mut start, end)..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_behind_a_stop_that_is_near() {
        let mut text = Text::narrow(b"aaaa bb\ncc");
        assert!(!text.cut(10, &['\n']) && text.cut(5, &['\n', ' ']));
        assert_eq!(text.characters, "aaaa bb\n");
        let mut text = Text::wide("ééé".into());
        assert!(text.cut(1, &['\n']));
        assert_eq!(text.characters, "é");
    }

    #[test]
    fn what_rules_see_depends_on_how_a_text_is_held() {
        assert_eq!(Text::narrow(b"\xe9").bytes(), &b"\xe9"[..]);
        assert_eq!(Text::wide("é".into()).bytes(), &b"\xc3\xa9"[..]);
        assert!(is_space('\u{a0}', true) && !is_space('\u{a0}', false));
    }

    #[test]
    fn lines_end_with_their_line_feeds() {
        for text in ["", "a", "a\n", "\n", "a\n\nb", "\n\n"] {
            let expected: Vec<&[u8]> = text.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
            assert_eq!(lines(text.as_bytes()).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }
}
