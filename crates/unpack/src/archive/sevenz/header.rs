//! The header of a 7z archive: which packed streams make which folders, and which files lie in them.
//!
//! Source: 7zFormat.txt of the LZMA SDK. Every count is bounded by the bytes that are there.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use super::aes::Properties;
use crate::frame::codec::{le16, le32};

/// Content of the header.
#[derive(Default)]
pub(super) struct Header {
    pub folders: Vec<Folder>,
    pub files: Vec<File>,
}

/// A chain of coders, and the content that comes out of it: one file behind the other.
#[derive(Default, Clone)]
pub(super) struct Folder {
    pub coders: Vec<Coder>,
    /// For inputs of coders, numbered through: the output that feeds it.
    pub binds: Vec<(usize, usize)>,
    /// The inputs fed by packed streams, in their order.
    pub packed_inputs: Vec<usize>,
    /// Where each packed stream lies in the file, and how long it is.
    pub packed: Vec<(u64, u64)>,
    /// The size of each coder's output.
    pub sizes: Vec<u64>,
    pub crc: Option<u32>,
    /// Size and checksum of each file.
    pub streams: Vec<(u64, Option<u32>)>,
}

/// One coder.
#[derive(Clone)]
pub(super) struct Coder {
    pub id: u64,
    pub inputs: usize,
    pub properties: Vec<u8>,
}

/// A file; those with content lie in the folders, in this order.
#[derive(Default, Clone)]
pub(super) struct File {
    pub name: Vec<u16>,
    pub has_content: bool,
    pub is_folder: bool,
}

/// A header, or one that is packed itself.
pub(super) enum Found {
    Header(Header),
    Packed(Folder),
}

mod id {
    pub const END: u64 = 0;
    pub const HEADER: u64 = 1;
    pub const ARCHIVE_PROPERTIES: u64 = 2;
    pub const ADDITIONAL_STREAMS: u64 = 3;
    pub const MAIN_STREAMS: u64 = 4;
    pub const FILES: u64 = 5;
    pub const PACKED: u64 = 6;
    pub const FOLDERS: u64 = 7;
    pub const STREAMS: u64 = 8;
    pub const SIZES: u64 = 9;
    pub const CRCS: u64 = 10;
    pub const FOLDER: u64 = 11;
    pub const UNPACKED_SIZES: u64 = 12;
    pub const STREAM_COUNTS: u64 = 13;
    pub const EMPTY_STREAMS: u64 = 14;
    pub const EMPTY_FILES: u64 = 15;
    pub const NAMES: u64 = 17;
    pub const PACKED_HEADER: u64 = 23;
}

/// The coder that encrypts.
pub(super) const AES: u64 = 0x06f1_0701;

/// As many as 7-Zip reads.
const CODERS_MAX: usize = 32;
const INPUTS_MAX: usize = 8;
/// Packed streams begin behind the start header.
const PACKED_AT: u64 = 32;

/// Why a header cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It makes no sense.
    Broken,
    /// It lists more than may be.
    TooMany,
}

/// Reads a header that may list `entries_max` things: packed streams, folders, contents, files.
pub(super) fn read(bytes: &[u8], entries_max: usize) -> Result<Found, Refused> {
    let mut input = Input { bytes, entries_left: entries_max, refused: Refused::Broken };
    input.found().ok_or(input.refused)
}

/// Header bytes that have not been read yet.
struct Input<'a> {
    bytes: &'a [u8],
    entries_left: usize,
    /// Why reading fails, if it does.
    refused: Refused,
}

impl<'a> Input<'a> {
    fn found(&mut self) -> Option<Found> {
        match self.number()? {
            id::HEADER => self.header().map(Found::Header),
            id::PACKED_HEADER => self.streams()?.into_iter().next().map(Found::Packed),
            _ => None,
        }
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let count = usize::try_from(count).ok().filter(|count| *count <= self.bytes.len())?;
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// A number: as many bytes follow the first as it has leading ones.
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = first.leading_ones();
        let low = self.take(u64::from(more))?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let high = if more < 7 { u64::from(first & (0x7f >> more)) << more.saturating_mul(8) } else { 0 };
        Some(low | high)
    }

    /// A number of things that will be remembered.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        match self.entries_left.checked_sub(count) {
            Some(left) => self.entries_left = left,
            None => {
                self.refused = Refused::TooMany;
                return None;
            }
        }
        Some(count)
    }

    fn bits(&mut self, count: usize) -> Option<Vec<bool>> {
        let bytes = self.take(count.div_ceil(8) as u64)?;
        let bits = bytes.iter().flat_map(|byte| (0..8u32).rev().map(move |bit| byte >> bit & 1 == 1));
        Some(bits.take(count).collect())
    }

    /// Reads bits after a byte that may declare all of them set.
    fn optional_bits(&mut self, count: usize) -> Option<Vec<bool>> {
        if self.byte()? != 0 { Some(vec![true; count]) } else { self.bits(count) }
    }

    fn crcs(&mut self, count: usize) -> Option<Vec<Option<u32>>> {
        let defined = self.optional_bits(count)?;
        defined
            .into_iter()
            .map(|defined| if defined { Some(Some(le32(self.take(4)?, 0))) } else { Some(None) })
            .collect()
    }

    fn header(&mut self) -> Option<Header> {
        let mut header = Header::default();
        loop {
            match self.number()? {
                id::END => return Some(header),
                id::ARCHIVE_PROPERTIES => while self.property()?.is_some() {},
                id::ADDITIONAL_STREAMS => drop(self.streams()?),
                id::MAIN_STREAMS => header.folders = self.streams()?,
                id::FILES => header.files = self.files()?,
                _ => return None,
            }
        }
    }

    /// A property, or the end of them.
    fn property(&mut self) -> Option<Option<(u64, &'a [u8])>> {
        let id = self.number()?;
        if id == id::END {
            return Some(None);
        }
        let length = self.number()?;
        Some(Some((id, self.take(length)?)))
    }

    fn streams(&mut self) -> Option<Vec<Folder>> {
        let (mut packed, mut folders) = (Vec::new(), Vec::new());
        let mut told_streams = false;
        loop {
            match self.number()? {
                id::END => break,
                id::PACKED => packed = self.packed()?,
                id::FOLDERS => folders = self.folders()?,
                id::STREAMS => {
                    self.substreams(&mut folders)?;
                    told_streams = true;
                }
                _ => return None,
            }
        }
        let mut packed = packed.into_iter();
        for folder in &mut folders {
            folder.packed = packed.by_ref().take(folder.packed_inputs.len()).collect();
            if folder.packed.len() < folder.packed_inputs.len() {
                return None;
            }
            if !told_streams {
                folder.streams = vec![(folder.size()?, folder.crc)];
            }
        }
        Some(folders)
    }

    /// Where the packed streams lie.
    fn packed(&mut self) -> Option<Vec<(u64, u64)>> {
        let mut at = self.number()?.checked_add(PACKED_AT)?;
        let count = self.count()?;
        let mut packed = Vec::new();
        loop {
            match self.number()? {
                id::END => return Some(packed),
                id::SIZES => {
                    for _ in 0..count {
                        let size = self.number()?;
                        packed.push((at, size));
                        at = at.checked_add(size)?;
                    }
                }
                id::CRCS => drop(self.crcs(count)?),
                _ => return None,
            }
        }
    }

    fn folders(&mut self) -> Option<Vec<Folder>> {
        if self.number()? != id::FOLDER {
            return None;
        }
        let count = self.count()?;
        if self.byte()? != 0 {
            return None;
        }
        let mut folders = (0..count).map(|_| self.folder()).collect::<Option<Vec<_>>>()?;
        loop {
            match self.number()? {
                id::END => return Some(folders),
                id::UNPACKED_SIZES => {
                    for folder in &mut folders {
                        folder.sizes = (0..folder.coders.len()).map(|_| self.number()).collect::<Option<_>>()?;
                    }
                }
                id::CRCS => {
                    let crcs = self.crcs(count)?;
                    folders.iter_mut().zip(crcs).for_each(|(folder, crc)| folder.crc = crc);
                }
                _ => return None,
            }
        }
    }

    fn folder(&mut self) -> Option<Folder> {
        let count = usize::try_from(self.number()?).ok().filter(|count| (1..=CODERS_MAX).contains(count))?;
        let coders = (0..count).map(|_| self.coder()).collect::<Option<Vec<_>>>()?;
        let inputs: usize = coders.iter().map(|coder| coder.inputs).sum();
        let mut binds: Vec<(usize, usize)> = Vec::new();
        for _ in 1..count {
            let (input, output) = (usize::try_from(self.number()?).ok()?, usize::try_from(self.number()?).ok()?);
            // An output that fed two inputs would be made once for each, and what feeds it twice for each of those.
            if binds.iter().any(|bind| bind.0 == input || bind.1 == output) {
                return None;
            }
            binds.push((input, output));
        }
        let packed_count = inputs.saturating_add(1).checked_sub(count).filter(|count| *count > 0)?;
        let unbound = (0..inputs).filter(|input| binds.iter().all(|(bound, _)| bound != input));
        let packed_inputs = match packed_count {
            1 => unbound.take(1).collect(),
            _ => (0..packed_count).map(|_| usize::try_from(self.number()?).ok()).collect::<Option<Vec<_>>>()?,
        };
        Some(Folder { coders, binds, packed_inputs, ..Folder::default() })
    }

    fn coder(&mut self) -> Option<Coder> {
        const HAS_COUNTS: u8 = 0x10;
        const HAS_PROPERTIES: u8 = 0x20;
        const RESERVED: u8 = 0xc0;
        let flags = self.byte()?;
        if flags & RESERVED != 0 {
            return None;
        }
        let id = self.take(u64::from(flags & 0xf).min(8))?.iter().fold(0, |id, &byte| id << 8 | u64::from(byte));
        let (mut inputs, mut outputs) = (1, 1);
        if flags & HAS_COUNTS != 0 {
            (inputs, outputs) = (self.number()?, self.number()?);
        }
        if outputs != 1 || inputs == 0 || inputs > INPUTS_MAX as u64 {
            return None;
        }
        let length = if flags & HAS_PROPERTIES != 0 { self.number()? } else { 0 };
        Some(Coder { id, inputs: inputs as usize, properties: self.take(length)?.to_vec() })
    }

    /// The files in each folder.
    fn substreams(&mut self, folders: &mut [Folder]) -> Option<()> {
        let mut counts = vec![1; folders.len()];
        let mut next = self.number()?;
        if next == id::STREAM_COUNTS {
            for count in &mut counts {
                *count = self.count()?;
            }
            next = self.number()?;
        }
        let has_sizes = next == id::SIZES;
        for (folder, &count) in folders.iter_mut().zip(&counts) {
            let mut left = folder.size()?;
            for _ in 1..count {
                let size = if has_sizes { self.number()? } else { 0 };
                left = left.checked_sub(size)?;
                folder.streams.push((size, None));
            }
            if count > 0 {
                folder.streams.push((left, folder.crc.filter(|_| count == 1)));
            }
        }
        if has_sizes {
            next = self.number()?;
        }
        while next != id::END {
            if next != id::CRCS {
                return None;
            }
            let streams = folders.iter_mut().flat_map(|folder| &mut folder.streams);
            let mut unknown: Vec<_> = streams.filter(|(_, crc)| crc.is_none()).collect();
            let crcs = self.crcs(unknown.len())?;
            unknown.iter_mut().zip(crcs).for_each(|(stream, crc)| stream.1 = crc);
            next = self.number()?;
        }
        Some(())
    }

    fn files(&mut self) -> Option<Vec<File>> {
        let count = self.count()?;
        let mut files = vec![File { has_content: true, ..File::default() }; count];
        let mut empty_files = Vec::new();
        while let Some((id, data)) = self.property()? {
            let mut data = Input { bytes: data, entries_left: 0, refused: Refused::Broken };
            match id {
                id::EMPTY_STREAMS => {
                    let empty = data.bits(count)?;
                    files.iter_mut().zip(empty).for_each(|(file, empty)| file.has_content = !empty);
                }
                id::EMPTY_FILES => {
                    empty_files = data.bits(files.iter().filter(|file| !file.has_content).count())?;
                }
                id::NAMES if data.byte()? == 0 => {
                    files.iter_mut().for_each(|file| file.name = data.name());
                }
                _ => {}
            }
        }
        let mut empty_files = empty_files.into_iter();
        for file in files.iter_mut().filter(|file| !file.has_content) {
            file.is_folder = !empty_files.next().unwrap_or(false);
        }
        Some(files)
    }

    /// UTF-16 up to a zero.
    fn name(&mut self) -> Vec<u16> {
        let mut name = Vec::new();
        while let Some(unit) = self.take(2).map(|unit| le16(unit, 0)).filter(|&unit| unit != 0) {
            name.push(unit);
        }
        name
    }
}

impl Folder {
    /// The output that feeds nothing else: the content.
    pub fn main_output(&self) -> Option<usize> {
        (0..self.coders.len()).find(|output| self.binds.iter().all(|(_, bound)| bound != output))
    }

    /// How it is encrypted, if it is.
    pub fn encryption(&self) -> Option<Properties> {
        let coder = self.coders.iter().find(|coder| coder.id == AES)?;
        Properties::read(&coder.properties)
    }

    /// Whether it is encrypted, in a way that is known or not.
    pub fn is_encrypted(&self) -> bool {
        self.coders.iter().any(|coder| coder.id == AES)
    }

    /// Returns whether a coder refuses most of the output of a wrong key: PPMd, filters and copies accept anything.
    pub fn resists_garbage(&self) -> bool {
        const RESISTING: [u64; 7] = [0x21, 0x03_01_01, 0x04_01_08, 0x04_02_02, 0x04f7_1101, 0x04_01_09, 0x04f7_1104];
        self.coders.iter().any(|coder| RESISTING.contains(&coder.id))
    }

    /// Bytes of content.
    pub fn size(&self) -> Option<u64> {
        self.sizes.get(self.main_output()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> Input<'_> {
        Input { bytes, entries_left: 5, refused: Refused::Broken }
    }

    #[test]
    fn what_lists_too_much_is_refused_before_it_takes_memory() {
        // Files, more of them than may be.
        assert!(matches!(read(&[1, 5, 6, 0, 0], 5), Err(Refused::TooMany)));
        assert!(matches!(read(&[1, 5, 5, 0, 0], 5), Ok(Found::Header(header)) if header.files.len() == 5));
        assert!(matches!(read(&[1, 5, 5, 0], 5), Err(Refused::Broken)));
    }

    #[test]
    fn a_number_tells_its_length_in_its_first_byte() {
        for (bytes, value) in [
            (&[0x7f][..], 0x7f),
            (&[0x80, 0x80], 0x80),
            (&[0xbf, 0xff], 0x3fff),
            (&[0xc1, 2, 3], 0x1_0302),
            (&[0xff, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
        ] {
            assert_eq!(input(bytes).number(), Some(value));
        }
        assert_eq!(input(&[0xff, 1]).number(), None);
    }
}
