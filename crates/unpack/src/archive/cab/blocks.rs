//! The data of one folder: blocks of at most 32 KiB of content, each held whole and decoded at once.
//!
//! ```text
//! block := checksum u32, packed bytes u16, content bytes u16, reserved area, packed data
//! ```

use stream::Class;
use zlib_rs::{Inflate, InflateFlush};

use super::lzx::Lzx;
use super::quantum::Quantum;
use super::{HEADER, SIZE, SPLIT};
use crate::frame::codec::{Fault, Progress, Told, le16, le32};

const CHECK: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cab.Checksum");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Cab.Data");
const WINDOW: Fault = Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.CabWindow");

const HEADER_BYTES: usize = 8;
/// The most content of a block.
const CONTENT_BYTES: usize = 32 << 10;
/// Distance to which an MSZIP block may refer back.
const HISTORY_BYTES: usize = 32 << 10;

/// How a folder is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    MsZip,
    /// With a window of `1 << bits`.
    Quantum(u32),
    /// As Quantum.
    Lzx(u32),
}

impl Method {
    /// The method of this number, if it is read.
    pub fn of(number: u16) -> Option<Method> {
        let bits = u32::from(number >> 8 & 0x1f);
        match number & 0xf {
            0 => Some(Method::Stored),
            1 => Some(Method::MsZip),
            2 if (10..=21).contains(&bits) => Some(Method::Quantum(bits)),
            3 if (15..=21).contains(&bits) => Some(Method::Lzx(bits)),
            _ => None,
        }
    }
}

/// State of the data of a folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Data {
    pub method: Method,
    /// Blocks that are counted.
    pub blocks: u16,
    /// Bytes of the reserved area of a block.
    pub reserve: usize,
    /// Whether the folder goes on in another cabinet.
    pub goes_on: bool,
    /// Bytes of content that its files want.
    pub wanted: u64,
    /// Bytes up to the next block.
    pub packed_bytes: u64,
}

/// The decoder of folders, one behind the other.
pub(super) struct Blocks {
    codec_bytes_max: usize,
    data: Data,
    /// Bytes of content and of blocks so far.
    content_bytes: u64,
    packed_bytes: u64,
    /// More blocks than are counted have been read.
    more: bool,
    broken: bool,
    /// The block as far as it has come, with its header.
    block: Vec<u8>,
    /// Content of the last block.
    content: Vec<u8>,
    /// Bytes of it told.
    told: usize,
    inflate: Option<Inflate>,
    /// Earlier output of MSZIP.
    history: Vec<u8>,
    lzx: Option<Box<Lzx>>,
    quantum: Option<Box<Quantum>>,
}

impl Blocks {
    pub fn new(codec_bytes_max: usize) -> Blocks {
        Blocks {
            codec_bytes_max,
            data: Data { method: Method::Stored, blocks: 0, reserve: 0, goes_on: false, wanted: 0, packed_bytes: 0 },
            content_bytes: 0,
            packed_bytes: 0,
            more: false,
            broken: false,
            block: Vec::new(),
            content: Vec::new(),
            told: 0,
            inflate: None,
            history: Vec::new(),
            lzx: None,
            quantum: None,
        }
    }

    /// Makes ready for a folder.
    pub fn begin(&mut self, data: Data) {
        (self.data, self.content_bytes, self.packed_bytes) = (data, 0, 0);
        (self.more, self.broken) = (false, false);
        self.block.clear();
        self.content.clear();
        self.told = 0;
        self.history.clear();
        match data.method {
            Method::Lzx(bits) => self.lzx.get_or_insert_with(|| Box::new(Lzx::new())).restart(bits),
            Method::Quantum(bits) => self.quantum = Some(Box::new(Quantum::new(bits))),
            Method::Stored | Method::MsZip => {}
        }
    }

    /// Whether decoding has come to an end before the folder has.
    pub const fn is_broken(&self) -> bool {
        self.broken
    }

    /// Whether there is more content, or may be.
    pub const fn has_more(&self) -> bool {
        self.data.blocks > 0 || self.told < self.content.len() || self.wants_more()
    }

    /// Whether there seem to be more blocks than are counted: files want them, and there is room for one.
    const fn wants_more(&self) -> bool {
        let next = (HEADER_BYTES as u64).saturating_add(self.packed_bytes).saturating_add(self.data.reserve as u64);
        !self.data.goes_on && !self.broken && self.content_bytes < self.data.wanted && next < self.data.packed_bytes
    }

    /// Bytes that were taken and not used.
    pub fn surplus(&self) -> &[u8] {
        &self.block
    }

    /// As [`Decoder::decode`](crate::frame::codec::Decoder::decode).
    pub fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        let content = &self.content[self.told..];
        if !content.is_empty() {
            let wrote = content.len().min(output.len());
            output[..wrote].copy_from_slice(&content[..wrote]);
            self.told = self.told.saturating_add(wrote);
            return Progress { taken: 0, wrote, told: Told::Nothing };
        }
        if self.data.blocks == 0 && self.wants_more() {
            self.data.blocks = 1;
            if !std::mem::replace(&mut self.more, true) {
                return Progress::fault(0, HEADER);
            }
        }
        if self.data.blocks == 0 {
            self.broken |= self.data.goes_on;
            return Progress::tells(0, if self.data.goes_on { Told::Fault(SPLIT) } else { Told::Over });
        }
        let header = self.data.reserve.saturating_add(HEADER_BYTES);
        let mut taken = self.fill(input, header);
        if self.block.len() < header {
            return Progress::took(taken);
        }
        let whole = header.saturating_add(le16(&self.block, 4).into());
        taken = taken.saturating_add(self.fill(&input[taken..], whole));
        if self.block.len() < whole {
            return Progress::took(taken);
        }
        match self.whole_block(header) {
            Ok(None) => Progress::took(taken),
            Ok(Some(fault)) => Progress::fault(taken, fault),
            Err(fault) => {
                self.broken = true;
                self.content.clear();
                self.told = 0;
                Progress::fault(taken, fault)
            }
        }
    }

    fn fill(&mut self, input: &[u8], wanted: usize) -> usize {
        let count = wanted.saturating_sub(self.block.len()).min(input.len());
        self.block.extend_from_slice(&input[..count]);
        count
    }

    /// Decodes the block. Returns a fault that does not prevent the decoding.
    fn whole_block(&mut self, header: usize) -> Result<Option<Fault>, Fault> {
        let size = usize::from(le16(&self.block, 6));
        let block = std::mem::take(&mut self.block);
        let decoded = self.content_of(&block[header..], size);
        let agrees = sum_agrees(&block, header);
        self.block = block;
        decoded?;
        self.packed_bytes = self.packed_bytes.saturating_add(self.block.len() as u64);
        self.content_bytes = self.content_bytes.saturating_add(self.content.len() as u64);
        self.block.clear();
        self.data.blocks = self.data.blocks.saturating_sub(1);
        self.told = 0;
        let right_size = self.content.len() == size;
        Ok((!agrees).then_some(CHECK).or((!right_size).then_some(SIZE)))
    }

    fn content_of(&mut self, data: &[u8], size: usize) -> Result<(), Fault> {
        self.content.clear();
        if size == 0 && !data.is_empty() {
            // The rest of the block is in another cabinet.
            return Err(SPLIT);
        }
        if size > CONTENT_BYTES && self.data.method != Method::Stored {
            return Err(DATA);
        }
        match self.data.method {
            Method::Stored => {
                self.content.extend_from_slice(data);
                Ok(())
            }
            Method::MsZip => self.inflate(data),
            Method::Lzx(bits) | Method::Quantum(bits) if 1 << bits > self.codec_bytes_max => Err(WINDOW),
            Method::Quantum(_) => {
                let quantum = self.quantum.as_mut().ok_or(DATA)?;
                quantum.frame(data, size, &mut self.content).ok_or(DATA)
            }
            Method::Lzx(_) => {
                let lzx = self.lzx.as_mut().ok_or(DATA)?;
                lzx.frame(data, size, &mut self.content).ok_or(DATA)
            }
        }
    }

    /// A deflate stream that refers back to the blocks before.
    fn inflate(&mut self, data: &[u8]) -> Result<(), Fault> {
        const WINDOW_BITS: u8 = 15;
        let Some(data) = data.strip_prefix(b"CK") else {
            return if data.is_empty() { Ok(()) } else { Err(DATA) };
        };
        let inflate = self.inflate.get_or_insert_with(|| Inflate::new(false, WINDOW_BITS));
        inflate.reset(false);
        if !self.history.is_empty() {
            inflate.set_dictionary(&self.history).map_err(|_| DATA)?;
        }
        self.content.resize(CONTENT_BYTES, 0);
        let mut at = 0;
        loop {
            let before = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(&data[before.0 as usize..], &mut self.content[at..], InflateFlush::NoFlush);
            at = inflate.total_out() as usize;
            match status {
                Ok(zlib_rs::Status::StreamEnd) => break,
                Ok(_) if before != (inflate.total_in(), inflate.total_out()) => {}
                _ => return Err(DATA),
            }
        }
        self.content.truncate(at);
        self.remember();
        Ok(())
    }

    fn remember(&mut self) {
        let more = self.history.len().saturating_add(self.content.len()).saturating_sub(HISTORY_BYTES);
        self.history.drain(..more.min(self.history.len()));
        self.history.extend_from_slice(&self.content);
    }
}

/// Returns whether the checksum of a block is right or absent. Archivers disagree whether it covers the reserved area.
fn sum_agrees(block: &[u8], header: usize) -> bool {
    let told = le32(block, 0);
    let data = sum(0, &block[header..]);
    told == 0 || told == sum(data, &block[4..HEADER_BYTES]) || told == sum(data, &block[4..header])
}

/// Exclusive or of little-endian words; an incomplete last one counts from its highest byte on.
fn sum(start: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(start, |sum, word| sum ^ u32::from_le_bytes(*word));
    sum ^ rest.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_takes_the_last_bytes_from_the_highest_on() {
        assert_eq!(sum(0, b""), 0);
        assert_eq!(sum(0, &[1, 2, 3, 4, 0xff]), 0x0403_02fe);
        assert_eq!(sum(0, &[1, 2, 3, 4, 5, 6]), 0x0403_0201 ^ 0x0506);
        assert_eq!(sum(7, &[1, 2, 3]), 7 ^ 0x01_0203);
    }

    #[test]
    fn methods_are_known_by_their_number() {
        assert_eq!(Method::of(0x1503), Some(Method::Lzx(21)));
        assert_eq!(Method::of(0x0a72), Some(Method::Quantum(10)));
        for number in [0x1603, 0x0e03, 0x1672, 0x0972, 4] {
            assert_eq!(Method::of(number), None);
        }
    }
}
