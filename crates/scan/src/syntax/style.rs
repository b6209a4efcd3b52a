//! How the bytes of a body are to be read: subsignature modifiers.
//!
//! The modifiers are those of the ClamAV manual, "Logical signatures". Nibbles under `::i` match a byte as it stands
//! alone, as clamscan 1.4 has it.

use pattern::{ByteSet, Piece};

use crate::syntax::body::BodyPart;
use crate::syntax::class;

/// Modifiers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Letters in either case (`::i`).
    pub(crate) caseless: bool,
    /// Each byte followed by NUL (`::w`).
    pub(crate) wide: bool,
    /// Not beside a letter or a digit (`::f`).
    pub(crate) fullword: bool,
}

impl Style {
    /// Rewrites the parts of a body.
    pub(crate) fn apply(self, parts: &mut [BodyPart]) {
        if self == Style::default() {
            return;
        }
        for part in parts.iter_mut() {
            part.pieces = self.rewrite(&part.pieces);
        }
        if !self.fullword {
            return;
        }
        let edge = class::fullword(self.wide);
        if let Some(first) = parts.first_mut()
            && !matches!(first.pieces.first(), Some(Piece::Behind(_)))
        {
            first.pieces.insert(0, Piece::Behind(edge.clone()));
        }
        if let Some(last) = parts.last_mut()
            && !matches!(last.pieces.last(), Some(Piece::Ahead(_)))
        {
            last.pieces.push(Piece::Ahead(edge));
        }
    }

    fn rewrite(self, pieces: &[Piece]) -> Vec<Piece> {
        let mut all = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let unit = matches!(piece, Piece::Byte { .. } | Piece::Set(_));
            all.push(self.rewrite_piece(piece));
            if self.wide && unit {
                all.push(Piece::byte(0));
            }
        }
        all
    }

    fn rewrite_piece(self, piece: &Piece) -> Piece {
        match piece {
            Piece::Byte { value, mask: 0xff } if self.caseless => Piece::caseless(*value),
            Piece::Set(set) if self.caseless => {
                let other = |byte: u8| set.has(byte.to_ascii_lowercase()) || set.has(byte.to_ascii_uppercase());
                Piece::Set(ByteSet::of(|byte| set.has(byte) || other(byte)))
            }
            Piece::OneOf(all) => Piece::OneOf(all.iter().map(|one| self.rewrite(one)).collect()),
            Piece::NoneOf(all) if self.wide => {
                let widen = |one: &Vec<u8>| one.iter().flat_map(|&byte| [byte, 0]).collect();
                Piece::NoneOf(all.iter().map(widen).collect())
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::body::parse;

    #[test]
    fn wide_bytes_are_followed_by_nul_and_skips_are_not() {
        let mut parts = parse("61??{2}62").expect("a body");
        let style = Style { wide: true, ..Style::default() };
        style.apply(&mut parts);
        assert_eq!(parts[0].pieces.len(), 7);
        assert_eq!(parts[0].pieces[4], Piece::Skip(2));
    }
}
