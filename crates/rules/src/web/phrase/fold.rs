//! How bytes of pages and of phrases are folded before they are compared: case, and punctuation to blanks.

use super::Dialect;

/// A byte for each byte.
pub(super) type Fold = [u8; 256];

/// Folding of the bytes of a page. With `keeps_case` letters stay as they are.
pub(super) const fn of_page(dialect: Dialect, keeps_case: bool) -> Fold {
    let mut fold = [0; 256];
    let mut at = 0;
    while at < 256 {
        let byte = at as u8;
        let is_upper = byte.is_ascii_uppercase() || (192 <= byte && byte <= 221);
        fold[at] = if is_blank(dialect, byte) {
            b' '
        } else if is_upper && !keeps_case {
            byte | 0x20
        } else {
            byte
        };
        at += 1;
    }
    fold
}

/// Whether a byte of a page counts as a blank: E2Guardian 5.3.5 takes fewer bytes for blanks than 5.5.8.
const fn is_blank(dialect: Dialect, byte: u8) -> bool {
    let below = match dialect {
        Dialect::E2guardian535 => b'.',
        Dialect::E2guardian558 | Dialect::Sluice => b'/',
    };
    let is_both = byte < below || matches!(byte, b':' | b';' | b'?' | 91..=96);
    is_both || (!matches!(dialect, Dialect::E2guardian535) && matches!(byte, b'=' | b'@'))
}

/// Folds a phrase of a list. E2Guardian 5.3.5 lowers ASCII letters and nothing else, so that phrases with other capitals or with
/// punctuation never occur; 5.5.8 folds punctuation as in pages; ours folds all as in pages.
pub(super) fn phrase(phrase: &[u8], dialect: Dialect, keeps_case: bool) -> Vec<u8> {
    let lower = |byte: u8| if keeps_case { byte } else { byte.to_ascii_lowercase() };
    match dialect {
        Dialect::E2guardian535 => phrase.iter().copied().map(lower).collect(),
        Dialect::E2guardian558 => {
            let blank = |byte: u8| if is_blank(dialect, byte) { b' ' } else { lower(byte) };
            collapsed(phrase.iter().copied().map(blank))
        }
        Dialect::Sluice => {
            let fold = of_page(dialect, keeps_case);
            collapsed(phrase.iter().map(|&byte| fold[usize::from(byte)]))
        }
    }
}

/// Bytes with one blank in the place of many.
fn collapsed(bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    for byte in bytes {
        if byte != b' ' || all.last() != Some(&b' ') {
            all.push(byte);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_lowered_as_latin_1_and_phrases_as_the_dialect_has_it() {
        let fold = of_page(Dialect::E2guardian535, false);
        let folded = |text: &str| text.bytes().map(|byte| fold[usize::from(byte)]).collect::<Vec<u8>>();
        assert_eq!(folded("A-b.C/d=e?"), b"a b.c/d=e ");
        assert_eq!(folded("\u{e9}"), [0xe3, 0xa9]);
        assert_eq!(phrase("\u{e9}-X".as_bytes(), Dialect::E2guardian535, false), "\u{e9}-x".as_bytes());
        assert_eq!(phrase("\u{e9}- X".as_bytes(), Dialect::E2guardian558, false), "\u{e9} x".as_bytes());
        assert_eq!(phrase("\u{e9}- X".as_bytes(), Dialect::Sluice, false), [0xe3, 0xa9, b' ', b'x']);
        assert_eq!(phrase(b"A=b", Dialect::Sluice, true), b"A b");
    }
}
