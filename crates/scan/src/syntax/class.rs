//! The character classes of bodies and the sets behind them.
//!
//! `(B)` is a word boundary, `(L)` the end of a line, `(W)` a byte that is no letter and no digit. The sets were read
//! off clamscan 1.4.6, one byte at a time; those of `(B)` differ before and after a word, and before one the negation is not the
//! complement.

use pattern::{ByteSet, Edge, Piece};

fn before_word(byte: u8) -> bool {
    b" -./<@_".contains(&byte)
}

fn after_word(byte: u8) -> bool {
    b"\n\r \"'-/=>_".contains(&byte)
}

fn set(letter: u8, negated: bool, boundary: fn(u8) -> bool) -> ByteSet {
    match (letter, negated) {
        (b'B', false) => ByteSet::of(boundary),
        (b'B', true) => ByteSet::of(|byte| !boundary(byte)),
        (b'W', false) => ByteSet::of(|byte| !byte.is_ascii_alphanumeric()),
        (b'W', true) => ByteSet::of(|byte| byte.is_ascii_alphanumeric()),
        (_, false) => ByteSet::of(|byte| byte == b'\n'),
        (_, true) => ByteSet::of(|byte| byte != b'\n'),
    }
}

fn beside_word(byte: u8) -> bool {
    before_word(byte) || after_word(byte)
}

/// A class at the start of a part.
pub(crate) fn behind(letter: u8, negated: bool) -> Edge {
    let boundary = if negated { beside_word } else { before_word };
    Edge::Byte { set: set(letter, negated, boundary), at_border: !negated }
}

/// A class at the end of a part.
pub(crate) fn ahead(letter: u8, negated: bool) -> Edge {
    if (letter, negated) == (b'L', false) {
        return Edge::Line;
    }
    Edge::Byte { set: set(letter, negated, after_word), at_border: !negated }
}

/// A class inside a part: it consumes what it matches.
pub(crate) fn consumed(letter: u8, negated: bool) -> Piece {
    if (letter, negated) == (b'L', false) {
        return Piece::OneOf(vec![Piece::bytes(b"\n"), Piece::bytes(b"\r\n")]);
    }
    Piece::Set(set(letter, negated, beside_word))
}

/// Edge beside a full word.
pub(crate) fn fullword(wide: bool) -> Edge {
    if wide {
        return Edge::NotWide(ByteSet::of(|byte| byte.is_ascii_alphanumeric()));
    }
    behind(b'W', false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(edge: &Edge) -> Vec<u8> {
        match edge {
            Edge::Byte { set, .. } => (0..=u8::MAX).filter(|&byte| set.has(byte)).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn the_sets_are_those_of_clamscan() {
        assert_eq!(bytes(&behind(b'B', false)), b" -./<@_");
        assert_eq!(bytes(&ahead(b'B', false)), b"\n\r \"'-/=>_");
        assert_eq!(bytes(&behind(b'B', true)).len(), 256 - b"\n\r \"'-./<=>@_".len());
        assert_eq!(bytes(&ahead(b'B', true)).len(), 256 - b"\n\r \"'-/=>_".len());
        let word: Vec<u8> = (0..=u8::MAX).filter(u8::is_ascii_alphanumeric).collect();
        assert_eq!((bytes(&behind(b'W', true)), bytes(&ahead(b'W', true))), (word.clone(), word));
    }
}
