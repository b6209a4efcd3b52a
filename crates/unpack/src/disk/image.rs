//! Images of disks: raw ones, with or without a table of partitions, VHD (fixed and dynamic) and VHDX, qcow2, VMDK in
//! one file and VDI; and in them the files of volumes of FAT, exFAT and ext2 to ext4, emitted at the end.
//!
//! The disk of a virtual machine is also emitted as one content, in its own order, since its clusters may be anywhere
//! and packed: up to [`WHOLE_PARTS`] of the spool it is emitted whole, and its volumes are then found in it; of a
//! larger disk unwritten parts are left out.
//!
//! A fixed VHD is a raw image with a footer, which is ignored. Tables are MBR with its chain of logical partitions, and
//! GPT. Only files that a system shows after a double click count: deleted files, other copies of the allocation table,
//! and differencing images without their parents are left out.
//!
//! Bounds: the image, up to `spool_bytes_max` (a quarter if the image is a disc, too); `directory_entries_max` entries
//! of a name; [`PARTITIONS_MAX`] partitions; one cluster of a directory. Content beyond them has a finding, and so has
//! a volume of NTFS, or of another file system of Linux, whose files are only scanned as parts of the image.
//!
//! Sources: Microsoft's descriptions of FAT (1.03), exFAT, VHD (1.0) and VHDX (MS-VHDX), UEFI 2.10 section 5.

mod ext;
mod fat;
mod mapped;
mod sectors;

use std::collections::VecDeque;

use stream::{Class, Kind, Limits, Object, ReadAt};

use crate::frame::codec::{Fault, le32, le64};
use crate::frame::cuts;
use crate::frame::format::{Format, Reads};
use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader, Reading};
use crate::recognise::unopened;
use mapped::{Mapped, Next};
use sectors::Image;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "disk images",
    methods: "raw, VHD (fixed, dynamic), VHDX; qcow2 (zlib, zstd), VMDK in one file (sparse, stream-optimized) and VDI, as one disk; MBR and GPT; FAT12, FAT16, FAT32, exFAT; ext2, ext3, ext4",
    not_read: "NTFS, other file systems of Linux, journals to be replayed, differencing images, encrypted qcow2, disks in several files",
    reads: Reads::Spool("the image, up to `spool_bytes_max`"),
    memory: "a name and 40 bytes for each of `directory_entries_max` entries; a cluster of 2 MiB, packed and unpacked",
    decoder: "own; zlib-rs, ruzstd",
    fuzz: "unpack_disk",
    compared_with: "mtools, over images made by mkfs.fat, mkfs.exfat and qemu-img; qemu-img; debugfs, over images made by mkfs.ext4",
};

const SYSTEM: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.DiskSystem");
const ENTRIES: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.DiskEntries");
const BEYOND: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.Disk");
const TRUNCATED: Fault = Fault::passing(Class::Truncated, "Heuristics.Truncated.Disk");

const SECTOR: usize = 512;
/// The head of a volume, with a superblock of ext2 to ext4.
const HEAD: usize = 1536;
/// Partitions that are looked at.
const PARTITIONS_MAX: usize = 128;
/// Offset of the descriptor of a disc image.
const DISC_AT: u64 = 32769;

/// Whether an image of a disk begins with this head.
pub(crate) fn is_image(head: &[u8]) -> bool {
    head.starts_with(sectors::VHD)
        || head.starts_with(sectors::VHDX)
        || fat::is_boot_sector(head)
        || has_partitions(head)
        || ext::is_volume(head)
}

/// Whether the disk of a virtual machine begins with this head.
pub(crate) fn is_virtual(head: &[u8]) -> bool {
    mapped::is_image(head)
}

/// Whether a sector holds a table of partitions that makes sense.
fn has_partitions(sector: &[u8]) -> bool {
    let is_one = |entry: &[u8]| {
        let is_known = matches!(
            entry[4],
            0x01 | 0x04
                ..=0x07
                    | 0x0b
                    | 0x0c
                    | 0x0e
                    | 0x0f
                    | 0x11
                    | 0x14
                    | 0x16
                    | 0x17
                    | 0x1b
                    | 0x1c
                    | 0x1e
                    | 0x27
                    | 0x82
                    | 0x83
                    | 0x8e
                    | 0xa5
                    | 0xaf
                    | 0xee
                    | 0xef
                    | 0xfd
        );
        is_known && le32(entry, 8) > 0 && le32(entry, 12) > 0
    };
    let Some(table) = sector.get(446..510) else { return false };
    let is_sound = table.chunks_exact(16).all(|entry| matches!(entry[0], 0 | 0x80));
    is_sound && sector.get(510..512) == Some(b"\x55\xaa") && table.chunks_exact(16).any(is_one)
}

/// Kept bytes of an image, as the disk that it is of.
struct Disk<'a> {
    image: &'a Image,
    kept: &'a dyn ReadAt,
}

impl Disk<'_> {
    /// Available bytes of so many.
    fn read(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let mut there = 0;
        while there < count {
            match self.image.read_at(self.kept, at.saturating_add(there as u64), &mut bytes[there..]) {
                0 => break,
                read => there += read,
            }
        }
        bytes.truncate(there);
        bytes
    }
}

/// A reader of an image.
pub(crate) struct DiskImage {
    limits: Limits,
    at: u64,
    asked: u64,
    /// Bytes at the descriptor of a disc image.
    disc: Vec<u8>,
    plan: Option<Plan>,
}

/// Plan for reading the disk.
struct Plan {
    image: Image,
    /// The telling of the disk of a virtual machine, as far as it got.
    contents: Option<Contents>,
    /// Sectors where volumes begin.
    volumes: VecDeque<u64>,
    volume: Option<Volume>,
    entries_left: u32,
    told: Vec<&'static str>,
    /// Bytes of the file.
    bytes: u64,
}

/// A volume that is read.
enum Volume {
    Fat(fat::Volume),
    Ext(ext::Volume),
}

impl Volume {
    fn turn(&mut self, disk: &Disk, entries_left: &mut u32, outbox: &mut Outbox) -> fat::Turn {
        match self {
            Volume::Fat(volume) => volume.turn(disk, entries_left, outbox),
            Volume::Ext(volume) => volume.turn(disk, entries_left, outbox),
        }
    }
}

impl DiskImage {
    pub fn new(limits: &Limits) -> DiskImage {
        DiskImage { limits: limits.clone(), at: 0, asked: 0, disc: Vec::new(), plan: None }
    }

    fn is_disc(&self) -> bool {
        matches!(&self.disc[..], b"CD001" | b"BEA01")
    }

    fn plan(&self, kept: &dyn ReadAt) -> Result<Plan, Fault> {
        let image = Image::of(kept, self.at, &self.limits)?;
        let contents = Contents::of(&image, &self.limits);
        let is_whole = contents.as_ref().is_some_and(|contents| contents.is_whole);
        let volumes = if is_whole { VecDeque::new() } else { volumes(&Disk { image: &image, kept }) };
        let entries_left = self.limits.directory_entries_max;
        Ok(Plan { contents, volumes, volume: None, entries_left, told: Vec::new(), image, bytes: self.at })
    }
}

/// A disk is emitted with its unwritten parts up to this fraction of `spool_bytes_max`.
const WHOLE_PARTS: u64 = 2;

/// The telling of a disk.
struct Contents {
    at: u64,
    is_whole: bool,
    is_open: bool,
}

impl Contents {
    fn of(image: &Image, limits: &Limits) -> Option<Contents> {
        let Image::Mapped(mapped) = image else { return None };
        let is_whole = mapped.bytes <= u64::from(limits.spool_bytes_max) / WHOLE_PARTS;
        Some(Contents { at: 0, is_whole, is_open: false })
    }

    /// Emits more. Returns whether all is emitted, and the fault at its end.
    fn turn(&mut self, mapped: &Mapped, kept: &dyn ReadAt, outbox: &mut Outbox) -> (bool, Option<Fault>) {
        if !std::mem::replace(&mut self.is_open, true) {
            let size = self.is_whole.then_some(mapped.bytes);
            outbox.open(Object { kind: Kind::Member, size, ..Object::default() });
            return (false, None);
        }
        let next = if self.is_whole { Next::At(self.at) } else { mapped.next(kept, self.at) };
        let fault = match next {
            Next::At(at) => self.tell(at, mapped, kept, outbox),
            Next::Passed(at) => {
                self.at = at;
                None
            }
            Next::Beyond => {
                self.at = mapped.bytes;
                Some(TRUNCATED)
            }
        };
        let is_over = self.at >= mapped.bytes;
        if is_over {
            outbox.close();
        }
        (is_over, fault)
    }

    /// Emits a piece, or skips a missing one; in a disk that is emitted whole zeros replace it.
    fn tell(&mut self, at: u64, mapped: &Mapped, kept: &dyn ReadAt, outbox: &mut Outbox) -> Option<Fault> {
        let mut piece = [0; CONTENT_BYTES];
        let count = mapped.read_at(kept, at, &mut piece);
        outbox.content(&piece[..count]);
        self.at = at.saturating_add(count as u64);
        if count > 0 || at >= mapped.bytes {
            return None;
        }
        let end = (at / mapped.unit()).saturating_add(1).saturating_mul(mapped.unit()).min(mapped.bytes);
        let zeros = if self.is_whole { (end - at).min(piece.len() as u64) } else { 0 };
        outbox.content(&piece[..zeros as usize]);
        self.at = if self.is_whole { at + zeros } else { end };
        Some(TRUNCATED)
    }
}

/// Where volumes may begin, in sectors.
fn volumes(disk: &Disk) -> VecDeque<u64> {
    let mut found = VecDeque::new();
    let first = disk.read(0, SECTOR);
    if fat::is_boot_sector(&first) || ext::is_volume(&disk.read(0, HEAD)) {
        found.push_back(0);
    }
    if !has_partitions(&first) {
        return found;
    }
    let mut extended = Vec::new();
    for entry in first[446..510].chunks_exact(16) {
        match entry[4] {
            0 => {}
            0x05 | 0x0f => extended.push(u64::from(le32(entry, 8))),
            0xee => found.extend(guid_table(disk)),
            _ => found.push_back(le32(entry, 8).into()),
        }
    }
    for base in extended {
        found.extend(logical(disk, base));
    }
    found.truncate(PARTITIONS_MAX);
    found
}

/// The partitions of a GUID partition table.
fn guid_table(disk: &Disk) -> Vec<u64> {
    let header = disk.read(SECTOR as u64, SECTOR);
    let (at, count, bytes) = (le64(&header, 72), le32(&header, 80), le32(&header, 84));
    if !header.starts_with(b"EFI PART") || !(128..=4096).contains(&bytes) {
        return Vec::new();
    }
    let entries = (0..u64::from(count).min(PARTITIONS_MAX as u64)).map(|index| {
        let place = at.saturating_mul(SECTOR as u64).saturating_add(index * u64::from(bytes));
        disk.read(place, 48)
    });
    entries.filter(|entry| entry.iter().take(16).any(|&byte| byte != 0)).map(|entry| le64(&entry, 32)).collect()
}

/// The partitions in an extended one: a chain of tables of one partition and the next table.
fn logical(disk: &Disk, base: u64) -> Vec<u64> {
    let (mut found, mut at) = (Vec::new(), base);
    while found.len() < PARTITIONS_MAX {
        let table = disk.read(at.saturating_mul(SECTOR as u64), SECTOR);
        if table.get(510..512) != Some(b"\x55\xaa") {
            break;
        }
        found.push(at.saturating_add(le32(&table, 454).into()));
        let next = u64::from(le32(&table, 470));
        // A chain that goes back would never end.
        if next == 0 || base.saturating_add(next) <= at {
            break;
        }
        at = base.saturating_add(next);
    }
    found
}

impl Plan {
    /// Goes on; whether all is emitted.
    fn turn(&mut self, kept: &dyn ReadAt, is_cut: bool, name_bytes_max: usize, outbox: &mut Outbox) -> bool {
        outbox.worked(64);
        if let Image::Mapped(mapped) = &self.image {
            let (work, fault) = mapped.take_work();
            outbox.worked(work);
            if let Some(fault) = fault {
                self.fault(fault, outbox);
            }
        }
        if let (Some(contents), Image::Mapped(mapped)) = (&mut self.contents, &self.image) {
            let (is_over, fault) = contents.turn(mapped, kept, outbox);
            if is_over {
                self.contents = None;
            }
            if let Some(fault) = fault {
                self.fault(if is_cut { BEYOND } else { fault }, outbox);
            }
            return false;
        }
        let disk = Disk { image: &self.image, kept };
        if let Some(mut volume) = self.volume.take() {
            let fault = match volume.turn(&disk, &mut self.entries_left, outbox) {
                fat::Turn::Over => return false,
                fat::Turn::More => None,
                fat::Turn::Fault(fault) => Some(fault),
            };
            self.volume = Some(volume);
            if let Some(fault) = fault {
                self.fault(if is_cut && fault.class == Class::Truncated { BEYOND } else { fault }, outbox);
            }
            return false;
        }
        let Some(sector) = self.volumes.pop_front() else { return true };
        let start = sector.saturating_mul(SECTOR as u64);
        let boot = disk.read(start, SECTOR);
        let find_ext = || ext::Volume::find(&disk, start, self.bytes, name_bytes_max).map(Volume::Ext);
        self.volume = fat::Volume::find(&boot, start, name_bytes_max).map(Volume::Fat).or_else(find_ext);
        let is_other = || {
            let read = |at: u64, count| disk.read(start.saturating_add(at), count);
            boot.get(3..11) == Some(b"NTFS    ") || ext::is_volume(&read(0, HEAD)) || unopened::is_volume(read)
        };
        if self.volume.is_none() && is_other() {
            self.fault(SYSTEM, outbox);
        }
        false
    }

    fn fault(&mut self, fault: Fault, outbox: &mut Outbox) {
        if !self.told.contains(&fault.name) {
            self.told.push(fault.name);
            outbox.finding(fault.class, fault.name, 0);
        }
    }
}

impl Reader for DiskImage {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let bytes_max = u64::from(self.limits.spool_bytes_max);
        if self.asked == 0 {
            self.asked = bytes_max / 4;
            outbox.keep(0..self.asked);
            return 0;
        }
        let end = DISC_AT + 5;
        if self.at < end {
            // The type has to be known before more is requested.
            let count = input.len().min(usize::try_from(end - self.at).unwrap_or(usize::MAX));
            let skip = usize::try_from(DISC_AT.saturating_sub(self.at)).unwrap_or(usize::MAX);
            self.disc.extend_from_slice(input[..count].get(skip..).unwrap_or_default());
            self.at += count as u64;
            return count;
        }
        if self.asked < bytes_max && !self.is_disc() {
            outbox.keep(self.asked.max(self.at)..bytes_max.max(self.at));
            self.asked = bytes_max;
            return 0;
        }
        self.at += input.len() as u64;
        input.len()
    }

    fn end(&mut self, kept: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        let is_cut = self.at > self.asked;
        let is_disc = self.is_disc();
        let mut plan = match self.plan.take() {
            Some(plan) => plan,
            None => match self.plan(kept) {
                Ok(plan) => plan,
                Err(fault) => {
                    outbox.finding(fault.class, fault.name, 0);
                    return Ended::Done;
                }
            },
        };
        if is_disc && plan.told.is_empty() {
            // The disc counts; parts of its disk beyond the kept bytes are no finding.
            plan.told = vec![SYSTEM.name, BEYOND.name, TRUNCATED.name];
        }
        let is_over = plan.turn(kept, is_cut, self.limits.name_bytes_max as usize, outbox);
        self.plan = Some(plan);
        if is_over { Ended::Done } else { Ended::More }
    }
}

/// Fuzz body: reads an image, in the coding of [`cuts::blocks`].
pub fn fuzz_disk(data: &[u8]) {
    cuts::compare(&cuts::blocks(data), |limits| Box::new(Reading::new(DiskImage::new(limits))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_partitions_has_to_make_sense() {
        let mut sector = vec![0; SECTOR];
        sector[510..].copy_from_slice(b"\x55\xaa");
        assert!(!is_image(&sector), "no partition");
        (sector[446], sector[450], sector[454], sector[458]) = (0x80, 6, 1, 9);
        assert!(is_image(&sector));
        sector[462] = 7;
        assert!(!is_image(&sector), "no mark is 7");
    }

    #[test]
    fn a_chain_of_tables_that_goes_in_circles_ends() {
        let mut image = vec![0; 8 * SECTOR];
        for at in [1, 2] {
            let table = &mut image[at * SECTOR..][..SECTOR];
            table[510..].copy_from_slice(b"\x55\xaa");
            (table[454], table[470]) = (1, 1);
        }
        let mut kept = stream::Spool::default();
        kept.ask(0..u64::MAX, 0);
        kept.pass(0, &image, u64::MAX);
        let found = logical(&Disk { image: &Image::Flat, kept: &kept }, 1);
        assert_eq!(found, [2, 3]);
    }
}
