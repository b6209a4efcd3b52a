//! Base64 (RFC 4648, section 4).
//!
//! Known wrongs, on purpose: an incomplete last quantum counts whatever its padding, and leftover bits are dropped, as
//! lenient readers do.

use alloc::string::String;
use alloc::vec::Vec;

/// The characters, by the six bits that each stands for.
pub const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The six bits that a character of [`ALPHABET`] stands for.
pub const fn value(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// The bytes that characters stand for; nothing if one is not of the alphabet. Padding is not: callers end in front of it,
/// or pass it over.
pub fn decode(characters: impl IntoIterator<Item = u8>) -> Option<Vec<u8>> {
    let characters = characters.into_iter();
    let mut bytes = Vec::with_capacity(characters.size_hint().0 / 4 * 3);
    let (mut word, mut bits) = (0u32, 0);
    for character in characters {
        (word, bits) = (word << 6 | u32::from(value(character)?), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Some(bytes)
}

/// Decodes a text; characters outside of the alphabet, padding included, are skipped.
pub fn decode_loosely(text: &str) -> Vec<u8> {
    decode(text.bytes().filter(|&byte| value(byte).is_some())).unwrap_or_default()
}

/// Bytes in Base64, padded, in one line.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, at| word << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_vectors_of_the_rfc_agree() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text.bytes().filter(|&byte| byte != b'=')).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn what_is_not_of_the_alphabet_is_not_decoded() {
        for text in ["Zg==", "Z g", "Zm9v-_", "Zm9v\n"] {
            assert_eq!(decode(text.bytes()), None, "{text}");
        }
        assert_eq!(decode_loosely("<Z g=\n=>"), b"f");
        assert_eq!(decode(*b"Z"), Some(Vec::new()), "six bits make no byte");
    }

    #[test]
    fn each_character_of_the_alphabet_has_its_place_as_value() {
        for byte in 0..=u8::MAX {
            let place = ALPHABET.iter().position(|&one| one == byte);
            assert_eq!(value(byte).map(usize::from), place);
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_comes_back(bytes: Vec<u8>) {
            let text = encode(&bytes);
            prop_assert_eq!(text.len() % 4, 0);
            prop_assert_eq!(decode(text.trim_end_matches('=').bytes()), Some(bytes));
        }
    }
}
