//! LZ4 files: any number of frames, skippable and legacy ones among them, told as one content.
//!
//! Blocks are decoded while they arrive. A wrong checksum or length is a finding and the content is emitted all the same.
//! Not read: frames that want a dictionary. Sources: the LZ4 frame format 1.6.4 and block format descriptions. Bounds: the
//! window of 64 KiB, twice while it doubles.
//!
//! ```text
//!   ┌────────────▶ Magic ─skippable─▶ SkipLength ─▶ Skip ─┐
//!   │ ▲              │  └──legacy──────────────┐          │
//!   │ └──────────────┼───────────────────────  │ ─────────┘
//!   │                ▼                         ▼
//!   │            Descriptor ─▶ BlockLength ─▶ Block ─▶ BlockChecksum ─▶ BlockLength …
//!   └─ ContentChecksum ◀──last──┘
//! ```

pub(crate) mod block;

use std::hash::Hasher;

use stream::Class;

use crate::frame::codec::{Collected, Fault, Framed, Progress, Told, le32, le64};
use crate::frame::format::{Format, Reads};
use block::Blocks;
use twox_hash::XxHash32;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "lz4",
    methods: "several frames, linked and independent blocks, skippable frames, the legacy format",
    not_read: "dictionaries",
    reads: Reads::Stream,
    memory: "128 KiB",
    decoder: "own",
    fuzz: "unpack_lz4",
    compared_with: "`lz4`",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lz4.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lz4.Data");
const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lz4.Checksum");
const LENGTH: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lz4.Length");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Lz4");
const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Lz4Dictionary");

const MAGIC: u32 = 0x184d_2204;
const LEGACY: u32 = 0x184c_2102;
const SKIPPABLE: u32 = 0x184d_2a50;
const DESCRIPTOR_BYTES_MAX: usize = 15;
const LEGACY_BLOCK_BYTES_MAX: u32 = 8 << 20;

/// A decoder of lz4 files.
pub(crate) struct Lz4 {
    /// Whether content has begun.
    begun: bool,
    /// Whether a frame or member has been read, so that the next bytes may be surplus.
    further: bool,
    magic: Collected<4>,
    blocks: Blocks,
    frame: Frame,
    state: State,
}

/// Values of the descriptor, and the sums so far.
#[derive(Default)]
struct Frame {
    is_legacy: bool,
    are_linked: bool,
    has_block_checksums: bool,
    has_content_checksum: bool,
    content_bytes: Option<u64>,
    block_bytes_max: u32,
    wrote: u64,
    block: XxHash32,
    content: XxHash32,
}

enum State {
    Magic,
    SkipLength(Collected<4>),
    Skip(u32),
    Descriptor(Collected<DESCRIPTOR_BYTES_MAX>),
    BlockLength(Collected<4>),
    Block { is_stored: bool, left: u32 },
    BlockChecksum(Collected<4>),
    ContentChecksum(Collected<4>),
    Over,
}

impl Lz4 {
    pub fn new() -> Lz4 {
        Lz4 {
            begun: false,
            further: false,
            magic: Collected::new(),
            blocks: Blocks::new(),
            frame: Frame::default(),
            state: State::Magic,
        }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let taken = self.magic.fill_while(input, is_magic);
        if !is_magic(self.magic.bytes()) {
            return Progress::tells(taken, if self.further { Told::Over } else { Told::Fault(HEADER) });
        }
        let Some(&whole) = self.magic.whole() else {
            self.state = State::Magic;
            return Progress::took(taken);
        };
        self.magic.clear();
        self.further = true;
        self.state = match le32(&whole, 0) {
            MAGIC => State::Descriptor(Collected::new()),
            LEGACY => {
                let block_bytes_max = LEGACY_BLOCK_BYTES_MAX + LEGACY_BLOCK_BYTES_MAX / 255 + 16;
                self.frame = Frame { is_legacy: true, block_bytes_max, ..Frame::default() };
                State::BlockLength(Collected::new())
            }
            _ => State::SkipLength(Collected::new()),
        };
        match std::mem::replace(&mut self.begun, true) {
            true => Progress::took(taken),
            false => Progress::tells(taken, Told::Begin(None)),
        }
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

    fn descriptor(&mut self, mut bytes: Collected<DESCRIPTOR_BYTES_MAX>, input: &[u8]) -> Progress {
        let first = bytes.fill(input, 1);
        let Some(&flags) = bytes.bytes().first() else {
            self.state = State::Descriptor(bytes);
            return Progress::took(first);
        };
        let wanted = descriptor_bytes(flags);
        let taken = first + bytes.fill(&input[first..], wanted);
        if bytes.len() < wanted {
            self.state = State::Descriptor(bytes);
            return Progress::took(taken);
        }
        let Some(frame) = Frame::of(bytes.bytes()) else {
            return Progress::fault(taken, HEADER);
        };
        if flags & HAS_DICTIONARY != 0 {
            return Progress::fault(taken, DICTIONARY);
        }
        self.frame = frame;
        self.blocks.forget();
        self.state = State::BlockLength(Collected::new());
        let (&checksum, summed) = bytes.bytes().split_last().unwrap_or((&0, b""));
        match (XxHash32::oneshot(0, summed) >> 8) as u8 == checksum {
            true => Progress::took(taken),
            false => Progress::fault(taken, CHECKSUM),
        }
    }

    fn block_length(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        const IS_STORED: u32 = 1 << 31;
        let taken = bytes.fill(input, 4);
        let Some(whole) = bytes.whole() else {
            self.state = State::BlockLength(bytes);
            return Progress::took(taken);
        };
        let length = le32(whole, 0);
        if self.frame.is_legacy && length > self.frame.block_bytes_max {
            // Legacy frames have no end: an impossible block begins a frame.
            self.magic = bytes;
            self.state = State::Magic;
            return Progress::took(taken);
        }
        if length == 0 && !self.frame.is_legacy {
            return self.content_ends(taken);
        }
        let left = if self.frame.is_legacy { length } else { length & !IS_STORED };
        if left > self.frame.block_bytes_max {
            return Progress::fault(taken, DATA);
        }
        if !self.frame.are_linked {
            self.blocks.forget();
        }
        self.blocks.begin();
        self.frame.block = XxHash32::default();
        self.state = State::Block { is_stored: left != length, left };
        Progress::took(taken)
    }

    fn block(&mut self, is_stored: bool, left: u32, input: &[u8], output: &mut [u8]) -> Progress {
        let offered = &input[..input.len().min(left as usize)];
        let done = if is_stored { self.blocks.store(offered, output) } else { self.blocks.decode(offered, output) };
        let (taken, wrote) = (done.taken, done.wrote);
        self.frame.sum(&offered[..taken], &output[..wrote]);
        let left = left - taken as u32;
        let is_done = left == 0 && wrote == 0;
        if self.blocks.are_broken() || is_done && !is_stored && !self.blocks.may_end() {
            return Progress { taken, wrote, told: Told::Fault(DATA) };
        }
        self.state = match is_done {
            true if self.frame.has_block_checksums => State::BlockChecksum(Collected::new()),
            true => State::BlockLength(Collected::new()),
            false => State::Block { is_stored, left },
        };
        Progress { taken, wrote, told: Told::Nothing }
    }

    fn block_checksum(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 4);
        let Some(whole) = bytes.whole() else {
            self.state = State::BlockChecksum(bytes);
            return Progress::took(taken);
        };
        self.state = State::BlockLength(Collected::new());
        match le32(whole, 0) == self.frame.block.finish_32() {
            true => Progress::took(taken),
            false => Progress::fault(taken, CHECKSUM),
        }
    }

    fn content_ends(&mut self, taken: usize) -> Progress {
        self.state = match self.frame.has_content_checksum {
            true => State::ContentChecksum(Collected::new()),
            false => State::Magic,
        };
        match self.frame.content_bytes {
            Some(length) if length != self.frame.wrote => Progress::fault(taken, LENGTH),
            _ => Progress::took(taken),
        }
    }

    fn content_checksum(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 4);
        let Some(whole) = bytes.whole() else {
            self.state = State::ContentChecksum(bytes);
            return Progress::took(taken);
        };
        self.state = State::Magic;
        match le32(whole, 0) == self.frame.content.finish_32() {
            true => Progress::took(taken),
            false => Progress::fault(taken, CHECKSUM),
        }
    }
}

/// Whether `bytes` are a magic, or the first of one.
fn is_magic(bytes: &[u8]) -> bool {
    let skippable = match bytes.split_first() {
        Some((first, rest)) => first & 0xf0 == 0x50 && SKIPPABLE.to_le_bytes()[1..].starts_with(rest),
        None => true,
    };
    skippable || MAGIC.to_le_bytes().starts_with(bytes) || LEGACY.to_le_bytes().starts_with(bytes)
}

const HAS_DICTIONARY: u8 = 1;
const HAS_CONTENT_CHECKSUM: u8 = 4;
const HAS_CONTENT_BYTES: u8 = 8;
const HAS_BLOCK_CHECKSUMS: u8 = 0x10;
const ARE_INDEPENDENT: u8 = 0x20;

/// How long a descriptor with these flags is, its checksum included.
const fn descriptor_bytes(flags: u8) -> usize {
    let content_bytes = if flags & HAS_CONTENT_BYTES != 0 { 8 } else { 0 };
    let dictionary = if flags & HAS_DICTIONARY != 0 { 4 } else { 0 };
    3 + content_bytes + dictionary
}

impl Frame {
    /// Reads a whole descriptor, if its version is supported.
    fn of(descriptor: &[u8]) -> Option<Frame> {
        const VERSION: u8 = 1;
        let &[flags, block, ..] = descriptor else {
            return None;
        };
        let size = block >> 4 & 7;
        (flags >> 6 == VERSION && size >= 4).then(|| Frame {
            is_legacy: false,
            are_linked: flags & ARE_INDEPENDENT == 0,
            has_block_checksums: flags & HAS_BLOCK_CHECKSUMS != 0,
            has_content_checksum: flags & HAS_CONTENT_CHECKSUM != 0,
            content_bytes: (flags & HAS_CONTENT_BYTES != 0).then(|| le64(descriptor, 2)),
            block_bytes_max: 1 << (8 + 2 * size),
            ..Frame::default()
        })
    }

    fn sum(&mut self, packed: &[u8], content: &[u8]) {
        self.wrote += content.len() as u64;
        if self.has_block_checksums {
            self.block.write(packed);
        }
        if self.has_content_checksum {
            self.content.write(content);
        }
    }
}

impl Framed for Lz4 {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        std::mem::discriminant(&self.state)
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Magic => self.magic(input),
            State::SkipLength(bytes) => self.skip_length(bytes, input),
            State::Skip(left) => self.skip(left, input),
            State::Descriptor(bytes) => self.descriptor(bytes, input),
            State::BlockLength(bytes) => self.block_length(bytes, input),
            State::Block { is_stored, left } => self.block(is_stored, left, input, output),
            State::BlockChecksum(bytes) => self.block_checksum(bytes, input),
            State::ContentChecksum(bytes) => self.content_checksum(bytes, input),
            State::Over => Progress::tells(0, Told::Over),
        }
    }

    fn may_end(&self) -> bool {
        match &self.state {
            State::Magic => self.further,
            State::BlockLength(bytes) => self.frame.is_legacy && bytes.len() == 0,
            state => matches!(state, State::Over),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.magic.bytes()
    }
}
