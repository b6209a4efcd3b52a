//! The headers of a Windows executable: what its image is made of.
//!
//! Bounds: [`SECTIONS_MAX`] sections.

use std::ops::Range;

use crate::frame::codec::{le16, le32};

const SECTIONS_MAX: usize = 96;
pub(crate) const SECTION_BYTES: usize = 40;
/// The signature and the file header.
const FILE_HEADER_BYTES: usize = 24;

/// Facts in the headers.
pub(crate) struct Head {
    pub sections: Vec<Section>,
    /// Where the signature stands.
    pub at: usize,
    /// Where the table of sections ends.
    pub end: usize,
    /// The address of the first instruction.
    pub entry: u32,
    /// The address to which those of the image are added.
    pub base: u32,
    resources_address: u32,
    certificates: Range<u64>,
}

/// A section, in memory and in the file.
pub(crate) struct Section {
    pub address: u32,
    pub memory_bytes: u32,
    pub file: Range<u64>,
}

impl Head {
    pub fn read(head: &[u8]) -> Option<Head> {
        const RESOURCES: usize = 2;
        const CERTIFICATES: usize = 4;
        let at = le32(head, 0x3c) as usize;
        let image = head.get(at..).filter(|image| image.starts_with(b"PE\0\0"))?;
        let (count, optional_bytes) = (usize::from(le16(image, 6)), usize::from(le16(image, 20)));
        let optional = image.get(FILE_HEADER_BYTES..)?;
        let directories = match le16(optional, 0) {
            0x20b => 112,
            _ => 96,
        };
        let directory =
            |index: usize| (le32(optional, directories + 8 * index), le32(optional, directories + 8 * index + 4));
        let table = optional.get(optional_bytes..)?;
        let sections: Vec<_> =
            table.chunks_exact(SECTION_BYTES).take(count.min(SECTIONS_MAX)).map(Section::read).collect();
        let (signed_at, signed_bytes) = directory(CERTIFICATES);
        Some(Head {
            at,
            end: at + FILE_HEADER_BYTES + optional_bytes + SECTION_BYTES * sections.len(),
            entry: le32(optional, 16),
            base: le32(optional, 28),
            resources_address: directory(RESOURCES).0,
            certificates: u64::from(signed_at)..u64::from(signed_at) + u64::from(signed_bytes),
            sections,
        })
    }

    /// Where the last section ends in the file.
    pub fn image_end(&self) -> Option<u64> {
        self.sections.iter().map(|section| section.file.end).max()
    }

    /// Where the file ends as far as the headers know.
    pub fn file_end(&self) -> u64 {
        let signed = Some(self.certificates.end).filter(|end| *end > self.certificates.start);
        signed.max(self.image_end()).unwrap_or(0).max(self.end as u64)
    }

    /// Where in the file the resources lie, from their directory to the end of the section, and at which address.
    pub fn resources(&self) -> Option<(Range<u64>, u32)> {
        let address = self.resources_address;
        let within = self.sections.iter().find_map(|section| {
            let start = section.file.start + u64::from(address.checked_sub(section.address)?);
            (start < section.file.end).then_some(start..section.file.end)
        })?;
        (address != 0).then_some((within, address))
    }

    /// Where in the file the byte at this address of the image stands.
    pub fn file_at(&self, address: u32) -> Option<u64> {
        self.sections.iter().find_map(|section| {
            let at = section.file.start + u64::from(address.checked_sub(section.address)?);
            (at < section.file.end).then_some(at)
        })
    }
}

impl Section {
    fn read(header: &[u8]) -> Section {
        let start = u64::from(le32(header, 20));
        let file = start..start + u64::from(le32(header, 16));
        Section { address: le32(header, 12), memory_bytes: le32(header, 8), file }
    }
}
