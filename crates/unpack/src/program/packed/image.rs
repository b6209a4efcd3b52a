//! From an image in memory back to a file.

use super::Unpacked;
use super::source::Whole;
use crate::program::executable::head::{Head, SECTION_BYTES};

/// The signature and the file header in front of the optional header.
pub(super) const OPTIONAL_AT: usize = 24;

/// A part of a file: where in the file, and where in the image.
pub(super) struct Part {
    pub file: std::ops::Range<usize>,
    pub image: usize,
}

/// Puts a file together from the headers in `front` and the parts of the image.
pub(super) fn image_to_file(mut front: Vec<u8>, parts: &[Part], unpacked: &Unpacked) -> Option<Vec<u8>> {
    let bytes: usize = parts.iter().map(|part| part.file.len()).fold(0, usize::saturating_add);
    let end = parts.iter().map(|part| part.file.end).max()?.max(front.len());
    if bytes > unpacked.bytes_max || end > unpacked.bytes_max {
        return None;
    }
    front.resize(end, 0);
    for part in parts {
        let from = unpacked.bytes.get(part.image..).unwrap_or_default();
        let count = from.len().min(part.file.len());
        front[part.file.start..][..count].copy_from_slice(&from[..count]);
    }
    Some(front)
}

/// An executable of one section, which is the whole image.
pub(super) fn image_as_executable(file: &Whole, entry: u32, first: u32, unpacked: &Unpacked) -> Option<Vec<u8>> {
    const COUNT_AT: usize = 6;
    const ENTRY_AT: usize = OPTIONAL_AT + 16;
    const ALIGNMENT: usize = 512;
    let head = Head::read(file.head)?;
    let mut front = file.head.get(..head.end)?.to_vec();
    let table = head.end - SECTION_BYTES * head.sections.len();
    let start = head.end.next_multiple_of(ALIGNMENT);
    let bytes = unpacked.bytes.len();
    let mut put = |at: usize, bytes: &[u8]| front[at..at + bytes.len()].copy_from_slice(bytes);
    put(head.at + COUNT_AT, &1u16.to_le_bytes());
    put(head.at + ENTRY_AT, &entry.to_le_bytes());
    for (at, value) in [(8, bytes), (12, first as usize), (16, bytes), (20, start)] {
        put(table + at, &(value as u32).to_le_bytes());
    }
    image_to_file(front, &[Part { file: start..start.checked_add(bytes)?, image: 0 }], unpacked)
}
