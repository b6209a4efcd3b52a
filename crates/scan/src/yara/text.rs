//! Strings of YARA rules in text, with their modifiers.
//!
//! After the YARA manual, "Text strings": each string is looked for in every form that its modifiers ask for. Base64
//! makes three of it, for the three places in a group where it can begin; `xor` one for each key.

use pattern::Piece;
use text::base64::ALPHABET;

use crate::syntax::class;
use crate::syntax::line::Reject;

/// Modifiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Modifiers {
    pub(crate) caseless: bool,
    pub(crate) wide: bool,
    pub(crate) ascii: bool,
    pub(crate) fullword: bool,
    /// The least and the greatest key.
    pub(crate) xor: Option<(u8, u8)>,
    pub(crate) base64: bool,
    pub(crate) base64_wide: bool,
    /// The alphabet of Base64, if it is another.
    pub(crate) alphabet: Option<Vec<u8>>,
}

impl Modifiers {
    /// Whether the bytes are looked for as they stand; they are if nothing else is asked for.
    fn is_plain(&self) -> bool {
        self.ascii || !self.wide
    }

    /// The forms of a text, as parts.
    pub(crate) fn forms(&self, text: &[u8]) -> Result<Vec<Vec<Piece>>, Reject> {
        if text.is_empty() {
            return Err(Reject::Malformed("an empty text".to_owned()));
        }
        if self.base64 || self.base64_wide {
            return self.in_base64(text);
        }
        let (first, last) = self.xor.unwrap_or_default();
        let mut forms = Vec::new();
        for key in first..=last {
            if self.is_plain() {
                forms.push(self.form(text, key, false));
            }
            if self.wide {
                forms.push(self.form(&widened(text), key, true));
            }
        }
        Ok(forms)
    }

    fn form(&self, text: &[u8], key: u8, wide: bool) -> Vec<Piece> {
        let piece = |&byte: &u8| if self.caseless { Piece::caseless(byte) } else { Piece::byte(byte ^ key) };
        self.bounded(text.iter().map(piece).collect(), wide)
    }

    /// With what must stand beside it.
    pub(crate) fn bounded(&self, mut pieces: Vec<Piece>, wide: bool) -> Vec<Piece> {
        if self.fullword {
            pieces.insert(0, Piece::Behind(class::fullword(wide)));
            pieces.push(Piece::Ahead(class::fullword(wide)));
        }
        pieces
    }

    fn in_base64(&self, text: &[u8]) -> Result<Vec<Vec<Piece>>, Reject> {
        let alphabet = self.alphabet.as_deref().unwrap_or(ALPHABET);
        if alphabet.len() != 64 {
            return Err(Reject::Malformed("an alphabet of Base64 has 64 characters".to_owned()));
        }
        let sources = [self.is_plain().then(|| text.to_vec()), self.wide.then(|| widened(text))];
        let mut forms = Vec::new();
        for source in sources.into_iter().flatten() {
            for shift in 0..3 {
                let encoded = in_base64(&source, shift, alphabet);
                if self.base64 {
                    forms.push(Piece::bytes(&encoded));
                }
                if self.base64_wide {
                    forms.push(Piece::bytes(&widened(&encoded)));
                }
            }
        }
        Ok(forms)
    }
}

fn widened(text: &[u8]) -> Vec<u8> {
    text.iter().flat_map(|&byte| [byte, 0]).collect()
}

/// The characters that a text has for sure, `shift` bytes behind the start of a group.
fn in_base64(text: &[u8], shift: usize, alphabet: &[u8]) -> Vec<u8> {
    let bits: Vec<bool> = text.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
    // The first character of the text's own begins so many bits into it.
    let skipped = (6 - shift * 8 % 6) % 6;
    let own = bits.get(skipped..).unwrap_or(&[]).chunks_exact(6);
    own.map(|six| alphabet[six.iter().fold(0, |index, &bit| index << 1 | usize::from(bit))]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str, modifiers: Modifiers) -> Vec<Vec<Piece>> {
        modifiers.forms(text.as_bytes()).expect(text)
    }

    #[test]
    fn a_text_is_looked_for_in_every_form_that_is_asked_for() {
        let both = Modifiers { wide: true, ascii: true, ..Modifiers::default() };
        assert_eq!(forms("ab", both), [Piece::bytes(b"ab"), Piece::bytes(b"a\0b\0")]);
        let keys = Modifiers { xor: Some((1, 3)), ..Modifiers::default() };
        assert_eq!(forms("ab", keys), [Piece::bytes(b"`c"), Piece::bytes(b"c`"), Piece::bytes(b"ba")]);
        let word = Modifiers { fullword: true, caseless: true, ..Modifiers::default() };
        assert_eq!(forms("ab", word)[0].len(), 4);
    }

    #[test]
    fn base64_has_three_forms_as_in_the_manual() {
        let base64 = Modifiers { base64: true, ..Modifiers::default() };
        let wanted = ["VGhpcyBwcm9ncmFtIGNhbm5vd", "RoaXMgcHJvZ3JhbSBjYW5ub3", "UaGlzIHByb2dyYW0gY2Fubm90"];
        let found = forms("This program cannot", base64);
        assert_eq!(found, wanted.map(|text| Piece::bytes(text.as_bytes())));
    }
}
