//! Packets: their tags, their lengths, and what the first bytes of their bodies say.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::ops::Range;

use super::FIELDS_MAX;
use crate::codec::deflate::Deflate;
use crate::frame::codec::{Collected, Decoder, Told};
use crate::stream::zlib;

/// Bytes of a packet's body, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// So many, and the packet is over.
    Last(u64),
    /// So many, and the length of another part.
    Partial(u64),
    /// All that follows.
    ToTheEnd,
}

impl Length {
    /// How many of so many bytes belong to it.
    pub fn most(self, count: usize) -> usize {
        match self {
            Length::Last(left) | Length::Partial(left) => count.min(usize::try_from(left).unwrap_or(usize::MAX)),
            Length::ToTheEnd => count,
        }
    }

    /// So many bytes were passed.
    pub const fn pass(&mut self, count: usize) {
        if let Length::Last(left) | Length::Partial(left) = self {
            *left = left.saturating_sub(count as u64);
        }
    }

    pub const fn is_over(self) -> bool {
        matches!(self, Length::Last(0) | Length::Partial(0))
    }
}

/// The longest length: a mark and four octets.
const LENGTH_BYTES: usize = 5;

/// A reader of tags and lengths, in both formats.
pub(super) struct Lengths {
    format: Format,
    bytes: Collected<LENGTH_BYTES>,
    is_first: bool,
}

#[derive(Clone, Copy)]
enum Format {
    New,
    /// The old one, with the kind of length that the tag tells.
    Old(u8),
}

impl Lengths {
    pub const fn new() -> Lengths {
        Lengths { format: Format::New, bytes: Collected::new(), is_first: true }
    }

    /// Reads the octet of a tag.
    pub fn tag(&mut self, byte: u8) -> Option<u8> {
        const MARK: u8 = 0x80;
        const NEW: u8 = 0x40;
        self.is_first = true;
        let tag = match byte & (MARK | NEW) {
            both if both == MARK | NEW => {
                self.format = Format::New;
                byte & 0x3f
            }
            MARK => {
                self.format = Format::Old(byte & 3);
                byte >> 2 & 0xf
            }
            _ => return None,
        };
        (tag != 0).then_some(tag)
    }

    /// Reads a length, if it is whole; how much of the input was taken.
    pub fn read(&mut self, input: &[u8]) -> (usize, Option<Length>) {
        let mut taken = 0;
        loop {
            let wanted = self.wanted();
            if self.bytes.len() == wanted {
                let length = self.length();
                self.bytes.clear();
                return (taken, Some(length));
            }
            let count = self.bytes.fill(input.get(taken..).unwrap_or_default(), wanted);
            if count == 0 {
                return (taken, None);
            }
            taken = taken.saturating_add(count);
        }
    }

    /// Whether the length is the first one of its packet.
    pub const fn is_first(&self) -> bool {
        self.is_first
    }

    /// The packet has begun.
    pub const fn begun(&mut self) {
        self.is_first = false;
    }

    /// Octets that the length has, as far as the first one tells.
    fn wanted(&self) -> usize {
        match (self.format, self.bytes.bytes().first()) {
            (Format::Old(kind @ 0..=2), _) => 1 << kind,
            (Format::Old(_), _) => 0,
            (Format::New, None | Some(..192 | 224..=254)) => 1,
            (Format::New, Some(192..=223)) => 2,
            (Format::New, Some(255)) => LENGTH_BYTES,
        }
    }

    fn length(&self) -> Length {
        let number = |octets: &[u8]| octets.iter().fold(0_u64, |value, &octet| value << 8 | u64::from(octet));
        match (self.format, self.bytes.bytes()) {
            (Format::Old(3..), _) => Length::ToTheEnd,
            (Format::New, &[first @ 192..=223, second]) => {
                Length::Last((u64::from(first & 0x1f) << 8).saturating_add(u64::from(second)).saturating_add(192))
            }
            (Format::New, &[first @ 224..=254]) => Length::Partial(1 << (first & 0x1f)),
            (Format::New, [255, octets @ ..]) => Length::Last(number(octets)),
            (_, octets) => Length::Last(number(octets)),
        }
    }
}

/// The first bytes of a packet's body.
pub(super) struct Fields<'a> {
    pub tag: u8,
    pub bytes: &'a [u8],
    /// Length left after them.
    pub left: Length,
}

/// Values of the first bytes of a packet's body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Not enough yet.
    More,
    /// No packet looks so.
    Nonsense,
    /// A tag that is not known, or not in use.
    Unknown,
    /// A packet without content, which other data may look like.
    Passed,
    /// A signature, or the announcement of one, or a mark of PGP.
    Signed,
    /// The key of encrypted data.
    SessionKey,
    Encrypted,
    /// The content follows; where its name stands in the fields.
    Literal(Range<usize>),
    /// The body is compressed, and begins with these bytes; whether they show it.
    Compressed {
        is_sure: bool,
    },
}

const HASHES: Range<u8> = 1..15;

impl Fields<'_> {
    /// Judges the packet; `complete` says that its body has no more bytes.
    pub fn judge(&self, complete: bool) -> Field {
        let field = match self.tag {
            1 => self.public_key_session_key(),
            2 => self.signature(),
            3 => self.password_session_key(),
            4 => self.one_pass(),
            5..=7 | 14 => self.version(2..7),
            8 => self.compressed(complete),
            9 | 18 | 20 => Some(Field::Encrypted),
            10 => self.marker(),
            11 => self.literal(),
            12 | 13 | 17 | 19 | 21 | 60.. => Some(Field::Passed),
            _ => Some(Field::Unknown),
        };
        match field {
            Some(field) => field,
            None if complete || self.bytes.len() >= FIELDS_MAX => Field::Nonsense,
            None => Field::More,
        }
    }

    fn if_so(is_so: bool, field: Field) -> Option<Field> {
        Some(if is_so { field } else { Field::Nonsense })
    }

    fn version(&self, versions: Range<u8>) -> Option<Field> {
        let version = self.bytes.first()?;
        Self::if_so(versions.contains(version), Field::Passed)
    }

    /// Versions 2 and 3 with the algorithm behind an identifier of eight octets, and 6.
    fn public_key_session_key(&self) -> Option<Field> {
        const ALGORITHMS: Range<u8> = 1..64;
        match self.bytes {
            [] => None,
            [6, ..] => Some(Field::SessionKey),
            [2 | 3, rest @ ..] => Self::if_so(ALGORITHMS.contains(rest.get(8)?), Field::SessionKey),
            _ => Some(Field::Nonsense),
        }
    }

    /// Version 4 with a cipher and a known way from the password to the key; 5 and 6.
    fn password_session_key(&self) -> Option<Field> {
        match self.bytes {
            [4, cipher, way, ..] => Self::if_so(*cipher < 14 && matches!(way, 0 | 1 | 3 | 4), Field::SessionKey),
            [] | [4, ..] => None,
            [5 | 6, ..] => Some(Field::SessionKey),
            _ => Some(Field::Nonsense),
        }
    }

    fn signature(&self) -> Option<Field> {
        match self.bytes {
            [2 | 3, length, ..] => Self::if_so(*length == 5, Field::Signed),
            [4..=6, _, _, hash, ..] => Self::if_so(HASHES.contains(hash), Field::Signed),
            [] | [2..=6, ..] => None,
            _ => Some(Field::Nonsense),
        }
    }

    fn one_pass(&self) -> Option<Field> {
        match self.bytes {
            [3 | 6, _, hash, ..] => Self::if_so(HASHES.contains(hash), Field::Signed),
            [] | [3 | 6, ..] => None,
            _ => Some(Field::Nonsense),
        }
    }

    fn marker(&self) -> Option<Field> {
        const MARKER: &[u8] = b"PGP";
        if self.bytes.len() < MARKER.len() && MARKER.starts_with(self.bytes) {
            return None;
        }
        Self::if_so(self.bytes == MARKER && self.left == Length::Last(0), Field::Signed)
    }

    /// The algorithm and what it makes: packets, or a stream that begins well. Deflated data has no mark, and is tried.
    fn compressed(&self, complete: bool) -> Option<Field> {
        const TRIED: usize = 64;
        let (algorithm, packed) = self.bytes.split_first()?;
        let &[first, second, ..] = packed else { return (*algorithm > 3).then_some(Field::Nonsense) };
        let makes_sense = match algorithm {
            0 => matches!(Lengths::new().tag(first), Some(2 | 4 | 8 | 10 | 11 | 21)),
            1 if packed.len() < TRIED && !complete => return None,
            1 => inflates(packed),
            2 => zlib::is_header([first, second]),
            3 => [first, second] == *b"BZ",
            _ => false,
        };
        Self::if_so(makes_sense, Field::Compressed { is_sure: *algorithm > 1 })
    }

    /// The format, the name behind its length, the date.
    fn literal(&self) -> Option<Field> {
        const FORMATS: &[u8] = b"btul1m";
        const NAME_AT: usize = 2;
        const DATE_BYTES: usize = 4;
        let format = self.bytes.first()?;
        if !FORMATS.contains(format) {
            return Some(Field::Nonsense);
        }
        let name = NAME_AT..NAME_AT.saturating_add(usize::from(*self.bytes.get(1)?));
        (self.bytes.len() == name.end.saturating_add(DATE_BYTES)).then_some(Field::Literal(name))
    }
}

/// Whether deflated data may begin so.
fn inflates(packed: &[u8]) -> bool {
    let mut content = [0; 1024];
    let progress = Deflate::new("", "").decode(packed, &mut content);
    !matches!(progress.told, Told::Fault(_))
}
