//! Zstandard (RFC 8878): any number of frames, skippable ones among them, told as one content.
//!
//! Blocks are collected whole and decoded by ruzstd. It keeps a window's worth of content back while a frame goes on:
//! that comes when the frame ends, or breaks off. A wrong checksum is a finding and the content is emitted all the same.
//!
//! Bounds: one block of 128 KiB in both forms, the window that the frame declares, filled by the data alone (twice while
//! it doubles). A frame with a longer window than `codec_bytes_max` is read up to 8 MiB of content; more is a Limit finding,
//! and so is a frame that wants a dictionary. Not read: the formats before version 0.8, and frames without magic.
//!
//! ```text
//!   ┌──────────────▶ Magic ──skippable──▶ SkipLength ─▶ Skip ─┐
//!   │ ▲                │                                      │
//!   │ └────────────────┼──────────────────────────────────────┘
//!   └─ Checksum ◀─ Blocks ◀─ Header
//! ```

use std::io::Read as _;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use stream::{Class, Limits};

use crate::frame::codec::{Collected, Fault, Framed, Progress, Told, le32, le64};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "zstd",
    methods: "several frames, skippable frames",
    not_read: "dictionaries, content beyond 8 MiB in a longer window than `codec_bytes_max`, formats before version 0.8",
    reads: Reads::Stream,
    memory: "window up to `codec_bytes_max`, growing with the data (twice that while it grows), 0.6 MiB",
    decoder: "ruzstd; own framing",
    fuzz: "unpack_zstd",
    compared_with: "`zstd`",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Zstd.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Zstd.Data");
const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Zstd.Checksum");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Zstd");
const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.ZstdDictionary");
const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE: u32 = 0x184d_2a50;
const BLOCK_BYTES_MAX: usize = 128 << 10;
/// Size of a frame whose window need not be granted: enough for short content, and the memory of usual frames.
const GRANTED_BYTES_MAX: u64 = 8 << 20;

/// A decoder of zstd files.
pub(crate) struct Zstd {
    codec_bytes_max: u64,
    /// Whether to stop after the first frame.
    single: bool,
    /// Whether content has begun.
    begun: bool,
    /// Whether a frame or member has been read, so that the next bytes may be surplus.
    further: bool,
    magic: Collected<4>,
    /// Event when the frame's content is out.
    owing: Told,
    frame: Option<Box<Frame>>,
    state: State,
}

struct Frame {
    decoder: FrameDecoder,
    has_checksum: bool,
    /// The window that is declared is not granted: the content has to be shorter than the one that is.
    is_cut: bool,
}

enum State {
    Magic,
    SkipLength(Collected<4>),
    Skip(u32),
    Header(Vec<u8>),
    Block(Vec<u8>),
    /// The frame's last content comes out.
    Draining,
    Checksum(Collected<4>),
    Over,
}

impl Zstd {
    /// Reads all frames up to the end.
    pub fn new(limits: &Limits) -> Zstd {
        Zstd {
            codec_bytes_max: u64::from(limits.codec_bytes_max),
            single: false,
            begun: false,
            further: false,
            magic: Collected::new(),
            owing: Told::Nothing,
            frame: None,
            state: State::Magic,
        }
    }

    /// Reads one frame only, as in a zip.
    pub fn single(limits: &Limits) -> Zstd {
        Zstd { single: true, ..Zstd::new(limits) }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let taken = self.magic.fill_while(input, is_magic);
        self.state = State::Magic;
        if !is_magic(self.magic.bytes()) {
            self.state = State::Over;
            return Progress::tells(taken, if self.further { Told::Over } else { Told::Fault(HEADER) });
        }
        if let Some(whole) = self.magic.whole() {
            self.state = match le32(whole, 0) {
                MAGIC => State::Header(whole.to_vec()),
                _ => State::SkipLength(Collected::new()),
            };
            self.magic.clear();
            self.further = true;
            if !std::mem::replace(&mut self.begun, true) {
                return Progress::tells(taken, Told::Begin(None));
            }
        }
        Progress::took(taken)
    }

    fn skip_length(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 4);
        self.state = match bytes.whole() {
            Some(whole) => State::Skip(le32(whole, 0)),
            None => State::SkipLength(bytes),
        };
        Progress::took(taken)
    }

    fn skip(&mut self, left: u32, input: &[u8]) -> Progress {
        let taken = input.len().min(left as usize);
        self.state = match left - taken as u32 {
            0 => State::Magic,
            left => State::Skip(left),
        };
        Progress::took(taken)
    }

    fn header(&mut self, mut bytes: Vec<u8>, input: &[u8]) -> Progress {
        let mut taken = 0;
        while bytes.len() < header_bytes(&bytes) && taken < input.len() {
            bytes.push(input[taken]);
            taken += 1;
        }
        if bytes.len() < header_bytes(&bytes) {
            self.state = State::Header(bytes);
            return Progress::took(taken);
        }
        if dictionary(&bytes) != 0 {
            return self.breaks(taken, DICTIONARY);
        }
        let is_cut = window_bytes(&bytes) > self.codec_bytes_max;
        if is_cut && !grant(&mut bytes, self.codec_bytes_max.min(GRANTED_BYTES_MAX)) {
            return self.breaks(taken, LIMIT);
        }
        let has_checksum = bytes[4] & HAS_CHECKSUM != 0;
        // The checksum is read here: it must not keep the last block waiting.
        bytes[4] &= !HAS_CHECKSUM;
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(self.codec_bytes_max);
        if decoder.init(&bytes[..]).is_err() {
            return self.breaks(taken, HEADER);
        }
        self.frame = Some(Box::new(Frame { decoder, has_checksum, is_cut }));
        self.state = State::Block(Vec::new());
        Progress::took(taken)
    }

    fn block(&mut self, mut bytes: Vec<u8>, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(frame) = &mut self.frame else {
            return self.breaks(0, DATA);
        };
        let wrote = frame.decoder.read(output).unwrap_or(0);
        if wrote > 0 && frame.is_cut {
            return Progress { wrote, ..self.frame_ends(0, Told::Fault(LIMIT)) };
        }
        if wrote > 0 {
            self.state = State::Block(bytes);
            return Progress { taken: 0, wrote, told: Told::Nothing };
        }
        let mut taken = fill(&mut bytes, input, BLOCK_HEADER_BYTES);
        let Some(size) = block_bytes(&bytes) else {
            self.state = State::Block(bytes);
            return Progress::took(taken);
        };
        if size > BLOCK_BYTES_MAX {
            return self.frame_ends(taken, Told::Fault(DATA));
        }
        taken += fill(&mut bytes, &input[taken..], BLOCK_HEADER_BYTES + size);
        if bytes.len() < BLOCK_HEADER_BYTES + size {
            self.state = State::Block(bytes);
            return Progress::took(taken);
        }
        match frame.decoder.decode_blocks(&bytes[..], BlockDecodingStrategy::UptoBlocks(1)) {
            Ok(true) => self.state = State::Draining,
            Ok(false) => {
                bytes.clear();
                self.state = State::Block(bytes);
            }
            Err(_) => return self.frame_ends(taken, Told::Fault(DATA)),
        }
        Progress::took(taken)
    }

    /// Ends a broken frame: the output that the decoder holds back is emitted as after a last block, then `told`.
    fn frame_ends(&mut self, taken: usize, told: Told) -> Progress {
        const EMPTY_LAST_BLOCK: [u8; BLOCK_HEADER_BYTES] = [1, 0, 0];
        if let Some(frame) = &mut self.frame {
            let _ = frame.decoder.decode_blocks(&EMPTY_LAST_BLOCK[..], BlockDecodingStrategy::UptoBlocks(1));
        }
        self.owing = told;
        self.state = State::Draining;
        Progress::took(taken)
    }

    fn drain(&mut self, output: &mut [u8]) -> Progress {
        let Some(frame) = &mut self.frame else {
            return self.breaks(0, DATA);
        };
        let wrote = frame.decoder.read(output).unwrap_or(0);
        if wrote > 0 {
            self.state = State::Draining;
            return Progress { taken: 0, wrote, told: Told::Nothing };
        }
        match std::mem::replace(&mut self.owing, Told::Nothing) {
            Told::Nothing if frame.has_checksum => {
                self.state = State::Checksum(Collected::new());
                Progress::took(0)
            }
            Told::Nothing => self.next_frame(0),
            told => Progress::tells(0, told),
        }
    }

    fn checksum(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 4);
        let Some(whole) = bytes.whole() else {
            self.state = State::Checksum(bytes);
            return Progress::took(taken);
        };
        let made = self.frame.as_ref().and_then(|frame| frame.decoder.get_calculated_checksum());
        if made != Some(le32(whole, 0)) {
            self.next_frame(taken);
            return Progress::fault(taken, CHECKSUM);
        }
        self.next_frame(taken)
    }

    fn next_frame(&mut self, taken: usize) -> Progress {
        self.frame = None;
        self.state = if self.single { State::Over } else { State::Magic };
        Progress::took(taken)
    }

    fn breaks(&mut self, taken: usize, fault: Fault) -> Progress {
        self.state = State::Over;
        Progress::fault(taken, fault)
    }
}

fn is_magic(bytes: &[u8]) -> bool {
    let skippable = match bytes.split_first() {
        Some((first, rest)) => first & 0xf0 == 0x50 && SKIPPABLE.to_le_bytes()[1..].starts_with(rest),
        None => true,
    };
    skippable || MAGIC.to_le_bytes().starts_with(bytes)
}

const HAS_CHECKSUM: u8 = 4;
const IS_SINGLE_SEGMENT: u8 = 0x20;
const MAGIC_BYTES: usize = 4;
const BLOCK_HEADER_BYTES: usize = 3;

/// How long the frame header is, the magic included, as far as its first bytes tell.
fn header_bytes(header: &[u8]) -> usize {
    let Some(&descriptor) = header.get(MAGIC_BYTES) else {
        return MAGIC_BYTES + 1;
    };
    content_size_at(descriptor) + content_size_bytes(descriptor)
}

const fn dictionary_bytes(descriptor: u8) -> usize {
    [0, 1, 2, 4][descriptor as usize & 3]
}

const fn dictionary_at(descriptor: u8) -> usize {
    MAGIC_BYTES + 1 + (descriptor & IS_SINGLE_SEGMENT == 0) as usize
}

const fn content_size_at(descriptor: u8) -> usize {
    dictionary_at(descriptor) + dictionary_bytes(descriptor)
}

const fn content_size_bytes(descriptor: u8) -> usize {
    match descriptor >> 6 {
        0 => (descriptor & IS_SINGLE_SEGMENT != 0) as usize,
        bits => 1 << bits,
    }
}

/// The number of the dictionary that a whole header asks for, or 0.
fn dictionary(header: &[u8]) -> u64 {
    let descriptor = header[MAGIC_BYTES];
    number(header, dictionary_at(descriptor), dictionary_bytes(descriptor))
}

/// Declares the longest window of at most so many bytes instead; whether the header has room for one.
fn grant(header: &mut [u8], bytes_max: u64) -> bool {
    let power = bytes_max.checked_ilog2().and_then(|power| power.checked_sub(10));
    match power.and_then(|power| u8::try_from(power << 3).ok()) {
        Some(window) if header[MAGIC_BYTES] & IS_SINGLE_SEGMENT == 0 => {
            header[MAGIC_BYTES + 1] = window;
            true
        }
        _ => false,
    }
}

/// The window that a whole header declares.
fn window_bytes(header: &[u8]) -> u64 {
    let descriptor = header[MAGIC_BYTES];
    if descriptor & IS_SINGLE_SEGMENT != 0 {
        let bytes = content_size_bytes(descriptor);
        let more = if bytes == 2 { 256 } else { 0 };
        return number(header, content_size_at(descriptor), bytes).saturating_add(more);
    }
    let window = header[MAGIC_BYTES + 1];
    let base = 1u64 << (10 + (window >> 3));
    base + base / 8 * u64::from(window & 7)
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    le64(&bytes[..(at + length).min(bytes.len())], at)
}

/// Appends from `input` until there are `wanted` bytes; returns how many were taken.
fn fill(bytes: &mut Vec<u8>, input: &[u8], wanted: usize) -> usize {
    let count = wanted.saturating_sub(bytes.len()).min(input.len());
    bytes.extend_from_slice(&input[..count]);
    count
}

/// How many bytes follow the header of a block, if that is whole.
fn block_bytes(block: &[u8]) -> Option<usize> {
    const RUN: u32 = 1;
    const RESERVED: u32 = 3;
    let header = block.first_chunk::<BLOCK_HEADER_BYTES>()?;
    let header = le32(header, 0);
    let size = (header >> 3) as usize;
    Some(match header >> 1 & 3 {
        RUN if size <= BLOCK_BYTES_MAX => 1,
        RESERVED => usize::MAX,
        _ => size,
    })
}

/// Available beginning of a stored block, as a block of that length.
fn stored_beginning(mut block: Vec<u8>) -> Option<Vec<u8>> {
    const STORED: u32 = 0;
    let header = le32(block.first_chunk::<BLOCK_HEADER_BYTES>()?, 0);
    let length = block.len() - BLOCK_HEADER_BYTES;
    if header >> 1 & 3 != STORED || length == 0 {
        return None;
    }
    let header = (length as u32) << 3;
    block[..BLOCK_HEADER_BYTES].copy_from_slice(&header.to_le_bytes()[..BLOCK_HEADER_BYTES]);
    Some(block)
}

impl Framed for Zstd {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        std::mem::discriminant(&self.state)
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Magic => self.magic(input),
            State::SkipLength(bytes) => self.skip_length(bytes, input),
            State::Skip(left) => self.skip(left, input),
            State::Header(bytes) => self.header(bytes, input),
            State::Block(bytes) => self.block(bytes, input, output),
            State::Draining => self.drain(output),
            State::Checksum(bytes) => self.checksum(bytes, input),
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn may_end(&self) -> bool {
        match self.state {
            State::Magic => self.further,
            _ => matches!(self.state, State::Over),
        }
    }

    fn cut_short(&mut self) -> bool {
        let State::Block(bytes) = &mut self.state else { return false };
        let bytes = std::mem::take(bytes);
        if let Some((frame, stored)) = self.frame.as_mut().zip(stored_beginning(bytes)) {
            let _ = frame.decoder.decode_blocks(&stored[..], BlockDecodingStrategy::UptoBlocks(1));
        }
        self.frame_ends(0, Told::Fault(TRUNCATED));
        true
    }

    fn surplus(&self) -> &[u8] {
        self.magic.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::trial;

    /// The beginning of a frame with a window of 2 GiB.
    const LONG: &[u8] = b"\x28\xb5\x2f\xfd\0\xa8";

    #[test]
    fn a_longer_window_than_is_granted_serves_short_content() {
        let limits = Limits { codec_bytes_max: 1 << 20, ..Limits::default() };
        let short = [LONG, b"\x29\0\0hello"].concat();
        trial::holds(|| Zstd::new(&limits), &short);
        let outcome = trial::run(&mut Zstd::new(&limits), &short, usize::MAX, 64);
        assert_eq!((&outcome.content[..], outcome.faults), (&b"hello"[..], Vec::new()));
    }

    #[test]
    fn longer_content_in_it_is_told_as_far_as_the_limit() {
        let limits = Limits { codec_bytes_max: 1 << 20, ..Limits::default() };
        // Runs of 128 KiB.
        let long = [LONG, &b"\x02\0\x10a".repeat(20)].concat();
        trial::holds(|| Zstd::new(&limits), &long);
        let outcome = trial::run(&mut Zstd::new(&limits), &long, usize::MAX, 65536);
        assert!(outcome.content.len() > 1 << 20, "{}", outcome.content.len());
        assert_eq!(outcome.faults, [LIMIT.name]);
    }
}
