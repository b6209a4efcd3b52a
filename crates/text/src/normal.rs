//! Composed characters (Unicode's form C): `e` with an accent behind it and `é` are the same; and texts without case.

use alloc::borrow::Cow;
use alloc::string::String;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// A text in the form C.
pub fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// A text as `i;unicode-casemap` compares it (RFC 5051): each letter as a capital where that is one letter, then decomposed.
pub fn caseless(text: &str) -> String {
    let capitals: String = text.chars().map(capital).collect();
    DecomposingNormalizerBorrowed::new_nfkd().normalize(&capitals).into_owned()
}

/// The capital of a letter; itself if that is no single letter.
pub fn capital(letter: char) -> char {
    let mut capitals = letter.to_uppercase();
    match (capitals.next(), capitals.next()) {
        (Some(capital), None) => capital,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accent_becomes_a_part_of_its_letter() {
        assert_eq!(composed("cafe\u{301}"), "caf\u{e9}");
        assert_eq!(caseless("J\u{f6}rg \u{ff2d}\u{df}"), caseless("JO\u{308}RG m\u{df}"));
        assert_ne!(caseless("J\u{f6}rg"), caseless("Jorg"));
        assert!(matches!(composed("caf\u{e9} \u{6f22}"), Cow::Borrowed(_)));
    }
}
