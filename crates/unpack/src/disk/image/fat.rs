//! A volume of FAT12, FAT16, FAT32 or exFAT: its folders, then its files, cluster by cluster.

use std::collections::{BTreeSet, VecDeque};

use stream::{Kind, Object};

use super::{Disk, ENTRIES, TRUNCATED};
use crate::frame::codec::{Fault, le16, le32, le64};
use crate::frame::name;
use crate::frame::reader::{CONTENT_BYTES, Outbox};

const ENTRY: usize = 32;
/// Maximum length of a folder that is read: FAT allows 65,536 entries, exFAT 256 MiB.
const FOLDER_BYTES_MAX: u64 = 4 << 20;
/// Bytes read of all folders.
const FOLDERS_BYTES_MAX: u64 = 64 << 20;
/// Folders within folders.
const DEPTH_MAX: u32 = 64;
const FOLDER: u8 = 0x10;
const LABEL: u8 = 0x08;
const LONG_NAME: u8 = 0x0f;

/// Whether a sector begins a volume that is read.
pub(super) fn is_boot_sector(sector: &[u8]) -> bool {
    Geometry::read(sector).is_some()
        || sector.get(3..11) == Some(b"NTFS    ") && sector.get(510..512) == Some(b"\x55\xaa")
}

/// How wide the entries of the allocation table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Twelve,
    Sixteen,
    ThirtyTwo,
    /// As 32, all bits of it.
    Ex,
}

/// Where things stand, in bytes from the volume's beginning.
#[derive(Debug, Clone, Copy)]
struct Geometry {
    width: Width,
    table_at: u64,
    clusters_at: u64,
    cluster_bytes: u64,
    clusters: u64,
    root: Extent,
}

/// A content.
#[derive(Debug, Clone, Copy)]
enum Extent {
    /// So many bytes from a place on.
    Plain { at: u64, left: u64 },
    /// A chain of clusters: the next one, how much of it is done, how much of the whole is left.
    Chain { cluster: u32, done: u64, left: u64 },
}

impl Geometry {
    fn read(boot: &[u8]) -> Option<Geometry> {
        let boot = boot.get(..512)?;
        let jumps = matches!(boot[0], 0xe9 | 0xeb);
        if boot[510..] != *b"\x55\xaa" && !jumps {
            return None;
        }
        if &boot[3..11] == b"EXFAT   " {
            return Geometry::ex(boot);
        }
        let sector = u64::from(le16(boot, 11));
        let per_cluster = u64::from(boot[13]);
        let reserved = u64::from(le16(boot, 14));
        let tables = u64::from(boot[16]);
        let root_bytes = u64::from(le16(boot, 17)) * ENTRY as u64;
        let short = u64::from(le16(boot, 22));
        let table_sectors = if short > 0 { short } else { le32(boot, 36).into() };
        let total = match le16(boot, 19) {
            0 => u64::from(le32(boot, 32)),
            total => total.into(),
        };
        let is_sound = matches!(sector, 512 | 1024 | 2048 | 4096)
            && per_cluster.is_power_of_two()
            && reserved > 0
            && (1..=4).contains(&tables)
            && table_sectors > 0
            && boot[21] >= 0xf0;
        if !is_sound {
            return None;
        }
        let root_at = (reserved + tables * table_sectors) * sector;
        let clusters_at = root_at + root_bytes.next_multiple_of(sector);
        let clusters = (total * sector).checked_sub(clusters_at)? / (per_cluster * sector);
        let width = match clusters {
            _ if short == 0 => Width::ThirtyTwo,
            0..4085 => Width::Twelve,
            4085..65525 => Width::Sixteen,
            _ => Width::ThirtyTwo,
        };
        let root = match root_bytes {
            0 => Extent::Chain { cluster: le32(boot, 44), done: 0, left: FOLDER_BYTES_MAX },
            left => Extent::Plain { at: root_at, left },
        };
        let cluster_bytes = per_cluster * sector;
        Some(Geometry { width, table_at: reserved * sector, clusters_at, cluster_bytes, clusters, root })
    }

    fn ex(boot: &[u8]) -> Option<Geometry> {
        let (sector_bits, cluster_bits) = (u32::from(boot[108]), u32::from(boot[109]));
        if !(9..=12).contains(&sector_bits) || sector_bits + cluster_bits > 25 {
            return None;
        }
        let root = Extent::Chain { cluster: le32(boot, 96), done: 0, left: FOLDER_BYTES_MAX };
        Some(Geometry {
            width: Width::Ex,
            table_at: u64::from(le32(boot, 80)) << sector_bits,
            clusters_at: u64::from(le32(boot, 88)) << sector_bits,
            cluster_bytes: 1 << (sector_bits + cluster_bits),
            clusters: le32(boot, 92).into(),
            root,
        })
    }

    /// The cluster behind this one; none at the end of a chain.
    fn next(&self, disk: &Disk, start: u64, cluster: u32) -> Option<u32> {
        let index = u64::from(cluster);
        let (at, bytes) = match self.width {
            Width::Twelve => (index + index / 2, 2),
            Width::Sixteen => (index * 2, 2),
            Width::ThirtyTwo | Width::Ex => (index * 4, 4),
        };
        let entry = disk.read(start.saturating_add(self.table_at + at), bytes);
        if entry.len() < bytes {
            return None;
        }
        let next = match self.width {
            Width::Twelve => u32::from(le16(&entry, 0)) >> (4 * (cluster & 1)) & 0xfff,
            Width::Sixteen => le16(&entry, 0).into(),
            Width::ThirtyTwo => le32(&entry, 0) & 0x0fff_ffff,
            Width::Ex => le32(&entry, 0),
        };
        self.holds(next).then_some(next)
    }

    /// Where a cluster begins.
    const fn place(&self, cluster: u32) -> u64 {
        self.clusters_at + (cluster as u64).saturating_sub(2) * self.cluster_bytes
    }

    fn holds(&self, cluster: u32) -> bool {
        (2..self.clusters + 2).contains(&u64::from(cluster))
    }

    /// Takes at most so many bytes from the front of a content; `None` at its end.
    fn take(&self, disk: &Disk, start: u64, extent: &mut Extent, most: usize) -> Option<Vec<u8>> {
        match extent {
            Extent::Plain { at, left } => {
                let count = usize::try_from(*left).map_or(most, |left| left.min(most));
                let bytes = disk.read(start.saturating_add(*at), count);
                (*at, *left) = (*at + bytes.len() as u64, *left - bytes.len() as u64);
                (!bytes.is_empty()).then_some(bytes)
            }
            Extent::Chain { cluster, done, left } => {
                if !self.holds(*cluster) {
                    return None;
                }
                let here = (self.cluster_bytes - *done).min(*left);
                let count = usize::try_from(here).map_or(most, |here| here.min(most));
                let at = self.place(*cluster) + *done;
                let bytes = disk.read(start.saturating_add(at), count);
                (*done, *left) = (*done + bytes.len() as u64, *left - bytes.len() as u64);
                if *done == self.cluster_bytes {
                    (*cluster, *done) = (self.next(disk, start, *cluster).unwrap_or(0), 0);
                }
                (!bytes.is_empty()).then_some(bytes)
            }
        }
    }
}

impl Extent {
    const fn left(&self) -> u64 {
        match self {
            Extent::Plain { left, .. } | Extent::Chain { left, .. } => *left,
        }
    }
}

/// Result of a turn.
pub(super) enum Turn {
    More,
    Fault(Fault),
    Over,
}

/// A reader of one volume.
pub(super) struct Volume {
    start: u64,
    geometry: Geometry,
    name_bytes_max: usize,
    folders: VecDeque<Folder>,
    files: VecDeque<File>,
    open: Option<Extent>,
    /// Where the folders stand that are known: one that holds itself is read once.
    seen: BTreeSet<u64>,
    folder_bytes_left: u64,
}

struct Folder {
    path: Box<str>,
    depth: u32,
    extent: Extent,
    /// The name that is being put together.
    long: Vec<u16>,
    /// Attributes in the entry of a file of exFAT so far.
    attributes: u8,
    stream: Option<Extent>,
    names_left: u8,
}

struct File {
    name: Box<str>,
    size: u64,
    extent: Extent,
}

impl Volume {
    /// The volume with this boot sector, if it is one.
    pub fn find(boot: &[u8], start: u64, name_bytes_max: usize) -> Option<Volume> {
        let geometry = Geometry::read(boot)?;
        let root = Folder::new("".into(), 0, geometry.root);
        let (folders, files) = (VecDeque::from([root]), VecDeque::new());
        let seen = BTreeSet::new();
        let folder_bytes_left = FOLDERS_BYTES_MAX;
        Some(Volume { start, geometry, name_bytes_max, folders, files, open: None, seen, folder_bytes_left })
    }

    pub fn turn(&mut self, disk: &Disk, entries_left: &mut u32, outbox: &mut Outbox) -> Turn {
        if let Some(extent) = self.open.take() {
            return self.tell(extent, disk, outbox);
        }
        if let Some(folder) = self.folders.pop_front() {
            return self.list(folder, disk, entries_left, outbox);
        }
        let Some(file) = self.files.pop_front() else { return Turn::Over };
        outbox.open(Object { kind: Kind::Member, name: Some(file.name), size: Some(file.size), ..Object::default() });
        self.open = Some(file.extent);
        Turn::More
    }

    fn tell(&mut self, mut extent: Extent, disk: &Disk, outbox: &mut Outbox) -> Turn {
        if extent.left() == 0 {
            outbox.close();
            return Turn::More;
        }
        match self.geometry.take(disk, self.start, &mut extent, CONTENT_BYTES) {
            Some(bytes) => {
                outbox.content(&bytes);
                self.open = Some(extent);
                Turn::More
            }
            None => {
                outbox.close();
                Turn::Fault(TRUNCATED)
            }
        }
    }

    /// Reads a piece of a folder.
    fn list(&mut self, mut folder: Folder, disk: &Disk, entries_left: &mut u32, outbox: &mut Outbox) -> Turn {
        let bytes = self.geometry.take(disk, self.start, &mut folder.extent, CONTENT_BYTES);
        let Some(bytes) = bytes else {
            // A chain ends where it ends; nothing at all is another matter.
            let is_missing = matches!(folder.extent, Extent::Chain { cluster, .. } if self.geometry.holds(cluster));
            return if is_missing { Turn::Fault(TRUNCATED) } else { Turn::More };
        };
        outbox.worked(bytes.len());
        self.folder_bytes_left = self.folder_bytes_left.saturating_sub(bytes.len() as u64);
        if self.folder_bytes_left == 0 {
            self.folders.clear();
            return Turn::Fault(ENTRIES);
        }
        for entry in bytes.chunks_exact(ENTRY) {
            if entry[0] == 0 {
                return Turn::More;
            }
            let found = match self.geometry.width {
                Width::Ex => folder.ex_entry(entry, &self.geometry),
                _ => folder.entry(entry, self.geometry.width),
            };
            let Some((name, is_folder, extent)) = found else { continue };
            if *entries_left == 0 {
                self.folders.clear();
                return Turn::Fault(ENTRIES);
            }
            *entries_left -= 1;
            let path = if folder.path.is_empty() { name } else { format!("{}/{name}", folder.path).into() };
            let path = name::cut(&path, self.name_bytes_max);
            if is_folder {
                self.enter(path, folder.depth + 1, extent);
            } else {
                self.files.push_back(File { name: path, size: extent.left(), extent });
            }
        }
        self.folders.push_front(folder);
        Turn::More
    }

    fn enter(&mut self, path: Box<str>, depth: u32, extent: Extent) {
        let first = match extent {
            Extent::Chain { cluster, .. } => cluster.into(),
            // No cluster has such a number.
            Extent::Plain { at, .. } => at | 1 << 63,
        };
        if depth <= DEPTH_MAX && self.seen.insert(first) {
            self.folders.push_back(Folder::new(path, depth, extent));
        }
    }
}

/// A name, whether it is a folder's, and where its content stands.
type Found = (Box<str>, bool, Extent);

impl Folder {
    fn new(path: Box<str>, depth: u32, extent: Extent) -> Folder {
        Folder { path, depth, extent, long: Vec::new(), attributes: 0, stream: None, names_left: 0 }
    }

    /// Reads an entry of FAT. A long name stands in front of it, its last piece first.
    fn entry(&mut self, entry: &[u8], width: Width) -> Option<Found> {
        const DELETED: u8 = 0xe5;
        let attributes = entry[11];
        if entry[0] == DELETED {
            self.long.clear();
            return None;
        }
        if attributes & 0x3f == LONG_NAME {
            const LAST: u8 = 0x40;
            if entry[0] & LAST != 0 {
                self.long.clear();
            }
            let places = (1..11).chain(14..26).chain(28..32).collect::<Vec<usize>>();
            let piece: Vec<u16> = places.chunks_exact(2).map(|at| le16(entry, at[0])).collect();
            if self.long.len() < 20 * piece.len() {
                self.long.splice(..0, piece);
            }
            return None;
        }
        let long = std::mem::take(&mut self.long);
        if attributes & LABEL != 0 || entry.starts_with(b".") {
            return None;
        }
        let name = if long.is_empty() { short_name(entry) } else { wide_name(&long) };
        let high = if width == Width::ThirtyTwo { u32::from(le16(entry, 20)) << 16 } else { 0 };
        let is_folder = attributes & FOLDER != 0;
        let left = if is_folder { FOLDER_BYTES_MAX } else { le32(entry, 28).into() };
        Some((name, is_folder, Extent::Chain { cluster: high | u32::from(le16(entry, 26)), done: 0, left }))
    }

    /// Reads an entry of exFAT: the file's, its stream's, then its name's.
    fn ex_entry(&mut self, entry: &[u8], geometry: &Geometry) -> Option<Found> {
        match entry[0] {
            0x85 => {
                self.attributes = entry[4];
                (self.stream, self.long) = (None, Vec::new());
                None
            }
            0xc0 => {
                const CONTIGUOUS: u8 = 2;
                let (cluster, size) = (le32(entry, 20), le64(entry, 24));
                self.names_left = entry[3].div_ceil(15);
                let is_folder = self.attributes & FOLDER != 0;
                let left = if is_folder { size.min(FOLDER_BYTES_MAX) } else { size };
                // The table says nothing of a content that stands in one piece.
                self.stream = Some(match entry[1] & CONTIGUOUS {
                    0 => Extent::Chain { cluster, done: 0, left },
                    _ => Extent::Plain { at: geometry.place(cluster), left },
                });
                None
            }
            0xc1 => {
                self.long.extend(entry[2..].chunks_exact(2).map(|unit| le16(unit, 0)));
                self.names_left = self.names_left.saturating_sub(1);
                if self.names_left > 0 {
                    return None;
                }
                let extent = self.stream.take()?;
                let name = wide_name(&std::mem::take(&mut self.long));
                Some((name, self.attributes & FOLDER != 0, extent))
            }
            _ => None,
        }
    }
}

fn wide_name(units: &[u16]) -> Box<str> {
    let end = units.iter().position(|&unit| matches!(unit, 0 | 0xffff)).unwrap_or(units.len());
    String::from_utf16_lossy(&units[..end]).into()
}

fn short_name(entry: &[u8]) -> Box<str> {
    const KANJI: u8 = 0x05;
    // Bits of a byte that DOS kept for itself say that a half of the name is meant in small letters.
    const SMALL: [u8; 2] = [8, 16];
    let (mut base, mut extension) = (entry[..8].to_vec(), entry[8..11].to_vec());
    if base[0] == KANJI {
        base[0] = 0xe5;
    }
    for (half, bit) in [&mut base, &mut extension].into_iter().zip(SMALL) {
        if entry[12] & bit != 0 {
            half.make_ascii_lowercase();
        }
    }
    let (base, extension) = (base.trim_ascii_end(), extension.trim_ascii_end());
    let whole = if extension.is_empty() { base.to_vec() } else { [base, b".", extension].concat() };
    name::utf8_or_cp437(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_pieces_is_put_together_from_its_end() {
        let mut folder = Folder::new("".into(), 0, Extent::Plain { at: 0, left: 0 });
        let piece = |order: u8, text: &str| {
            let mut entry = [0xff; ENTRY];
            (entry[0], entry[11]) = (order, LONG_NAME);
            let places: Vec<usize> = (1..11).chain(14..26).chain(28..32).collect();
            let units = text.encode_utf16().chain([0]);
            for (at, unit) in places.chunks_exact(2).zip(units) {
                entry[at[0]..at[0] + 2].copy_from_slice(&unit.to_le_bytes());
            }
            entry
        };
        assert!(folder.entry(&piece(0x42, "me.txt"), Width::Twelve).is_none());
        assert!(folder.entry(&piece(1, "a rather long"), Width::Twelve).is_none());
        let mut entry = *b"ARATHE~1TXT \0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\x05\0\0\0";
        let (name, is_folder, extent) = folder.entry(&entry, Width::Twelve).expect("a file");
        assert_eq!((&*name, is_folder, extent.left()), ("a rather longme.txt", false, 5));
        entry[11] = FOLDER;
        assert_eq!(&*folder.entry(&entry, Width::Twelve).expect("a folder").0, "ARATHE~1.TXT");
    }

    #[test]
    fn only_a_boot_sector_that_makes_sense_is_one() {
        assert!(!is_boot_sector(&[0; 512]));
        assert!(!is_boot_sector(&[0xeb; 512]));
    }
}
