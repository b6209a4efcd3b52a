//! Snappy files in the framing format: chunks of at most 64 KiB, any number of streams, told as one content.
//!
//! A wrong checksum is a finding and the content is emitted all the same; chunks that may be skipped are. Left out: raw blocks
//! without framing, which nothing announces. Sources: the descriptions of the format and of the framing in google/snappy.
//! Bounds: a chunk, packed and unpacked.

use stream::Class;

use crate::bits::crc::tables;
use crate::frame::codec::{Collected, Fault, Framed, Progress, Told, le16, le32};
use crate::frame::format::{Format, Reads};
use crate::frame::held::{Held, repeat};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "snappy",
    methods: "the framing format; several streams, stored, skippable and padding chunks",
    not_read: "",
    reads: Reads::Stream,
    memory: "140 KiB",
    decoder: "own",
    fuzz: "unpack_snappy",
    compared_with: "cramjam (the snap crate), over the seeds",
};

const HEADER: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Snappy.Header");
const DATA: Fault = Fault::fatal(Class::Malformed, "Heuristics.Malformed.Snappy.Data");
const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Snappy.Checksum");
const TRUNCATED: Fault = Fault::fatal(Class::Truncated, "Heuristics.Truncated.Snappy");

/// The first chunk: its type, its length, the magic of a stream.
pub(crate) const MAGIC: &[u8; 10] = b"\xff\x06\0\0sNaPpY";
const CONTENT_BYTES_MAX: usize = 65536;
/// A chunk of content that cannot be compressed, and its checksum.
const CHUNK_BYTES_MAX: usize = 32 + CONTENT_BYTES_MAX + CONTENT_BYTES_MAX / 6 + 4;

mod chunk {
    pub const COMPRESSED: u8 = 0;
    pub const STORED: u8 = 1;
    pub const SKIPPED_FROM: u8 = 0x80;
    pub const IDENTIFIER: u8 = 0xff;
}

/// A decoder of framed snappy.
pub(crate) struct Snappy {
    held: Held,
    begun: bool,
    state: State,
}

enum State {
    Header(Collected<4>),
    Chunk {
        kind: u8,
        length: usize,
    },
    Skip(usize),
    /// Content is being emitted.
    Content,
    Broken,
}

impl Snappy {
    pub fn new() -> Snappy {
        Snappy { held: Held::default(), begun: false, state: State::Header(Collected::new()) }
    }

    fn header(&mut self, mut bytes: Collected<4>, input: &[u8]) -> Progress {
        let taken = bytes.fill(input, 4);
        let Some(whole) = bytes.whole() else {
            self.state = State::Header(bytes);
            return Progress::took(taken);
        };
        let (kind, length) = (whole[0], (le32(whole, 0) >> 8) as usize);
        if !self.begun && kind != chunk::IDENTIFIER {
            return Progress::fault(taken, HEADER);
        }
        self.state = match kind {
            chunk::COMPRESSED | chunk::STORED if length <= CHUNK_BYTES_MAX => State::Chunk { kind, length },
            chunk::IDENTIFIER if length == MAGIC.len() - 4 => State::Chunk { kind, length },
            chunk::SKIPPED_FROM..chunk::IDENTIFIER => State::Skip(length),
            _ => return Progress::fault(taken, HEADER),
        };
        match std::mem::replace(&mut self.begun, true) {
            true => Progress::took(taken),
            false => Progress::tells(taken, Told::Begin(None)),
        }
    }

    fn chunk(&mut self, kind: u8, length: usize, input: &[u8]) -> Progress {
        let taken = self.held.fill(input, length);
        if self.held.packed().len() < length {
            self.state = State::Chunk { kind, length };
            return Progress::took(taken);
        }
        if kind == chunk::IDENTIFIER {
            let sound = self.held.unpack(|packed, _| packed == &MAGIC[4..]);
            self.state = State::Header(Collected::new());
            return if sound { Progress::took(taken) } else { Progress::fault(taken, HEADER) };
        }
        let told = le32(self.held.packed(), 0);
        let sound = self.held.unpack(|packed, content| match packed.get(4..) {
            Some(stored) if kind == chunk::STORED => {
                content.extend_from_slice(stored);
                true
            }
            Some(block) => unpack(block, content).is_some(),
            None => false,
        });
        // Output before an error is emitted.
        let fault = (sound && masked_crc(self.held.content()) != told).then_some(CHECKSUM);
        self.state = if sound { State::Content } else { State::Broken };
        fault.map_or(Progress::took(taken), |fault| Progress::fault(taken, fault))
    }
}

impl Framed for Snappy {
    const TRUNCATED: Fault = TRUNCATED;

    fn state(&self) -> impl PartialEq + use<> {
        std::mem::discriminant(&self.state)
    }

    fn turn(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match std::mem::replace(&mut self.state, State::Broken) {
            State::Header(bytes) => self.header(bytes, input),
            State::Chunk { kind, length } => self.chunk(kind, length, input),
            State::Skip(left) => {
                let taken = left.min(input.len());
                self.state = match left - taken {
                    0 => State::Header(Collected::new()),
                    left => State::Skip(left),
                };
                Progress::took(taken)
            }
            State::Content => {
                let wrote = self.held.tell(output);
                self.state = if wrote > 0 { State::Content } else { State::Header(Collected::new()) };
                Progress { taken: 0, wrote, told: Told::Nothing }
            }
            State::Broken => match self.held.tell(output) {
                0 => Progress::fault(0, DATA),
                wrote => Progress { taken: 0, wrote, told: Told::Nothing },
            },
        }
    }

    fn may_end(&self) -> bool {
        matches!(&self.state, State::Header(bytes) if bytes.len() == 0 && self.begun)
    }
}

/// Unpacks a block; output before an error stays.
fn unpack(block: &[u8], content: &mut Vec<u8>) -> Option<()> {
    let (length, mut left) = varint(block)?;
    if length > CONTENT_BYTES_MAX {
        return None;
    }
    while let Some((&tag, rest)) = left.split_first() {
        let upper = usize::from(tag >> 2);
        left = rest;
        let (distance, count) = match tag & 3 {
            0 => {
                let (count, rest) = literal_length(upper, left)?;
                let (literal, rest) = rest.split_at_checked(count)?;
                if literal.len() > length - content.len().min(length) {
                    return None;
                }
                content.extend_from_slice(literal);
                left = rest;
                continue;
            }
            1 => {
                let (&low, rest) = left.split_first()?;
                left = rest;
                ((upper >> 3) << 8 | usize::from(low), 4 + (upper & 7))
            }
            2 => (usize::from(le16(take(&mut left, 2)?, 0)), upper + 1),
            _ => (le32(take(&mut left, 4)?, 0) as usize, upper + 1),
        };
        repeat(content, distance, count, length).then_some(())?;
    }
    (content.len() == length).then_some(())
}

fn take<'a>(left: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = left.split_at_checked(count)?;
    *left = rest;
    Some(taken)
}

/// Lengths beyond 60 stand in 1 to 4 bytes behind the tag.
fn literal_length(upper: usize, mut left: &[u8]) -> Option<(usize, &[u8])> {
    let width = upper.saturating_sub(59);
    let bytes = take(&mut left, width)?;
    let length = if width == 0 { upper } else { le32(bytes, 0) as usize };
    Some((length.checked_add(1)?, left))
}

fn varint(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(5) {
        value |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

/// CRC-32C, rotated and added to, so that checksums of checksummed data stay useful.
fn masked_crc(content: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| TABLES[0][usize::from(crc as u8 ^ byte)] as u32 ^ crc >> 8;
    let crc = !content.iter().fold(!0, step);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The reflected polynomial of Castagnoli.
static TABLES: [[u64; 256]; 1] = tables(0x82f6_3b78);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_the_usual_nine_digits() {
        assert_eq!(masked_crc(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn what_a_block_makes_ends_where_it_breaks() {
        let mut content = Vec::new();
        assert_eq!(unpack(b"\x06\x04ab\x01\x02", &mut content), Some(()));
        assert_eq!(content, b"ababab");
        content.clear();
        assert_eq!(unpack(b"\x06\x04ab\x01\x05", &mut content), None);
        assert_eq!(content, b"ab");
    }
}
