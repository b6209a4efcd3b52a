//! Names of members, from the bytes that archives hold to text.
//!
//! Callers bound the bytes they keep; what is not text in the charset tried becomes U+FFFD or the next charset's view.

use text::code_page::CodePage;
use text::utf16::{Endian, decode};

/// UTF-8 if it is that, else each byte as the character of its number, as gzip's headers are defined.
pub(crate) fn utf8_or_latin1(bytes: &[u8]) -> Box<str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
    }
}

/// UTF-8 if it is that, else with replacement characters.
pub(crate) fn utf8_lossy(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// UTF-16, least byte first.
pub(crate) fn utf16_le(bytes: &[u8]) -> Box<str> {
    decode(bytes, Endian::Little).into()
}

/// UTF-16, greatest byte first.
pub(crate) fn utf16_be(bytes: &[u8]) -> Box<str> {
    decode(bytes, Endian::Big).into()
}

/// The beginning of a name, of so many bytes at most.
pub(crate) fn cut(name: &str, bytes_max: usize) -> Box<str> {
    let mut end = name.len().min(bytes_max);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].into()
}

/// UTF-8 if it is that, else code page 437, as zip's names are defined.
pub(crate) fn utf8_or_cp437(bytes: &[u8]) -> Box<str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => CodePage::IBM437.decode(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_utf8_is_code_page_437() {
        assert_eq!(&*utf8_or_cp437(b"l\x84sser\xff"), "lässer\u{a0}");
    }
}
