//! Files of lzop: LZO1X in blocks, each held whole; several parts, told as one content.
//!
//! A wrong checksum is a finding and the content is emitted all the same. Left out: filters, and other methods than LZO1X,
//! which lzop never wrote. Source: the layout in lzop's manual and in libarchive's tests; for LZO1X the description in the
//! documentation of Linux (staging/lzo.rst). Bounds: a block, packed and unpacked, of [`BLOCK_BYTES_MAX`] each, within
//! `codec_bytes_max`.
//!
//! ```text
//! Magic ─▶ Header ─▶ BlockHeader ─▶ Block ─▶ Content ─▶ BlockHeader … ─0─▶ Magic (next part) ─▶ … ─▶ over
//! ```

pub(crate) mod lzo1x;

use stream::{Class, Limits};
use zlib_rs::{adler32::adler32, crc32::crc32};

use crate::frame::codec::{Collected, Fault, Framed, Progress, Told, be16, be32};
use crate::frame::format::{Format, Reads};
use crate::frame::held::Held;
use crate::frame::name;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "lzop",
    methods: "LZO1X of all levels, stored blocks, all checksums, several parts",
    not_read: "filters, other methods",
    reads: Reads::Stream,
    memory: "two blocks, usually of 256 KiB, at most of half of `codec_bytes_max`",
    decoder: "own",
    fuzz: "unpack_lzop",
    compared_with: "`lzop`, which made the seeds",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lzop.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Lzop.Data");
const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Lzop.Checksum");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Lzop");
const METHOD: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.LzopMethod");
const CODEC: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

pub(crate) const MAGIC: &[u8; 9] = b"\x89LZO\0\r\n\x1a\n";
/// The longest block of the format.
const BLOCK_BYTES_MAX: usize = 64 << 20;
const HEADER_BYTES_MAX: usize = 512;
const BLOCK_HEADER_BYTES_MAX: usize = 24;

mod flag {
    pub const ADLER32_OF_CONTENT: u32 = 1;
    pub const ADLER32_OF_PACKED: u32 = 2;
    pub const EXTRA_FIELD: u32 = 0x40;
    pub const CRC32_OF_CONTENT: u32 = 0x100;
    pub const CRC32_OF_PACKED: u32 = 0x200;
    pub const FILTER: u32 = 0x800;
    pub const CRC32_OF_HEADER: u32 = 0x1000;
}

/// A decoder of lzop files.
pub(crate) struct Lzop {
    name_bytes_max: usize,
    block_bytes_max: usize,
    held: Held,
    flags: u32,
    begun: bool,
    /// The next fault to emit.
    owing: Option<Fault>,
    magic: Collected<9>,
    state: State,
}

enum State {
    Magic,
    Header(Vec<u8>),
    BlockHeader(Collected<BLOCK_HEADER_BYTES_MAX>),
    Block(Block),
    /// Content is being emitted.
    Content,
    Broken,
    Over,
}

/// The header of a block.
#[derive(Clone, Copy)]
struct Block {
    size: usize,
    packed: usize,
    adler32: Option<u32>,
    crc32: Option<u32>,
}

/// Values in the header of a part.
struct Header {
    flags: u32,
    name: Box<[u8]>,
    is_sound: bool,
    is_known: bool,
}

impl Lzop {
    pub fn new(limits: &Limits) -> Lzop {
        Lzop {
            name_bytes_max: limits.name_bytes_max as usize,
            block_bytes_max: BLOCK_BYTES_MAX.min(limits.codec_bytes_max as usize / 2),
            held: Held::default(),
            flags: 0,
            begun: false,
            owing: None,
            magic: Collected::new(),
            state: State::Magic,
        }
    }

    fn magic(&mut self, input: &[u8]) -> Progress {
        let taken = self.magic.fill_while(input, |bytes| MAGIC.starts_with(bytes));
        if !MAGIC.starts_with(self.magic.bytes()) {
            self.state = State::Over;
            return if self.begun { Progress::took(taken) } else { Progress::fault(taken, HEADER) };
        }
        self.state = match self.magic.whole() {
            Some(_) => State::Header(Vec::new()),
            None => State::Magic,
        };
        if matches!(self.state, State::Header(_)) {
            self.magic.clear();
        }
        Progress::took(taken)
    }

    fn header(&mut self, mut bytes: Vec<u8>, input: &[u8]) -> Progress {
        let mut taken = 0;
        loop {
            match Header::read(&bytes) {
                Ok(header) => return self.begin(taken, header),
                Err(wanted) if wanted > HEADER_BYTES_MAX => return Progress::fault(taken, HEADER),
                Err(wanted) => {
                    let count = (wanted - bytes.len()).min(input.len() - taken);
                    bytes.extend_from_slice(&input[taken..taken + count]);
                    taken += count;
                    if bytes.len() < wanted {
                        self.state = State::Header(bytes);
                        return Progress::took(taken);
                    }
                }
            }
        }
    }

    fn begin(&mut self, taken: usize, header: Header) -> Progress {
        self.flags = header.flags;
        self.state = State::BlockHeader(Collected::new());
        if !header.is_known {
            return Progress::fault(taken, METHOD);
        }
        self.owing = (!header.is_sound).then_some(CHECKSUM);
        if std::mem::replace(&mut self.begun, true) {
            return Progress::took(taken);
        }
        let name = &header.name[..header.name.len().min(self.name_bytes_max)];
        let name = (!name.is_empty()).then(|| name::utf8_or_latin1(name));
        Progress::tells(taken, Told::Begin(name))
    }

    fn block_header(&mut self, mut bytes: Collected<BLOCK_HEADER_BYTES_MAX>, input: &[u8]) -> Progress {
        let mut taken = bytes.fill(input, 4);
        if bytes.bytes() == [0; 4] {
            self.state = State::Magic;
            return Progress::took(taken);
        }
        taken += bytes.fill(&input[taken..], 8);
        let is_packed = bytes.len() >= 8 && be32(bytes.bytes(), 4) < be32(bytes.bytes(), 0);
        let wanted = if bytes.len() < 8 { 8 } else { self.block_header_bytes(is_packed) };
        taken += bytes.fill(&input[taken..], wanted);
        if bytes.len() < 8 || bytes.len() < wanted {
            self.state = State::BlockHeader(bytes);
            return Progress::took(taken);
        }
        let block = self.read_block(bytes.bytes());
        if block.packed > block.size || block.size > BLOCK_BYTES_MAX {
            return Progress::fault(taken, DATA);
        }
        if block.size > self.block_bytes_max {
            return Progress::fault(taken, CODEC);
        }
        self.state = State::Block(block);
        Progress::took(taken)
    }

    /// Blocks that are stored have no checksums of their packed form.
    fn block_header_bytes(&self, is_packed: bool) -> usize {
        let of_content = flag::ADLER32_OF_CONTENT | flag::CRC32_OF_CONTENT;
        let of_packed = if is_packed { flag::ADLER32_OF_PACKED | flag::CRC32_OF_PACKED } else { 0 };
        8 + 4 * (self.flags & (of_content | of_packed)).count_ones() as usize
    }

    /// Checksums of the content come first; those of the packed form say nothing more.
    fn read_block(&self, bytes: &[u8]) -> Block {
        let mut at = 8;
        let mut checksum = |wanted: u32| {
            (self.flags & wanted != 0).then(|| {
                at += 4;
                be32(bytes, at - 4)
            })
        };
        let adler32 = checksum(flag::ADLER32_OF_CONTENT);
        let crc32 = checksum(flag::CRC32_OF_CONTENT);
        Block { size: be32(bytes, 0) as usize, packed: be32(bytes, 4) as usize, adler32, crc32 }
    }

    fn block(&mut self, block: Block, input: &[u8]) -> Progress {
        let taken = self.held.fill(input, block.packed);
        if self.held.packed().len() < block.packed {
            self.state = State::Block(block);
            return Progress::took(taken);
        }
        let sound = self.held.unpack(|packed, content| {
            if block.packed == block.size {
                content.extend_from_slice(packed);
                return true;
            }
            lzo1x::unpack(packed, content, block.size).is_some() && content.len() == block.size
        });
        // Output before an error is emitted.
        self.state = if sound { State::Content } else { State::Broken };
        let agrees = !sound || block.agrees(self.held.content());
        if agrees { Progress::took(taken) } else { Progress::fault(taken, CHECKSUM) }
    }
}

impl Block {
    fn agrees(self, content: &[u8]) -> bool {
        self.adler32.is_none_or(|told| told == adler32(1, content))
            && self.crc32.is_none_or(|told| told == crc32(0, content))
    }
}

impl Header {
    /// Reads the header behind the magic; `Err` tells how many bytes that takes.
    fn read(bytes: &[u8]) -> Result<Header, usize> {
        const LZO1X: std::ops::RangeInclusive<u8> = 1..=3;
        /// From this version on there are a level, the upper half of the time, and the version that is needed.
        const LONG_FROM: u16 = 0x0940;
        let need = |count: usize| if bytes.len() < count { Err(count) } else { Ok(()) };
        need(2)?;
        let is_long = be16(bytes, 0) >= LONG_FROM;
        let method_at = if is_long { 6 } else { 4 };
        let flags_at = method_at + if is_long { 2 } else { 1 };
        need(flags_at + 4)?;
        let flags = be32(bytes, flags_at);
        let filter = if flags & flag::FILTER != 0 { 4 } else { 0 };
        let name_at = flags_at + 4 + filter + if is_long { 12 } else { 8 };
        need(name_at + 1)?;
        let name_end = name_at + 1 + usize::from(bytes[name_at]);
        need(name_end + 4)?;
        let sum = if flags & flag::CRC32_OF_HEADER != 0 {
            crc32(0, &bytes[..name_end])
        } else {
            adler32(1, &bytes[..name_end])
        };
        let is_sound = sum == be32(bytes, name_end);
        if flags & flag::EXTRA_FIELD != 0 {
            need(name_end + 8)?;
            let extra = be32(bytes, name_end + 4) as usize;
            need((name_end + 12).saturating_add(extra))?;
        }
        let is_known = LZO1X.contains(&bytes[method_at]) && filter == 0;
        Ok(Header { flags, name: bytes[name_at + 1..name_end].into(), is_sound, is_known })
    }
}

impl Framed for Lzop {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        std::mem::discriminant(&self.state)
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if let Some(fault) = self.owing.take() {
            return Progress::fault(0, fault);
        }
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Magic => self.magic(input),
            State::Header(bytes) => self.header(bytes, input),
            State::BlockHeader(bytes) => self.block_header(bytes, input),
            State::Block(block) => self.block(block, input),
            State::Content => {
                let wrote = self.held.tell(output);
                self.state = if wrote > 0 { State::Content } else { State::BlockHeader(Collected::new()) };
                Progress { taken: 0, wrote, told: Told::Nothing }
            }
            State::Broken => match self.held.tell(output) {
                0 => Progress::fault(0, DATA),
                wrote => Progress { taken: 0, wrote, told: Told::Nothing },
            },
            State::Over => {
                self.state = State::Over;
                Progress::tells(0, Told::Over)
            }
        }
    }

    fn may_end(&self) -> bool {
        self.begun && matches!(self.state, State::Magic | State::Over)
    }

    fn surplus(&self) -> &[u8] {
        self.magic.bytes()
    }
}
