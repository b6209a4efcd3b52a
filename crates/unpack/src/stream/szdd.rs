//! Files of MS-DOS's COMPRESS and its like (`FILE.EX_`): SZDD files, QBasic's among them, and KWAJ files.
//!
//! A match of their LZSS tells a place in a ring of 4096 bytes that is full of spaces at first. Readers disagree whether
//! the length in the header counts: all that the data make is emitted, and another length is a finding. Source: the format
//! descriptions in libmspack. Bounds: a KWAJ header of 64 KiB; the ring, or an inflater and a history of 64 KiB.

mod lzh;
mod mszip;

use stream::Class;

use crate::bits::tokens::{Bits, Broken, Recent, Tokens, Tokenwise};
use crate::frame::codec::{Decoder, Fault, Progress, Told, le16, le32};
use crate::frame::format::{Format, Reads};
use lzh::Lzh;
use mszip::MsZip;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "MS COMPRESS",
    methods: "SZDD, the QBasic variant, KWAJ with all methods (0 to 4)",
    not_read: "",
    reads: Reads::Stream,
    memory: "a header of 64 KiB, 121 KiB",
    decoder: "own; zlib-rs for MSZIP",
    fuzz: "unpack_szdd",
    compared_with: "libmspack",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Szdd.Header");
const LENGTH: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Szdd.Length");
const DATA: &str = "Heuristics.Malformed.Szdd.Data";
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Szdd");
const METHOD: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.KwajMethod");

const SZDD: &[u8] = b"SZDD\x88\xf0\x27\x33A";
const QBASIC: &[u8] = b"SZ \x88\xf0\x27\x33\xd1";
const KWAJ: &[u8] = b"KWAJ\x88\xf0\x27\xd1";
const KWAJ_FIXED_BYTES: usize = 14;

/// A decoder of all of them.
pub(crate) struct Szdd {
    state: State,
    /// Bytes that the body took and did not use.
    surplus: Vec<u8>,
}

enum State {
    Header(Vec<u8>),
    Body { body: Body, wrote: u64, expected: Option<u64> },
    Over,
}

enum Body {
    Stored { mask: u8 },
    Lzss(Box<Tokenwise<Lzss>>),
    Lzh(Box<Lzh>),
    MsZip(Box<MsZip>),
}

impl Szdd {
    pub const fn new() -> Szdd {
        Szdd { state: State::Header(Vec::new()), surplus: Vec::new() }
    }

    fn header(&mut self, mut bytes: Vec<u8>, input: &[u8]) -> Progress {
        let mut taken = 0;
        while let Some(wanted) = header_bytes(&bytes) {
            if bytes.len() == wanted {
                return self.begin(taken, &bytes);
            }
            let count = (wanted - bytes.len()).min(input.len() - taken);
            if count == 0 {
                self.state = State::Header(bytes);
                return Progress::took(taken);
            }
            bytes.extend_from_slice(&input[taken..taken + count]);
            taken += count;
        }
        Progress::fault(taken, HEADER)
    }

    fn begin(&mut self, taken: usize, header: &[u8]) -> Progress {
        let (body, expected, name) = if header.starts_with(KWAJ) {
            let fields = KwajFields::of(header);
            let Some(body) = kwaj_body(le16(header, KWAJ.len()), fields.length) else {
                return Progress::fault(taken, METHOD);
            };
            (body, fields.length, fields.name)
        } else {
            let start = if header.starts_with(QBASIC) { EARLY } else { LATE };
            (Body::lzss(start), Some(le32(header, header.len() - 4)), None)
        };
        self.state = State::Body { body, wrote: 0, expected: expected.map(u64::from) };
        Progress::tells(taken, Told::Begin(name))
    }
}

/// How many bytes of a header there are to be, as far as the first of them tell; `None` if this is no header.
fn header_bytes(bytes: &[u8]) -> Option<usize> {
    const LENGTH_BYTES: usize = 4;
    const LETTER_BYTES: usize = 1;
    let begins = |magic: &[u8]| magic.starts_with(&bytes[..bytes.len().min(magic.len())]);
    if bytes.len() < QBASIC.len() || bytes.len() < SZDD.len() && begins(SZDD) {
        // One byte more, until it is clear which one it is.
        return (begins(SZDD) || begins(QBASIC) || begins(KWAJ)).then_some(bytes.len() + 1);
    }
    if begins(QBASIC) {
        return Some(QBASIC.len() + LENGTH_BYTES);
    }
    if begins(SZDD) {
        return Some(SZDD.len() + LETTER_BYTES + LENGTH_BYTES);
    }
    if !begins(KWAJ) || bytes.len() < KWAJ_FIXED_BYTES {
        return begins(KWAJ).then_some(KWAJ_FIXED_BYTES);
    }
    let data_at = usize::from(le16(bytes, 10));
    (data_at >= KWAJ_FIXED_BYTES).then_some(data_at)
}

fn kwaj_body(method: u16, length: Option<u32>) -> Option<Body> {
    Some(match method {
        0 => Body::Stored { mask: 0 },
        1 => Body::Stored { mask: 0xff },
        2 => Body::lzss(EARLY),
        3 => Body::Lzh(Box::new(Lzh::new(length.map(u64::from)))),
        4 => Body::MsZip(Box::new(MsZip::new())),
        _ => return None,
    })
}

/// The optional fields of a KWAJ header that say something of the content.
#[derive(Default)]
struct KwajFields {
    length: Option<u32>,
    name: Option<Box<str>>,
}

impl KwajFields {
    fn of(header: &[u8]) -> KwajFields {
        const NAME_BYTES: usize = 8;
        const EXTENSION_BYTES: usize = 3;
        let flags = le16(header, 12);
        let has = |bit: u16| flags & 1 << bit != 0;
        let mut at = KWAJ_FIXED_BYTES;
        let mut fields = KwajFields::default();
        if has(0) {
            fields.length = header.get(at..at + 4).map(|field| le32(field, 0));
            at += 4;
        }
        if has(1) {
            at += 2;
        }
        if has(2) {
            at += 2 + usize::from(le16(header, at));
        }
        let mut name = String::new();
        if has(3) {
            at += text(header, at, NAME_BYTES, &mut name);
        }
        if has(4) {
            name.push('.');
            text(header, at, EXTENSION_BYTES, &mut name);
        }
        fields.name = (!name.is_empty()).then(|| name.into());
        fields
    }
}

/// Appends the text at `at`, which ends with a NUL; returns how many bytes it takes.
fn text(header: &[u8], at: usize, bytes_max: usize, name: &mut String) -> usize {
    let field = header.get(at..).unwrap_or_default();
    let length = field.iter().take(bytes_max).take_while(|&&byte| byte != 0).count();
    name.push_str(&String::from_utf8_lossy(&field[..length]));
    length + 1
}

impl Body {
    fn lzss(start: usize) -> Body {
        let lzss = Lzss { ring: Recent::filled(b' '), start, flags: 0, flags_left: 0 };
        Body::Lzss(Box::new(Tokenwise::new(lzss, None, DATA, TRUNCATED.name)))
    }

    fn surplus(&self) -> &[u8] {
        match self {
            Body::Stored { .. } => &[],
            Body::Lzss(body) => body.surplus(),
            Body::Lzh(body) => body.surplus(),
            Body::MsZip(body) => body.surplus(),
        }
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match self {
            Body::Lzss(body) => body.decode(input, output),
            Body::Lzh(body) => body.decode(input, output),
            Body::MsZip(body) => body.decode(input, output),
            Body::Stored { .. } if input.is_empty() => Progress::tells(0, Told::Over),
            Body::Stored { mask } => {
                let count = input.len().min(output.len());
                output.iter_mut().zip(input).for_each(|(to, from)| *to = from ^ *mask);
                Progress { taken: count, wrote: count, told: Told::Nothing }
            }
        }
    }
}

impl Decoder for Szdd {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let (mut body, before, expected) = match std::mem::replace(&mut self.state, State::Over) {
            State::Header(bytes) => return self.header(bytes, input),
            State::Body { body, wrote, expected } => (body, wrote, expected),
            State::Over => return Progress::tells(0, Told::Over),
        };
        let mut progress = body.decode(input, output);
        let wrote = before + progress.wrote as u64;
        match progress.told {
            Told::Nothing => self.state = State::Body { body, wrote, expected },
            Told::Over => {
                self.surplus = body.surplus().to_vec();
                progress.told = match expected {
                    Some(expected) if wrote < expected => Told::Fault(TRUNCATED),
                    Some(expected) if wrote > expected => Told::Fault(LENGTH),
                    _ => Told::Over,
                }
            }
            _ => self.surplus = body.surplus().to_vec(),
        }
        progress
    }

    fn missing(&self) -> Option<Fault> {
        (!matches!(self.state, State::Over)).then_some(TRUNCATED)
    }

    fn surplus(&self) -> &[u8] {
        &self.surplus
    }
}

const RING_BYTES: usize = 4096;
/// Where in the ring the first byte goes: SZDD.
const LATE: usize = RING_BYTES - 16;
/// Where in the ring the first byte goes: QBasic, KWAJ.
const EARLY: usize = RING_BYTES - 18;

/// Literals and matches, eight flags before eight of them, the lowest first.
struct Lzss {
    ring: Recent<RING_BYTES>,
    start: usize,
    flags: u32,
    flags_left: u32,
}

impl Tokens for Lzss {
    const BITS_MAX: u32 = 24;

    fn token(&mut self, bits: &mut Bits, content: &mut Vec<u8>) -> Result<(), Broken> {
        if self.flags_left == 0 {
            (self.flags, self.flags_left) = (bits.take(8), 8);
        }
        let is_literal = self.flags & 1 == 1;
        self.flags >>= 1;
        self.flags_left -= 1;
        if is_literal {
            self.ring.push(bits.take(8) as u8, content);
            return Ok(());
        }
        let (low, high) = (bits.take(8) as usize, bits.take(8) as usize);
        let place = (high & 0xf0) << 4 | low;
        let next = self.start + (self.ring.written() % RING_BYTES as u64) as usize;
        let distance = (next + RING_BYTES - place) % RING_BYTES;
        self.ring.repeat(distance, 3 + (high & 15), content);
        Ok(())
    }

    fn may_end(&self, bits_left: u32) -> bool {
        bits_left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::trial;

    fn qbasic(data: &[u8]) -> Vec<u8> {
        [QBASIC, &20u32.to_le_bytes(), data].concat()
    }

    #[test]
    fn a_match_may_reach_into_the_spaces_and_its_own_end() {
        // Place 0 is 4078 back from the first byte; place 0xff1 is that of the letter.
        let input = qbasic(b"\x02\x00\x00z\xf1\xff");
        let outcome = trial::run(&mut Szdd::new(), &input, usize::MAX, 100);
        assert_eq!(outcome.content, [b"   ", &[b'z'; 19][..]].concat());
        assert_eq!(outcome.faults, ["Heuristics.Malformed.Szdd.Length"]);
        trial::holds(Szdd::new, &input);
    }

    #[test]
    fn a_header_of_another_kind_is_refused() {
        for header in [&b"SZDD\x88\xf0\x27\x33B"[..], b"SZ \x88\xf0\x27\x33\xd2", b"KWAJ\x88\xf0\x27\xd1\0\0\x0d\0\0\0"]
        {
            let outcome = trial::run(&mut Szdd::new(), header, usize::MAX, 100);
            assert_eq!(outcome.faults, ["Heuristics.Malformed.Szdd.Header"], "{}", header.escape_ascii());
        }
    }
}
