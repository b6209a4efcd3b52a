//! Comparison of texts in letters of either case, of a whole or of pieces that follow one another.

use alloc::vec::Vec;

use memchr::memchr2_iter;

/// Looks for a text that is not empty in pieces that follow one another. A piece is searched where it is; of the one before it the end
/// is kept, for what begins in it.
pub(super) struct Window<'a> {
    text: &'a [u8],
    kept: Vec<u8>,
}

impl<'a> Window<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Window { text, kept: Vec::new() }
    }

    /// Whether it stands in this piece, or begins in those before and ends in this one.
    pub fn holds(&mut self, piece: &[u8]) -> bool {
        if holds(piece, self.text) {
            return true;
        }
        let overlap = self.text.len().saturating_sub(1);
        self.kept.extend_from_slice(&piece[..piece.len().min(overlap)]);
        if holds(&self.kept, self.text) {
            return true;
        }
        if piece.len() > overlap {
            self.kept.clear();
            self.kept.extend_from_slice(&piece[piece.len() - overlap..]);
        }
        self.kept.drain(..self.kept.len().saturating_sub(overlap));
        false
    }
}

/// Whether `text` stands in a text that was decoded, in letters of either case, as the index has them.
pub(super) fn text_holds(decoded: &str, text: &[u8]) -> bool {
    if holds(decoded.as_bytes(), text) {
        return true;
    }
    let Ok(text) = core::str::from_utf8(text) else { return false };
    let is_plain = decoded.is_ascii() && text.is_ascii();
    !is_plain && index::lowered(decoded).contains(&index::lowered(text))
}

/// Whether `text` stands in `bytes`, in ASCII letters of either case.
pub(super) fn holds(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first().map(u8::to_ascii_lowercase) else { return true };
    let places = memchr2_iter(first, first.to_ascii_uppercase(), bytes);
    let mut candidates = places.map_while(|at| bytes.get(at..at + text.len()));
    candidates.any(|candidate| candidate.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_however_it_is_cut() {
        let mail = b"ab needLe cd";
        for text in [&b"NEEDLE"[..], b"a", b"d", b"e", b"b needle c", mail] {
            for size in 1..=mail.len() {
                let mut window = Window::new(text);
                assert!(mail.chunks(size).any(|piece| window.holds(piece)), "{size}");
                for cut in 1..mail.len() {
                    let mut window = Window::new(text);
                    let (first, second) = mail.split_at(cut);
                    assert!(window.holds(first) || window.holds(second), "{cut}");
                }
            }
        }
        for text in [&b"needlecd"[..], b"abneed", b"ab needle cde", b"dl"] {
            for size in 1..=mail.len() {
                let mut window = Window::new(text);
                assert_eq!(mail.chunks(size).any(|piece| window.holds(piece)), text == b"dl", "{size}");
            }
        }
    }

    #[test]
    fn texts_are_found_in_any_case() {
        assert!(holds(b"xxHeLLo", b"hello") && holds(b"", b"") && holds(b"aab", b"AB"));
        assert!(!holds(b"hell", b"hello") && !holds(b"", b"a"));
        for (text, wanted) in [
            ("Größe", "GRÖßE"),
            ("ΟΔΟΣ", "οδος"),
            ("οδός", "ΟΔΌΣ"),
            ("ЖУК", "жук"),
            ("İzmir", "izmir"),
            ("e\u{301}tude", "ÉTUDE"),
            ("\u{ff21}\u{ff22}\u{ff23}", "abc"),
            ("\u{ff76}\u{ff9e}", "\u{30ac}"),
        ] {
            assert!(text_holds(text, wanted.as_bytes()) && text_holds(wanted, text.as_bytes()), "{text} {wanted}");
        }
        assert!(!text_holds("grün", "gruen".as_bytes()));
    }
}
