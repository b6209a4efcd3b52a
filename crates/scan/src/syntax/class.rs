//! The character classes of bodies and the sets behind them.
//!
//! `(B)` is a word boundary, `(L)` the end of a line, `(W)` a byte that is no letter and no digit. The sets were read
//! off clamscan 1.4, one byte at a time; those of `(B)` differ before and after a word, and the negations are not the
//! complements. One thing is not followed: its `!(L)` is true beside a line feed too, ours is not.

use pattern::{ByteSet, Edge, Piece};

fn blank(byte: u8) -> bool {
    matches!(byte, 0x09..=0x0d | b' ')
}

fn before_word(byte: u8) -> bool {
    blank(byte) || b"-./<@_".contains(&byte)
}

fn after_word(byte: u8) -> bool {
    blank(byte) || b"\"'-/=>_".contains(&byte)
}

fn set(letter: u8, negated: bool, boundary: fn(u8) -> bool) -> ByteSet {
    match (letter, negated) {
        (b'B', false) => ByteSet::of(boundary),
        (b'B', true) => ByteSet::of(|byte| matches!(byte, 0x09 | 0x0b | 0x0c) || !boundary(byte)),
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
    Edge::Byte { set: beside(letter, negated, boundary), at_border: !negated }
}

/// At the ends of a part `!(W)` is less than its complement.
fn beside(letter: u8, negated: bool, boundary: fn(u8) -> bool) -> ByteSet {
    if (letter, negated) == (b'W', true) {
        return ByteSet::of(|byte| !blank(byte) && !byte.is_ascii_punctuation() && byte != 0x7f);
    }
    set(letter, negated, boundary)
}

/// A class at the end of a part.
pub(crate) fn ahead(letter: u8, negated: bool) -> Edge {
    if (letter, negated) == (b'L', false) {
        return Edge::Line;
    }
    Edge::Byte { set: beside(letter, negated, after_word), at_border: !negated }
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
