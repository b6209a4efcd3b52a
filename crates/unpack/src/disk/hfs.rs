//! Volumes of HFS+ and HFSX, the file system of disk images of macOS: each file with its forks, emitted at the end.
//!
//! All nodes of the catalogue's tree are read in order of their numbers, whatever the order of the tree, so that no
//! listed file is skipped. Forks are read by their extents, and by those in the overflow tree. Files that the file
//! system compressed (decmpfs) are emitted decompressed.
//!
//! Bounds: the image, up to `spool_bytes_max`; `directory_entries_max` entries of a name and 200 bytes, and as many
//! extents and compressed contents; nodes of 32 KiB; one block of 64 KiB, packed and unpacked.
//!
//! Left out: journals; attributes other than those of the compression; HFS without plus; partition maps, except in disk
//! images. Source: Apple's Technical Note 1150; decmpfs as the header of the kernel and public readers describe it.

mod decmpfs;
mod tree;

use std::collections::{BTreeMap, VecDeque};

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::codec::{Fault, be16, be32, be64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use decmpfs::Packed;
use tree::Tree;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "HFS+, HFSX",
    methods: "data and resource forks; files compressed by the file system, with zlib, LZVN, LZFSE; in disk images, too",
    not_read: "",
    reads: Reads::Spool("the volume, up to `spool_bytes_max`"),
    memory: "a name and 200 bytes for each of `directory_entries_max` entries, nodes of 32 KiB, blocks of 64 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_hfs",
    compared_with: "7z, over volumes made by hand",
};

const TREE: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Hfs.Tree");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Hfs.Data");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.HfsMethod");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.HfsEntries");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Hfs");

/// Where the header stands in a volume, and how long it is.
const HEADER_AT: u64 = 1024;
const HEADER_BYTES: usize = 512;
/// Numbers of the files that hold trees.
const EXTENTS_ID: u32 = 3;
const CATALOGUE_ID: u32 = 4;
const ATTRIBUTES_ID: u32 = 8;
const ROOT_ID: u32 = 2;
const FORK_BYTES: usize = 80;
const FILE_BYTES: usize = 248;

/// Disk of a volume.
pub(crate) trait Disk {
    /// Fills a prefix of the buffer from `at` on; 0 where there is nothing.
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> usize;
}

/// Whether a volume begins with this header.
pub(crate) fn is_header(header: &[u8]) -> bool {
    header.starts_with(b"H+\0\x04") || header.starts_with(b"HX\0\x05")
}

/// A run of blocks.
type Run = (u32, u32);
/// A run of bytes of the disk.
type Range = (u64, u64);

/// The content of a file, as its record tells it.
#[derive(Clone, Default)]
struct Fork {
    bytes: u64,
    runs: Vec<Run>,
}

struct File {
    id: u32,
    parent: u32,
    name: Box<str>,
    data: Fork,
    resource: Fork,
}

/// A content that is to be emitted, or is being emitted.
struct Part {
    name: Box<str>,
    size: u64,
    content: Content,
}

enum Content {
    /// Runs of the disk, the next one last.
    Ranges(Vec<Range>),
    Packed(Packed),
}

/// A reader of one volume.
pub(crate) struct Volume {
    start: u64,
    block_bytes: u64,
    name_bytes_max: usize,
    entries_left: u32,
    /// Trees to be read, the next one last.
    trees: Vec<Tree>,
    /// Extents that overflowed, by file and fork.
    overflow: BTreeMap<(u32, u8), Vec<(u32, Run)>>,
    /// The attributes of compressed files.
    packed: BTreeMap<u32, Vec<u8>>,
    folders: BTreeMap<u32, (u32, Box<str>)>,
    files: Vec<File>,
    are_sorted: bool,
    parts: VecDeque<Part>,
    open: Option<Part>,
    told: Vec<&'static str>,
}

impl Fork {
    fn read(bytes: &[u8]) -> Fork {
        let runs = (16..FORK_BYTES).step_by(8).map(|at| (be32(bytes, at), be32(bytes, at + 4)));
        Fork { bytes: be64(bytes, 0), runs: runs.filter(|run| run.1 > 0).collect() }
    }
}

impl Volume {
    /// The volume that begins here, if there is one.
    pub fn find(disk: &mut dyn Disk, start: u64, limits: &Limits) -> Option<Volume> {
        const BLOCK_BYTES_MAX: u32 = 1 << 24;
        let header = read(disk, start.checked_add(HEADER_AT)?, HEADER_BYTES);
        let block_bytes = be32(&header, 40);
        if !is_header(&header) || header.len() < HEADER_BYTES || !(512..=BLOCK_BYTES_MAX).contains(&block_bytes) {
            return None;
        }
        let mut volume = Volume {
            start,
            block_bytes: block_bytes.into(),
            name_bytes_max: limits.name_bytes_max as usize,
            entries_left: limits.directory_entries_max,
            trees: Vec::new(),
            overflow: BTreeMap::new(),
            packed: BTreeMap::new(),
            folders: BTreeMap::new(),
            files: Vec::new(),
            are_sorted: false,
            parts: VecDeque::new(),
            open: None,
            told: Vec::new(),
        };
        let tree = |id, at: usize| Tree::new(id, Fork::read(&header[at..at + FORK_BYTES]));
        volume.trees = vec![tree(CATALOGUE_ID, 272), tree(ATTRIBUTES_ID, 352), tree(EXTENTS_ID, 192)];
        Some(volume)
    }

    /// Goes on; whether all is emitted.
    pub fn turn(&mut self, disk: &mut dyn Disk, outbox: &mut Outbox) -> bool {
        outbox.worked(1);
        if let Some(part) = self.open.take() {
            self.tell(part, disk, outbox);
        } else if let Some(tree) = self.trees.pop() {
            self.read_tree(tree, disk, outbox);
        } else if let Some(part) = self.parts.pop_front() {
            let object = Object {
                kind: Kind::Member,
                name: Some(part.name.clone()),
                size: Some(part.size),
                ..Object::default()
            };
            outbox.open(object);
            self.open = Some(part);
        } else {
            self.sort();
            let Some(file) = self.files.pop() else { return true };
            self.parts_of(file, disk, outbox);
        }
        false
    }

    /// Files in the order in which they stand on the disk, the next one last.
    fn sort(&mut self) {
        if !std::mem::replace(&mut self.are_sorted, true) {
            let first = |file: &File| file.data.runs.first().or(file.resource.runs.first()).map_or(0, |run| run.0);
            self.files.sort_by_key(|file| std::cmp::Reverse((first(file), file.id)));
        }
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, self.start);
        }
    }

    /// Where the fork stands on the disk, in order.
    fn ranges(&self, id: u32, kind: u8, fork: &Fork) -> Vec<Range> {
        let more = self.overflow.get(&(id, kind)).map_or(&[][..], |runs| runs);
        let runs = fork.runs.iter().chain(more.iter().map(|(_, run)| run));
        let mut left = fork.bytes;
        let ranges = runs.map_while(|&(block, blocks)| {
            let length = left.min(u64::from(blocks) * self.block_bytes);
            left -= length;
            (length > 0).then_some((self.start.saturating_add(u64::from(block) * self.block_bytes), length))
        });
        ranges.collect()
    }

    /// Reads one node of a tree; the tree waits for its next turn.
    fn read_tree(&mut self, mut tree: Tree, disk: &mut dyn Disk, outbox: &mut Outbox) {
        if tree.wants_ranges() {
            tree.set_ranges(self.ranges(tree.id, 0, tree.fork()));
        }
        match tree.next(disk) {
            None => return,
            Some(Err(fault)) => {
                self.fault(fault, outbox);
                return;
            }
            Some(Ok(node)) => {
                outbox.worked(node.bytes());
                let is_full = node.records().any(|record| !self.record(tree.id, record));
                if is_full {
                    self.fault(ENTRIES, outbox);
                    return;
                }
            }
        }
        self.trees.push(tree);
    }

    /// Notes a record of a leaf; whether there was room for it.
    fn record(&mut self, tree: u32, record: &[u8]) -> bool {
        let key_bytes = usize::from(be16(record, 0));
        let (Some(key), Some(value)) = (record.get(2..2 + key_bytes), record.get(2 + key_bytes..)) else { return true };
        let is_noted = match tree {
            EXTENTS_ID => self.extents(key, value),
            ATTRIBUTES_ID => self.attribute(key, value),
            _ => self.entry(key, value),
        };
        self.entries_left -= u32::from(is_noted);
        self.entries_left > 0
    }

    fn extents(&mut self, key: &[u8], value: &[u8]) -> bool {
        let (Some(&kind), id, first) = (key.first(), be32(key, 2), be32(key, 6)) else { return false };
        let runs = value.chunks_exact(8).take(8).map(|run| (be32(run, 0), be32(run, 4)));
        let overflow = self.overflow.entry((id, kind)).or_default();
        overflow.extend(runs.filter(|run| run.1 > 0).map(|run| (first, run)));
        overflow.sort_by_key(|run| run.0);
        true
    }

    fn attribute(&mut self, key: &[u8], value: &[u8]) -> bool {
        const INLINE: u32 = 0x10;
        const FIXED: usize = 16;
        let name_bytes = 2 * usize::from(be16(key, 10));
        let name = key.get(12..12 + name_bytes).map(name::utf16_be);
        if name.as_deref() != Some(decmpfs::ATTRIBUTE) || be32(value, 0) != INLINE {
            return false;
        }
        let bytes = value.get(FIXED..).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(be32(value, 12) as usize)];
        self.packed.insert(be32(key, 2), bytes.to_vec()).is_none()
    }

    fn entry(&mut self, key: &[u8], value: &[u8]) -> bool {
        const FOLDER: u16 = 1;
        const FILE: u16 = 2;
        let name_bytes = 2 * usize::from(be16(key, 4));
        let name = name::utf16_be(key.get(6..6 + name_bytes).unwrap_or_default());
        let (parent, id, name) = (be32(key, 0), be32(value, 8), name::cut(&name, self.name_bytes_max));
        match be16(value, 0) {
            FOLDER => self.folders.insert(id, (parent, name)).is_none(),
            FILE if value.len() >= FILE_BYTES => {
                let [data, resource] = [88, 88 + FORK_BYTES].map(|at| Fork::read(&value[at..at + FORK_BYTES]));
                self.files.push(File { id, parent, name, data, resource });
                true
            }
            _ => false,
        }
    }

    /// The path of a file, without the name of the volume.
    fn path(&self, file: &File) -> Box<str> {
        const DEPTH_MAX: usize = 64;
        let (mut parts, mut id) = (vec![&*file.name], file.parent);
        while let Some((parent, name)) = self.folders.get(&id).filter(|_| id != ROOT_ID && parts.len() < DEPTH_MAX) {
            parts.push(name);
            id = *parent;
        }
        parts.reverse();
        name::cut(&parts.join("/"), self.name_bytes_max)
    }

    /// Emits the parts of a file.
    fn parts_of(&mut self, file: File, disk: &mut dyn Disk, outbox: &mut Outbox) {
        const DATA_FORK: u8 = 0;
        const RESOURCE_FORK: u8 = 0xff;
        let name = self.path(&file);
        let resource = self.ranges(file.id, RESOURCE_FORK, &file.resource);
        let mut has_packed = false;
        if let Some(attribute) = self.packed.remove(&file.id) {
            outbox.worked(attribute.len());
            match Packed::new(&attribute, resource.clone(), disk) {
                Ok(packed) => {
                    has_packed = true;
                    let size = packed.size();
                    self.parts.push_back(Part { name: name.clone(), size, content: Content::Packed(packed) });
                }
                Err(fault) => self.fault(fault, outbox),
            }
        }
        let resource_name = name::cut(&format!("{name}/..namedfork/rsrc"), self.name_bytes_max);
        let data = self.ranges(file.id, DATA_FORK, &file.data);
        let is_empty = file.data.bytes == 0 && file.resource.bytes == 0;
        for (name, fork, mut ranges) in [(name, &file.data, data), (resource_name, &file.resource, resource)] {
            if has_packed || fork.bytes == 0 && !(is_empty && self.parts.is_empty()) {
                continue;
            }
            let size = ranges.iter().map(|range| range.1).sum();
            if size < fork.bytes {
                self.fault(TRUNCATED, outbox);
            }
            ranges.reverse();
            self.parts.push_back(Part { name, size, content: Content::Ranges(ranges) });
        }
    }

    /// Emits more of the open part, which is closed when it is over.
    fn tell(&mut self, mut part: Part, disk: &mut dyn Disk, outbox: &mut Outbox) {
        let fault = match &mut part.content {
            Content::Ranges(ranges) => {
                let Some((at, left)) = ranges.pop() else { return outbox.close() };
                let mut piece = [0; CONTENT_BYTES];
                let wanted = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
                let count = disk.read(at, &mut piece[..wanted]);
                outbox.content(&piece[..count]);
                if left > count as u64 {
                    ranges.push((at + count as u64, left - count as u64));
                }
                (count == 0).then_some(TRUNCATED)
            }
            Content::Packed(packed) => match packed.next(disk, outbox) {
                Ok(true) => None,
                Ok(false) => return outbox.close(),
                Err(fault) => Some(fault),
            },
        };
        match fault {
            None => self.open = Some(part),
            Some(fault) => {
                self.fault(fault, outbox);
                outbox.close();
            }
        }
    }
}

/// Available bytes of so many.
fn read(disk: &mut dyn Disk, at: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    let mut there = 0;
    while there < count {
        match disk.read(at.saturating_add(there as u64), &mut bytes[there..]) {
            0 => break,
            read => there += read,
        }
    }
    bytes.truncate(there);
    bytes
}

/// Available bytes of so many in the content of these ranges.
fn read_ranges(disk: &mut dyn Disk, ranges: &[Range], mut at: u64, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(start, length) in ranges {
        if at < length && bytes.len() < count {
            let here = (length - at).min((count - bytes.len()) as u64) as usize;
            bytes.extend(read(disk, start + at, here));
            at = length;
        }
        at = at.saturating_sub(length);
    }
    bytes
}

/// A file that is a volume.
pub(crate) struct Hfs {
    limits: Limits,
    asked: bool,
    volume: Option<Volume>,
    is_over: bool,
}

impl Hfs {
    pub fn new(limits: &Limits) -> Hfs {
        Hfs { limits: limits.clone(), asked: false, volume: None, is_over: false }
    }
}

impl Disk for &dyn ReadAt {
    fn read(&mut self, at: u64, buffer: &mut [u8]) -> usize {
        self.read_at(at, buffer)
    }
}

impl Reader for Hfs {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !std::mem::replace(&mut self.asked, true) {
            outbox.keep(0..u64::MAX);
            return 0;
        }
        input.len()
    }

    fn end(&mut self, mut kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        outbox.worked(HEADER_BYTES);
        if self.volume.is_none() && !std::mem::replace(&mut self.is_over, true) {
            self.volume = Volume::find(&mut kept, 0, &self.limits);
        }
        let is_over = self.volume.as_mut().is_none_or(|volume| volume.turn(&mut kept, outbox));
        if is_over { Ended::Done } else { Ended::More }
    }
}

/// Fuzz body: reads a volume, in the coding of [`cuts::blocks`].
pub fn fuzz_hfs(data: &[u8]) {
    cuts::compare(&cuts::blocks(data), |limits| Box::new(Reading::new(Hfs::new(limits))));
}
