//! A volume of ext2, ext3 or ext4: its folders and files, in the order of the tree.
//!
//! Content stands in extents, in blocks listed directly and indirectly, or in the inode itself. Holes are zeros. A file has the
//! type that its inode has, not its entry. Left out: links, devices, deleted files, attributes. A volume whose journal waits
//! to be replayed, with descriptors in meta groups, or with compression has the finding of a file system that is not read;
//! encrypted files have one of their own.
//!
//! Bounds: `directory_entries_max` entries, each with a path; a block of 64 KiB; [`DEPTH_MAX`] folders within folders, of
//! [`FOLDERS_BYTES_MAX`]; zeros of [`ZEROS_RATIO`] times the image. Source: the kernel's `Documentation/filesystems/ext4`.

use std::collections::{BTreeSet, VecDeque};

use stream::{Class, Kind, Object};

use super::fat::Turn;
use super::{BEYOND, Disk, ENTRIES, SYSTEM, TRUNCATED};
use crate::frame::codec::{Fault, le16, le32};
use crate::frame::name;
use crate::frame::reader::{CONTENT_BYTES, Outbox};

const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Disk");

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_BYTES: usize = 352;
const ROOT: u32 = 2;
/// Folders within folders.
const DEPTH_MAX: u32 = 64;
/// Bytes read of all folders.
const FOLDERS_BYTES_MAX: u64 = 64 << 20;
/// Zeros in holes, for each byte of the image, and besides.
const ZEROS_RATIO: u64 = 16;
const ZEROS_FREE: u64 = 256 << 10;
/// Levels of the tree of extents.
const LEVELS_MAX: u16 = 5;

/// Features without which a volume is read wrongly: compression, a device of a journal, descriptors in meta groups.
const UNREAD: u32 = 0x1 | 0x8 | 0x10;
const RECOVER: u32 = 0x4;
const WIDE: u32 = 0x80;

const ENCRYPTED_FILE: u32 = 0x800;
const EXTENTS_FILE: u32 = 0x8_0000;
const INLINE_FILE: u32 = 0x1000_0000;

/// Whether a superblock stands in the head of a volume. Its magic has two bytes only, so its other fields have to make sense.
pub(super) fn is_volume(head: &[u8]) -> bool {
    head.get(SUPERBLOCK_AT as usize..).is_some_and(Geometry::is_superblock)
}

/// Where things stand.
#[derive(Debug, Clone, Copy)]
struct Geometry {
    block_bytes: u64,
    /// Where the descriptors of groups begin.
    groups_at: u64,
    group_bytes: u64,
    inodes_per_group: u32,
    inodes: u32,
    inode_bytes: u64,
    features: u32,
}

impl Geometry {
    fn is_superblock(block: &[u8]) -> bool {
        if block.len() < 104 {
            return false;
        }
        let is_counted = le32(block, 0) > 0 && le32(block, 4) > 0 && le32(block, 32) > 0 && le32(block, 40) > 0;
        le16(block, 56) == 0xef53 && is_counted && le32(block, 20) <= 1 && le32(block, 24) <= 6 && le32(block, 76) <= 1
    }

    fn read(block: &[u8]) -> Option<Geometry> {
        if block.len() < SUPERBLOCK_BYTES || !Geometry::is_superblock(block) {
            return None;
        }
        let block_bytes = 1024 << le32(block, 24);
        let is_old = le32(block, 76) == 0;
        let features = if is_old { 0 } else { le32(block, 96) };
        let inode_bytes = if is_old { 128 } else { u64::from(le16(block, 88)) };
        let group_bytes = if features & WIDE == 0 { 32 } else { u64::from(le16(block, 254)) };
        let is_sound = (128..=block_bytes).contains(&inode_bytes) && (32..=block_bytes).contains(&group_bytes);
        is_sound.then_some(Geometry {
            block_bytes,
            groups_at: (u64::from(le32(block, 20)) + 1) * block_bytes,
            group_bytes,
            inodes_per_group: le32(block, 40),
            inodes: le32(block, 0),
            inode_bytes,
            features,
        })
    }
}

/// A file or folder.
struct Inode {
    mode: u16,
    flags: u32,
    size: u64,
    /// The root of its tree of blocks, or the beginning of its content.
    block: [u8; 60],
    /// Content behind that, in an attribute.
    rest: Vec<u8>,
}

impl Inode {
    const FOLDER: u16 = 0x4000;
    const FILE: u16 = 0x8000;

    fn read(bytes: &[u8]) -> Option<Inode> {
        let mut block = [0; 60];
        block.copy_from_slice(bytes.get(40..100)?);
        let (mode, flags) = (le16(bytes, 0), le32(bytes, 32));
        let size = u64::from(le32(bytes, 4)) | u64::from(le32(bytes.get(108..112)?, 0)) << 32;
        let rest = if flags & INLINE_FILE == 0 { Vec::new() } else { inline_rest(bytes).unwrap_or_default().to_vec() };
        Some(Inode { mode, flags, size, block, rest })
    }

    fn kind(&self) -> u16 {
        self.mode & 0xf000
    }
}

/// The value of the attribute `system.data` in an inode.
fn inline_rest(inode: &[u8]) -> Option<&[u8]> {
    const MAGIC: &[u8] = b"\0\0\x02\xea";
    const SYSTEM_DATA: (u8, &[u8]) = (7, b"data");
    let extra = usize::from(le16(inode.get(128..130)?, 0));
    let attributes = inode.get(128 + extra..)?.strip_prefix(MAGIC)?;
    let mut at = 0;
    while let Some(entry) = attributes.get(at..).filter(|entry| entry.len() >= 16 && entry[..4] != [0; 4]) {
        let name = entry.get(16..16 + usize::from(entry[0]))?;
        if (entry[1], name) == SYSTEM_DATA {
            let start = usize::from(le16(entry, 2));
            return attributes.get(start..start.checked_add(le32(entry, 8) as usize)?);
        }
        at += (16 + name.len()).next_multiple_of(4);
    }
    None
}

/// Blocks of a content from one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// Where the first stands; none of zeros.
    block: Option<u64>,
    count: u64,
}

/// A reader of one volume.
pub(super) struct Volume {
    start: u64,
    geometry: Geometry,
    name_bytes_max: usize,
    waiting: VecDeque<Entry>,
    open: Option<Open>,
    /// Folders that are known: one that holds itself is read once.
    seen: BTreeSet<u32>,
    zeros_left: u64,
    folder_bytes_left: u64,
    /// A fault of the whole that waits to be reported.
    fault: Option<Fault>,
}

struct Entry {
    path: Box<str>,
    depth: u32,
    inode: u32,
}

/// Content that is read, as far as it got.
struct Open {
    entry: Entry,
    inode: Inode,
    at: u64,
}

impl Volume {
    /// The volume that begins here, if it is one that is read.
    pub fn find(disk: &Disk, start: u64, image_bytes: u64, name_bytes_max: usize) -> Option<Volume> {
        let geometry = Geometry::read(&disk.read(start.saturating_add(SUPERBLOCK_AT), SUPERBLOCK_BYTES))?;
        if geometry.features & UNREAD != 0 {
            return None;
        }
        let root = Entry { path: "".into(), depth: 0, inode: ROOT };
        Some(Volume {
            start,
            geometry,
            name_bytes_max,
            waiting: VecDeque::from([root]),
            open: None,
            seen: BTreeSet::new(),
            zeros_left: image_bytes.saturating_mul(ZEROS_RATIO).saturating_add(ZEROS_FREE),
            folder_bytes_left: FOLDERS_BYTES_MAX,
            fault: (geometry.features & RECOVER != 0).then_some(SYSTEM),
        })
    }

    pub fn turn(&mut self, disk: &Disk, entries_left: &mut u32, outbox: &mut Outbox) -> Turn {
        if let Some(fault) = self.fault.take() {
            return Turn::Fault(fault);
        }
        if let Some(open) = self.open.take() {
            return match open.inode.kind() {
                Inode::FOLDER => self.list(open, disk, entries_left, outbox),
                _ => self.tell(open, disk, outbox),
            };
        }
        let Some(entry) = self.waiting.pop_front() else { return Turn::Over };
        outbox.worked(self.geometry.inode_bytes as usize);
        let Some(inode) = self.inode(disk, entry.inode) else { return Turn::Fault(TRUNCATED) };
        match inode.kind() {
            Inode::FOLDER if self.seen.insert(entry.inode) => self.open = Some(Open { entry, inode, at: 0 }),
            Inode::FILE => {
                let (name, size) = (Some(entry.path.clone()), Some(inode.size));
                let fault = (inode.flags & ENCRYPTED_FILE != 0).then_some(ENCRYPTED);
                outbox.open(Object { kind: Kind::Member, name, size, ..Object::default() });
                self.open = Some(Open { entry, inode, at: 0 });
                return fault.map_or(Turn::More, Turn::Fault);
            }
            _ => {}
        }
        Turn::More
    }

    /// Emits a piece of a file.
    fn tell(&mut self, mut open: Open, disk: &Disk, outbox: &mut Outbox) -> Turn {
        let left = open.inode.size.saturating_sub(open.at);
        if left == 0 {
            outbox.close();
            return Turn::More;
        }
        let most = left.min(CONTENT_BYTES as u64) as usize;
        let piece = match self.piece(disk, &open.inode, open.at, most, outbox) {
            Ok(bytes) => bytes,
            Err(fault) => {
                outbox.close();
                return Turn::Fault(fault);
            }
        };
        outbox.content(&piece);
        open.at += piece.len() as u64;
        self.open = Some(open);
        Turn::More
    }

    /// Reads a block of a folder.
    fn list(&mut self, mut open: Open, disk: &Disk, entries_left: &mut u32, outbox: &mut Outbox) -> Turn {
        if open.at >= open.inode.size {
            return Turn::More;
        }
        let is_inline = open.inode.flags & INLINE_FILE != 0;
        let most = if is_inline { open.inode.size } else { self.geometry.block_bytes };
        let most = most.min(64 << 10).min(open.inode.size - open.at) as usize;
        let block = match self.whole(disk, &open.inode, open.at, most, outbox) {
            Ok(block) => block,
            Err(fault) => return Turn::Fault(fault),
        };
        outbox.worked(block.len());
        open.at += block.len() as u64;
        self.folder_bytes_left = self.folder_bytes_left.saturating_sub(block.len() as u64);
        if self.folder_bytes_left == 0 {
            self.waiting.clear();
            return Turn::Fault(ENTRIES);
        }
        // The number of the parent stands in front of the entries.
        let rest = if is_inline { block.get(4..).unwrap_or_default() } else { &block };
        let sections =
            if is_inline { [&rest[..rest.len().min(56)], rest.get(56..).unwrap_or_default()] } else { [rest, &[]] };
        for (inode, name) in sections.into_iter().flat_map(entries) {
            if *entries_left == 0 {
                self.waiting.clear();
                return Turn::Fault(ENTRIES);
            }
            *entries_left -= 1;
            let name = name::utf8_lossy(name);
            let path = if open.entry.path.is_empty() { name } else { format!("{}/{name}", open.entry.path).into() };
            let (path, depth) = (name::cut(&path, self.name_bytes_max), open.entry.depth + 1);
            if depth <= DEPTH_MAX {
                self.waiting.push_back(Entry { path, depth, inode });
            }
        }
        self.open = Some(open);
        Turn::More
    }

    fn inode(&self, disk: &Disk, number: u32) -> Option<Inode> {
        let geometry = &self.geometry;
        let index = number.checked_sub(1).filter(|index| *index < geometry.inodes)?;
        let (group, within) = (index / geometry.inodes_per_group, index % geometry.inodes_per_group);
        let at = geometry.groups_at + u64::from(group) * geometry.group_bytes;
        let descriptor = disk.read(self.start.saturating_add(at), geometry.group_bytes.min(64) as usize);
        let high = descriptor.get(40..44).filter(|_| geometry.features & WIDE != 0).map_or(0, |high| le32(high, 0));
        let table = u64::from(le32(descriptor.get(8..12)?, 0)) | u64::from(high) << 32;
        let at = self.place(table)?.checked_add(u64::from(within) * geometry.inode_bytes)?;
        Inode::read(&disk.read(at, geometry.inode_bytes as usize))
    }

    /// Where a block stands in the disk.
    fn place(&self, block: u64) -> Option<u64> {
        block.checked_mul(self.geometry.block_bytes)?.checked_add(self.start)
    }

    /// So many bytes of a content, which may stand in several runs.
    fn whole(
        &mut self,
        disk: &Disk,
        inode: &Inode,
        at: u64,
        count: usize,
        outbox: &mut Outbox,
    ) -> Result<Vec<u8>, Fault> {
        let mut whole = Vec::with_capacity(count);
        while whole.len() < count {
            whole.extend(self.piece(disk, inode, at + whole.len() as u64, count - whole.len(), outbox)?);
        }
        Ok(whole)
    }

    /// A piece of a content: at least a byte, and no more than so many.
    fn piece(
        &mut self,
        disk: &Disk,
        inode: &Inode,
        at: u64,
        most: usize,
        outbox: &mut Outbox,
    ) -> Result<Vec<u8>, Fault> {
        if inode.flags & INLINE_FILE != 0 {
            let at = usize::try_from(at).map_err(|_| TRUNCATED)?;
            let bytes = inode.block.iter().chain(&inode.rest).skip(at).take(most).copied().collect::<Vec<u8>>();
            return if bytes.is_empty() { Err(TRUNCATED) } else { Ok(bytes) };
        }
        let (block, within) = (at / self.geometry.block_bytes, at % self.geometry.block_bytes);
        let run = match inode.flags & EXTENTS_FILE {
            0 => self.listed(disk, inode, block),
            _ => self.extent(disk, inode, block),
        };
        outbox.worked(64);
        let run = run.ok_or(TRUNCATED)?;
        let here = run.count.saturating_mul(self.geometry.block_bytes).saturating_sub(within);
        let count = usize::try_from(here).map_or(most, |here| here.min(most));
        let Some(place) = run.block else {
            self.zeros_left = self.zeros_left.checked_sub(count as u64).ok_or(BEYOND)?;
            return Ok(vec![0; count]);
        };
        let at = self.place(place).and_then(|place| place.checked_add(within)).ok_or(TRUNCATED)?;
        let bytes = disk.read(at, count);
        if bytes.is_empty() { Err(TRUNCATED) } else { Ok(bytes) }
    }

    /// The run of a block by the tree of extents.
    fn extent(&self, disk: &Disk, inode: &Inode, block: u64) -> Option<Run> {
        const WRITTEN_MAX: u64 = 32_768;
        let (mut node, mut end, mut levels) = (inode.block.to_vec(), u64::MAX, LEVELS_MAX + 1);
        loop {
            let depth = le16(node.get(..12)?, 6);
            let entries = node.get(12..)?.chunks_exact(12).take(le16(&node, 2).into());
            if le16(&node, 0) != 0xf30a || depth >= levels {
                return None;
            }
            levels = depth;
            let mut found = None;
            for entry in entries {
                let first = u64::from(le32(entry, 0));
                if first > block {
                    end = end.min(first);
                    break;
                }
                found = Some(<[u8; 12]>::try_from(entry).ok()?);
            }
            let hole = Run { block: None, count: end.saturating_sub(block) };
            let Some(entry) = found else { return Some(hole) };
            if depth > 0 {
                let next = u64::from(le32(&entry, 4)) | u64::from(le16(&entry, 8)) << 32;
                node = disk.read(self.place(next)?, self.geometry.block_bytes as usize);
                continue;
            }
            let (skipped, length) = (block - u64::from(le32(&entry, 0)), u64::from(le16(&entry, 4)));
            let is_written = length <= WRITTEN_MAX;
            let length = if is_written { length } else { length - WRITTEN_MAX };
            let Some(count) = length.checked_sub(skipped).filter(|count| *count > 0) else { return Some(hole) };
            let start = u64::from(le32(&entry, 8)) | u64::from(le16(&entry, 6)) << 32;
            return Some(Run { block: is_written.then_some(start + skipped), count });
        }
    }

    /// The run of a block by the lists of blocks: twelve in the inode, then three lists of one to three levels.
    fn listed(&self, disk: &Disk, inode: &Inode, block: u64) -> Option<Run> {
        const DIRECT: u64 = 12;
        let number = |index: u64| le32(&inode.block, index as usize * 4);
        let one = |number: u32| Run { block: (number > 0).then_some(number.into()), count: 1 };
        if block < DIRECT {
            return Some(one(number(block)));
        }
        let per_block = self.geometry.block_bytes / 4;
        let (mut left, mut span) = (block - DIRECT, per_block);
        for level in 0..3 {
            if left < span {
                let mut at = number(DIRECT + level);
                while at > 0 {
                    span /= per_block;
                    let place = self.place(at.into())?.saturating_add(left / span * 4);
                    at = le32(disk.read(place, 4).get(..4)?, 0);
                    left %= span;
                    if span == 1 {
                        return Some(one(at));
                    }
                }
                // Nothing stands below a list that is missing.
                return Some(Run { block: None, count: span - left });
            }
            left -= span;
            span = span.checked_mul(per_block)?;
        }
        None
    }
}

/// The inodes and names in a block of a folder.
fn entries(mut block: &[u8]) -> Vec<(u32, &[u8])> {
    const HEAD: usize = 8;
    let mut found = Vec::new();
    while block.len() > HEAD {
        let (inode, name) = (le32(block, 0), block.get(HEAD..HEAD + usize::from(block[6])));
        let length = match le16(block, 4) {
            0 | 0xffff => block.len(),
            length => usize::from(length),
        };
        let name = name.unwrap_or_default();
        if inode > 0 && !name.is_empty() && name != b"." && name != b".." {
            found.push((inode, name));
        }
        block = block.get(length.max(HEAD)..).unwrap_or_default();
    }
    found
}
