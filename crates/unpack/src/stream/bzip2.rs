//! Bzip2: any number of streams as one content, as in bunzip2; and the bzip2 of NSIS.
//!
//! Written here because the library drops its output of the call that finds a fault, ends at a wrong checksum, and does
//! not read the variant of NSIS. A wrong checksum is a finding, and the content is emitted nevertheless. Left out:
//! blocks that were shuffled before sorting, which bzip2 has not written since version 0.9.5. Source: bzip2's manual
//! and the articles on it (Burrows and Wheeler, SRC report 124). Bounds: four bytes for each byte of the longest block,
//! within `codec_bytes_max`; 60 KiB.
//!
//! ```text
//! Magic ─▶ Block ─▶ Selectors ─▶ Lengths ─▶ Symbols ─▶ Content ─┐
//!   ▲        │ ▲─────────────────────────────────────────────────┘
//!   └─ end of a stream ─▶ Over
//! ```

mod block;
mod codes;
mod crc;
mod recent;

use stream::{Class, Limits};

use crate::bits::pushed::Bits;
use crate::frame::codec::{Decoder, Fault, Progress, Told};
use crate::frame::format::{Format, Reads};
use block::Block;
use codes::{CODE_BITS_MAX, Codes};
use crc::Crc;
use recent::Recent;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "bzip2",
    methods: "several streams, all checksums",
    not_read: "shuffled blocks, of bzip2 before 0.9.5",
    reads: Reads::Stream,
    memory: "3.7 MB, taken as blocks need it, within `codec_bytes_max`",
    decoder: "own",
    fuzz: "unpack_bzip2",
    compared_with: "`bzip2 -d`",
};

const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Bzip2.Data");
const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Bzip2.Crc");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Bzip2");
const SHUFFLED: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Bzip2Shuffled");
const LIMIT: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.Codec");

/// Symbols read with one code.
const GROUP: usize = 50;
/// Bits that the longest step takes: a group of symbols, or the head of a block, 112 bits and its map of bytes.
const STEP_BITS: usize = GROUP * CODE_BITS_MAX;
/// Places of a block for each level.
const LEVEL: usize = 100_000;
/// All but the block.
const STATE_BYTES: usize = 60 << 10;
const BLOCK: [u32; 2] = [0x0031_4159, 0x0026_5359];
const END: [u32; 2] = [0x0017_7245, 0x0038_5090];

/// A decoder of bzip2 files, or of one stream.
pub(crate) struct Bzip2 {
    flavour: Flavour,
    /// The most places that a block may have here.
    places_max: usize,
    /// Whether a stream has been read, so that the next bytes may be surplus.
    further: bool,
    bits: Bits,
    /// The places that a block may have in this stream.
    places: usize,
    /// Checksums told of this stream's blocks, in one.
    told: u32,
    codes: Codes,
    recent: Recent,
    block: Block,
    crc: Crc,
    /// Expected checksum of the block, if it is declared.
    wanted: Option<u32>,
    work: usize,
    state: State,
}

/// How blocks and streams begin and end.
#[derive(Clone, Copy)]
enum Flavour {
    /// As bzip2 writes them: magics of 48 bits, checksums.
    File {
        /// Whether to stop after the first stream.
        single: bool,
    },
    /// As NSIS does: one stream without its magic; the first byte of the others, no checksums.
    Nsis { data: Fault, truncated: Fault },
}

enum State {
    Magic,
    Block,
    Selectors { left: u32, order: [u8; 6] },
    Lengths { lengths: Vec<u8>, length: u8 },
    Symbols { group: usize, run: usize, run_bits: u32 },
    Content,
    Over,
    Broken(Fault),
}

/// Result of a step: the next state, and an event.
type Next = Result<(State, Told), Fault>;

impl Bzip2 {
    /// Reads all streams up to the end.
    pub fn new(limits: &Limits) -> Bzip2 {
        Bzip2::of(Flavour::File { single: false }, limits)
    }

    /// Reads one stream only, as in a zip.
    pub fn single(limits: &Limits) -> Bzip2 {
        Bzip2::of(Flavour::File { single: true }, limits)
    }

    /// Reads a stream of NSIS; these are the names of its faults.
    pub fn of_nsis(data: Fault, truncated: Fault, limits: &Limits) -> Bzip2 {
        let mut bzip2 = Bzip2::of(Flavour::Nsis { data, truncated }, limits);
        bzip2.begin(9 * LEVEL);
        bzip2.state = State::Block;
        bzip2
    }

    fn of(flavour: Flavour, limits: &Limits) -> Bzip2 {
        Bzip2 {
            flavour,
            places_max: (limits.codec_bytes_max as usize).saturating_sub(STATE_BYTES) / size_of::<u32>(),
            further: false,
            bits: Bits::new(),
            places: 0,
            told: 0,
            codes: Codes::new(),
            recent: Recent::new(),
            block: Block::new(0),
            crc: Crc::default(),
            wanted: None,
            work: 0,
            state: State::Magic,
        }
    }

    /// Returns the work since the last call that is out of proportion to bytes taken and written.
    pub fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// A stream begins, whose blocks have up to `places`.
    fn begin(&mut self, places: usize) {
        (self.places, self.told) = (places, 0);
        let here = places.min(self.places_max);
        if self.block.places_max() != here {
            self.block = Block::new(here);
        }
    }

    fn step(&mut self, state: State) -> Next {
        let data = self.data();
        let state = match state {
            State::Magic => return self.magic(),
            State::Block => return self.head(),
            State::Content => return Ok(self.content_ends()),
            State::Selectors { left: 0, .. } => State::Lengths { lengths: Vec::new(), length: 0 },
            State::Selectors { left, mut order } => {
                self.codes.selector(&mut self.bits, &mut order).ok_or(data)?;
                State::Selectors { left: left - 1, order }
            }
            State::Lengths { mut lengths, mut length } => {
                match self.codes.length(&mut self.bits, &mut lengths, &mut length).ok_or(data)? {
                    true => State::Symbols { group: 0, run: 0, run_bits: 0 },
                    false => State::Lengths { lengths, length },
                }
            }
            State::Symbols { group, run, run_bits } => self.group(group, run, run_bits)?,
            state @ (State::Over | State::Broken(_)) => state,
        };
        Ok((state, Told::Nothing))
    }

    /// Reads the magic of a stream, or the bytes after the last one.
    fn magic(&mut self) -> Next {
        const MAGIC: u32 = 0x42_5a68;
        let (magic, level) = (self.bits.peek(24), self.bits.peek(32) as u8);
        if magic != MAGIC || !level.is_ascii_digit() || level == b'0' {
            return match self.further {
                true => Ok((State::Over, Told::Nothing)),
                false => Err(DATA),
            };
        }
        self.bits.skip(32);
        self.begin(usize::from(level - b'0') * LEVEL);
        let told = if self.further { Told::Nothing } else { Told::Begin(None) };
        self.further = true;
        Ok((State::Block, told))
    }

    /// The head of a block, or the end of the stream.
    fn head(&mut self) -> Next {
        match self.flavour {
            Flavour::File { .. } => match [self.bits.take(24), self.bits.take(24)] {
                BLOCK => {
                    let wanted = self.bits.take(32);
                    self.told = self.told.rotate_left(1) ^ wanted;
                    self.wanted = Some(wanted);
                    if self.bits.flag() {
                        return Err(SHUFFLED);
                    }
                }
                END => return Ok(self.stream_ends()),
                _ => return Err(self.data()),
            },
            Flavour::Nsis { .. } => match self.bits.take(8) {
                first if first == BLOCK[0] >> 16 => {}
                first if first == END[0] >> 16 => return Ok((State::Over, Told::Nothing)),
                _ => return Err(self.data()),
            },
        }
        self.crc = Crc::default();
        self.block.begin(self.bits.take(24) as usize);
        let left = self.codes.begin(&mut self.bits, &mut self.recent).ok_or(self.data())?;
        Ok((State::Selectors { left, order: [0, 1, 2, 3, 4, 5] }, Told::Nothing))
    }

    /// A group of symbols: how far back a byte stands, or how often the latest comes, in digits that are 1 or 2.
    fn group(&mut self, group: usize, mut run: usize, mut run_bits: u32) -> Result<State, Fault> {
        let data = self.data();
        let code = self.codes.of(group).ok_or(data)?;
        let end = self.codes.end();
        for _ in 0..GROUP {
            let symbol = code.read(&mut self.bits).ok_or(data)?;
            if symbol < 2 {
                run += (symbol + 1) << run_bits;
                run_bits += 1;
                if run > self.places {
                    return Err(data);
                }
                continue;
            }
            if run > 0 {
                self.block.extend(self.recent.first(), run).map_err(|_| self.full(run))?;
                (run, run_bits) = (0, 0);
            }
            if symbol == end {
                self.work += 4 * self.block.length();
                return self.block.sort().map(|()| State::Content).ok_or(data);
            }
            let byte = self.recent.take(symbol - 1);
            self.block.push(byte).map_err(|_| self.full(1))?;
        }
        Ok(State::Symbols { group: group + 1, run, run_bits })
    }

    /// Fault of a block that cannot take `more` bytes.
    fn full(&self, more: usize) -> Fault {
        if self.block.length() + more > self.places { self.data() } else { LIMIT }
    }

    fn data(&self) -> Fault {
        match self.flavour {
            Flavour::File { .. } => DATA,
            Flavour::Nsis { data, .. } => data,
        }
    }

    fn truncated(&self) -> Fault {
        match self.flavour {
            Flavour::File { .. } => TRUNCATED,
            Flavour::Nsis { truncated, .. } => truncated,
        }
    }

    /// All of a block has been emitted.
    fn content_ends(&mut self) -> (State, Told) {
        let is_right = self.wanted.is_none_or(|wanted| wanted == self.crc.sum());
        (State::Block, if is_right { Told::Nothing } else { Told::Fault(CHECKSUM) })
    }

    fn stream_ends(&mut self) -> (State, Told) {
        let is_right = self.bits.take(32) == self.told;
        self.bits.align();
        let state = match self.flavour {
            Flavour::File { single: false } => State::Magic,
            _ => State::Over,
        };
        (state, if is_right { Told::Nothing } else { Told::Fault(CHECKSUM) })
    }
}

impl Decoder for Bzip2 {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let taken = self.bits.fill(input);
        let mut wrote = 0;
        loop {
            match self.state {
                State::Over => return Progress { taken, wrote, told: Told::Over },
                State::Broken(fault) => return Progress { taken, wrote, told: Told::Fault(fault) },
                State::Content if !self.block.is_told() => {
                    if wrote == output.len() {
                        return Progress { taken, wrote, told: Told::Nothing };
                    }
                    let count = self.block.tell(&mut output[wrote..]);
                    self.crc.update(&output[wrote..wrote + count]);
                    wrote += count;
                    continue;
                }
                State::Magic if !self.bits.has(32) => return Progress { taken, wrote, told: Told::Nothing },
                State::Magic if !self.further && self.bits.unread().len() < 4 => {
                    self.state = State::Broken(TRUNCATED);
                    continue;
                }
                State::Magic | State::Content => {}
                _ if !self.bits.has(STEP_BITS) => return Progress { taken, wrote, told: Told::Nothing },
                _ => {}
            }
            let state = std::mem::replace(&mut self.state, State::Over);
            let next = self.step(state);
            let told = match next {
                _ if self.bits.overran() => {
                    self.state = State::Broken(self.truncated());
                    continue;
                }
                Err(fault) => {
                    self.state = State::Broken(fault);
                    continue;
                }
                Ok((next, told)) => {
                    self.state = next;
                    told
                }
            };
            if told != Told::Nothing {
                return Progress { taken, wrote, told };
            }
        }
    }

    fn missing(&self) -> Option<Fault> {
        match self.state {
            State::Over => None,
            _ => Some(self.truncated()),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.bits.unread()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use ::bzip2::{Compression, read::BzEncoder};

    use super::*;
    use crate::frame::trial;

    /// Runs of all lengths, words, and noise.
    fn sample(length: usize) -> Vec<u8> {
        let (mut sample, mut random) = (Vec::new(), 1u32);
        while sample.len() < length {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match random >> 30 {
                0 => sample.resize(sample.len() + (random >> 20 & 0x3ff) as usize, random as u8),
                1 => sample.extend_from_slice(&random.to_le_bytes()),
                _ => sample.extend_from_slice(format!("{} ", (random >> 16) % 99).as_bytes()),
            }
        }
        sample.truncate(length);
        sample
    }

    fn pack(content: &[u8], level: u32) -> Vec<u8> {
        let mut packed = Vec::new();
        BzEncoder::new(content, Compression::new(level)).read_to_end(&mut packed).expect("memory can be read");
        packed
    }

    fn bzip2() -> Bzip2 {
        Bzip2::new(&Limits::default())
    }

    #[test]
    fn what_the_library_packs_comes_out_again() {
        for (length, level) in [(0, 9), (1, 1), (5000, 1), (350_000, 1), (350_000, 9)] {
            let content = sample(length);
            let packed = pack(&content, level).repeat(2);
            let end = trial::run(&mut bzip2(), &packed, 4096, 4096);
            assert!(end.content == content.repeat(2), "{length} {level}");
            assert_eq!((end.faults, end.at), (vec![], packed.len()));
        }
        let zeros = vec![0; 3 << 20];
        assert!(trial::run(&mut bzip2(), &pack(&zeros, 1), 4096, 4096).content == zeros);
    }

    #[test]
    fn the_cut_does_not_matter() {
        let whole = [pack(&sample(120_000), 1), b"BZh5 and what is none of its".to_vec()].concat();
        for at in [3, 9, 20, 40, 200, 700, whole.len() - 40] {
            let mut broken = whole.clone();
            broken[at] ^= 0x10;
            trial::holds(bzip2, &broken);
            trial::holds(bzip2, &whole[..at]);
        }
        trial::holds(bzip2, &whole);
    }

    #[test]
    fn behind_a_wrong_checksum_it_goes_on() {
        let content = sample(250_000);
        let mut packed = pack(&content, 1);
        packed[10] ^= 1;
        let end = trial::run(&mut bzip2(), &packed, 4096, 4096);
        assert!(end.content == content);
        assert_eq!(end.faults, [CHECKSUM.name; 2], "of the block and of the stream");
    }

    #[test]
    fn shuffled_blocks_are_told() {
        let mut packed = pack(b"some", 1);
        packed[14] |= 0x80;
        assert_eq!(trial::run(&mut bzip2(), &packed, 4096, 4096).faults, [SHUFFLED.name]);
    }

    #[test]
    fn an_early_end_is_told_at_every_length() {
        let packed = pack(&sample(1000), 9);
        for end in 0..packed.len() {
            assert_eq!(trial::run(&mut bzip2(), &packed[..end], 4096, 4096).faults, [TRUNCATED.name], "{end}");
        }
    }
}
