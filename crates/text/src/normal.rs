//! Composed characters (Unicode's form C): `e` with an accent behind it and `é` are the same.

use alloc::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;

/// A text in the form C.
pub fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accent_becomes_a_part_of_its_letter() {
        assert_eq!(composed("cafe\u{301}"), "caf\u{e9}");
        assert!(matches!(composed("caf\u{e9} \u{6f22}"), Cow::Borrowed(_)));
    }
}
