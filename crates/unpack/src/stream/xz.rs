//! Xz: any number of streams, each of any number of blocks, told as one content, as the xz tool does.
//!
//! All checks are verified (CRC-32, CRC-64, SHA-256), the index is compared with the blocks; what disagrees is a finding
//! and the content is emitted all the same. Filters: LZMA2, delta, and branch conversion for all machines of the format.
//!
//! Bounds: one LZMA2 chunk, and a dictionary that grows with the data up to `codec_bytes_max`. What refers further back
//! is a Limit finding and ends the reading.
//!
//! ```text
//! Magic ─▶ Flags ─▶ BlockSize ─▶ BlockHeader ─▶ Block ─▶ Padding ─▶ Check ─┐
//!   ▲                 │ ▲─────────────────────────────────────────────────┘
//!   └──── Footer ◀── Index
//! ```

mod block;
mod check;
pub(crate) mod filter;
mod header;
mod index;
pub(crate) mod lzma2;

use stream::{Class, Limits};
use zlib_rs::crc32::crc32;

use crate::frame::codec::{Collected, Fault, Framed, Progress, Told, le32};
use crate::frame::format::{Format, Reads};
use block::Block;
use check::Check;
use filter::Chain;
use header::{HEADER_BYTES_MAX, Header, Refused};
use index::{Index, Seen};
use lzma2::{Broken, Lzma2, Why};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "xz",
    methods: "LZMA2, delta, all branch filters; several streams, all checks",
    not_read: "unknown filters",
    reads: Reads::Stream,
    memory: "dictionary up to `codec_bytes_max`, growing with the data; 110 KiB",
    decoder: "own",
    fuzz: "unpack_xz",
    compared_with: "`xz -d`, the test files of XZ Utils",
};

const HEADER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xz.Header");
const NO_HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Xz.Header");
const FILTER: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.XzFilter");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Xz.Data");
const DICTIONARY: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");
const SIZE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xz.Size");
const CHECK: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xz.Check");
const INDEX: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xz.Index");
const NO_INDEX: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Xz.Index");
const FOOTER: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Xz.Footer");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Xz");

const MAGIC: &[u8; 6] = b"\xfd7zXZ\0";

/// A decoder of xz files.
pub(crate) struct Xz {
    codec_bytes_max: usize,
    /// Whether to stop after the first stream.
    single: bool,
    further: bool,
    magic: Collected<6>,
    flags: [u8; 2],
    seen: Seen,
    /// Made when the first block begins, used again by the others.
    lzma2: Option<Box<Lzma2>>,
    state: State,
}

enum State {
    Magic,
    Flags(Collected<6>),
    BlockSize,
    BlockHeader(Vec<u8>, usize),
    Block(Box<Block>),
    /// Zeros up to a multiple of four, and the check.
    Tail(Box<Block>, Vec<u8>),
    Index(Index),
    Footer {
        bytes: Collected<12>,
        index_bytes: u64,
    },
    Over,
}

impl Xz {
    /// Reads all streams up to the end.
    pub fn new(limits: &Limits) -> Xz {
        Xz {
            codec_bytes_max: limits.codec_bytes_max as usize,
            single: false,
            further: false,
            magic: Collected::new(),
            flags: [0; 2],
            seen: Seen::new(),
            lzma2: None,
            state: State::Magic,
        }
    }

    /// Reads one stream only, as in a zip.
    pub fn single(limits: &Limits) -> Xz {
        Xz { single: true, ..Xz::new(limits) }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let mut padding = 0;
        if self.further && self.magic.len() == 0 {
            padding = input.iter().take_while(|&&byte| byte == 0).count();
        }
        let taken = padding + self.magic.fill_while(&input[padding..], |bytes| MAGIC.starts_with(bytes));
        if !MAGIC.starts_with(self.magic.bytes()) {
            self.state = State::Over;
            if !self.further {
                return Progress::fault(taken, NO_HEADER);
            }
            return Progress::tells(taken, Told::Over);
        }
        self.state = State::Magic;
        if self.magic.whole().is_some() {
            self.magic.clear();
            self.state = State::Flags(Collected::new());
        }
        Progress::took(taken)
    }

    fn stream_flags(&mut self, mut bytes: Collected<6>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 6);
        let Some(whole) = bytes.whole() else {
            self.state = State::Flags(bytes);
            return Progress::took(taken);
        };
        self.flags = [whole[0], whole[1]];
        self.seen = Seen::new();
        if self.flags[0] != 0 || self.flags[1] > 0x0f {
            return Progress::fault(taken, NO_HEADER);
        }
        self.state = State::BlockSize;
        if crc32(0, &self.flags) != le32(whole, 2) {
            return Progress::fault(taken, HEADER);
        }
        self.begin(taken)
    }

    /// Content begins, unless it is that of a further stream.
    fn begin(&mut self, taken: usize) -> Progress {
        if std::mem::replace(&mut self.further, true) {
            return Progress::took(taken);
        }
        Progress::tells(taken, Told::Begin(None))
    }

    fn block_size(&mut self, input: &[u8]) -> Progress {
        if !self.further {
            self.state = State::BlockSize;
            return self.begin(0);
        }
        let Some(&size) = input.first() else {
            self.state = State::BlockSize;
            return Progress::took(0);
        };
        self.state = if size == 0 {
            State::Index(Index::new(self.seen))
        } else {
            State::BlockHeader(vec![size], (usize::from(size) + 1) * 4)
        };
        Progress::took(1)
    }

    fn block_header(&mut self, mut bytes: Vec<u8>, wanted: usize, input: &[u8]) -> Progress {
        debug_assert!(wanted <= HEADER_BYTES_MAX);
        let taken = input.len().min(wanted - bytes.len());
        bytes.extend_from_slice(&input[..taken]);
        if bytes.len() < wanted {
            self.state = State::BlockHeader(bytes, wanted);
            return Progress::took(taken);
        }
        let header = match Header::parse(&bytes) {
            Ok(header) => header,
            Err(Refused::Malformed) => return Progress::fault(taken, NO_HEADER),
            Err(Refused::Unsupported) => return Progress::fault(taken, FILTER),
        };
        let lzma2 = self.lzma2.get_or_insert_with(|| Box::new(Lzma2::new()));
        let started = lzma2.start(header.lzma2, self.codec_bytes_max);
        let Some(chain) = Chain::new(&header.filters).filter(|_| started) else {
            return Progress::fault(taken, FILTER);
        };
        let crc_is_right = header.crc_is_right;
        self.state = State::Block(Box::new(Block::new(header, wanted as u64, chain, Check::of(self.flags[1]))));
        if !crc_is_right {
            return Progress::fault(taken, HEADER);
        }
        Progress::took(taken)
    }

    fn block(&mut self, mut block: Box<Block>, input: &[u8], output: &mut [u8]) -> Progress {
        let Some(lzma2) = &mut self.lzma2 else {
            return Progress::fault(0, NO_HEADER);
        };
        let mut progress = match block.decode(lzma2, input, output) {
            Ok(progress) => progress,
            Err(Broken { taken, why }) => return Progress::fault(taken, fault(why)),
        };
        if progress.told != Told::Over {
            self.state = State::Block(block);
            return progress;
        }
        progress.told = if block.sizes_are_right() { Told::Nothing } else { Told::Fault(SIZE) };
        self.state = State::Tail(block, Vec::new());
        progress
    }

    fn tail(&mut self, block: Box<Block>, mut bytes: Vec<u8>, input: &[u8]) -> Progress {
        let length = Check::length(self.flags[1]);
        let padding = block.padding();
        let taken = input.len().min(padding + length - bytes.len());
        bytes.extend_from_slice(&input[..taken]);
        if bytes.len() < padding + length {
            self.state = State::Tail(block, bytes);
            return Progress::took(taken);
        }
        self.seen.block(block.unpadded(length), block.uncompressed());
        self.state = State::BlockSize;
        let (padding, told) = bytes.split_at(padding);
        if padding.iter().any(|&byte| byte != 0) || !block.check_agrees_with(told) {
            return Progress::fault(taken, CHECK);
        }
        Progress::took(taken)
    }

    fn index(&mut self, mut index: Index, input: &[u8]) -> Progress {
        let (taken, end) = index.read(input);
        match end {
            None => {
                self.state = State::Index(index);
                Progress::took(taken)
            }
            Some(Err(index::Broken)) => Progress::fault(taken, NO_INDEX),
            Some(Ok(agrees)) => {
                self.state = State::Footer { bytes: Collected::new(), index_bytes: index.bytes() };
                if agrees {
                    return Progress::took(taken);
                }
                Progress::fault(taken, INDEX)
            }
        }
    }

    fn footer(&mut self, mut bytes: Collected<12>, index_bytes: u64, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 12);
        let Some(whole) = bytes.whole() else {
            self.state = State::Footer { bytes, index_bytes };
            return Progress::took(taken);
        };
        let right = crc32(0, &whole[4..10]) == le32(whole, 0)
            && (u64::from(le32(whole, 4)) + 1) * 4 == index_bytes
            && whole[8..10] == self.flags
            && whole[10..] == *b"YZ";
        self.state = if self.single { State::Over } else { State::Magic };
        if !right {
            return Progress::fault(taken, FOOTER);
        }
        match self.single {
            true => Progress::tells(taken, Told::Over),
            false => Progress::took(taken),
        }
    }
}

impl Framed for Xz {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        std::mem::discriminant(&self.state)
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Magic => self.magic(input),
            State::Flags(bytes) => self.stream_flags(bytes, input),
            State::BlockSize => self.block_size(input),
            State::BlockHeader(bytes, wanted) => self.block_header(bytes, wanted, input),
            State::Block(block) => self.block(block, input, output),
            State::Tail(block, bytes) => self.tail(block, bytes, input),
            State::Index(index) => self.index(index, input),
            State::Footer { bytes, index_bytes } => self.footer(bytes, index_bytes, input),
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
        matches!(self.state, State::Block(_)) && self.lzma2.as_mut().is_some_and(|lzma2| lzma2.cut_short())
    }

    fn surplus(&self) -> &[u8] {
        self.magic.bytes()
    }
}

const fn fault(why: Why) -> Fault {
    match why {
        Why::Malformed => DATA,
        Why::Limit => DICTIONARY,
        Why::Truncated => TRUNCATED,
    }
}
