//! Lists of tags, `name=value; ...` (RFC 6376 section 3.2): signatures, seals, keys and policies are written so.
//!
//! Bounds: [`TAGS_MAX`] tags. A list with more, with a name twice or with a tag that is none is malformed.

use core::ops::Range;

/// The most tags of a list.
pub const TAGS_MAX: usize = 64;

/// A list of tags, whose names and values lie in its text.
#[derive(Debug, Clone)]
pub struct Tags<'a> {
    text: &'a [u8],
    tags: Vec<(&'a str, Range<usize>)>,
}

impl<'a> Tags<'a> {
    /// Reads a list; none if it is malformed. The last tag may have a semicolon behind it.
    pub fn parse(text: &'a [u8]) -> Option<Tags<'a>> {
        let mut tags: Vec<(&str, Range<usize>)> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let len = memchr::memchr(b';', &text[at..]).unwrap_or(text.len() - at);
            let end = at + len;
            let tag = &text[at..end];
            if is_blank(tag) && end >= text.len() && !tags.is_empty() {
                break;
            }
            let equals = memchr::memchr(b'=', tag)?;
            let name = core::str::from_utf8(trimmed(&tag[..equals])).ok()?;
            if !is_name(name) || tags.len() >= TAGS_MAX || tags.iter().any(|(known, _)| *known == name) {
                return None;
            }
            tags.push((name, at + equals + 1..end));
            at = end + 1;
        }
        (!tags.is_empty()).then_some(Tags { text, tags })
    }

    /// Where the value of a tag is, white space around it included.
    pub fn range(&self, name: &str) -> Option<Range<usize>> {
        self.tags.iter().find(|(known, _)| *known == name).map(|(_, range)| range.clone())
    }

    /// A value without white space around it.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.range(name).map(|range| trimmed(&self.text[range]))
    }

    /// Returns a value as text; an invalid one as empty.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).map(|value| core::str::from_utf8(value).unwrap_or(""))
    }

    /// The name of the first tag.
    pub fn first(&self) -> Option<&'a str> {
        self.tags.first().map(|(name, _)| *name)
    }

    /// A value that is a list of its own, split at colons.
    pub fn list(&self, name: &str) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
        self.text(name).map(|value| value.split(':').map(|item| item.trim_matches(is_white)))
    }

    /// Decodes a value in Base64, with white space ignored; `Some(None)` if it is invalid.
    pub fn base64(&self, name: &str) -> Option<Option<Vec<u8>>> {
        self.get(name).map(base64)
    }

    /// Parses a number; `Some(None)` if it is invalid. Larger numbers saturate.
    pub fn number(&self, name: &str) -> Option<Option<u64>> {
        self.text(name).map(|text| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().unwrap_or(u64::MAX))
        })
    }
}

/// The bytes that Base64 with white space in it stands for; none if it is not Base64, or of nothing.
pub fn base64(value: &[u8]) -> Option<Vec<u8>> {
    let mut characters: Vec<u8> = value.iter().copied().filter(|&byte| !is_white(byte.into())).collect();
    let padding = characters.iter().rev().take_while(|&&byte| byte == b'=').count();
    characters.truncate(characters.len() - padding);
    let fits = padding <= 2 && characters.len() % 4 != 1 && !characters.is_empty();
    text::base64::decode(characters).filter(|_| fits)
}

fn is_white(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

fn is_blank(text: &[u8]) -> bool {
    trimmed(text).is_empty()
}

fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_values() {
        let tags = Tags::parse(b" v=1;\r\n h = from : to ;b= YQ =\r\n =; x=").unwrap();
        assert_eq!(
            (tags.text("v"), tags.first(), tags.text("x"), tags.text("z")),
            (Some("1"), Some("v"), Some(""), None)
        );
        assert_eq!(tags.list("h").unwrap().collect::<Vec<_>>(), ["from", "to"]);
        assert_eq!(tags.base64("b"), Some(Some(b"a".to_vec())));
        assert_eq!((tags.number("v"), tags.number("x")), (Some(Some(1)), Some(None)));
        assert!(Tags::parse(b"a=1;").is_some() && Tags::parse(b"a=1; \r\n").is_some());
        for text in [&b""[..], b";", b"a", b"a=1;;b=2", b"a=1;a=2", b"=1", b"1=2", b"a b=1", &b"a=1;".repeat(65)] {
            assert!(Tags::parse(text).is_none(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn base64_that_is_none_is_told() {
        for text in ["", "=", "a", "abc*", "YQ===", "YWJj="] {
            let is_padded_well = text == "YWJj=";
            assert_eq!(base64(text.as_bytes()).is_some(), is_padded_well, "{text}");
        }
    }
}
