//! LZX in cabinets: frames of at most 32 KiB, each in its own block, in one window; and in images of Windows:
//! independent chunks.
//!
//! A compressed block may span any number of frames. Bits come in little-endian words of 16, highest first; a frame is
//! held with the bytes of its words swapped. In the first 32768 frames the targets of calls (byte E8) are absolute;
//! they are made relative in the output, not in the window.
//!
//! Source: [MS-PATCH] 2, without the parts about delta compression. A chunk of an image always has translated calls,
//! without a bit for it, and a short form of the length of a block.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

const LITERALS: usize = 256;
/// Length headers of each position slot.
const HEADERS: usize = 8;
const LENGTHS: usize = 249;
const LENGTH_MIN: usize = 2;
/// The most position slots: of a window of 2 MiB.
const SLOTS_MAX: usize = 50;
const MAIN_MAX: usize = LITERALS + HEADERS * SLOTS_MAX;
/// The most bits that a symbol with all that belongs to it takes, and more.
const SYMBOL_BITS: usize = 96;

/// The decoder of one folder, or of one section of a help file.
pub(crate) struct Lzx {
    history: History,
    slots: usize,
    /// Size with which calls were translated, once the first frame has stated it.
    translation: Option<i32>,
    frames: u32,
    /// Whether the frame is the last of a section, which is padded: matches may reach beyond its content.
    is_filled_up: bool,
    /// The bits of the window, in an image.
    of_image: Option<u32>,
    recent: [usize; 3],
    block: Block,
    /// Bytes of content that remain of the block.
    block_left: usize,
    main_lengths: [u8; MAIN_MAX],
    length_lengths: [u8; LENGTHS],
    main: Huffman,
    lengths: Huffman,
    aligned: Huffman,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Verbatim,
    Aligned,
    Uncompressed,
}

/// The bits of a frame.
struct Source<'a> {
    raw: &'a [u8],
    swapped: Vec<u8>,
    /// Where the bits began, or where uncompressed bytes go on.
    start: usize,
    fed: usize,
    bits: Bits,
}

impl<'a> Source<'a> {
    fn new(raw: &'a [u8]) -> Source<'a> {
        let mut swapped = raw.to_vec();
        swapped.resize(raw.len().next_multiple_of(2), 0);
        swapped.as_chunks_mut::<2>().0.iter_mut().for_each(|word| word.reverse());
        Source { raw, swapped, start: 0, fed: 0, bits: Bits::new() }
    }

    /// The bits, as many as the next symbol takes; `None` behind the end.
    #[inline(always)]
    fn bits(&mut self) -> Option<&mut Bits> {
        if !self.bits.has(SYMBOL_BITS) {
            self.fed += self.bits.fill(&self.swapped[self.fed..]);
            if self.fed == self.swapped.len() {
                self.bits.fill(&[]);
            }
        }
        (!self.bits.overran()).then_some(&mut self.bits)
    }

    /// Where the next whole word stands.
    fn word(&self) -> usize {
        self.start + (self.bits.position().div_ceil(16) * 2) as usize
    }

    /// Goes on at this word.
    fn go_to(&mut self, at: usize) {
        self.bits.restart();
        self.start = at.min(self.swapped.len());
        self.fed = self.start;
    }
}

impl Lzx {
    pub fn new() -> Lzx {
        Lzx {
            history: History::new(),
            slots: 0,
            translation: None,
            frames: 0,
            is_filled_up: false,
            of_image: None,
            recent: [1; 3],
            block: Block::Verbatim,
            block_left: 0,
            main_lengths: [0; MAIN_MAX],
            length_lengths: [0; LENGTHS],
            main: Huffman::new(),
            lengths: Huffman::new(),
            aligned: Huffman::new(),
        }
    }

    /// Begins a folder with a window of `1 << window_bits`, 15 to 21.
    pub fn restart(&mut self, window_bits: u32) {
        self.history.restart(1 << window_bits, &[]);
        self.slots = match window_bits {
            21 => SLOTS_MAX,
            20 => 42,
            bits => 2 * bits as usize,
        };
        (self.translation, self.frames, self.recent, self.is_filled_up) = (None, 0, [1; 3], false);
        (self.block, self.block_left) = (Block::Verbatim, 0);
        (self.main_lengths, self.length_lengths) = ([0; MAIN_MAX], [0; LENGTHS]);
    }

    /// Decodes a chunk of an image, of so many bytes, to the end of `content`; `None` if it makes no sense. The window is
    /// as large as whole chunks are, `1 << window_bits`.
    pub fn chunk(&mut self, window_bits: u32, data: &[u8], size: usize, content: &mut Vec<u8>) -> Option<()> {
        const TRANSLATED: i32 = 12_000_000;
        self.restart(window_bits);
        (self.of_image, self.translation) = (Some(window_bits), Some(TRANSLATED));
        self.frame(data, size, content)
    }

    /// Decodes a frame of so many bytes to the end of `content`; `None` if it makes no sense.
    pub fn frame(&mut self, data: &[u8], size: usize, content: &mut Vec<u8>) -> Option<()> {
        if size == 0 {
            return Some(());
        }
        let mut source = Source::new(data);
        if self.frames == 0 && self.of_image.is_none() {
            let bits = source.bits()?;
            let size = if bits.flag() { bits.take(16) << 16 | bits.take(16) } else { 0 };
            self.translation = Some(size as i32).filter(|size| *size != 0);
        }
        let (start, begin) = (self.history.position(), content.len());
        let frame_end = start + size as u64;
        while self.history.position() < frame_end {
            if self.block_left == 0 {
                self.block_header(&mut source)?;
                continue;
            }
            let before = self.history.position();
            let left = ((frame_end - before) as usize).min(self.block_left);
            let end = before + self.history.dictionary.room(left) as u64;
            self.run(&mut source, end, before + left as u64)?;
            let count = (self.history.position() - before) as usize;
            self.block_left -= count;
            if self.block != Block::Uncompressed && source.bits.overran() {
                return None;
            }
            content.extend_from_slice(self.history.dictionary.last(count));
        }
        if let Some(size) = self.translation.filter(|_| self.frames < 1 << 15) {
            translate(&mut content[begin..], start as i32, size);
        }
        self.frames = self.frames.saturating_add(1);
        Some(())
    }

    /// Decodes the first `size` bytes of a frame that is longer.
    pub fn last_frame(&mut self, data: &[u8], size: usize, content: &mut Vec<u8>) -> Option<()> {
        self.is_filled_up = true;
        self.frame(data, size, content)
    }

    fn block_header(&mut self, source: &mut Source) -> Option<()> {
        if self.block == Block::Uncompressed {
            source.go_to(source.start.next_multiple_of(2));
        }
        let bits = source.bits()?;
        let kind = bits.take(3);
        self.block_left = block_length(bits, self.of_image) as usize;
        self.block = match kind {
            1 => Block::Verbatim,
            2 => {
                let mut lengths = [0; 8];
                lengths.iter_mut().for_each(|length| *length = bits.take(3) as u8);
                self.aligned.set(&lengths).ok()?;
                Block::Aligned
            }
            3 => return self.uncompressed_header(source),
            _ => return None,
        };
        let main = LITERALS + HEADERS * self.slots;
        read_lengths(&mut self.main_lengths[..LITERALS], source)?;
        read_lengths(&mut self.main_lengths[LITERALS..main], source)?;
        self.main.set(&self.main_lengths[..main]).ok()?;
        read_lengths(&mut self.length_lengths, source)?;
        self.lengths.set(&self.length_lengths).ok()
    }

    fn uncompressed_header(&mut self, source: &mut Source) -> Option<()> {
        const RECENT_BYTES: usize = 12;
        // One to 16 bits fill up the word.
        source.bits()?.skip(1);
        let at = source.word();
        let recent = source.raw.get(at..at + RECENT_BYTES)?;
        for (distance, field) in self.recent.iter_mut().zip(recent.as_chunks::<4>().0) {
            *distance = u32::from_le_bytes(*field) as usize;
        }
        self.block = Block::Uncompressed;
        source.start = at + RECENT_BYTES;
        Some(())
    }

    /// Decodes up to `end`; matches end at `match_end` at the latest.
    fn run(&mut self, source: &mut Source, end: u64, match_end: u64) -> Option<()> {
        if self.block == Block::Uncompressed {
            let count = (end - self.history.position()) as usize;
            let raw = source.raw.get(source.start..source.start + count)?;
            self.history.dictionary.extend(raw);
            source.start += count;
            return Some(());
        }
        self.history.copy_pending(end);
        while self.history.position() < end {
            let bits = source.bits()?;
            match self.main.read(bits)? {
                literal @ 0..LITERALS => self.history.dictionary.push(literal as u8),
                symbol => {
                    let (slot, header) = ((symbol - LITERALS) / HEADERS, (symbol - LITERALS) % HEADERS);
                    let more = if header == HEADERS - 1 { self.lengths.read(bits)? } else { 0 };
                    let length = LENGTH_MIN + header + more;
                    let distance = self.distance(slot, bits)?;
                    if self.history.position() + length as u64 > match_end && !self.is_filled_up {
                        return None;
                    }
                    self.history.copy(distance, length, end).ok()?;
                }
            }
        }
        Some(())
    }

    /// The distance of a position slot; the first three mean the recent ones.
    #[inline(always)]
    fn distance(&mut self, slot: usize, bits: &mut Bits) -> Option<usize> {
        if slot < self.recent.len() {
            self.recent.swap(0, slot);
            return Some(self.recent[0]);
        }
        let (base, width) = SLOTS[slot];
        let extra = match width {
            3.. if self.block == Block::Aligned => {
                (bits.take(u32::from(width) - 3) << 3) as usize + self.aligned.read(bits)?
            }
            _ => bits.take(u32::from(width)) as usize,
        };
        self.recent = [base as usize + extra - 2, self.recent[0], self.recent[1]];
        Some(self.recent[0])
    }
}

/// The length of a block; in an image one bit says that it is the usual one, and small windows have shorter ones.
fn block_length(bits: &mut Bits, of_image: Option<u32>) -> u32 {
    match of_image {
        None => bits.take(24),
        Some(_) if bits.flag() => 32 << 10,
        Some(window_bits) => bits.take(if window_bits > 15 { 24 } else { 16 }),
    }
}

/// The first distance of each position slot, plus 2, and how many bits are added to it.
static SLOTS: [(u32, u8); SLOTS_MAX] = slots();

const fn slots() -> [(u32, u8); SLOTS_MAX] {
    let mut slots = [(0, 0); SLOTS_MAX];
    let (mut slot, mut base) = (0, 0);
    while slot < SLOTS_MAX {
        let width = match slot {
            0..4 => 0,
            4..36 => slot / 2 - 1,
            _ => 17,
        };
        slots[slot] = (base, width as u8);
        base += 1 << width;
        slot += 1;
    }
    slots
}

/// Code lengths, told as differences to those before, with a code of their own in front.
fn read_lengths(lengths: &mut [u8], source: &mut Source) -> Option<()> {
    const ZEROS: usize = 17;
    const MORE_ZEROS: usize = 18;
    const SAME: usize = 19;
    let mut of_code = [0; SAME + 1];
    let bits = source.bits()?;
    of_code.iter_mut().for_each(|length| *length = bits.take(4) as u8);
    let mut code = Huffman::new();
    code.set(&of_code).ok()?;
    let mut at = 0;
    while at < lengths.len() {
        let bits = source.bits()?;
        let changed = |old: u8, by: usize| ((usize::from(old) + 17 - by) % 17) as u8;
        let (count, length) = match code.read(bits)? {
            ZEROS => (4 + bits.take(4), 0),
            MORE_ZEROS => (20 + bits.take(5), 0),
            SAME => (4 + bits.take(1), changed(lengths[at], code.read(bits).filter(|by| *by < ZEROS)?)),
            by => (1, changed(lengths[at], by)),
        };
        let run = lengths.get_mut(at..at + count as usize)?;
        run.fill(length);
        at += count as usize;
    }
    Some(())
}

/// Makes the targets of calls relative again, in a frame that begins at `start`.
fn translate(frame: &mut [u8], start: i32, size: i32) {
    const CALL: u8 = 0xe8;
    /// In the last bytes of a frame calls are left alone.
    const LAST: usize = 10;
    let end = frame.len().saturating_sub(LAST);
    let mut at = 0;
    while let Some(found) = frame.get(at..end).and_then(|frame| memchr::memchr(CALL, frame)) {
        let (call, target) = (at + found, at + found + 1);
        at = call + 5;
        let Some(field) = frame.get_mut(target..).and_then(<[u8]>::first_chunk_mut::<4>) else {
            return;
        };
        let (absolute, here) = (i32::from_le_bytes(*field), start.wrapping_add(call as i32));
        if absolute >= here.wrapping_neg() && absolute < size {
            let by = if absolute >= 0 { here.wrapping_neg() } else { size };
            *field = absolute.wrapping_add(by).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!((SLOTS[3], SLOTS[4], SLOTS[5], SLOTS[6]), ((3, 0), (4, 1), (6, 1), (8, 2)));
        assert_eq!((SLOTS[36], SLOTS[37], SLOTS[49]), ((1 << 18, 17), (3 << 17, 17), (15 << 17, 17)));
    }

    #[test]
    fn calls_become_relative_where_their_target_is_in_the_file() {
        let mut frame = [0; 40];
        frame[2..7].copy_from_slice(&[0xe8, 9, 0, 0, 0]);
        frame[8..13].copy_from_slice(&[0xe8, 0xff, 0xff, 0xff, 0xff]);
        frame[14..19].copy_from_slice(&[0xe8, 200, 0, 0, 0]);
        frame[20] = 0xe8;
        frame[30] = 0xe8;
        frame[31] = 1;
        let mut expected = frame;
        expected[3] = 7;
        expected[9..13].copy_from_slice(&99i32.to_le_bytes());
        expected[21..25].copy_from_slice(&(-20i32).to_le_bytes());
        translate(&mut frame, 0, 100);
        assert_eq!(frame, expected);
    }

    #[test]
    fn an_uncompressed_block_may_have_an_odd_length_and_reach_over_frames() {
        let mut lzx = Lzx::new();
        lzx.restart(15);
        // No translation, type 3, three bytes; the distances; the filling; the same again, of two bytes.
        let first = [0, 0x30, 0x30, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'a', b'b', b'c', 0];
        let second = [0, 0x60, 0x40, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'd'];
        let mut content = Vec::new();
        assert_eq!(lzx.frame(&[&first[..], &second].concat(), 4, &mut content), Some(()));
        assert_eq!(lzx.frame(b"e", 1, &mut content), Some(()));
        assert_eq!(content, b"abcde");
        assert_eq!(lzx.frame(b"", 1, &mut content), None);
    }

    #[test]
    fn damage_never_panics() {
        let mut state = 1u32;
        for _ in 0..2000 {
            let mut data = [0; 300];
            for byte in &mut data {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
            let mut lzx = Lzx::new();
            lzx.restart(15 + state % 7);
            let _ = lzx.frame(&data, 32768, &mut Vec::new());
        }
    }
}
