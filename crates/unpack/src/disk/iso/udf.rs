//! UDF: from the anchor to the volume, the file set, the directories and the entries of files.
//!
//! The descriptors of the volume stand in front of the anchor that leads to them: they are noted as they pass. Partitions
//! are plain, sparable (read as if nothing were remapped) or of metadata.

use super::plan::{Plan, Rank};
use super::{AREA_BYTES, EXTENTS, PARTITION, SECTOR, Structure as Wanted};
use crate::frame::codec::{le16, le32, le64};
use crate::frame::name;

/// Captured structure.
pub(super) enum Structure {
    /// A piece of the space in which the anchor and the volume are looked for.
    Look,
    /// The descriptors that an anchor leads to.
    Sequence,
    /// The entry of the metadata file.
    Metadata,
    FileSet,
    Entry(Box<str>),
    /// A directory of this path.
    Directory(Box<str>),
}

const RANK: Rank = 3;
/// The tree of its directories, for [`Plan::is_new`].
const TREE: u8 = 2;
const LOOK_BYTES: u64 = 512;
/// The anchor stands in block 256, of 4096 bytes at most.
const LOOK_TO: u64 = 256 * 4096;
const BLOCKS: [u64; 3] = [2048, 512, 4096];
/// Descriptors of the volume, and extents of a file, beyond these are not looked at.
const DESCRIPTORS_MAX: usize = 64;
const EXTENTS_MAX: usize = 256;

/// Facts about a volume.
#[derive(Default)]
pub(super) struct Udf {
    /// Whether there is one.
    is_there: bool,
    looked_at_end: bool,
    /// The length of a block, once the anchor has stated it.
    block: u64,
    descriptors: Vec<Descriptor>,
    partitions: Vec<Partition>,
    file_set: Option<Address>,
}

/// A descriptor that was read.
enum Descriptor {
    Partition { at: u64, number: u16, block: u32 },
    Volume { at: u64, bytes: Vec<u8> },
}

/// Where the blocks of a partition are.
#[derive(Clone)]
enum Partition {
    At(u64),
    /// In a file.
    Within(Vec<(u64, u64)>),
    Unknown,
}

/// A block of a partition.
#[derive(Clone, Copy)]
struct Address {
    block: u32,
    partition: u16,
}

/// Content of an entry.
enum Content {
    /// In the entry itself, from here on so many bytes.
    Embedded(usize, usize),
    Extents(Vec<(u64, u64)>),
}

mod tag {
    pub const ANCHOR: u16 = 2;
    pub const PARTITION: u16 = 5;
    pub const VOLUME: u16 = 6;
    pub const FILE_SET: u16 = 256;
    pub const IDENTIFIER: u16 = 257;
    pub const ENTRY: u16 = 261;
    pub const EXTENDED_ENTRY: u16 = 266;
}

/// The number of the descriptor that begins here, if its tag is sound.
fn tag(bytes: &[u8]) -> Option<u16> {
    let tag = bytes.get(..16)?;
    let sum = tag.iter().enumerate().filter(|(at, _)| *at != 4).fold(0u8, |sum, (_, byte)| sum.wrapping_add(*byte));
    (sum == tag[4]).then(|| le16(tag, 0))
}

impl Udf {
    /// A volume has announced itself: its descriptors are looked for from here on.
    pub fn look(&mut self, plan: &mut Plan, at: u64) {
        if !std::mem::replace(&mut self.is_there, true) {
            plan.structure(at + SECTOR, LOOK_BYTES, Wanted::Udf(Structure::Look));
        }
    }

    /// Looks for an anchor at the end of the image; whether there is something to be read.
    pub fn look_at_end(&mut self, plan: &mut Plan) -> bool {
        if !self.is_there || self.block != 0 || std::mem::replace(&mut self.looked_at_end, true) {
            return false;
        }
        for place in BLOCKS.into_iter().flat_map(|block| [block, 257 * block]) {
            if let Some(at) = plan.at().checked_sub(place).filter(|at| *at > AREA_BYTES) {
                plan.structure(at, LOOK_BYTES, Wanted::Udf(Structure::Look));
            }
        }
        true
    }

    pub fn read(&mut self, plan: &mut Plan, structure: Structure, at: u64, bytes: &[u8]) {
        match structure {
            Structure::Look => self.look_here(plan, at, bytes),
            Structure::Sequence => {
                for (index, bytes) in bytes.chunks(self.block.max(LOOK_BYTES) as usize).enumerate() {
                    self.note(at + index as u64 * self.block, bytes);
                }
                self.mount(plan, at..at + bytes.len() as u64);
            }
            Structure::Metadata => self.metadata(plan, bytes),
            Structure::FileSet => self.file_set(plan, bytes),
            Structure::Entry(path) => self.entry(plan, path, at, bytes),
            Structure::Directory(path) => self.directory(plan, &path, bytes),
        }
    }

    fn look_here(&mut self, plan: &mut Plan, at: u64, bytes: &[u8]) {
        if self.block != 0 {
            return;
        }
        match tag(bytes) {
            Some(tag::ANCHOR) => self.anchor(plan, at, bytes),
            Some(_) => self.note(at, bytes),
            None => {}
        }
        if self.block == 0 && at < LOOK_TO && !self.looked_at_end {
            plan.structure(at + LOOK_BYTES, LOOK_BYTES, Wanted::Udf(Structure::Look));
        }
    }

    fn note(&mut self, at: u64, bytes: &[u8]) {
        if self.descriptors.len() == DESCRIPTORS_MAX {
            return;
        }
        match tag(bytes) {
            Some(tag::PARTITION) => {
                let (number, block) = (le16(bytes, 22), le32(bytes, 188));
                self.descriptors.push(Descriptor::Partition { at, number, block });
            }
            Some(tag::VOLUME) => {
                let bytes = bytes[..bytes.len().min(LOOK_BYTES as usize)].to_vec();
                self.descriptors.push(Descriptor::Volume { at, bytes });
            }
            _ => {}
        }
    }

    /// The anchor tells the length of a block by its place, and where the descriptors are.
    fn anchor(&mut self, plan: &mut Plan, at: u64, bytes: &[u8]) {
        let location = u64::from(le32(bytes, 12));
        let Some(block) = BLOCKS.into_iter().find(|block| location > 0 && location * block == at) else {
            return;
        };
        self.block = block;
        for from in [16, 24] {
            let (length, start) = (u64::from(le32(bytes, from)), u64::from(le32(bytes, from + 4)) * block);
            let range = start..start + length.min(DESCRIPTORS_MAX as u64 * block);
            if self.file_set.is_some() {
                return;
            }
            match self.descriptors.iter().any(|known| range.contains(&known.at())) {
                true => self.mount(plan, range),
                false => plan.structure(start, range.end - start, Wanted::Udf(Structure::Sequence)),
            }
        }
    }

    /// Takes the volume from the descriptors within this range.
    fn mount(&mut self, plan: &mut Plan, range: std::ops::Range<u64>) {
        if self.file_set.is_some() {
            return;
        }
        let within = self.descriptors.iter().filter(|known| range.contains(&known.at()));
        let volume = within.clone().rev().find_map(|known| match known {
            Descriptor::Volume { bytes, .. } => Some(bytes),
            Descriptor::Partition { .. } => None,
        });
        let Some(volume) = volume else { return };
        let start_of = |wanted: u16| {
            within.clone().rev().find_map(|known| match known {
                Descriptor::Partition { number, block, .. } if *number == wanted => {
                    Some(u64::from(*block) * self.block)
                }
                _ => None,
            })
        };
        let mut partitions = Vec::new();
        let mut metadata = Vec::new();
        let mut maps = volume.get(440..).unwrap_or_default();
        for _ in 0..le32(volume, 268).min(8) {
            let Some((map, rest)) = maps.get(1).and_then(|&length| maps.split_at_checked(length.into())) else {
                break;
            };
            maps = rest;
            let number = if map.first() == Some(&1) { le16(map, 4) } else { le16(map, 38) };
            let start = start_of(number);
            let identifier = map.get(5..28).unwrap_or_default();
            partitions.push(match (map.first(), start) {
                (Some(1), Some(start)) => Partition::At(start),
                (Some(2), Some(start)) if identifier.starts_with(b"*UDF Sparable") => Partition::At(start),
                (Some(2), Some(start)) if identifier.starts_with(b"*UDF Metadata") => {
                    metadata.push(start + u64::from(le32(map, 40)) * self.block);
                    Partition::Within(Vec::new())
                }
                _ => {
                    plan.fault(PARTITION);
                    Partition::Unknown
                }
            });
        }
        let file_set = Address { block: le32(volume, 252), partition: le16(volume, 256) };
        (self.partitions, self.file_set) = (partitions, Some(file_set));
        match metadata.first() {
            Some(&at) => plan.structure(at, self.block, Wanted::Udf(Structure::Metadata)),
            None => self.want_file_set(plan),
        }
    }

    fn want_file_set(&self, plan: &mut Plan) {
        if let Some(at) = self.file_set.and_then(|address| self.place(address)) {
            plan.structure(at, LOOK_BYTES, Wanted::Udf(Structure::FileSet));
        }
    }

    /// The metadata file has been found: the partition lies within it.
    fn metadata(&mut self, plan: &mut Plan, bytes: &[u8]) {
        let plain = self.partitions.iter().position(|partition| matches!(partition, Partition::At(_)));
        let Some(Content::Extents(extents)) = self.content(plan, bytes, plain.unwrap_or(0) as u16) else {
            return plan.broken();
        };
        for partition in &mut self.partitions {
            if let Partition::Within(within) = partition {
                within.clone_from(&extents);
            }
        }
        self.want_file_set(plan);
    }

    /// Where a block stands.
    fn place(&self, address: Address) -> Option<u64> {
        let mut offset = u64::from(address.block) * self.block;
        match self.partitions.get(usize::from(address.partition))? {
            Partition::At(start) => Some(start + offset),
            Partition::Within(extents) => extents.iter().find_map(|&(start, length)| {
                let here = offset < length;
                let place = here.then_some(start + offset);
                offset = offset.saturating_sub(length);
                place
            }),
            Partition::Unknown => None,
        }
    }

    fn file_set(&mut self, plan: &mut Plan, bytes: &[u8]) {
        if tag(bytes) != Some(tag::FILE_SET) {
            return plan.broken();
        }
        let root = Address { block: le32(bytes, 404), partition: le16(bytes, 408) };
        self.want_entry(plan, root, "".into());
    }

    fn want_entry(&self, plan: &mut Plan, address: Address, path: Box<str>) {
        match self.place(address) {
            Some(at) => plan.structure(at, self.block, Wanted::Udf(Structure::Entry(path))),
            None => plan.broken(),
        }
    }

    fn entry(&mut self, plan: &mut Plan, path: Box<str>, at: u64, bytes: &[u8]) {
        const DIRECTORY: u8 = 4;
        const STREAM_DIRECTORY: u8 = 13;
        let partition = self.partition_of(at);
        let Some(content) = self.content(plan, bytes, partition) else {
            return plan.broken();
        };
        let is_directory = matches!(bytes.get(27), Some(&(DIRECTORY | STREAM_DIRECTORY)));
        match content {
            Content::Embedded(from, length) if is_directory => {
                let bytes = bytes.get(from..).unwrap_or_default();
                self.directory(plan, &path, &bytes[..length.min(bytes.len())]);
            }
            Content::Embedded(from, length) => plan.file(vec![(at + from as u64, length as u64)], path, RANK),
            Content::Extents(extents) if is_directory => {
                // A directory within itself would be read over and over.
                if extents.first().is_some_and(|extent| plan.is_new(extent.0, TREE)) {
                    plan.structure_in(extents, Wanted::Udf(Structure::Directory(path)));
                }
            }
            Content::Extents(extents) => plan.file(extents, path, RANK),
        }
    }

    /// The partition that a short address in an entry at this place means.
    fn partition_of(&self, at: u64) -> u16 {
        let within = self.partitions.iter().position(|partition| match partition {
            Partition::Within(extents) => extents.iter().any(|&(start, length)| (start..start + length).contains(&at)),
            _ => false,
        });
        let plain = || self.partitions.iter().position(|partition| matches!(partition, Partition::At(_)));
        within.or_else(plain).unwrap_or(0) as u16
    }

    /// Where the content of an entry is. Holes are left out.
    fn content(&self, plan: &mut Plan, bytes: &[u8], partition: u16) -> Option<Content> {
        const LONG: u16 = 1;
        const EMBEDDED: u16 = 3;
        let (attributes_at, descriptors_at) = match tag(bytes)? {
            tag::ENTRY => (168, 176),
            tag::EXTENDED_ENTRY => (208, 216),
            _ => return None,
        };
        let from = descriptors_at + le32(bytes, attributes_at) as usize;
        let length = le32(bytes, attributes_at + 4) as usize;
        let mut left = le64(bytes, 56);
        let descriptors = bytes.get(from..from.checked_add(length)?)?;
        let flavour = le16(bytes, 34) & 7;
        if flavour == EMBEDDED {
            return Some(Content::Embedded(from, length.min(usize::try_from(left).unwrap_or(length))));
        }
        let mut extents = Vec::new();
        for descriptor in descriptors.chunks_exact(if flavour == LONG { 16 } else { 8 }) {
            let (word, block) = (le32(descriptor, 0), le32(descriptor, 4));
            let (kind, length) = (word >> 30, u64::from(word & 0x3fff_ffff).min(left));
            if length == 0 && kind != 3 || left == 0 {
                break;
            }
            if kind == 3 || extents.len() == EXTENTS_MAX {
                plan.fault(EXTENTS);
                break;
            }
            left -= length;
            let partition = if flavour == LONG { le16(descriptor, 8) } else { partition };
            match self.place(Address { block, partition }).filter(|_| kind == 0) {
                Some(start) => extents.push((start, length)),
                None if kind == 0 => plan.broken(),
                None => {}
            }
        }
        Some(Content::Extents(extents))
    }

    fn directory(&mut self, plan: &mut Plan, path: &str, bytes: &[u8]) {
        const IDENTIFIER_BYTES: usize = 38;
        const DELETED: u8 = 4;
        const PARENT: u8 = 8;
        let mut left = bytes;
        while let Some(fixed) = left.get(..IDENTIFIER_BYTES) {
            if tag(fixed) != Some(tag::IDENTIFIER) {
                return plan.broken();
            }
            let name_at = IDENTIFIER_BYTES + usize::from(le16(fixed, 36));
            let end = name_at + usize::from(fixed[19]);
            let Some(name) = left.get(name_at..end) else {
                return plan.broken();
            };
            if fixed[18] & (DELETED | PARENT) == 0 {
                if !plan.entry() {
                    return;
                }
                let path = plan.path(path, &identifier(name));
                let address = Address { block: le32(fixed, 24), partition: le16(fixed, 28) };
                self.want_entry(plan, address, path);
            }
            left = left.get(end.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

impl Descriptor {
    const fn at(&self) -> u64 {
        match self {
            Descriptor::Partition { at, .. } | Descriptor::Volume { at, .. } => *at,
        }
    }
}

/// A name in the compressed Unicode of OSTA.
fn identifier(bytes: &[u8]) -> Box<str> {
    const WIDE: u8 = 16;
    match bytes.split_first() {
        Some((&WIDE, name)) => name::utf16_be(name),
        Some((_, name)) => name.iter().map(|&byte| char::from(byte)).collect(),
        None => "".into(),
    }
}
