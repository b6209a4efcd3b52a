//! Composed characters (Unicode's forms C and KC): `e` with an accent behind it and `é` are the same, half and full width, ligatures and
//! letters; and texts without case.

use alloc::borrow::Cow;
use alloc::string::String;

use icu_normalizer::properties::CanonicalCompositionBorrowed;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// A text in the form C.
pub fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// Text in the form KC, character by character. Marks are joined to their letter in the order in which they come.
#[derive(Debug, Clone, Default)]
pub struct Composing {
    /// A character that the next one may be joined to.
    held: Option<char>,
}

impl Composing {
    /// Takes a character, and tells those that are complete.
    pub fn take(&mut self, character: char, tell: &mut impl FnMut(char)) {
        if stands_for_itself(character) {
            return self.join(character, tell);
        }
        let mut buffer = [0; 4];
        let others = ComposingNormalizerBorrowed::new_nfkc().normalize(character.encode_utf8(&mut buffer));
        others.chars().for_each(|character| self.join(character, tell));
    }

    fn join(&mut self, character: char, tell: &mut impl FnMut(char)) {
        let joined = |held| CanonicalCompositionBorrowed::new().compose(held, character);
        match self.held.filter(|_| character >= '\u{300}').and_then(joined) {
            Some(joined) => self.held = Some(joined),
            None => self.held.replace(character).into_iter().for_each(tell),
        }
    }

    /// Tells the last character.
    pub fn end(&mut self, tell: &mut impl FnMut(char)) {
        self.held.take().into_iter().for_each(tell);
    }
}

/// Whether a character is in a common block without any that have another form.
const fn stands_for_itself(character: char) -> bool {
    matches!(character,
        '\0'..='\u{9f}' | '\u{c0}'..='\u{131}' | '\u{14a}'..='\u{17e}' | '\u{180}'..='\u{1c3}' | '\u{400}'..='\u{52f}'
        | '\u{5d0}'..='\u{5ea}' | '\u{620}'..='\u{64a}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fe}' | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}')
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

    #[test]
    fn text_is_composed_character_by_character() {
        let of = |text: &str| {
            let (mut told, mut composing) = (String::new(), Composing::default());
            text.chars().for_each(|character| composing.take(character, &mut |character| told.push(character)));
            composing.end(&mut |character| told.push(character));
            told
        };
        let kc = |text: &str| ComposingNormalizerBorrowed::new_nfkc().normalize(text).into_owned();
        for text in [
            "e\u{301}tude",
            "\u{ff21}\u{ff22}c",
            "\u{ff76}\u{ff9e}\u{ff71}",
            "\u{1112}\u{1161}\u{11ab}",
            "e\u{323}\u{302}x",
            "\u{fb01}n\u{1d5d5} \u{212b}\u{2126}",
            "x\u{301}y",
            "",
            "abc \u{6f22}\u{5b57} gr\u{fc}n",
        ] {
            assert_eq!(of(text), kc(text), "{text}");
        }
        for character in ('\0'..=char::MAX).filter(|&character| stands_for_itself(character)) {
            assert_eq!(kc(character.encode_utf8(&mut [0; 4])), character.to_string());
        }
    }
}
