//! Compressed Flash films: `CWS` with zlib behind the head, `ZWS` with LZMA. The film is emitted as players unpack it, with
//! the head of a film that is not compressed.
//!
//! Films that are not compressed hold nothing to open. Bytes behind the compressed film are emitted raw. Source: SWF File
//! Format Specification, version 19. Bounds: those of zlib and of [`LzmaStream`].

use stream::{Class, Limits};

use crate::codec::lzma::{LzmaStream, PROPERTIES_BYTES};
use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told, le32};
use crate::frame::format::{Format, Reads};
use crate::stream::zlib::{self, Zlib};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "Flash (SWF)",
    methods: "CWS (zlib), ZWS (LZMA)",
    not_read: "",
    reads: Reads::Stream,
    memory: "57 KiB; ZWS: dictionary up to `codec_bytes_max`, growing with the data; model up to 6 MB",
    decoder: "zlib-rs; own LZMA",
    fuzz: "unpack_swf",
    compared_with: "Python's `zlib` and `lzma`, over the seeds",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Swf.Header");
const DATA: &str = "Heuristics.Malformed.Swf.Data";
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Swf");

/// Magic, version, length of the film.
const HEAD_BYTES: usize = 8;
/// The compressed length stands between head and properties.
const PROPERTIES_AT: usize = HEAD_BYTES + 4;
const ZWS_HEAD_BYTES: usize = PROPERTIES_AT + PROPERTIES_BYTES;

/// A decoder of compressed films.
pub(crate) struct Swf {
    codec_bytes_max: usize,
    state: State,
}

enum State {
    Header(Collected<ZWS_HEAD_BYTES>),
    Body { head: [u8; HEAD_BYTES], head_told: usize, body: Box<dyn Decoder> },
}

impl Swf {
    pub const fn new(limits: &Limits) -> Swf {
        Swf { codec_bytes_max: limits.codec_bytes_max as usize, state: State::Header(Collected::new()) }
    }
}

/// Whether a file that begins with `head` is a compressed film.
pub(crate) fn is_packed(head: &[u8]) -> bool {
    match head {
        [b'C', b'W', b'S', _, _, _, _, _, method, flags, ..] => zlib::is_header([*method, *flags]),
        [b'Z', b'W', b'S', ..] => {
            head.get(PROPERTIES_AT).is_some_and(|&properties| properties < 225) && head.get(ZWS_HEAD_BYTES) == Some(&0)
        }
        _ => false,
    }
}

/// Returns the decoder of the data after `header`, if that is complete and plausible.
fn body(header: &[u8], codec_bytes_max: usize) -> Option<Box<dyn Decoder>> {
    if header.starts_with(b"CWS") {
        return Some(Box::new(Zlib::new()));
    }
    let properties = *header.get(PROPERTIES_AT..)?.first_chunk()?;
    let length = u64::from(le32(header, 4)).saturating_sub(HEAD_BYTES as u64);
    let stream = LzmaStream::new(properties, Some(length), codec_bytes_max, DATA, TRUNCATED.name)?;
    header.starts_with(b"ZWS").then(|| Box::new(stream) as Box<dyn Decoder>)
}

/// The head of the film that is not compressed.
fn plain_head(header: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = *b"FWS\0\0\0\0\0";
    head.iter_mut().zip(header).skip(3).for_each(|(to, from)| *to = *from);
    head
}

impl Decoder for Swf {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.state {
            State::Header(bytes) => {
                let first = bytes.fill(input, 1);
                let wanted = if bytes.bytes().first() == Some(&b'C') { HEAD_BYTES } else { ZWS_HEAD_BYTES };
                let taken = first + bytes.fill(&input[first..], wanted);
                if bytes.len() < wanted {
                    return Progress::took(taken);
                }
                let Some(body) = body(bytes.bytes(), self.codec_bytes_max) else {
                    return Progress::fault(taken, HEADER);
                };
                self.state = State::Body { head: plain_head(bytes.bytes()), head_told: 0, body };
                Progress::tells(taken, Told::Begin(None))
            }
            State::Body { head, head_told, .. } if *head_told < HEAD_BYTES => {
                let left = &head[*head_told..];
                let wrote = left.len().min(output.len());
                output[..wrote].copy_from_slice(&left[..wrote]);
                *head_told += wrote;
                Progress { taken: 0, wrote, told: Told::Nothing }
            }
            State::Body { body, .. } => {
                let mut progress = body.decode(input, output);
                if matches!(progress.told, Told::Begin(_)) {
                    progress.told = Told::Nothing;
                }
                progress
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match &self.state {
            State::Header(_) => Some(TRUNCATED),
            State::Body { body, .. } => body.missing(),
        }
    }

    fn surplus(&self) -> &[u8] {
        match &self.state {
            State::Header(bytes) => bytes.bytes(),
            State::Body { body, .. } => body.surplus(),
        }
    }
}
