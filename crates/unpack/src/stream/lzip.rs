//! Lzip, versions 0 and 1: any number of members, each an LZMA stream with a checksum behind it, told as one content.
//!
//! A wrong checksum or length is a finding and the content is emitted all the same. Bytes behind the last member are
//! surplus. Source: the lzip manual. Bounds: those of [`LzmaStream`].
//!
//! ```text
//! Header ─▶ Body ─▶ Trailer ─▶ Header (next member) ─▶ … ─▶ over
//! ```

use stream::{Class, Limits};
use zlib_rs::crc32::crc32;

use crate::codec::lzma::LzmaStream;
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le32, le64};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "lzip",
    methods: "versions 0 and 1, several members",
    not_read: "",
    reads: Reads::Stream,
    memory: "dictionary up to `codec_bytes_max`, growing with the data; 32 KiB",
    decoder: "own",
    fuzz: "unpack_lzma",
    compared_with: "`lzip`",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lzip.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lzip.Data");
const CRC: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lzip.Crc");
const LENGTH: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lzip.Length");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Lzip");

const MAGIC: &[u8; 4] = b"LZIP";
const HEADER_BYTES: usize = 6;
const TRAILER_BYTES_MAX: usize = 20;

/// A decoder of lzip files.
pub(crate) struct Lzip {
    codec_bytes_max: usize,
    /// Whether a frame or member has been read, so that the next bytes may be surplus.
    further: bool,
    version: u8,
    /// Bytes taken in search of a header.
    header: Collected<HEADER_BYTES>,
    /// Bytes that a stream took too much: they are read before the input is.
    again: Vec<u8>,
    state: State,
}

enum State {
    Header,
    Body(Box<Member>),
    Trailer { member: Box<Member>, bytes: Collected<TRAILER_BYTES_MAX> },
    Over,
}

struct Member {
    stream: LzmaStream,
    /// Bytes of the member taken: the header, and those that the stream took and used.
    taken: u64,
    wrote: u64,
    crc: u32,
}

impl Lzip {
    pub fn new(limits: &Limits) -> Lzip {
        Lzip {
            codec_bytes_max: limits.codec_bytes_max as usize,
            further: false,
            version: 0,
            header: Collected::new(),
            again: Vec::new(),
            state: State::Header,
        }
    }

    fn read(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Header => self.header(input),
            State::Body(member) => self.body(member, input, output),
            State::Trailer { member, bytes } => self.trailer(member, bytes, input),
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn header(&mut self, input: &[u8]) -> Progress {
        let is_possible = |bytes: &[u8]| {
            MAGIC.starts_with(&bytes[..bytes.len().min(4)]) && bytes.get(4).is_none_or(|&version| version <= 1)
        };
        let taken = self.header.fill_while(input, is_possible);
        if !is_possible(self.header.bytes()) {
            let told = if self.further { Told::Over } else { Told::Fault(HEADER) };
            return self.no_header(taken, told);
        }
        self.state = State::Header;
        let Some(&[.., version, size]) = self.header.whole() else {
            return Progress::took(taken);
        };
        let stream = properties(size)
            .and_then(|properties| LzmaStream::new(properties, None, self.codec_bytes_max, DATA.name, TRUNCATED.name));
        let Some(stream) = stream else {
            return self.no_header(taken, Told::Fault(HEADER));
        };
        self.version = version;
        self.header.clear();
        self.state = State::Body(Box::new(Member { stream, taken: HEADER_BYTES as u64, wrote: 0, crc: 0 }));
        if std::mem::replace(&mut self.further, true) {
            return Progress::took(taken);
        }
        Progress::tells(taken, Told::Begin(None))
    }

    /// Takes supposed header bytes for surplus, in front of the input that is to be read again.
    fn no_header(&mut self, taken: usize, told: Told) -> Progress {
        self.again.splice(..0, self.header.bytes().iter().copied());
        self.header.clear();
        self.state = State::Over;
        Progress::tells(taken, told)
    }

    fn body(&mut self, mut member: Box<Member>, input: &[u8], output: &mut [u8]) -> Progress {
        let mut progress = member.stream.decode(input, output);
        member.taken += progress.taken as u64;
        member.wrote += progress.wrote as u64;
        member.crc = crc32(member.crc, &output[..progress.wrote]);
        self.state = match progress.told {
            Told::Over => {
                progress.told = Told::Nothing;
                self.give_back(&mut member);
                State::Trailer { member, bytes: Collected::new() }
            }
            Told::Fault(_) => {
                self.give_back(&mut member);
                State::Over
            }
            _ => State::Body(member),
        };
        progress
    }

    fn give_back(&mut self, member: &mut Member) {
        self.again = member.stream.surplus().to_vec();
        member.taken -= self.again.len() as u64;
    }

    fn trailer(&mut self, member: Box<Member>, mut bytes: Collected<TRAILER_BYTES_MAX>, input: &[u8]) -> Progress {
        let wanted = if self.version == 0 { 12 } else { TRAILER_BYTES_MAX };
        let taken = bytes.fill(input, wanted);
        if bytes.len() < wanted {
            self.state = State::Trailer { member, bytes };
            return Progress::took(taken);
        }
        let whole = bytes.bytes();
        let told = if le32(whole, 0) != member.crc {
            Told::Fault(CRC)
        } else if le64(whole, 4) != member.wrote || self.version > 0 && le64(whole, 12) != member.taken + wanted as u64
        {
            Told::Fault(LENGTH)
        } else {
            Told::Nothing
        };
        self.state = State::Header;
        Progress::tells(taken, told)
    }
}

/// The properties of a stream whose header has this byte of the size of the dictionary.
fn properties(size: u8) -> Option<[u8; 5]> {
    const USUAL: u8 = 0x5d;
    let base = 1u32 << (size & 0x1f);
    let bytes = base - base / 16 * u32::from(size >> 5);
    let [a, b, c, d] = bytes.to_le_bytes();
    (12..=29).contains(&(size & 0x1f)).then_some([USUAL, a, b, c, d])
}

impl Decoder for Lzip {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let mut taken = 0;
        loop {
            let before = std::mem::discriminant(&self.state);
            let again = std::mem::take(&mut self.again);
            let is_again = !again.is_empty();
            let mut progress = self.read(if is_again { &again } else { &input[taken..] }, output);
            let moved = progress.taken > 0 || before != std::mem::discriminant(&self.state);
            if is_again {
                self.again.extend_from_slice(&again[progress.taken..]);
            } else {
                taken += progress.taken;
            }
            // Empty input would mean the end.
            let is_used_up = self.again.is_empty() && taken == input.len() && taken > 0;
            if progress.wrote > 0 || progress.told != Told::Nothing || !moved || is_used_up {
                progress.taken = taken;
                return progress;
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match &self.state {
            State::Header if self.further && self.header.len() < MAGIC.len() => None,
            State::Over => None,
            _ => Some(TRUNCATED),
        }
    }

    fn surplus(&self) -> &[u8] {
        match self.header.len() {
            0 => &self.again,
            _ => self.header.bytes(),
        }
    }
}
