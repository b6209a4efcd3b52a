//! Squashfs, the packed file system of live systems, firmware and snaps: each file of it, told at the end.
//!
//! The tree is walked from its root, as the kernel does; then the files are told in the order of the blocks that hold their
//! tails (`fragments`), so that each such block is unpacked once. A file with several names is told by the first one; each
//! other one is an empty member.
//!
//! Bounds: the image, up to `spool_bytes_max`; a name and 64 bytes for each of `directory_entries_max` entries; blocks of
//! 1 MiB, one of data and one of tails; metadata of 8 KiB. A folder is read once, whatever lists it.
//!
//! Left out: versions before 4, whose images have a finding; extended attributes. Source: Documentation/filesystems/squashfs
//! of Linux, and "Squashfs Binary Format" by the authors of squashfs-tools-ng.

mod inode;
mod metadata;

use std::collections::BTreeSet;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::disk::kept::{Packing, read};
use crate::disk::paths::Paths;
use crate::disk::whole::{FileSystem, Whole};
use crate::frame::codec::{Fault, le16, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Outbox, Reading};
use inode::{File, Inode};
use metadata::{Cursor, Metadata, Place};

/// The row of the page of formats.
pub(crate) const FORMAT: Format = Format {
    name: "squashfs",
    methods: "version 4: gzip, LZMA, LZO, xz, LZ4, zstd; fragments, sparse files",
    not_read: "versions before 4, extended attributes",
    reads: Reads::Spool("the image, up to `spool_bytes_max`"),
    memory: "a name and 64 bytes for each of `directory_entries_max` entries, two blocks of 1 MiB; xz and zstd: what they take",
    decoder: "own; zlib-rs, ruzstd",
    fuzz: "unpack_squashfs",
    compared_with: "unsquashfs, over images made by mksquashfs",
};

const TREE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Squashfs.Tree");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Squashfs.Data");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.SquashfsMethod");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.SquashfsEntries");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Squashfs");

const HEADER_BYTES: usize = 96;
const BLOCK_LOG: std::ops::RangeInclusive<u16> = 12..=20;
/// Bytes of unused tail blocks that are unpacked, in all.
const TAILS_BYTES: u64 = 128 << 20;
/// A length with this bit is that of a stored block.
const STORED: u32 = 1 << 24;
/// Kinds of entries with content.
const FOLDER: u16 = 1;
const FILE: u16 = 2;
const NO_FRAGMENT: u32 = u32::MAX;

/// Whether an image begins with this head.
pub(crate) fn is_header(head: &[u8]) -> bool {
    head.starts_with(b"hsqs") && le16(head, 28) == 4
}

/// Whether a header makes sense wherever it stands: the length of its blocks is stated twice.
pub(crate) fn is_plausible(head: &[u8]) -> bool {
    let block_log = le16(head, 22);
    is_header(head) && BLOCK_LOG.contains(&block_log) && le32(head, 12) == 1 << block_log
}

/// The fields of the header that reading wants.
struct Layout {
    block_bytes: usize,
    packing: Packing,
    root: Place,
    inodes_at: u64,
    folders_at: u64,
    fragments_at: u64,
    fragments: u32,
}

impl Layout {
    fn read(header: &[u8]) -> Result<Layout, Fault> {
        let block_log = le16(header, 22);
        if header.len() < HEADER_BYTES {
            return Err(TRUNCATED);
        }
        if !BLOCK_LOG.contains(&block_log) {
            return Err(TREE);
        }
        let packing = match le16(header, 20) {
            1 => Packing::Zlib,
            2 => Packing::Lzma,
            3 => Packing::Lzo,
            4 => Packing::Xz,
            5 => Packing::Lz4,
            6 => Packing::Zstd,
            _ => return Err(METHOD),
        };
        Ok(Layout {
            block_bytes: 1 << block_log,
            packing,
            root: Place::of(le64(header, 32)),
            inodes_at: le64(header, 64),
            folders_at: le64(header, 72),
            fragments_at: le64(header, 80),
            fragments: le32(header, 16),
        })
    }
}

/// A file that is to be emitted.
struct Found {
    fragment: u32,
    place: Place,
    entry: u32,
}

/// The image under way.
pub(crate) struct Volume {
    layout: Layout,
    limits: Limits,
    inodes: Metadata,
    listings: Metadata,
    tails: Metadata,
    paths: Paths,
    /// Folders to be read, with their entries.
    folders: Vec<(Place, Option<u32>)>,
    /// Inodes that were met, as folders or as files.
    met: BTreeSet<(u16, Place)>,
    /// Files, the next one last once all are found.
    files: Vec<Found>,
    are_sorted: bool,
    /// Further names of files.
    links: Vec<u32>,
    open: Option<Open>,
    /// Bytes of tails that may still be unpacked; used ones are given back.
    tails_left: u64,
    /// The block of tails that is unpacked.
    fragment: Option<(u32, Vec<u8>)>,
    told: Vec<&'static str>,
    bytes: u64,
}

/// The file that is emitted.
struct Open {
    file: File,
    /// Where the lengths of its blocks go on.
    lengths: Cursor,
    at: u64,
    left: u64,
    /// The block that is unpacked, and how much of it is emitted.
    block: Vec<u8>,
    told: usize,
}

/// A block that has nothing to say.
enum Missing {
    /// Too much was unpacked for too little content.
    Costly,
    Truncated,
    Unsound,
}

impl Volume {
    fn new(layout: Layout, limits: &Limits, bytes: u64) -> Volume {
        let metadata = |at| Metadata::new(at, layout.packing);
        Volume {
            inodes: metadata(layout.inodes_at),
            listings: metadata(layout.folders_at),
            tails: metadata(0),
            folders: vec![(layout.root, None)],
            met: BTreeSet::from([(FOLDER, layout.root)]),
            layout,
            limits: limits.clone(),
            paths: Paths::new(limits),
            files: Vec::new(),
            are_sorted: false,
            links: Vec::new(),
            open: None,
            tails_left: TAILS_BYTES,
            fragment: None,
            told: Vec::new(),
            bytes,
        }
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, 0);
        }
    }

    /// Reports that the tree cannot be read, and why.
    fn broken(&mut self, outbox: &mut Outbox) {
        let is_short = [&self.inodes, &self.listings, &self.tails].iter().any(|table| table.is_short());
        self.fault(if is_short { TRUNCATED } else { TREE }, outbox);
    }

    /// Reads an inode. Returns it with the place after it.
    fn inode(&mut self, place: Place, kept: &dyn ReadAt) -> Option<(Inode, Cursor)> {
        let mut cursor = self.inodes.cursor(place);
        let inode = Inode::read(&mut self.inodes, &mut cursor, kept, &self.limits)?;
        Some((inode, cursor))
    }

    /// Reads a folder, and notes its entries.
    fn folder(&mut self, place: Place, of: Option<u32>, kept: &dyn ReadAt, outbox: &mut Outbox) {
        let Some((Inode::Folder { listing, bytes }, _)) = self.inode(place, kept) else {
            return self.broken(outbox);
        };
        if self.list(listing, bytes, of, kept, outbox).is_none() {
            self.broken(outbox);
        }
    }

    /// Notes the entries of a listing of so many bytes; nothing where it breaks off.
    fn list(
        &mut self,
        listing: Place,
        bytes: u32,
        of: Option<u32>,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> Option<()> {
        /// The entries of the folder itself and of the one above are counted and not there.
        const UNWRITTEN: u32 = 3;
        const HEADER: u32 = 12;
        const ENTRY: u32 = 8;
        let mut left = bytes.saturating_sub(UNWRITTEN);
        let mut cursor = self.listings.cursor(listing);
        while left > HEADER {
            let header: [u8; HEADER as usize] = self.listings.take(&mut cursor, kept, &self.limits)?;
            left -= HEADER;
            let block = le32(&header, 4);
            for _ in 0..=le32(&header, 0) {
                let fixed: [u8; ENTRY as usize] = self.listings.take(&mut cursor, kept, &self.limits)?;
                let name_bytes = usize::from(le16(&fixed, 6)) + 1;
                let name = self.listings.bytes(&mut cursor, name_bytes, kept, &self.limits)?;
                left = left.checked_sub(ENTRY)?.checked_sub(name_bytes as u32)?;
                let place = Place { block: block.into(), within: le16(&fixed, 0) };
                let kind = le16(&fixed, 4);
                let is_first = matches!(kind, FOLDER | FILE) && self.met.insert((kind, place));
                if !is_first && kind != FILE {
                    continue;
                }
                let Some(entry) = self.paths.add(of, &name) else {
                    self.fault(ENTRIES, outbox);
                    return Some(());
                };
                if !is_first {
                    self.links.push(entry);
                } else if kind == FOLDER {
                    self.folders.push((place, Some(entry)));
                } else if self.file(place, entry, kept).is_none() {
                    self.broken(outbox);
                }
            }
        }
        Some(())
    }

    fn file(&mut self, place: Place, entry: u32, kept: &dyn ReadAt) -> Option<()> {
        let (Inode::File(file), _) = self.inode(place, kept)? else { return None };
        self.files.push(Found { fragment: file.fragment, place, entry });
        Some(())
    }

    fn begin(&mut self, found: &Found, kept: &dyn ReadAt, outbox: &mut Outbox) {
        let Some((Inode::File(file), lengths)) = self.inode(found.place, kept) else {
            return self.broken(outbox);
        };
        let (name, size) = (Some(self.paths.of(found.entry)), Some(file.bytes));
        outbox.open(Object { kind: Kind::Member, name, size, ..Object::default() });
        self.open = Some(Open { at: file.blocks_at, left: file.bytes, file, lengths, block: Vec::new(), told: 0 });
    }

    /// Emits more of the open file, which is closed when it is over.
    fn tell(&mut self, mut open: Open, kept: &dyn ReadAt, outbox: &mut Outbox) {
        if open.told < open.block.len() {
            let rest = &open.block[open.told..];
            let count = rest.len().min(CONTENT_BYTES);
            outbox.content(&rest[..count]);
            open.told += count;
        } else if open.left == 0 {
            return outbox.close();
        } else {
            let wanted = open.left.min(self.layout.block_bytes as u64) as usize;
            let is_tail = wanted < self.layout.block_bytes && open.file.fragment != NO_FRAGMENT;
            let next = if is_tail {
                self.tail(&open.file, wanted, kept, outbox)
            } else {
                self.block(&mut open, wanted, kept, outbox)
            };
            let missing = match next {
                Ok(block) => {
                    let missing = (block.len() < wanted).then_some(Missing::Unsound);
                    (open.block, open.told) = (block, 0);
                    missing
                }
                Err(missing) => Some(missing),
            };
            open.left -= wanted as u64;
            match missing {
                None => {}
                Some(Missing::Costly) => {
                    self.fault(ENTRIES, outbox);
                    return outbox.close();
                }
                Some(Missing::Truncated) => {
                    self.fault(TRUNCATED, outbox);
                    return outbox.close();
                }
                Some(Missing::Unsound) => self.fault(DATA, outbox),
            }
        }
        self.open = Some(open);
    }

    /// The next block of a file.
    fn block(
        &mut self,
        open: &mut Open,
        wanted: usize,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> Result<Vec<u8>, Missing> {
        let length = self.inodes.take::<4>(&mut open.lengths, kept, &self.limits).ok_or(Missing::Truncated)?;
        let length = u32::from_le_bytes(length);
        if length == 0 {
            return Ok(vec![0; wanted]);
        }
        let block = self.unpack(open.at, length, wanted, kept, outbox);
        open.at = open.at.saturating_add(u64::from(length & !STORED));
        block
    }

    /// The end of a file, out of a block of tails.
    fn tail(&mut self, file: &File, wanted: usize, kept: &dyn ReadAt, outbox: &mut Outbox) -> Result<Vec<u8>, Missing> {
        const ENTRY_BYTES: u64 = 16;
        const ENTRIES_IN_BLOCK: u64 = 512;
        if self.fragment.as_ref().is_none_or(|fragment| fragment.0 != file.fragment) {
            let index = u64::from(file.fragment);
            if file.fragment >= self.layout.fragments {
                return Err(Missing::Unsound);
            }
            let table = self.layout.fragments_at.saturating_add(index / ENTRIES_IN_BLOCK * 8);
            let table = read(kept, table, 8);
            let within = (index % ENTRIES_IN_BLOCK * ENTRY_BYTES) as u16;
            let mut cursor = self.tails.cursor(Place { block: le64(&table, 0), within });
            let entry: [u8; ENTRY_BYTES as usize] =
                self.tails.take(&mut cursor, kept, &self.limits).ok_or(Missing::Truncated)?;
            let block = self.unpack(le64(&entry, 0), le32(&entry, 8), self.layout.block_bytes, kept, outbox)?;
            self.tails_left = self.tails_left.checked_sub(block.len() as u64).ok_or(Missing::Costly)?;
            self.fragment = Some((file.fragment, block));
        }
        let tails = self.fragment.as_ref().map_or(&[][..], |fragment| &fragment.1);
        let tail = tails.get(file.tail_at as usize..).unwrap_or_default();
        let tail = tail[..tail.len().min(wanted)].to_vec();
        self.tails_left = self.tails_left.saturating_add(tail.len() as u64);
        Ok(tail)
    }

    fn unpack(
        &mut self,
        at: u64,
        length: u32,
        wanted: usize,
        kept: &dyn ReadAt,
        outbox: &mut Outbox,
    ) -> Result<Vec<u8>, Missing> {
        let bytes = (length & !STORED) as usize;
        if bytes > self.layout.block_bytes {
            return Err(Missing::Unsound);
        }
        let packed = read(kept, at, bytes);
        if packed.is_empty() || packed.len() < bytes && at.saturating_add(bytes as u64) > self.bytes {
            return Err(Missing::Truncated);
        }
        let (block, is_sound) = match length & STORED {
            0 => self.layout.packing.unpack(&packed, wanted, &self.limits),
            _ => (packed, true),
        };
        outbox.worked(bytes + block.len());
        if !is_sound {
            self.fault(DATA, outbox);
        }
        Ok(block)
    }
}

/// A reader of images.
pub(crate) type Squashfs = Whole<Volume>;

impl FileSystem for Volume {
    const TURN_WORK: usize = HEADER_BYTES;

    fn open(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Option<Volume>, Fault> {
        let layout = Layout::read(&read(kept, 0, HEADER_BYTES))?;
        Ok(Some(Volume::new(layout, limits, bytes)))
    }

    fn turn(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        outbox.worked(1);
        if let Some(open) = self.open.take() {
            self.tell(open, kept, outbox);
        } else if let Some((place, entry)) = self.folders.pop() {
            self.folder(place, entry, kept, outbox);
        } else {
            if !std::mem::replace(&mut self.are_sorted, true) {
                self.files.sort_by_key(|file| std::cmp::Reverse((file.fragment, file.place)));
            }
            match (self.files.pop(), self.links.pop()) {
                (Some(found), link) => {
                    self.links.extend(link);
                    self.begin(&found, kept, outbox);
                }
                (None, Some(link)) => {
                    let name = Some(self.paths.of(link));
                    outbox.open(Object { kind: Kind::Member, name, size: Some(0), ..Object::default() });
                    outbox.close();
                }
                (None, None) => return true,
            }
        }
        outbox.worked(self.inodes.take_work() + self.listings.take_work() + self.tails.take_work());
        false
    }
}

/// Fuzz body: reads an image.
pub fn fuzz_squashfs(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Squashfs::new(limits))));
}
