//! Strings of YARA rules in hexadecimal digits.
//!
//! After the YARA manual, "Hexadecimal strings": bytes, nibbles, `~` for anything but, jumps, and alternatives. Jumps
//! that are short are pieces of a part; others lie between parts.

use pattern::{ByteSet, Piece};

use crate::syntax::body::{BodyPart, Gap};
use crate::syntax::line::Reject;

/// A jump whose bounds differ by less is a piece of a part.
const SHORT_JUMP: u32 = 16;
/// A jump over that many bytes at least lies between parts.
const LONG_JUMP: u32 = 128;
/// The longest jump in alternatives.
const NESTED_JUMP_MAX: u32 = 200;
/// The deepest nesting of alternatives.
const NESTING_MAX: usize = 12;

/// Reads what stands between the braces, without blanks.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<BodyPart>, Reject> {
    let mut reader = Reader { rest: text };
    let mut parts = vec![BodyPart { gap: Gap::ANY, pieces: Vec::new() }];
    if text.starts_with(b"[") || text.ends_with(b"]") {
        return Err(Reject::Malformed("a body that begins or ends with a jump".to_owned()));
    }
    while !reader.rest.is_empty() {
        let jump = if reader.takes(b'[') { Some(reader.jump()?) } else { None };
        match (jump, parts.last_mut()) {
            (Some(gap), Some(part)) if part.pieces.is_empty() => {
                part.gap.min = part.gap.min.saturating_add(gap.min);
                part.gap.max = part.gap.max.saturating_add(gap.max);
            }
            (Some(gap), _) if is_long(gap) => parts.push(BodyPart { gap, pieces: Vec::new() }),
            (Some(gap), Some(part)) => part.pieces.push(piece_of(gap)),
            (None, Some(part)) => part.pieces.push(reader.piece(0)?),
            (_, None) => {}
        }
    }
    if parts.iter().any(|part| part.pieces.is_empty()) {
        return Err(Reject::Malformed("a body without bytes".to_owned()));
    }
    Ok(parts)
}

/// Whether alternatives have a long jump, which the stream does not follow.
pub(crate) fn has_long_alternatives(parts: &[BodyPart]) -> bool {
    fn is_long_within(piece: &Piece) -> bool {
        match piece {
            &Piece::Gap { min, max } => is_long(Gap { min: min.into(), max: max.into() }),
            &Piece::Skip(count) => u32::from(count) >= LONG_JUMP,
            Piece::OneOf(all) => all.iter().flatten().any(is_long_within),
            _ => false,
        }
    }
    parts.iter().flat_map(|part| &part.pieces).any(is_long_within)
}

/// The longest run of bytes that every match has; nothing if that is short.
pub(crate) fn hint(parts: &[BodyPart]) -> Option<Vec<Piece>> {
    let is_byte = |piece: &Piece| matches!(piece, Piece::Byte { mask: u8::MAX, .. });
    let runs = parts.iter().flat_map(|part| part.pieces.split(|piece| !is_byte(piece)));
    runs.max_by_key(|run| run.len()).filter(|run| run.len() > 1).map(<[Piece]>::to_vec)
}

fn is_long(gap: Gap) -> bool {
    gap.is_open() || gap.max >= LONG_JUMP || gap.max - gap.min >= SHORT_JUMP
}

fn piece_of(gap: Gap) -> Piece {
    let (min, max) = (gap.min as u16, gap.max as u16);
    if min == max { Piece::Skip(min) } else { Piece::Gap { min, max } }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn takes(&mut self, wanted: u8) -> bool {
        let is = self.rest.first() == Some(&wanted);
        if is {
            self.rest = &self.rest[1..];
        }
        is
    }

    /// Reads a jump in brackets: `n`, `n-m`, `n-` or `-`.
    fn jump(&mut self) -> Result<Gap, Reject> {
        let end = memchr::memchr(b']', self.rest).ok_or_else(|| "a jump without an end".to_owned())?;
        let text = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest = &self.rest[end + 1..];
        let number = |text: &str, absent: u32| {
            if text.is_empty() {
                Ok(absent)
            } else {
                crate::syntax::line::number::<u32>(text).map_err(Reject::Malformed)
            }
        };
        let (min, max) = match text.split_once('-') {
            Some(("", max)) if !max.is_empty() => return Err(Reject::Malformed(format!("the jump [{text}]"))),
            Some((min, max)) => (number(min, 0)?, number(max, u32::MAX)?),
            None => (number(&text, 0)?, number(&text, 0)?),
        };
        let is_too_long = max != u32::MAX && i32::try_from(max).is_err() || i32::try_from(min).is_err();
        if is_too_long || !text.contains('-') && max == 0 {
            return Err(Reject::Malformed(format!("the length of the jump [{text}]")));
        }
        if max < min {
            return Err(Reject::Malformed(format!("the jump [{text}] ends before it begins")));
        }
        Ok(Gap { min, max })
    }

    fn piece(&mut self, depth: usize) -> Result<Piece, Reject> {
        if self.takes(b'(') {
            return self.alternatives(depth);
        }
        let negated = self.takes(b'~');
        let &[high, low, ref rest @ ..] = self.rest else {
            return Err(Reject::Malformed("half a byte".to_owned()));
        };
        self.rest = rest;
        let nibble = |digit: u8| match digit {
            b'?' => Ok((0, 0)),
            digit => match char::from(digit).to_digit(16) {
                Some(value) => Ok((value as u8, 0xf)),
                None => Err(Reject::Malformed(format!("{:?} is no hexadecimal digit", char::from(digit)))),
            },
        };
        let ((high, high_mask), (low, low_mask)) = (nibble(high)?, nibble(low)?);
        let (value, mask) = (high << 4 | low, high_mask << 4 | low_mask);
        match (negated, mask) {
            (true, 0) => Err(Reject::Malformed("nothing but any byte".to_owned())),
            (true, _) => Ok(Piece::Set(ByteSet::of(|byte| byte & mask != value))),
            (false, 0) => Ok(Piece::Skip(1)),
            (false, _) => Ok(Piece::Byte { value, mask }),
        }
    }

    fn alternatives(&mut self, depth: usize) -> Result<Piece, Reject> {
        if depth >= NESTING_MAX {
            return Err(Reject::Malformed("alternatives are nested too deep".to_owned()));
        }
        let mut all = vec![Vec::new()];
        loop {
            if self.takes(b')') {
                break;
            }
            if self.takes(b'|') {
                all.push(Vec::new());
                continue;
            }
            let begins = all.last().is_none_or(Vec::is_empty);
            let piece = if self.takes(b'[') {
                if begins {
                    return Err(Reject::Malformed("an alternative that begins with a jump".to_owned()));
                }
                let gap = self.jump()?;
                if gap.max > NESTED_JUMP_MAX {
                    return Err(Reject::Malformed("a jump over 200 bytes in alternatives".to_owned()));
                }
                if matches!(self.rest.first(), Some(b'|' | b')')) {
                    return Err(Reject::Malformed("an alternative that ends with a jump".to_owned()));
                }
                piece_of(gap)
            } else {
                self.piece(depth + 1)?
            };
            all.last_mut().expect("one alternative at least").push(piece);
        }
        if all.iter().any(Vec::is_empty) {
            return Err(Reject::Malformed("an empty alternative".to_owned()));
        }
        Ok(Piece::OneOf(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_are_pieces_or_lie_between_parts() {
        let parts = parse(b"6162[2]6?[1-4]~63[10-]6465(66|67[2]68)").expect("a body");
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].pieces[2], Piece::Skip(2));
        assert_eq!(parts[0].pieces[4], Piece::Gap { min: 1, max: 4 });
        assert_eq!(parts[1].gap, Gap { min: 10, max: u32::MAX });
        assert!(matches!(&parts[1].pieces[2], Piece::OneOf(all) if all.len() == 2));
    }

    #[test]
    fn long_jumps_in_alternatives_are_not_for_the_stream() {
        let parts = parse(b"6162(63[0-90]64|65)[9-999]616263??64").expect("a body");
        assert!(has_long_alternatives(&parts) && !has_long_alternatives(&parts[1..]));
        assert_eq!(hint(&parts), Some(Piece::bytes(b"abc")));
        assert_eq!(hint(&parse(b"61??6?").expect("a body")), None);
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for text in ["", "6", "6g", "61[2-1]62", "61(62", "61(62|)", "~??", "61[300-]"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
