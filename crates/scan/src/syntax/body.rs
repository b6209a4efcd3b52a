//! Hexadecimal signature bodies: from text to parts and the gaps between them.
//!
//! The grammar is that of the ClamAV manual, "Body-based Signature Content Format": byte pairs, `??` and nibbles, `*`,
//! `{n}` and its kin, `[x-y]`, alternatives and their negation, and the classes `(B)`, `(L)`, `(W)`. What the manual
//! leaves open was learnt by trying it out with clamscan 1.4: which bytes each class holds; that a class between two
//! other pieces consumes what it matches; that an upper bound of 0 means no bound.

use bytemuck::{Pod, Zeroable};
use pattern::Piece;

use crate::syntax::class;
use crate::syntax::line::{Reject, number};

/// A distance between two parts; no upper bound is `u32::MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Gap {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

impl Gap {
    pub(crate) const ANY: Gap = Gap { min: 0, max: u32::MAX };

    pub(crate) const fn is_open(self) -> bool {
        self.max == u32::MAX
    }
}

/// A part and the gap before it (of no meaning for the first).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyPart {
    pub(crate) gap: Gap,
    pub(crate) pieces: Vec<Piece>,
}

/// A fixed distance below this is part of a part.
const SKIP_BELOW: u32 = 128;
/// The widest range in square brackets.
const BRACKET_MAX: u32 = 32;
/// The deepest nesting of alternatives.
const NESTING_MAX: usize = 15;

/// Element of a body.
enum Element {
    Piece(Piece),
    Class { letter: u8, negated: bool },
    Gap(Gap),
}

/// Parses a body.
///
/// # Errors
/// Malformed: digits that are none, and what has no end. Gaps and alternatives that mean nothing are not supported.
pub(crate) fn parse(text: &str) -> Result<Vec<BodyPart>, Reject> {
    let mut reader = Reader { rest: text.as_bytes() };
    let mut parts = Vec::new();
    let mut gap = Gap::ANY;
    let mut open = Open::new(text.len());
    while !reader.rest.is_empty() {
        while let Some(byte) = reader.plain() {
            open.pieces.push(Piece::byte(byte));
        }
        if reader.rest.is_empty() {
            break;
        }
        match reader.element()? {
            Element::Gap(next) => {
                let closed = std::mem::replace(&mut open, Open::new(reader.rest.len()));
                parts.push(BodyPart { gap, pieces: closed.close()? });
                gap = next;
            }
            Element::Class { letter, negated } => open.class(letter, negated),
            Element::Piece(piece) => open.pieces.push(piece),
        }
    }
    let pieces = open.close()?;
    parts.push(BodyPart { gap, pieces });
    Ok(parts)
}

/// A part that is being read.
struct Open {
    pieces: Vec<Piece>,
    /// Where something stands in for a class.
    classes: Vec<(usize, u8, bool)>,
}

impl Open {
    /// One of at most so many digits.
    fn new(digits: usize) -> Open {
        Open { pieces: Vec::with_capacity(digits / 2), classes: Vec::new() }
    }

    fn class(&mut self, letter: u8, negated: bool) {
        self.classes.push((self.pieces.len(), letter, negated));
        self.pieces.push(Piece::Skip(0));
    }

    /// Without gaps it becomes a part: classes at its ends look, others consume.
    fn close(mut self) -> Result<Vec<Piece>, String> {
        if self.pieces.len() == self.classes.len() {
            return Err("a part without bytes".to_owned());
        }
        let last = self.pieces.len() - 1;
        for (index, letter, negated) in self.classes {
            self.pieces[index] = match index {
                0 => Piece::Behind(class::behind(letter, negated)),
                _ if index == last => Piece::Ahead(class::ahead(letter, negated)),
                _ => class::consumed(letter, negated),
            };
        }
        Ok(self.pieces)
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn element(&mut self) -> Result<Element, Reject> {
        match self.rest {
            [b'*', ..] => {
                self.skip(1);
                Ok(Element::Gap(Gap::ANY))
            }
            [b'{', ..] => self.braces(),
            [b'[', ..] => self.brackets(),
            [b'!', b'(', ..] => {
                self.skip(1);
                self.parentheses(true)
            }
            [b'(', ..] => self.parentheses(false),
            _ => Ok(Element::Piece(self.byte()?)),
        }
    }

    fn skip(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or(&[]);
    }

    /// The next byte, if it is written out.
    fn plain(&mut self) -> Option<u8> {
        let [high, low, rest @ ..] = self.rest else {
            return None;
        };
        let byte = text::hex::pair(*high, *low)?;
        self.rest = rest;
        Some(byte)
    }

    fn byte(&mut self) -> Result<Piece, String> {
        let [high, low, ..] = self.rest else {
            return Err("half a byte at the end".to_owned());
        };
        let (high, low) = (nibble(*high)?, nibble(*low)?);
        self.skip(2);
        let (value, mask) = match (high, low) {
            (Some(high), Some(low)) => (high << 4 | low, 0xff),
            (Some(high), None) => (high << 4, 0xf0),
            (None, Some(low)) => (low, 0x0f),
            (None, None) => (0, 0),
        };
        Ok(Piece::Byte { value, mask })
    }

    /// Text between an opening bracket, which comes next, and `closing`.
    fn enclosed(&mut self, closing: u8) -> Result<&'a str, String> {
        let end = memchr::memchr(closing, self.rest).ok_or_else(|| format!("no closing {}", char::from(closing)))?;
        let inside = std::str::from_utf8(&self.rest[1..end]).map_err(|_| "not text".to_owned())?;
        self.skip(end + 1);
        Ok(inside)
    }

    fn braces(&mut self) -> Result<Element, Reject> {
        let inside = self.enclosed(b'}')?;
        let Some((min, max)) = inside.split_once('-') else {
            let exact = if inside.is_empty() { 0 } else { number(inside).map_err(Reject::Unsupported)? };
            if exact == 0 {
                return Ok(Element::Gap(Gap::ANY));
            }
            if exact < SKIP_BELOW {
                return Ok(Element::Piece(Piece::Skip(exact as u16)));
            }
            return Ok(Element::Gap(Gap { min: exact, max: exact }));
        };
        let bound = |text: &str| if text.is_empty() { Ok(0) } else { number(text).map_err(Reject::Unsupported) };
        let (min, max) = (bound(min)?, bound(max)?);
        if max != 0 && max < min {
            return Err(Reject::Unsupported(format!("the gap {{{inside}}} ends before it begins")));
        }
        let max = if max == 0 { u32::MAX } else { max };
        Ok(Element::Gap(Gap { min, max }))
    }

    fn brackets(&mut self) -> Result<Element, Reject> {
        let inside = self.enclosed(b']')?;
        let (min, max) = inside.split_once('-').ok_or_else(|| format!("no range in [{inside}]"))?;
        let (min, max): (u32, u32) = (number(min)?, number(max)?);
        if max < min || max > BRACKET_MAX {
            return Err(Reject::Malformed(format!("the range [{inside}] is not within 0-{BRACKET_MAX}")));
        }
        Ok(Element::Piece(Piece::Gap { min: min as u16, max: max as u16 }))
    }

    fn parentheses(&mut self, negated: bool) -> Result<Element, Reject> {
        if let [_, letter @ (b'B' | b'L' | b'W'), b')', ..] = *self.rest {
            self.skip(3);
            return Ok(Element::Class { letter, negated });
        }
        let all = self.alternatives(0)?;
        if negated {
            return Ok(Element::Piece(none_of(&all)?));
        }
        Ok(Element::Piece(one_of(all)))
    }

    /// Alternatives from the opening parenthesis, which comes next, to the closing one.
    fn alternatives(&mut self, depth: usize) -> Result<Vec<Vec<Piece>>, Reject> {
        if depth >= NESTING_MAX {
            return Err(Reject::Unsupported("alternatives are nested too deep".to_owned()));
        }
        let mut all = Vec::new();
        loop {
            // The opening parenthesis or the bar between two alternatives.
            self.skip(1);
            all.push(self.alternative(depth)?);
            match self.rest {
                [b'|', ..] => {}
                [b')', ..] => break,
                _ => return Err(Reject::Malformed("alternatives without an end".to_owned())),
            }
        }
        self.skip(1);
        Ok(all)
    }

    fn alternative(&mut self, depth: usize) -> Result<Vec<Piece>, Reject> {
        let mut one = Vec::new();
        while let [first, ..] = *self.rest {
            let piece = match first {
                b'|' | b')' => break,
                b'(' => one_of(self.alternatives(depth + 1)?),
                b'{' => match self.braces()? {
                    Element::Piece(piece) => piece,
                    _ => return Err(Reject::Malformed("an open gap inside alternatives".to_owned())),
                },
                _ => self.byte()?,
            };
            one.push(piece);
        }
        if one.is_empty() {
            return Err(Reject::Unsupported("an empty alternative".to_owned()));
        }
        Ok(one)
    }
}

/// Alternatives, or a set if each is one fixed byte.
fn one_of(all: Vec<Vec<Piece>>) -> Piece {
    let single = |one: &Vec<Piece>| match one.as_slice() {
        [Piece::Byte { value, mask: 0xff }] => Some(*value),
        _ => None,
    };
    match all.iter().map(single).collect::<Option<Vec<u8>>>() {
        Some(bytes) => Piece::Set(pattern::ByteSet::of(|byte| bytes.contains(&byte))),
        None => Piece::OneOf(all),
    }
}

fn none_of(all: &[Vec<Piece>]) -> Result<Piece, String> {
    let fixed = |piece: &Piece| match piece {
        Piece::Byte { value, mask: 0xff } => Some(*value),
        _ => None,
    };
    let sequences: Option<Vec<Vec<u8>>> = all.iter().map(|one| one.iter().map(fixed).collect()).collect();
    let sequences = sequences.ok_or("negated alternatives with wildcards")?;
    let length = sequences.first().map_or(0, Vec::len);
    if sequences.iter().any(|one| one.len() != length) {
        return Err("negated alternatives of unequal length".to_owned());
    }
    Ok(Piece::NoneOf(sequences))
}

fn nibble(digit: u8) -> Result<Option<u8>, String> {
    match text::hex::digit(digit) {
        None if digit == b'?' => Ok(None),
        None => Err(format!("{:?} is not a hexadecimal digit", char::from(digit))),
        value => Ok(value),
    }
}

/// Bytes in hexadecimal digits, without wildcards.
pub(crate) fn hex_bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for pair in text.as_bytes().chunks(2) {
        match pair {
            [high, low] => match (nibble(*high)?, nibble(*low)?) {
                (Some(high), Some(low)) => bytes.push(high << 4 | low),
                _ => return Err(format!("wildcards in {text:?}")),
            },
            _ => return Err(format!("{text:?} has half a byte")),
        }
    }
    Ok(bytes)
}

/// The edge of a part, if it is one; for tests.
#[cfg(test)]
fn edge(piece: &Piece) -> Option<&pattern::Edge> {
    match piece {
        Piece::Behind(edge) | Piece::Ahead(edge) => Some(edge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Vec<Piece> {
        let parts = parse(text).expect(text);
        assert_eq!(parts.len(), 1, "{text}");
        parts[0].pieces.clone()
    }

    #[test]
    fn gaps_part_a_body_and_short_fixed_ones_do_not() {
        let parts = parse("6162*6364{3-9}6566{2}67{200}6869{-7}7071{5-}7273").expect("a body");
        let gaps: Vec<_> = parts.iter().skip(1).map(|part| (part.gap.min, part.gap.max)).collect();
        assert_eq!(gaps, [(0, u32::MAX), (3, 9), (200, 200), (0, 7), (5, u32::MAX)]);
        assert_eq!(parts[2].pieces[2], Piece::Skip(2));
    }

    #[test]
    fn an_upper_bound_of_zero_is_none() {
        for text in ["6161{0}6262", "6161{}6262", "6161{0-0}6262", "6161{-0}6262"] {
            assert_eq!(parse(text).expect(text)[1].gap, Gap::ANY);
        }
    }

    #[test]
    fn classes_look_at_the_ends_and_consume_inside() {
        let pieces = one("(B)6162(W)6364(L)");
        assert!(edge(&pieces[0]).is_some() && edge(&pieces[6]).is_some());
        assert!(matches!(pieces[3], Piece::Set(_)));
    }

    #[test]
    fn alternatives_of_single_bytes_are_a_set_and_others_nest() {
        assert!(matches!(one("6162(63|64)")[2], Piece::Set(_)));
        assert!(matches!(&one("6162(63|64(65|6667))")[2], Piece::OneOf(all) if all.len() == 2));
        assert!(matches!(&one("6162!(6364|6566)")[2], Piece::NoneOf(all) if all.len() == 2));
    }

    #[test]
    fn malformed_bodies_are_refused_with_a_reason() {
        for text in [
            "",
            "6",
            "61g2",
            "*6162",
            "6162*",
            "6162{9-3}61",
            "6162(63",
            "6162(63|)",
            "6162{",
            "6162[3]61",
            "6162[1-99]61",
            "6162!(63|6465)",
            "6162!(6?)",
            "(B)",
            "6162**6364",
            "6162)",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
