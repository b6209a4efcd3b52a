//! Zlib (RFC 1950): one stream. Preset dictionaries are not known to anybody here and end the reading.
//!
//! Bounds: one inflater. A wrong Adler-32 is a finding and the content is emitted all the same.

use stream::Class;
use zlib_rs::adler32::adler32;

use crate::codec::deflate::Deflate;
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "zlib",
    methods: "deflate",
    not_read: "preset dictionaries",
    reads: Reads::Stream,
    memory: "57 KiB",
    decoder: "zlib-rs",
    fuzz: "unpack_recognise",
    compared_with: "zlib-rs",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Zlib.Header");
const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.ZlibDictionary");
const CHECK: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Zlib.Adler");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Zlib");

/// A decoder of zlib streams.
pub(crate) struct Zlib {
    state: State,
}

enum State {
    Header(Collected<2>),
    Body { deflate: Box<Deflate>, adler: u32 },
    Trailer { adler: u32, bytes: Collected<4> },
    Over,
}

impl Zlib {
    pub fn new() -> Zlib {
        Zlib { state: State::Header(Collected::new()) }
    }

    fn header(&mut self, mut bytes: Collected<2>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 2);
        let Some(&header) = bytes.whole() else {
            self.state = State::Header(bytes);
            return Progress::took(taken);
        };
        if !is_header(header) {
            return Progress::fault(taken, HEADER);
        }
        if header[1] & 0x20 != 0 {
            return Progress::fault(taken, DICTIONARY);
        }
        let deflate = Deflate::new("Heuristics.Malformed.Zlib.Data", TRUNCATED.name);
        self.state = State::Body { deflate: Box::new(deflate), adler: 1 };
        Progress::tells(taken, Told::Begin(None))
    }
}

/// Whether the two bytes can begin a zlib stream: method, window size, check bits.
pub(crate) fn is_header(header: [u8; 2]) -> bool {
    header[0] & 0x0f == 8 && header[0] >> 4 <= 7 && u16::from_be_bytes(header).is_multiple_of(31)
}

impl Decoder for Zlib {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Header(bytes) => self.header(bytes, input),
            State::Body { mut deflate, adler } => {
                let mut progress = deflate.decode(input, output);
                let adler = adler32(adler, &output[..progress.wrote]);
                self.state = match progress.told {
                    Told::Over => State::Trailer { adler, bytes: Collected::new() },
                    _ => State::Body { deflate, adler },
                };
                if progress.told == Told::Over {
                    progress.told = Told::Nothing;
                }
                progress
            }
            State::Trailer { adler, mut bytes } => {
                let taken = bytes.fill(input, 4);
                match bytes.whole() {
                    Some(&whole) if u32::from_be_bytes(whole) != adler => Progress::fault(taken, CHECK),
                    Some(_) => Progress::tells(taken, Told::Over),
                    None => {
                        self.state = State::Trailer { adler, bytes };
                        Progress::took(taken)
                    }
                }
            }
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn missing(&self) -> Option<Fault> {
        match self.state {
            State::Over => None,
            _ => Some(TRUNCATED),
        }
    }
}
