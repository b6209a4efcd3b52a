//! A copy of the section of an executable that holds an address, made as the section passes.

use std::ops::Range;

use crate::layout::Layout;

/// How much of a section is copied.
pub(crate) const COPIED_BYTES_MAX: u64 = 1 << 20;

/// The first [`COPIED_BYTES_MAX`] of a section.
#[derive(Debug, Clone)]
pub(crate) struct Passing {
    raw: Range<u64>,
    address: u64,
    /// Whether the section goes on behind the copy.
    cut: bool,
    bytes: Vec<u8>,
}

impl Passing {
    /// Starts to copy the section that holds an address, if one does.
    pub(crate) fn of(layout: &Layout, address: u32) -> Option<Passing> {
        let section = layout.sections().iter().find(|section| section.holds(u64::from(address)))?;
        let end = section.raw.end.min(section.raw.start + COPIED_BYTES_MAX);
        let (raw, cut) = (section.raw.start..end, end < section.raw.end);
        Some(Passing { raw, address: section.address, cut, bytes: Vec::new() })
    }

    /// Takes in bytes that stand at `offset` of the file.
    pub(crate) fn pass(&mut self, offset: u64, bytes: &[u8]) {
        let (from, to) = (self.raw.start.max(offset), self.raw.end.min(offset + bytes.len() as u64));
        if from < to {
            self.bytes.extend_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
        }
    }

    /// Whether the section goes on behind the copy.
    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Bytes from an address on.
    pub(crate) fn at(&self, address: u32) -> Option<&[u8]> {
        let distance = u64::from(address).checked_sub(self.address)?;
        self.bytes.get(usize::try_from(distance).ok()?..)
    }

    /// The word at an address.
    pub(crate) fn u32(&self, address: u32) -> Option<u32> {
        self.at(address)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// The text at an address, up to a NUL that stands within so many bytes.
    pub(crate) fn text(&self, address: u32, bytes_max: usize) -> Option<&[u8]> {
        let bytes = self.at(address)?;
        let bytes = &bytes[..bytes.len().min(bytes_max)];
        bytes.get(..memchr::memchr(0, bytes)?)
    }
}
