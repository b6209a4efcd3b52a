//! Zisofs: a file of an ISO image that Linux decompresses when it is read, as it stands there.
//!
//! A header, a table of where blocks begin, and blocks of zlib; one of no length is zeros. Version 1 and version 2 with
//! zlib. Source: the specification by H. Peter Anvin, and libisofs's of version 2. Bounds: the table within
//! `codec_bytes_max`, a state of zlib-rs.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::collections::VecDeque;

use stream::{Class, Limits};

use crate::codec::deflate::Deflate;
use crate::frame::codec::{Collected, Decoder, Fault, Framed, Progress, Told, le32, le64};
use crate::frame::format::{Format, Reads};
use crate::stream::zlib;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "zisofs",
    methods: "files of ISO images that are compressed, of versions 1 and 2; checksums are not compared",
    not_read: "other algorithms than zlib",
    reads: Reads::Stream,
    memory: "four bytes for each block, within `codec_bytes_max`; 57 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_zisofs",
    compared_with: "xorriso, which made the seeds",
};

/// The first bytes of a file, of both versions.
pub(crate) const MAGIC: [&[u8]; 2] = [b"\x37\xe4\x53\x96\xc9\xdb\xd6\x07", b"\xef\x22\x55\xa1\xbc\x1b\x95\xa0"];

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Zisofs.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Zisofs.Data");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Zisofs");
const CODEC: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

const HEADER_MAX: usize = 24;
const POINTER_MAX: usize = 8;
/// Bytes after the content of a block, the checksum of zlib.
const TRAILER: u64 = 4;

/// A decoder of such files.
pub(crate) struct Zisofs {
    blocks_max: usize,
    state: State,
    header: Collected<HEADER_MAX>,
    pointer: Collected<POINTER_MAX>,
    is_second: bool,
    /// Bytes of content that are to come.
    left: u64,
    block_bytes: u64,
    /// Where blocks begin that were not reached yet.
    blocks: VecDeque<u64>,
    at: u64,
    deflate: Deflate,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Header,
    /// So many pointers are to come.
    Table(u64),
    /// In front of a block, so many bytes.
    Gap(u64),
    /// Zeros.
    Sparse(u64),
    /// In the header of a block, with so many bytes of the block behind it and content of it.
    Block(u64, u64),
    Content(u64, u64),
    Over,
}

impl Zisofs {
    pub fn new(limits: &Limits) -> Zisofs {
        Zisofs {
            blocks_max: (limits.codec_bytes_max >> 3) as usize,
            state: State::Header,
            header: Collected::new(),
            pointer: Collected::new(),
            is_second: false,
            left: 0,
            block_bytes: 0,
            blocks: VecDeque::new(),
            at: 0,
            deflate: Deflate::new(DATA.name, TRUNCATED.name),
        }
    }

    fn header(&mut self, input: &[u8]) -> Progress {
        const SHORT: usize = 16;
        let mut taken = self.header.fill(input, SHORT);
        if self.header.bytes().starts_with(MAGIC[1]) {
            taken = taken.saturating_add(self.header.fill(input.get(taken..).unwrap_or_default(), HEADER_MAX));
            self.is_second = true;
        }
        let header = self.header.bytes();
        let wanted = if self.is_second { HEADER_MAX } else { SHORT };
        if header.len() < wanted {
            return Progress::took(taken);
        }
        // Of version 2 the algorithm, the length of the header and the block's logarithm stand in front of the size.
        let (size, words, log) = match self.is_second {
            false if header.starts_with(MAGIC[0]) => (le32(header, 8).into(), header[12], header[13]),
            true if header[9] == 1 => (le64(header, 16), header[10], header[11]),
            _ => return Progress::fault(taken, HEADER),
        };
        if usize::from(words).saturating_mul(4) != wanted || !(15..=20).contains(&log) {
            return Progress::fault(taken, HEADER);
        }
        (self.left, self.block_bytes) = (size, 1 << log);
        let count = size.div_ceil(self.block_bytes);
        if usize::try_from(count).map_or(true, |count| count >= self.blocks_max) {
            return Progress::fault(taken, CODEC);
        }
        self.state = State::Table(count.saturating_add(1));
        Progress::tells(taken, Told::Begin(None))
    }

    fn table(&mut self, left: u64, input: &[u8]) -> Progress {
        let width = if self.is_second { 8 } else { 4 };
        let taken = self.pointer.fill(input, width);
        if self.pointer.len() < width {
            return Progress::took(taken);
        }
        let pointer = le64(self.pointer.bytes(), 0);
        self.pointer.clear();
        if self.blocks.back().is_some_and(|last| *last > pointer) {
            return Progress::fault(taken, HEADER);
        }
        self.blocks.push_back(pointer);
        self.state = match left.saturating_sub(1) {
            0 => State::Gap(0),
            left => State::Table(left),
        };
        Progress::took(taken)
    }

    /// The next block, which begins at the first pointer and ends at the second.
    fn block(&mut self, at: u64) -> Progress {
        let (Some(start), Some(end)) = (self.blocks.front().copied(), self.blocks.get(1).copied()) else {
            self.state = State::Over;
            return Progress::tells(0, Told::Over);
        };
        if start != at {
            self.state = State::Gap(start.saturating_sub(at));
            return if start < at { Progress::fault(0, HEADER) } else { Progress::took(0) };
        }
        self.blocks.pop_front();
        let content = self.left.min(self.block_bytes);
        self.left = self.left.saturating_sub(content);
        self.state = match end.saturating_sub(start) {
            0 => State::Sparse(content),
            packed => State::Block(packed, content),
        };
        Progress::took(0)
    }

    fn sparse(&mut self, left: u64, output: &mut [u8]) -> Progress {
        let count = usize::try_from(left).map_or(output.len(), |left| left.min(output.len()));
        output[..count].fill(0);
        self.state = match left.saturating_sub(count as u64) {
            0 => State::Gap(0),
            left => State::Sparse(left),
        };
        Progress { taken: 0, wrote: count, told: Told::Nothing }
    }

    fn zlib(&mut self, packed: u64, content: u64, input: &[u8]) -> Progress {
        let taken = self.pointer.fill(input, 2);
        let &[first, second] = self.pointer.bytes() else { return Progress::took(taken) };
        self.pointer.clear();
        if !zlib::is_header([first, second]) || packed <= TRAILER {
            return Progress::fault(taken, DATA);
        }
        self.deflate.reset();
        self.state = State::Content(packed.saturating_sub(2), content);
        Progress::took(taken)
    }

    fn content(&mut self, packed: u64, left: u64, input: &[u8], output: &mut [u8]) -> Progress {
        let most = |left: u64, bytes: usize| usize::try_from(left).map_or(bytes, |left| left.min(bytes));
        if left == 0 {
            self.state = State::Gap(packed);
            return Progress::took(0);
        }
        let (offered, room) = (most(packed, input.len()), most(left, output.len()));
        let mut progress = self.deflate.decode(&input[..offered], &mut output[..room]);
        let packed = packed.saturating_sub(progress.taken as u64);
        let left = left.saturating_sub(progress.wrote as u64);
        self.state = State::Content(packed, left);
        let is_short = packed == 0 && progress.taken == 0 && progress.wrote == 0;
        match progress.told {
            Told::Over if left > 0 => progress.told = Told::Fault(DATA),
            Told::Over => progress.told = Told::Nothing,
            Told::Nothing if is_short && left > 0 => progress.told = Told::Fault(DATA),
            _ => {}
        }
        progress
    }
}

impl Framed for Zisofs {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        (self.state, self.header.len(), self.blocks.len())
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let progress = match self.state {
            State::Header => self.header(input),
            State::Table(left) => self.table(left, input),
            State::Gap(0) => self.block(self.at),
            State::Gap(left) => {
                let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                self.state = State::Gap(left.saturating_sub(taken as u64));
                Progress::took(taken)
            }
            State::Sparse(left) => self.sparse(left, output),
            State::Block(packed, content) => self.zlib(packed, content, input),
            State::Content(packed, content) => self.content(packed, content, input, output),
            State::Over => Progress::tells(0, Told::Over),
        };
        self.at = self.at.saturating_add(progress.taken as u64);
        progress
    }

    fn may_end(&self) -> bool {
        self.state == State::Over
    }
}
