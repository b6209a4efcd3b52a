//! `.lzma` files: a header of 13 bytes and one LZMA stream. The format has no magic and no checksum.
//!
//! Source: the description in XZ Utils. Bounds: those of [`LzmaStream`].

use stream::{Class, Limits};

use crate::codec::lzma::{LzmaStream, PROPERTIES_BYTES};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le32, le64};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "lzma",
    methods: "with and without known length and end marker; recognised by its fields and by what its head decodes to",
    not_read: "",
    reads: Reads::Stream,
    memory: "dictionary up to `codec_bytes_max`, growing with the data; model up to 6 MB, usually 28 KiB",
    decoder: "own",
    fuzz: "unpack_lzma",
    compared_with: "`xz --format=lzma`",
};

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lzma.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Lzma");

const HEADER_BYTES: usize = 13;
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// A decoder of `.lzma` files.
pub(crate) struct LzmaAlone {
    codec_bytes_max: usize,
    state: State,
}

enum State {
    Header(Collected<HEADER_BYTES>),
    Body(Box<LzmaStream>),
}

impl LzmaAlone {
    pub fn new(limits: &Limits) -> LzmaAlone {
        LzmaAlone { codec_bytes_max: limits.codec_bytes_max as usize, state: State::Header(Collected::new()) }
    }
}

fn stream(header: &[u8; HEADER_BYTES], codec_bytes_max: usize) -> Option<LzmaStream> {
    let properties = *header.first_chunk::<PROPERTIES_BYTES>()?;
    let length = le64(header, PROPERTIES_BYTES);
    let length = (length != UNKNOWN_LENGTH).then_some(length);
    LzmaStream::new(properties, length, codec_bytes_max, DATA.name, TRUNCATED.name)
}

/// Returns whether a file that begins with `head` is plausible: encoders write such headers, and the bytes after it
/// give content.
pub(crate) fn is_plausible(head: &[u8]) -> bool {
    const LENGTH_MAX: u64 = 1 << 38;
    const DICTIONARY_BYTES_MIN: u32 = 1 << 12;
    const TRIAL_BYTES: usize = 1 << 12;
    const DAMAGED_BYTES_MIN: usize = 48;
    let Some((header, rest)) = head.split_first_chunk::<HEADER_BYTES>() else {
        return false;
    };
    let (dictionary, length) = (le32(header, 1), le64(header, PROPERTIES_BYTES));
    // A power of two, or the sum of two neighbours.
    let round = dictionary.is_power_of_two() || dictionary.is_multiple_of(3) && (dictionary / 3).is_power_of_two();
    let is_header = header[0] < 225
        && (round || dictionary == u32::MAX)
        && dictionary >= DICTIONARY_BYTES_MIN
        && (length == UNKNOWN_LENGTH || (1..LENGTH_MAX).contains(&length))
        && rest.first() == Some(&0);
    if !is_header {
        return false;
    }
    let Some(mut stream) = stream(header, TRIAL_BYTES * 16) else {
        return false;
    };
    let (mut rest, mut output, mut wrote) = (rest, [0; TRIAL_BYTES], 0);
    while !rest.is_empty() && wrote < TRIAL_BYTES {
        let progress = stream.decode(rest, &mut output);
        rest = &rest[progress.taken..];
        wrote += progress.wrote;
        match progress.told {
            // Damaged data are written up to where that shows.
            Told::Fault(_) => return wrote >= DAMAGED_BYTES_MIN,
            Told::Over => return wrote > 0,
            _ => {}
        }
    }
    // If the file ends with its head, the held bytes decide.
    wrote > 0 || stream.decode(b"", &mut output).wrote > 0
}

impl Decoder for LzmaAlone {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.state {
            State::Body(stream) => stream.decode(input, output),
            State::Header(bytes) => {
                let taken = bytes.fill(input, HEADER_BYTES);
                let Some(header) = bytes.whole() else {
                    return Progress::took(taken);
                };
                let Some(stream) = stream(header, self.codec_bytes_max) else {
                    return Progress::fault(taken, DATA);
                };
                self.state = State::Body(Box::new(stream));
                Progress::tells(taken, Told::Begin(None))
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match &self.state {
            State::Header(_) => Some(TRUNCATED),
            State::Body(stream) => stream.missing(),
        }
    }

    fn surplus(&self) -> &[u8] {
        match &self.state {
            State::Header(bytes) => bytes.bytes(),
            State::Body(stream) => stream.surplus(),
        }
    }
}
