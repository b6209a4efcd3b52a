//! JFFS2, the file system of flash memory in devices: a log of nodes, read whole; each file is emitted at the end, as its nodes
//! make it up.
//!
//! Both byte orders. Of what nodes say of the same bytes the latest version counts; a node whose checksums are wrong is
//! passed over, as the kernel does, with a finding. Files that no folder lists any more are emitted without a name.
//!
//! Bounds: the image, up to `spool_bytes_max`; a name and 40 bytes for each of `directory_entries_max` entries, 40 bytes for
//! each of [`NODES_MAX`] nodes; nodes of 64 KiB, packed and unpacked.
//!
//! Left out: the compression of RubinMips and dynamic Rubin, which nothing writes any more, with a finding; extended
//! attributes. Source: the headers of Linux, and "JFFS: The Journalling Flash File System" by David Woodhouse.

mod node;
mod rtime;

use std::collections::BTreeMap;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::disk::kept::{Packing, read};
use crate::disk::whole::{FileSystem, Whole};
use crate::frame::codec::Fault;
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::name;
use crate::frame::reader::{CONTENT_BYTES, Outbox, Reading};
use node::{Found, Order, Piece, Way};

/// The row of the page of formats.
pub(crate) const FORMAT: Format = Format {
    name: "JFFS2",
    methods: "stored, zlib, LZO, rtime; both byte orders",
    not_read: "Rubin, extended attributes",
    reads: Reads::Spool("the image, up to `spool_bytes_max`"),
    memory: "a name and 40 bytes for each of `directory_entries_max` entries, 40 bytes for each of 65,536 nodes; nodes of 64 KiB",
    decoder: "own; zlib-rs",
    fuzz: "unpack_jffs2",
    compared_with: "what mkfs.jffs2 was given",
};

const CHECKSUM: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Jffs2.Checksum");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Jffs2.Data");
const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.Jffs2Method");
const NODES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.Jffs2Nodes");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Jffs2");

const NODES_MAX: usize = 1 << 16;
const NODE_BYTES_MAX: u32 = 64 << 10;

pub(crate) use node::is_header;

/// The target of an entry of a folder.
struct Entry {
    version: u32,
    inode: u32,
}

/// A file, as far as its nodes were met.
#[derive(Default)]
struct File {
    /// The latest version, with the length of the file.
    version: u32,
    bytes: u32,
    pieces: Vec<Piece>,
}

/// The image under way.
pub(crate) struct Volume {
    limits: Limits,
    order: Order,
    bytes: u64,
    at: u64,
    entries: BTreeMap<(u32, Box<str>), Entry>,
    files: BTreeMap<u32, File>,
    pieces: usize,
    /// The folder and the name of each inode, once all is read.
    names: Option<BTreeMap<u32, (u32, Box<str>)>>,
    open: Option<Open>,
    told: Vec<&'static str>,
}

/// The file that is emitted.
struct Open {
    at: u64,
    bytes: u64,
    /// Parts of pieces by their place, the next one last.
    parts: Vec<Part>,
    /// The piece that is unpacked, by its place in the image.
    unpacked: Option<(u64, Vec<u8>)>,
}

/// Bytes of a file up to `end` that a piece says.
struct Part {
    start: u64,
    end: u64,
    piece: Piece,
}

impl Volume {
    fn new(order: Order, limits: &Limits, bytes: u64) -> Volume {
        Volume {
            limits: limits.clone(),
            order,
            bytes,
            at: 0,
            entries: BTreeMap::new(),
            files: BTreeMap::new(),
            pieces: 0,
            names: None,
            open: None,
            told: Vec::new(),
        }
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, 0);
        }
    }

    /// Reads the next node, or skips other bytes.
    fn read_node(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) {
        const LOOK: usize = 128;
        let bytes = read(kept, self.at, LOOK);
        outbox.worked(bytes.len());
        if bytes.is_empty() {
            // Bytes beyond the kept part have their own finding.
            self.at = self.bytes;
            return;
        }
        let free = self.order.find(&bytes);
        if free > 0 {
            self.at += free as u64;
            return;
        }
        let (length, found) = self.order.node(&bytes, self.at, kept);
        self.at = self.at.saturating_add(u64::from(length).next_multiple_of(4));
        match found {
            Found::Nothing => {}
            Found::Broken if self.at > self.bytes => self.fault(TRUNCATED, outbox),
            Found::Broken => self.fault(CHECKSUM, outbox),
            Found::Entry { folder, name, version, inode } => {
                if self.entries.len() >= self.limits.directory_entries_max as usize {
                    return self.fault(NODES, outbox);
                }
                let name = name::cut(&name::utf8_lossy(&name), self.limits.name_bytes_max as usize);
                let entry = self.entries.entry((folder, name)).or_insert(Entry { version: 0, inode });
                if version >= entry.version {
                    *entry = Entry { version, inode };
                }
            }
            Found::Piece { inode, file_bytes, piece } => {
                if self.pieces >= NODES_MAX {
                    return self.fault(NODES, outbox);
                }
                self.pieces += 1;
                let file = self.files.entry(inode).or_default();
                if piece.version >= file.version {
                    (file.version, file.bytes) = (piece.version, file_bytes);
                }
                file.pieces.push(piece);
            }
        }
    }

    /// Emits more of the open file, which is closed when it is over.
    fn tell(&mut self, mut open: Open, kept: &dyn ReadAt, outbox: &mut Outbox) {
        while open.parts.last().is_some_and(|part| part.end <= open.at) {
            open.parts.pop();
        }
        let piece = open.parts.last().filter(|part| part.start <= open.at).map(|part| part.piece);
        let end = match open.parts.last() {
            Some(part) if part.start <= open.at => part.end,
            Some(part) => part.start,
            None => open.bytes,
        };
        let count = end.min(open.bytes).saturating_sub(open.at).min(CONTENT_BYTES as u64) as usize;
        if count == 0 {
            return outbox.close();
        }
        let mut content = vec![0; count];
        if let Some(piece) = piece {
            let from = (open.at - u64::from(piece.start)) as usize;
            let bytes = self.unpacked(&mut open, piece, kept, outbox);
            let bytes = bytes.get(from..).unwrap_or_default();
            let there = bytes.len().min(count);
            content[..there].copy_from_slice(&bytes[..there]);
        }
        outbox.content(&content);
        open.at += count as u64;
        self.open = Some(open);
    }

    /// Unpacks the content of a piece.
    fn unpacked<'a>(&mut self, open: &'a mut Open, piece: Piece, kept: &dyn ReadAt, outbox: &mut Outbox) -> &'a [u8] {
        if open.unpacked.as_ref().is_none_or(|unpacked| unpacked.0 != piece.at) {
            let packed = read(kept, piece.at, piece.packed_bytes as usize);
            let bytes = piece.bytes as usize;
            let (content, is_sound) = match piece.way {
                Way::Stored => (packed, true),
                Way::Rtime => rtime::unpack(&packed, bytes),
                Way::Zlib => Packing::Zlib.unpack(&packed, bytes, &self.limits),
                Way::Lzo => Packing::Lzo.unpack(&packed, bytes, &self.limits),
                Way::Zero | Way::Unknown => (Vec::new(), true),
            };
            outbox.worked(piece.packed_bytes as usize + content.len());
            if piece.way == Way::Unknown {
                self.fault(METHOD, outbox);
            } else if !is_sound || piece.way != Way::Zero && content.len() < bytes {
                self.fault(DATA, outbox);
            }
            open.unpacked = Some((piece.at, content));
        }
        open.unpacked.as_ref().map_or(&[], |(_, content)| content)
    }
}

/// The folder and the name of each inode.
fn names(entries: BTreeMap<(u32, Box<str>), Entry>) -> BTreeMap<u32, (u32, Box<str>)> {
    let mut names = BTreeMap::new();
    for ((folder, name), entry) in entries {
        names.entry(entry.inode).or_insert((folder, name));
    }
    names
}

fn path(names: &BTreeMap<u32, (u32, Box<str>)>, inode: u32, bytes_max: usize) -> Option<Box<str>> {
    const DEPTH_MAX: usize = 64;
    let (mut parts, mut next) = (Vec::new(), inode);
    while let Some((folder, name)) = names.get(&next).filter(|_| parts.len() < DEPTH_MAX) {
        parts.push(&**name);
        next = *folder;
    }
    parts.reverse();
    (!parts.is_empty()).then(|| name::cut(&parts.join("/"), bytes_max))
}

/// Returns the parts of a file by their place, the first one last: later versions cover earlier ones.
fn parts(mut file: File) -> Vec<Part> {
    file.pieces.sort_by_key(|piece| (piece.version, piece.at));
    let mut parts: BTreeMap<u64, (u64, Piece)> = BTreeMap::new();
    for piece in file.pieces {
        let (start, end) = (u64::from(piece.start), u64::from(piece.start) + u64::from(piece.bytes));
        if start == end {
            continue;
        }
        // A part that begins before it is cut in two; those that begin within it are cut or removed.
        if let Some((&before, &(before_end, before_piece))) = parts.range(..start).next_back() {
            if before_end > start {
                parts.insert(before, (start, before_piece));
            }
            if before_end > end {
                parts.insert(end, (before_end, before_piece));
            }
        }
        while let Some((&within, &(within_end, within_piece))) = parts.range(start..end).next() {
            parts.remove(&within);
            if within_end > end {
                parts.insert(end, (within_end, within_piece));
            }
        }
        parts.insert(start, (end, piece));
    }
    parts.into_iter().rev().map(|(start, (end, piece))| Part { start, end, piece }).collect()
}

/// A reader of images.
pub(crate) type Jffs2 = Whole<Volume>;

impl FileSystem for Volume {
    fn open(kept: &dyn ReadAt, limits: &Limits, bytes: u64) -> Result<Option<Volume>, Fault> {
        Ok(Order::of(&read(kept, 0, 4)).map(|order| Volume::new(order, limits, bytes)))
    }

    fn turn(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> bool {
        const NODES_IN_TURN: usize = 64;
        outbox.worked(64);
        if self.at < self.bytes {
            (0..NODES_IN_TURN).for_each(|_| self.read_node(kept, outbox));
        } else if let Some(open) = self.open.take() {
            self.tell(open, kept, outbox);
        } else {
            let names = self.names.take().unwrap_or_else(|| names(std::mem::take(&mut self.entries)));
            let Some((inode, file)) = self.files.pop_first() else { return true };
            let name = path(&names, inode, self.limits.name_bytes_max as usize);
            self.names = Some(names);
            outbox.open(Object { kind: Kind::Member, name, size: Some(file.bytes.into()), ..Object::default() });
            outbox.worked(64 * file.pieces.len());
            self.open = Some(Open { at: 0, bytes: file.bytes.into(), parts: parts(file), unpacked: None });
        }
        false
    }
}

/// Fuzz body: reads an image.
pub fn fuzz_jffs2(data: &[u8]) {
    cuts::compare(data, |limits| Box::new(Reading::new(Jffs2::new(limits))));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(version: u32, start: u32, bytes: u32) -> Piece {
        Piece { version, start, bytes, packed_bytes: 0, way: Way::Zero, at: version.into() }
    }

    #[test]
    fn what_a_later_version_says_covers_what_earlier_ones_do() {
        let pieces = vec![piece(3, 2, 3), piece(1, 0, 10), piece(2, 8, 6), piece(4, 0, 0), piece(5, 13, 1)];
        let parts = parts(File { pieces, ..File::default() });
        let told: Vec<_> = parts.iter().rev().map(|part| (part.start, part.end, part.piece.version)).collect();
        assert_eq!(told, [(0, 2, 1), (2, 5, 3), (5, 8, 1), (8, 13, 2), (13, 14, 5)]);
    }
}
