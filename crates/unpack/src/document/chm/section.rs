//! The compressed section: frames of LZX, whose places stand in a table, begun anew after some of them.

use stream::ReadAt;

use super::directory::Directory;
use super::read;
use crate::archive::cab::lzx::Lzx;
use crate::frame::codec::{le32, le64};

/// The content of a frame.
pub(super) const FRAME_BYTES: usize = 32 << 10;
/// Bytes that an incompressible frame may grow by.
const FRAME_DATA_MAX: u64 = 2 * FRAME_BYTES as u64;

pub(super) struct Section {
    content: (u64, u64),
    /// Where the last frame begins in it.
    start: u64,
    resets_at: u64,
    resets: u64,
    bytes: u64,
    window_bits: u32,
    /// LZX begins anew after so many frames.
    interval: u64,
    frame: u64,
    /// Frames are passed over until LZX begins anew.
    passing: bool,
    lzx: Box<Lzx>,
}

/// Result of a frame.
pub(super) enum Frame {
    More,
    End,
    Cut,
    Broken,
}

impl Section {
    /// Reads the properties and the table of resets.
    pub fn new(directory: &Directory, kept: &dyn ReadAt) -> Option<Section> {
        const UNIT: u32 = 32 << 10;
        const TABLE_HEADER_BYTES: usize = 0x28;
        const ENTRY_BYTES: u32 = 8;
        let control = read(kept, directory.control?.0, 28);
        let table_at = directory.resets?.0;
        let table = read(kept, table_at, TABLE_HEADER_BYTES);
        if control.get(4..8) != Some(b"LZXC") || table.len() < TABLE_HEADER_BYTES || le32(&table, 8) != ENTRY_BYTES {
            return None;
        }
        let unit = if le32(&control, 8) == 2 { UNIT } else { 1 };
        let (interval, window) = (le32(&control, 12).checked_mul(unit)?, le32(&control, 16).checked_mul(unit)?);
        let window_bits = window.is_power_of_two().then(|| window.trailing_zeros())?;
        let is_sane = (15..=21).contains(&window_bits) && interval >= UNIT && le64(&table, 32) == u64::from(UNIT);
        is_sane.then(|| Section {
            content: directory.content.unwrap_or_default(),
            start: 0,
            resets_at: table_at.saturating_add(le32(&table, 12).into()),
            resets: le32(&table, 4).into(),
            bytes: le64(&table, 16),
            window_bits,
            interval: u64::from(interval / UNIT),
            frame: 0,
            passing: false,
            lzx: Box::new(Lzx::new()),
        })
    }

    pub const fn window_bytes(&self) -> usize {
        1 << self.window_bits
    }

    /// The length of the content.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the frame begins in the packed data.
    fn start(&self, frame: u64, kept: &dyn ReadAt) -> Option<u64> {
        if frame >= self.resets {
            return Some(self.content.1);
        }
        let entry = read(kept, self.resets_at.saturating_add(8 * frame), 8);
        (entry.len() == 8).then(|| le64(&entry, 0).min(self.content.1))
    }

    /// The packed data from the last frame on.
    pub const fn left(&self) -> (u64, u64) {
        (self.content.0.saturating_add(self.start), self.content.1.saturating_sub(self.start))
    }

    /// Decompresses the next frame; output before an error stays.
    pub fn frame(&mut self, kept: &dyn ReadAt, content: &mut Vec<u8>) -> Frame {
        let done = self.frame * FRAME_BYTES as u64;
        let Some(left) = self.bytes.checked_sub(done).filter(|left| *left > 0 && self.frame < self.resets) else {
            return Frame::End;
        };
        let frame = self.frame;
        self.frame += 1;
        self.passing &= !frame.is_multiple_of(self.interval);
        if self.passing {
            content.resize(FRAME_BYTES, 0);
            return Frame::More;
        }
        let (Some(start), Some(end)) = (self.start(frame, kept), self.start(frame + 1, kept)) else {
            return Frame::Cut;
        };
        self.start = start;
        let Some(length) = end.checked_sub(start).filter(|length| *length <= FRAME_DATA_MAX) else {
            return Frame::Broken;
        };
        let data = read(kept, self.content.0.saturating_add(start), length as usize);
        let is_cut = (data.len() as u64) < length;
        if frame.is_multiple_of(self.interval) {
            self.lzx.restart(self.window_bits);
        }
        let done = match usize::try_from(left).unwrap_or(FRAME_BYTES) {
            left @ ..FRAME_BYTES => self.lzx.last_frame(&data, left, content),
            _ => self.lzx.frame(&data, FRAME_BYTES, content),
        };
        match done {
            _ if is_cut => Frame::Cut,
            Some(()) => Frame::More,
            None => Frame::Broken,
        }
    }

    /// Skips undecodable data, after a frame that is `content` as far as it could be read, to the next reset of LZX;
    /// NULs replace it. Returns whether there is such a place.
    pub fn pass_over(&mut self, kept: &dyn ReadAt, content: &mut Vec<u8>) -> bool {
        let next = self.frame.next_multiple_of(self.interval);
        let is_content = next < self.resets && next.saturating_mul(FRAME_BYTES as u64) < self.bytes;
        let start = self.start(next, kept).filter(|_| is_content);
        let is_there = start.is_some_and(|start| read(kept, self.content.0.saturating_add(start), 1).len() == 1);
        if is_there {
            content.resize(FRAME_BYTES, 0);
            self.passing = true;
        }
        is_there
    }
}
