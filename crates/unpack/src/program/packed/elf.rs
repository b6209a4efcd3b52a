//! ELF executables packed by UPX: blocks after the headers, first the original headers, then the segments in their
//! order.
//!
//! Bytes between the segments of the original file (sections' headers, symbols) are left out. Headers with overwritten
//! marks are read too, if they are plausible. Both byte orders.

use super::nrv::Run;
use super::source::{Numbers, Whole};
use super::upx::{Block, Decoder};
use super::{TURN_BYTES, Turn, Unpacked, Unpacker};

const MAGIC: &[u8] = b"\x7fELF";
/// Information on the loader and on the program, in front of the first block.
const INFORMATION_BYTES: u64 = 24;
const BLOCK_HEADER_BYTES: u64 = 12;
/// The most that the original headers take.
const HEADERS_MAX: u32 = 1 << 16;
const SEGMENTS_MAX: usize = 64;

/// Where things stand in the headers of either class.
struct Layout {
    segments_at: usize,
    entry_bytes_at: usize,
    entries_at: usize,
    is_wide: bool,
}

const NARROW: Layout = Layout { segments_at: 28, entry_bytes_at: 42, entries_at: 44, is_wide: false };
const WIDE: Layout = Layout { segments_at: 32, entry_bytes_at: 54, entries_at: 56, is_wide: true };

/// Whether a file with this head may be packed.
pub(super) fn is_candidate(head: &[u8]) -> bool {
    first_block(head).is_some()
}

/// The unpacker of an executable, if it is packed.
pub(super) fn unpacker(file: &Whole) -> Option<Box<dyn Unpacker>> {
    let at = first_block(file.head)?;
    Some(Box::new(Elf { is_big: is_big(file.head), at, segments: Vec::new(), left: 0, block: None, blocks: 0 }))
}

fn is_big(head: &[u8]) -> bool {
    head.get(5) == Some(&2)
}

fn numbers(head: &[u8]) -> Option<(Numbers<'_>, Layout)> {
    let layout = match head.get(4)? {
        1 => NARROW,
        2 => WIDE,
        _ => return None,
    };
    head.starts_with(MAGIC).then_some((Numbers { bytes: head, is_big: is_big(head) }, layout))
}

/// Where the first block stands: behind the table of segments.
fn first_block(head: &[u8]) -> Option<u64> {
    let (numbers, layout) = numbers(head)?;
    let table = place(&numbers, &layout, layout.segments_at);
    let entries = u64::from(numbers.u16(layout.entry_bytes_at)) * u64::from(numbers.u16(layout.entries_at));
    let at = table.checked_add(entries)?.checked_add(INFORMATION_BYTES)?;
    let header = head.get(usize::try_from(at).ok()?..)?.first_chunk()?;
    let block = Elf::header(header, numbers.is_big);
    let is_known = matches!(block.method, 2..=10 | 14) && block.packed > 0;
    (is_known && block.packed < block.size && block.size <= HEADERS_MAX).then_some(at)
}

fn place(numbers: &Numbers, layout: &Layout, at: usize) -> u64 {
    if layout.is_wide { numbers.u64(at) } else { numbers.u32(at).into() }
}

struct Elf {
    is_big: bool,
    /// Where the next block stands.
    at: u64,
    /// Places and lengths of the remaining segments, the next last.
    segments: Vec<(usize, usize)>,
    /// Bytes left of the current segment.
    left: usize,
    block: Option<Open>,
    blocks: u64,
}

/// A block under way.
struct Open {
    block: Block,
    /// `None` where it is stored.
    decoder: Option<Decoder>,
    at: u64,
    /// Where its content begins.
    start: usize,
}

impl Elf {
    fn header(header: &[u8; BLOCK_HEADER_BYTES as usize], is_big: bool) -> Block {
        let numbers = Numbers { bytes: header, is_big };
        let (size, packed) = (numbers.u32(0), numbers.u32(4));
        Block { method: header[8], filter: header[9], filter_mark: header[10], packed, size }
    }

    fn begin(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        if self.blocks > 0 && self.left == 0 {
            let Some((start, length)) = self.segments.pop() else { return Turn::Done };
            if start < unpacked.bytes.len() {
                return Turn::Broken;
            }
            if start > unpacked.bytes_max {
                return Turn::TooLarge;
            }
            unpacked.bytes.resize(start, 0);
            self.left = length;
            return Turn::More;
        }
        let block = Elf::header(&file.bytes(self.at), self.is_big);
        let size_max = if self.blocks == 0 { HEADERS_MAX as usize } else { self.left };
        let at = self.at + BLOCK_HEADER_BYTES;
        if block.size == 0 || block.size as usize > size_max || block.packed > block.size {
            return Turn::Broken;
        }
        let is_stored = block.packed == block.size;
        let decoder = if is_stored { None } else { Decoder::new(&block, at, file, unpacked.bytes_max) };
        if decoder.is_none() && !is_stored {
            return Turn::Broken;
        }
        self.at = at + u64::from(block.packed);
        self.block = Some(Open { block, decoder, at, start: unpacked.bytes.len() });
        Turn::More
    }

    /// A block is whole.
    fn end(&mut self, open: &Open, unpacked: &mut Unpacked) -> Turn {
        let content = &mut unpacked.bytes[open.start..];
        if content.len() != open.block.size as usize {
            return Turn::Broken;
        }
        open.block.undo_filter(content);
        self.blocks += 1;
        if self.blocks > 1 {
            self.left -= content.len();
            return Turn::More;
        }
        match segments(content) {
            Some(segments) => {
                self.segments = segments;
                Turn::More
            }
            None => {
                unpacked.bytes.clear();
                Turn::Not
            }
        }
    }
}

/// The segments of the original file behind its headers, the first one last.
fn segments(headers: &[u8]) -> Option<Vec<(usize, usize)>> {
    const LOADED: u32 = 1;
    let (numbers, layout) = numbers(headers)?;
    let table = usize::try_from(place(&numbers, &layout, layout.segments_at)).ok()?;
    let entry_bytes = usize::from(numbers.u16(layout.entry_bytes_at)).max(1);
    let (offset_at, length_at) = if layout.is_wide { (8, 32) } else { (4, 16) };
    let entries = headers.get(table..)?.chunks_exact(entry_bytes);
    let mut segments = Vec::new();
    for entry in entries.take(usize::from(numbers.u16(layout.entries_at)).min(SEGMENTS_MAX)) {
        let entry = Numbers { bytes: entry, is_big: numbers.is_big };
        if entry.u32(0) != LOADED {
            continue;
        }
        let start = usize::try_from(place(&entry, &layout, offset_at)).ok()?;
        let end = start.checked_add(usize::try_from(place(&entry, &layout, length_at)).ok()?)?;
        // The headers are part of the first one.
        let start = if start == 0 { headers.len().min(end) } else { start };
        segments.push((start, end - start));
    }
    segments.reverse();
    Some(segments)
}

impl Unpacker for Elf {
    fn turn(&mut self, file: &Whole, unpacked: &mut Unpacked) -> Turn {
        let Some(mut open) = self.block.take() else { return self.begin(file, unpacked) };
        let Some(decoder) = &mut open.decoder else {
            if open.block.size as usize > unpacked.bytes_max - unpacked.bytes.len() {
                return Turn::TooLarge;
            }
            let content = file.run(open.at, open.block.size as usize);
            unpacked.bytes.extend_from_slice(&content);
            return self.end(&open, unpacked);
        };
        let until = unpacked.bytes.len() + TURN_BYTES;
        match decoder.run(file, unpacked, until) {
            Run::More if unpacked.bytes.len() - open.start > open.block.size as usize => Turn::Broken,
            Run::More => {
                self.block = Some(open);
                Turn::More
            }
            Run::End => self.end(&open, unpacked),
            Run::Broken if self.blocks == 0 => {
                unpacked.bytes.clear();
                Turn::Not
            }
            Run::Broken => Turn::Broken,
            Run::TooLarge => Turn::TooLarge,
        }
    }
}
