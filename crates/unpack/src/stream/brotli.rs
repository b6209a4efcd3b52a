//! Brotli: one stream, which nothing announces but a content coding or the name of a file.
//!
//! Large windows (RFC 9841) of up to 1 GiB are read as far as memory allows. Left out: shared dictionaries. Source: RFC 7932.
//! Bounds: a window within `codec_bytes_max`, taken as the stream needs it (and half as much while it grows), and tables of 1 MiB.

use brotli_decompressor::{Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper, StandardAlloc};
use stream::{Class, FileType, Limits};

use crate::frame::codec::{Collected, Decoder, Fault, Progress, Told};
use crate::frame::format::{Format, Reads};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "brotli",
    methods: "by declared type or by the name of a file (`.br`); large windows as far as `codec_bytes_max` allows",
    not_read: "shared dictionaries",
    reads: Reads::Stream,
    memory: "window as the stream needs it, within `codec_bytes_max`; 1 MiB",
    decoder: "brotli-decompressor",
    fuzz: "unpack_brotli",
    compared_with: "`brotli`, which made the seeds",
};

/// The media type by which a stream is declared.
pub(crate) const MEDIA_TYPE: &str = "application/x-brotli";

/// Whether a file of this type and with this name may be such a stream.
pub(crate) fn may_be(name: &str, file_type: FileType) -> bool {
    const EXTENSION: &str = ".br";
    let end = name.len().checked_sub(EXTENSION.len()).and_then(|at| name.get(at..));
    file_type == FileType::Binary && end.is_some_and(|end| end.eq_ignore_ascii_case(EXTENSION))
}

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Brotli.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Brotli");
const CODEC: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// The library gets blocks of this length, however the input is cut: the place of a fault depends on it.
const BLOCK_BYTES: usize = 1024;

/// A decoder of one stream.
pub(crate) struct Brotli {
    window_bytes_max: usize,
    block: Collected<BLOCK_BYTES>,
    /// How much of the block has been decoded; `None` while it is being collected.
    fed: Option<usize>,
    state: State,
}

type Inner = BrotliState<Window, StandardAlloc, StandardAlloc>;

/// The memory of the window, which is refused beyond a bound.
struct Window {
    bytes_max: usize,
    is_exceeded: bool,
}

impl Allocator<u8> for Window {
    type AllocatedMemory = <StandardAlloc as Allocator<u8>>::AllocatedMemory;

    fn alloc_cell(&mut self, length: usize) -> Self::AllocatedMemory {
        // The library writes somewhat beyond the window.
        const SLACK: usize = 4096;
        if length > self.bytes_max.saturating_add(SLACK) {
            self.is_exceeded = true;
            return Self::AllocatedMemory::default();
        }
        StandardAlloc::default().alloc_cell(length)
    }

    fn free_cell(&mut self, _: Self::AllocatedMemory) {}
}

enum State {
    Start,
    Reading(Box<Inner>),
    /// The stream broke off; the decoded content is emitted first.
    Broken(Box<Inner>),
    Over,
}

impl Brotli {
    pub const fn new(limits: &Limits) -> Brotli {
        Brotli {
            window_bytes_max: limits.codec_bytes_max as usize,
            block: Collected::new(),
            fed: None,
            state: State::Start,
        }
    }
}

/// The first byte of a stream with a large window, whose size the next byte tells (RFC 9841).
const LARGE: u8 = 0x11;

/// The window that a stream with this first byte declares (RFC 7932, 9.1). A large one is taken as far as the content needs it: its
/// writers declare 1 GiB for a file of a few bytes.
fn window_bytes(first: u8) -> usize {
    if first == LARGE {
        return 0;
    }
    let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, ..) => 16,
        (_, 0, 0) => 17,
        (_, 0, upper) => 8 + u32::from(upper),
        (_, upper, _) => 17 + u32::from(upper),
    };
    1 << bits
}

impl Brotli {
    fn start(&mut self, input: &[u8]) -> Progress {
        let Some(&first) = input.first() else {
            self.state = State::Start;
            return Progress::took(0);
        };
        let alloc = StandardAlloc::default;
        let window = Window { bytes_max: self.window_bytes_max, is_exceeded: false };
        self.state = State::Reading(Box::new(BrotliState::new(window, alloc(), alloc())));
        if window_bytes(first) > self.window_bytes_max {
            return Progress::fault(0, CODEC);
        }
        Progress::tells(0, Told::Begin(None))
    }

    fn read(&mut self, mut state: Box<Inner>, input: &[u8], output: &mut [u8]) -> Progress {
        let mut taken = 0;
        if self.fed.is_none() {
            taken = self.block.fill(input, BLOCK_BYTES);
            if self.block.len() < BLOCK_BYTES && !input.is_empty() {
                self.state = State::Reading(state);
                return Progress::took(taken);
            }
        }
        let fed = self.fed.unwrap_or(0);
        let piece = &self.block.bytes()[fed..];
        let (mut left, mut used) = (piece.len(), 0);
        let (mut room, mut wrote, mut total) = (output.len(), 0, 0);
        let result =
            BrotliDecompressStream(&mut left, &mut used, piece, &mut room, &mut wrote, output, &mut total, &mut state);
        self.fed = Some(fed + used);
        let mut told = Told::Nothing;
        self.state = match result {
            BrotliResult::NeedsMoreInput if room > 0 => {
                self.block.clear();
                self.fed = None;
                State::Reading(state)
            }
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => State::Reading(state),
            BrotliResult::ResultFailure => {
                // How much of the block was used in front of a fault the library does not tell.
                self.fed = Some(0);
                if wrote == 0 {
                    return self.rest(state, taken, output);
                }
                State::Broken(state)
            }
            BrotliResult::ResultSuccess => {
                told = Told::Over;
                State::Over
            }
        };
        Progress { taken, wrote, told }
    }

    /// Bytes that were decoded before the fault and not emitted.
    fn rest(&mut self, mut state: Box<Inner>, taken: usize, output: &mut [u8]) -> Progress {
        let ring = state.ringbuffer_size.max(0) as u64;
        let end = state.rb_roundtrips * ring + (state.pos.max(0) as u64).min(ring);
        let from = (state.partial_pos_out & state.ringbuffer_mask as u64) as usize;
        let left = state.ringbuffer.slice().get(from..).unwrap_or_default();
        let count = end.saturating_sub(state.partial_pos_out).min(left.len().min(output.len()) as u64) as usize;
        output[..count].copy_from_slice(&left[..count]);
        state.partial_pos_out += count as u64;
        let fault = if state.alloc_u8.is_exceeded { CODEC } else { DATA };
        self.state = State::Broken(state);
        Progress { taken, wrote: count, told: if count == 0 { Told::Fault(fault) } else { Told::Nothing } }
    }
}

impl Brotli {
    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => self.start(input),
            State::Reading(state) => self.read(state, input, output),
            State::Broken(state) => self.rest(state, 0, output),
            State::Over => Progress::tells(0, Told::Over),
        }
    }
}

impl Decoder for Brotli {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        loop {
            // A block that made nothing makes room for the next one.
            let progress = self.turn(input, output);
            if progress != Progress::took(0) || input.is_empty() {
                return progress;
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match self.state {
            State::Over => None,
            _ => Some(TRUNCATED),
        }
    }

    fn surplus(&self) -> &[u8] {
        &self.block.bytes()[self.fed.unwrap_or(self.block.len())..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_tells_the_window() {
        assert_eq!(window_bytes(0x00), 1 << 16);
        assert_eq!(window_bytes(0x01), 1 << 17);
        assert_eq!(window_bytes(0x21), 1 << 10);
        assert_eq!(window_bytes(0x0b), 1 << 22);
        assert_eq!(window_bytes(0x0f), 1 << 24);
        assert_eq!(window_bytes(LARGE), 0);
    }

    /// Zeros, compressed by `brotli --large_window=30`.
    #[test]
    fn a_large_window_is_taken_as_far_as_memory_allows() {
        let (less, more): (&[u8], &[u8]) = (
            &[0x11, 0x5e, 0x7d, 0x4f, 0x12, 0xfe, 0x09, 0x80, 0x78, 0x2c, 0x10, 0x90, 0xb9, 0x48, 0x00],
            &[0x11, 0x5e, 0xfe, 0x1a, 0xb7, 0xe0, 0x9f, 0x00, 0x88, 0xc7, 0x02, 0x01, 0x79, 0xbe, 0x2d],
        );
        for (stream, codec_bytes_max, wanted) in
            [(less, 1 << 20, Ok(300_000)), (more, 8 << 20, Ok(3_000_000)), (more, 1 << 20, Err(CODEC))]
        {
            let mut brotli = Brotli::new(&Limits { codec_bytes_max, ..Limits::default() });
            let (mut output, mut content, mut rest) = (vec![1; 10_000], 0, stream);
            let outcome = loop {
                let progress = brotli.decode(rest, &mut output);
                assert!(output[..progress.wrote].iter().all(|byte| *byte == 0));
                content += progress.wrote;
                rest = &rest[progress.taken..];
                match progress.told {
                    Told::Over => break Ok(content),
                    Told::Fault(fault) => break Err(fault),
                    _ => {}
                }
            };
            assert_eq!(outcome, wanted, "{codec_bytes_max}");
        }
    }
}
