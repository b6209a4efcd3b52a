//! Byte comparisons: `sub(>>offset#[hdai][lb][e]count#test[,test])`.
//!
//! So many bytes, at a distance from where the last match of another subsignature starts, are read as a number and
//! compared. The grammar is that of the ClamAV manual, "Byte Compare Subsignatures"; tried out with clamscan 1.4: it is
//! the last match that counts, no number is read across the end of the stream, text that is no number is 0, and eight raw
//! bytes have a sign. Of hexadecimal text in little-endian order the pairs of digits up to the first that is none count, and
//! the first of an odd number of digits is a pair by itself.

use crate::syntax::expression::Comparison;
use crate::syntax::line::number;

/// The most bytes of a number in text.
const TEXT_BYTES_MAX: usize = 32;
/// The farthest that bytes may be from the match.
const DISTANCE_MAX: u32 = 1 << 30;
/// How far before the place where a match is known bytes can be read.
pub(crate) const REACH: usize = 8192;

/// A byte comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compare {
    /// Number of the subsignature.
    pub(crate) sub: u8,
    /// The subsignature whose match it starts from.
    pub(crate) of: u8,
    /// From the start of that match.
    distance: i64,
    radix: Radix,
    little: bool,
    /// Whether all bytes must be of the number.
    exact: bool,
    count: usize,
    tests: Vec<(Comparison, i128)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Radix {
    Hexadecimal,
    Decimal,
    Automatic,
    Raw,
    /// One that needs a byte order and has none: it never holds.
    Unordered,
}

impl Compare {
    /// Whether a subsignature looks like one.
    pub(crate) fn looks_like_one(text: &str) -> bool {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        rest.len() < text.len() && (rest.starts_with("(>>") || rest.starts_with("(<<"))
    }

    pub(crate) fn parse(text: &str, sub: u8) -> Result<Compare, String> {
        let inside = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (of, inside) = inside.ok_or("a byte comparison without parentheses")?;
        let fields: Vec<&str> = inside.split('#').collect();
        let [place, options, tests] = fields.as_slice() else {
            return Err("a byte comparison has three fields".to_owned());
        };
        let of: u8 = number(of)?;
        if of >= sub {
            return Err("a byte comparison speaks of a subsignature that is not before it".to_owned());
        }
        let distance = match place.split_at_checked(2) {
            Some((">>", distance)) => i64::from(literal(distance)?),
            Some(("<<", distance)) => -i64::from(literal(distance)?),
            _ => return Err(format!("{place:?} is no place for a byte comparison")),
        };
        if distance.unsigned_abs() > DISTANCE_MAX.into() {
            return Err(format!("the distance {distance} of a byte comparison is too great"));
        }
        let tests = tests.split(',').map(test).collect::<Result<Vec<_>, String>>()?;
        if tests.len() > 2 {
            return Err("a byte comparison makes two tests at most".to_owned());
        }
        let (radix, little, exact, count) = options_of(options)?;
        Ok(Compare { sub, of, distance, radix, little, exact, count, tests })
    }

    /// Where the bytes are, if the match starts at `start`.
    pub(crate) fn place(&self, start: u64) -> Option<u64> {
        start.checked_add_signed(self.distance)
    }

    /// How many bytes are read.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Whether the bytes pass the tests.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        self.value(bytes).is_some_and(|value| {
            self.tests.iter().all(|(comparison, than)| match comparison {
                Comparison::Equal => value == *than,
                Comparison::More => value > *than,
                Comparison::Less => value < *than,
            })
        })
    }

    fn value(&self, bytes: &[u8]) -> Option<i128> {
        let text = bytes.trim_ascii_start();
        let prefixed = text.starts_with(b"0x") || text.starts_with(b"0X");
        let radix = match self.radix {
            Radix::Unordered => return None,
            Radix::Raw if self.little => return Some(raw(bytes.iter().rev())),
            Radix::Raw => return Some(raw(bytes.iter())),
            Radix::Automatic if text.len() < 3 || (self.little && !prefixed) => return None,
            Radix::Automatic if !prefixed => 10,
            Radix::Decimal => 10,
            Radix::Automatic | Radix::Hexadecimal => 16,
        };
        if self.exact && text.len() < bytes.len() {
            return None;
        }
        if radix == 16 && self.little {
            let digits = if prefixed { &text[2..] } else { text };
            let whole = match digits {
                [one] => one.is_ascii_hexdigit(),
                _ => digits.len() % 2 == 0,
            };
            return (!self.exact || (!prefixed && whole)).then(|| reversed(digits));
        }
        let (value, used) = leading(text, radix);
        (!self.exact || used == text.len()).then_some(value)
    }
}

/// `[hdai][lb][e]count`.
fn options_of(text: &str) -> Result<(Radix, bool, bool, usize), String> {
    let radix = match text.as_bytes().first() {
        Some(b'h') => Radix::Hexadecimal,
        Some(b'd') => Radix::Decimal,
        Some(b'a') => Radix::Automatic,
        Some(b'i') => Radix::Raw,
        _ => return Err(format!("{text:?} names no kind of number")),
    };
    let rest = &text[1..];
    let little = rest.starts_with('l');
    let ordered = rest.strip_prefix(['l', 'b']);
    let rest = ordered.unwrap_or(rest);
    let exact = rest.starts_with('e');
    let count = literal(rest.strip_prefix('e').unwrap_or(rest))? as usize;
    let fits = match radix {
        Radix::Raw => matches!(count, 1 | 2 | 4 | 8),
        _ => (1..=TEXT_BYTES_MAX).contains(&count),
    };
    if !fits || (radix == Radix::Decimal && little) {
        return Err(format!("{text:?} are no options of a byte comparison"));
    }
    let radix = if ordered.is_none() && radix != Radix::Decimal { Radix::Unordered } else { radix };
    Ok((radix, little, exact, count))
}

fn test(text: &str) -> Result<(Comparison, i128), String> {
    let comparison = match text.as_bytes().first() {
        Some(b'=') => Comparison::Equal,
        Some(b'>') => Comparison::More,
        Some(b'<') => Comparison::Less,
        _ => return Err(format!("{text:?} is no test of a byte comparison")),
    };
    let digits = signless(&text[1..]);
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => number(digits).ok(),
    };
    Ok((comparison, value.ok_or_else(|| format!("{text:?} has no number"))?.into()))
}

/// A number without the blanks and the plus before it.
fn signless(text: &str) -> &str {
    let text = text.trim_start();
    text.strip_prefix('+').unwrap_or(text)
}

/// A number, in decimal or after `0x`.
fn literal(text: &str) -> Result<u32, String> {
    let text = signless(text);
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is not a number")),
        None => number(text),
    }
}

fn raw<'a>(bytes: impl Iterator<Item = &'a u8>) -> i128 {
    bytes.fold(0, |value: i64, &byte| value << 8 | i64::from(byte)).into()
}

/// The number that a text begins with, behind a sign, and how many bytes that were.
fn leading(rest: &[u8], radix: u32) -> (i128, usize) {
    let negative = rest.first() == Some(&b'-');
    let sign = usize::from(negative || rest.first() == Some(&b'+'));
    let prefix = match &rest[sign..] {
        [b'0', b'x' | b'X', digit, ..] if radix == 16 && digit.is_ascii_hexdigit() => 2,
        _ => 0,
    };
    let digits = rest[sign + prefix..].iter().map_while(|&byte| char::from(byte).to_digit(radix));
    let (value, count) = digits.fold((0i128, 0), |(value, count), digit| {
        (value.saturating_mul(radix.into()).saturating_add(digit.into()), count + 1)
    });
    (if negative { -value } else { value }, sign + prefix + count)
}

/// The hexadecimal digits of a text, in pairs, the last pair first; the first of an odd number of digits is one by itself.
fn reversed(text: &[u8]) -> i128 {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(i128::from);
    let (single, rest) = text.split_at(text.len() % 2);
    let pairs = single.chunks(1).chain(rest.chunks(2)).map_while(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        [low] => digit(low),
        _ => None,
    });
    let pairs: Vec<i128> = pairs.collect();
    pairs.iter().rev().fold(0, |value: i128, pair| value.saturating_mul(256).saturating_add(*pair))
}

/// Bytes that are being read for one comparison.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    place: u64,
    bytes: Vec<u8>,
    wanted: usize,
}

impl Reading {
    /// Begins at a place of the stream.
    pub(crate) fn at(place: u64, wanted: usize) -> Reading {
        Reading { place, bytes: Vec::with_capacity(wanted), wanted }
    }

    /// Takes what it wants of bytes that stand at `offset`; whether it has all.
    pub(crate) fn take(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let next = self.place.saturating_add(self.bytes.len() as u64);
        let missing = self.wanted - self.bytes.len();
        if let Some(rest) = next.checked_sub(offset).and_then(|skip| bytes.get(usize::try_from(skip).ok()?..)) {
            self.bytes.extend_from_slice(&rest[..rest.len().min(missing)]);
        }
        self.bytes.len() == self.wanted
    }

    /// Bytes that were read, if they are all.
    pub(crate) fn complete(&self) -> Option<&[u8]> {
        (self.wanted > 0 && self.bytes.len() == self.wanted).then_some(&self.bytes)
    }
}

/// The last [`REACH`] bytes of a stream, and the bytes that follow them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recent {
    bytes: Vec<u8>,
    end: u64,
}

impl Recent {
    /// The bytes and the offset at which they begin.
    pub(crate) fn view(&self) -> (u64, &[u8]) {
        (self.end - self.bytes.len() as u64, &self.bytes)
    }

    /// The last bytes, [`REACH`] of them however they came, and the offset at which they stand.
    pub(crate) fn last(&self) -> (u64, &[u8]) {
        let last = &self.bytes[self.bytes.len().saturating_sub(REACH)..];
        (self.end - last.len() as u64, last)
    }

    /// Goes on with the next bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.end += bytes.len() as u64;
        self.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(REACH)..]);
        if self.bytes.len() > 2 * REACH {
            self.bytes.drain(..self.bytes.len() - REACH);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, bytes: &[u8]) -> bool {
        Compare::parse(text, 1).expect(text).holds(bytes)
    }

    #[test]
    fn numbers_are_read_as_clamscan_reads_them() {
        for (options, bytes, value) in [
            ("hb4", "1234", "0x1234"),
            ("hl4", "1234", "0x3412"),
            ("db4", "12x4", "12"),
            ("de4", "0012", "12"),
            ("ab4", "0x12", "0x12"),
            ("ab4", "0012", "12"),
            ("hb4", "0x12", "18"),
            ("hb4", "  12", "0x12"),
            ("db4", "xyzw", "0"),
            ("il2", "12", "0x3231"),
            ("ib2", "12", "0x3132"),
            ("ib2", "12", " +0X3132"),
            ("ab8", " 12zzzzz", "12"),
            ("hl1", "7", "7"),
            ("hle1", "a", "10"),
            ("hl1", "x", "0"),
            ("al3", "0x7", "7"),
            ("hl3", "123", "0x2301"),
            ("hl6", "12zz34", "0x12"),
            ("al5", "0x123", "0x2301"),
        ] {
            assert!(holds(&format!("0(>>0#{options}#={value})"), bytes.as_bytes()), "{options} {bytes}");
        }
        for (options, bytes) in [
            ("hbe4", "12  "),
            ("hbe4", "  12"),
            ("hle3", "123"),
            ("hle1", "x"),
            ("ale3", "0x7"),
            ("al4", "1234"),
            ("ab2", "12"),
        ] {
            assert!(!holds(&format!("0(>>0#{options}#<0xfffff)"), bytes.as_bytes()), "{options} {bytes}");
        }
        assert!(!holds("0(>>0#ib8#>0)", &[0xff; 8]) && !holds("0(>>0#i1#=1)", &[1]));
        assert!(!holds("0(>>0#db4#<0x100000)", b"1048577"));
        assert!(holds("0(>>0#db4#>1000,<2000)", b"1234") && !holds("0(>>0#db4#>1000,<2000)", b"2234"));
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        for text in [
            "0(>>1#ib3#=1)",
            "0(>>1#dl2#=1)",
            "0(1#ib1#=1)",
            "1(>>1#ib1#=1)",
            "0(>>1#ib1#1)",
            "0(>>1#ib1#=1",
            "0(>>1#ib1#=1,=1,=1)",
            "0(>>1#hb99#=1)",
        ] {
            assert!(Compare::parse(text, 1).is_err(), "{text}");
        }
        assert!(Compare::looks_like_one("12(>>1#ib1#=1)") && !Compare::looks_like_one("6162(63|64)"));
    }
}
