//! Cramfs, a small packed file system of firmware: each file of it, told at the end, in the order of the tree.
//!
//! Both byte orders, with or without 512 bytes in front, and the pointers to blocks of later writers. A file with several
//! names is told by the first one.
//!
//! Bounds: the image, up to `spool_bytes_max`; a name and 60 bytes for each of `directory_entries_max` entries; blocks of
//! 4 KiB. Source: Documentation/filesystems/cramfs and the header of Linux.

use std::collections::BTreeSet;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::disk::kept::{Packing, read};
use crate::disk::paths::Paths;
use crate::disk::whole::{FileSystem, Whole};
use crate::frame::codec::{Fault, be32, le16, le32};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{Outbox, Reading};

/// The row of the page of formats.
pub(crate) const FORMAT: Format = Format {
    name: "cramfs",
    methods: "zlib, both byte orders, blocks anywhere",
    not_read: "",
    reads: Reads::Spool("the image, up to `spool_bytes_max`"),
    memory: "a name and 60 bytes for each of `directory_entries_max` entries",
    decoder: "own; zlib-rs",
    fuzz: "unpack_cramfs",
    compared_with: "what mkfs.cramfs was given",
};

const TREE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cramfs.Tree");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Cramfs.Data");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.CramfsEntries");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Cramfs");

const MARK_AT: usize = 16;
const MARK: &[u8] = b"Compressed ROMFS";
const MAGIC: u32 = 0x28cd_3d45;
/// Where the header may stand.
const STARTS: [usize; 2] = [0, 512];
const ROOT_AT: u64 = 64;
const INODE_BYTES: usize = 12;
const BLOCK_BYTES: usize = 4096;

/// Whether an image begins with this head.
pub(crate) fn is_header(head: &[u8]) -> bool {
    STARTS.iter().any(|&start| head.get(start + MARK_AT..).is_some_and(|from| from.starts_with(MARK)))
}

#[derive(Clone, Copy)]
struct Inode {
    mode: u32,
    bytes: u32,
    name_bytes: usize,
    at: u64,
}

impl Inode {
    fn read(bytes: &[u8], is_big: bool) -> Inode {
        let words = [0, 4, 8].map(|at| if is_big { be32(bytes, at) } else { le32(bytes, at) });
        match is_big {
            false => Inode {
                mode: words[0] & 0xffff,
                bytes: words[1] & 0xff_ffff,
                name_bytes: (words[2] & 0x3f) as usize * 4,
                at: u64::from(words[2] >> 6) * 4,
            },
            true => Inode {
                mode: words[0] >> 16,
                bytes: words[1] >> 8,
                name_bytes: (words[2] >> 26) as usize * 4,
                at: u64::from(words[2] & 0x3ff_ffff) * 4,
            },
        }
    }

    const fn is(self, kind: u32) -> bool {
        self.mode & KIND == kind
    }
}

const KIND: u32 = 0xf000;
const FOLDER: u32 = 0x4000;
const FILE: u32 = 0x8000;

/// The image under way.
pub(crate) struct Volume {
    is_big: bool,
    limits: Limits,
    bytes: u64,
    paths: Paths,
    /// Files and folders still to be read, the next one last; the root has no entry.
    waiting: Vec<(Inode, Option<u32>)>,
    /// Kind, place and length of the entries read so far.
    met: BTreeSet<(u32, u64, u32)>,
    folder: Option<Folder>,
    open: Option<Open>,
    told: Vec<&'static str>,
}

/// The folder that is read.
struct Folder {
    entry: Option<u32>,
    at: u64,
    end: u64,
    found: Vec<(Inode, Option<u32>)>,
}

/// The file that is emitted.
struct Open {
    inode: Inode,
    block: u64,
    /// Where the next block begins, if it stands behind this one.
    at: u64,
}

impl Volume {
    fn find(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Volume, Fault> {
        let head = read(kept, 0, STARTS[1] + ROOT_AT as usize + INODE_BYTES);
        let starts = STARTS.into_iter().filter_map(|start| head.get(start..));
        let header = starts.into_iter().find(|from| from.get(MARK_AT..).is_some_and(|from| from.starts_with(MARK)));
        let header = header.ok_or(TREE)?;
        let root = header.get(ROOT_AT as usize..ROOT_AT as usize + INODE_BYTES).ok_or(TRUNCATED)?;
        let is_big = match (le32(header, 0), be32(header, 0)) {
            (MAGIC, _) => false,
            (_, MAGIC) => true,
            _ => return Err(TREE),
        };
        Ok(Volume {
            is_big,
            limits: limits.clone(),
            bytes,
            paths: Paths::new(limits),
            waiting: vec![(Inode::read(root, is_big), None)],
            met: BTreeSet::new(),
            folder: None,
            open: None,
            told: Vec::new(),
        })
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, 0);
        }
    }

    fn begin(&mut self, inode: Inode, entry: Option<u32>, outbox: &mut Outbox) {
        // Files without content stand nowhere.
        if inode.bytes > 0 && !self.met.insert((inode.mode & KIND, inode.at, inode.bytes)) {
            return;
        }
        if inode.is(FOLDER) {
            let end = inode.at.saturating_add(inode.bytes.into());
            self.folder = Some(Folder { entry, at: inode.at, end, found: Vec::new() });
        } else if inode.is(FILE) {
            let (name, size) = (entry.map(|entry| self.paths.of(entry)), Some(inode.bytes.into()));
            outbox.open(Object { kind: Kind::Member, name, size, ..Object::default() });
            let blocks = u64::from(inode.bytes).div_ceil(BLOCK_BYTES as u64);
            self.open = Some(Open { inode, block: 0, at: inode.at.saturating_add(blocks * 4) });
        }
    }

    /// Reads an entry of a folder; the folder waits for its next turn.
    fn list(&mut self, mut folder: Folder, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if folder.at >= folder.end {
            folder.found.reverse();
            self.waiting.append(&mut folder.found);
            return;
        }
        let bytes = read(kept, folder.at, INODE_BYTES);
        let inode = Inode::read(&bytes, self.is_big);
        let name = read(kept, folder.at.saturating_add(INODE_BYTES as u64), inode.name_bytes);
        let mut end = folder.at;
        if bytes.len() < INODE_BYTES || name.len() < inode.name_bytes {
            self.fault(TRUNCATED, outbox);
        } else if inode.name_bytes == 0 {
            self.fault(TREE, outbox);
        } else {
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            match self.paths.add(folder.entry, name) {
                None => self.fault(ENTRIES, outbox),
                Some(entry) => {
                    folder.found.push((inode, Some(entry)));
                    end = folder.end;
                }
            }
        }
        folder.at = folder.at.saturating_add((INODE_BYTES + inode.name_bytes) as u64);
        folder.end = end;
        self.folder = Some(folder);
    }

    /// Emits the next block of the open file, which is closed when it is over.
    fn tell(&mut self, mut open: Open, kept: &dyn ReadAt, outbox: &mut Outbox) {
        let before = open.block * BLOCK_BYTES as u64;
        let left = u64::from(open.inode.bytes).saturating_sub(before);
        if left == 0 {
            return outbox.close();
        }
        let wanted = left.min(BLOCK_BYTES as u64) as usize;
        let Some((block, is_sound)) = self.block(&mut open, wanted, kept) else {
            self.fault(TRUNCATED, outbox);
            return outbox.close();
        };
        outbox.content(&block);
        if !is_sound || block.len() < wanted {
            self.fault(DATA, outbox);
        }
        open.block += 1;
        self.open = Some(open);
    }

    /// The next block, and whether it was sound; nothing if it is not there.
    fn block(&self, open: &mut Open, wanted: usize, kept: &dyn ReadAt) -> Option<(Vec<u8>, bool)> {
        const STORED: u32 = 1 << 31;
        const ANYWHERE: u32 = 1 << 30;
        let pointer = read(kept, open.inode.at.saturating_add(open.block * 4), 4);
        let pointer = (pointer.len() == 4).then(|| if self.is_big { be32(&pointer, 0) } else { le32(&pointer, 0) })?;
        let place = u64::from(pointer & !(STORED | ANYWHERE));
        let (start, length) = match pointer & (STORED | ANYWHERE) {
            0 | STORED => (open.at, place.checked_sub(open.at)),
            ANYWHERE => {
                let header = read(kept, place * 4, 2);
                let length = if self.is_big { le16(&header, 0).swap_bytes() } else { le16(&header, 0) };
                (place * 4 + 2, (header.len() == 2).then_some(length.into()))
            }
            _ => (place * 4, Some(wanted as u64)),
        };
        let Some(length) = length.filter(|length| *length <= 2 * BLOCK_BYTES as u64) else {
            return Some((Vec::new(), false));
        };
        open.at = start + length;
        if length == 0 {
            return Some((vec![0; wanted], true));
        }
        let packed = read(kept, start, length as usize);
        if packed.is_empty() || (packed.len() as u64) < length && start + length > self.bytes {
            return None;
        }
        Some(match pointer & STORED {
            0 => Packing::Zlib.unpack(&packed, wanted, &self.limits),
            _ => (packed[..packed.len().min(wanted)].to_vec(), true),
        })
    }
}

/// A reader of images.
pub(crate) type Cramfs = Whole<Volume>;

impl FileSystem for Volume {
    fn open(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Option<Volume>, Fault> {
        Volume::find(kept, limits, bytes).map(Some)
    }

    fn turn(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        outbox.worked(64);
        if let Some(open) = self.open.take() {
            self.tell(open, kept, outbox);
        } else if let Some(folder) = self.folder.take() {
            self.list(folder, kept, outbox);
        } else if let Some((inode, entry)) = self.waiting.pop() {
            self.begin(inode, entry, outbox);
        } else {
            return true;
        }
        false
    }
}

/// Fuzz body: reads an image.
pub fn fuzz_cramfs(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Cramfs::new(limits))));
}
