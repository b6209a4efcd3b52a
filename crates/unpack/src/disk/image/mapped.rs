//! Disks of virtual machines, whose clusters stand anywhere in their file, packed or not: qcow2, VMDK in one file, VDI.
//!
//! Bounds: a cluster of [`CLUSTER_BYTES_MAX`], packed and unpacked, is kept; clusters are unpacked again where files want
//! them, up to [`AGAIN`] times the file. Sources: docs/interop/qcow2.rst of QEMU; VMware's Virtual Disk Format 5.0; the
//! header of VDI as VirtualBox publishes it.

use std::cell::RefCell;

use stream::{Class, Limits, ReadAt};

use crate::disk::kept::{Packing, read};
use crate::frame::codec::{Fault, be32, be64, le16, le32, le64};

pub(super) const QCOW: &[u8] = b"QFI\xfb\0\0\0";
pub(super) const VMDK: &[u8] = b"KDMV";
pub(super) const VDI: &[u8] = b"\x7f\x10\xda\xbe";
const VDI_AT: usize = 64;

const CLUSTER_BYTES_MAX: u64 = 2 << 20;
/// Entries of tables that are passed in one turn.
const STEPS: u32 = 256;
/// A page of unpacked bytes costs as much as one packed byte.
const PAGE: usize = 64;
const AGAIN: u64 = 8;
const SECTOR: u64 = 512;
/// Subclusters of a cluster of qcow2, each of which is present or absent.
const SUBCLUSTERS: u64 = 32;

const METHOD: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.DiskMethod");
const ENCRYPTED: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Disk");
const DATA: Fault = Fault::passing(Class::Malformed, "Heuristics.Malformed.Disk.Data");

/// Whether the disk of a virtual machine begins with this head.
pub(super) fn is_image(head: &[u8]) -> bool {
    let is_qcow = head.starts_with(QCOW) && matches!(head.get(QCOW.len()), Some(2 | 3));
    is_qcow || head.starts_with(VMDK) || head.get(VDI_AT..).is_some_and(|head| head.starts_with(VDI))
}

/// A disk by its clusters.
pub(super) struct Mapped {
    /// Bytes of the disk, and of a cluster.
    pub bytes: u64,
    cluster_bytes: u64,
    map: Map,
    limits: Limits,
    cache: RefCell<Cache>,
}

enum Map {
    /// Two levels of tables.
    Qcow(Qcow),
    Vmdk {
        table: u64,
        entries: u64,
        is_packed: bool,
    },
    Vdi {
        table: u64,
        blocks: u64,
        data: u64,
    },
}

/// The tables of qcow2.
#[derive(Clone, Copy)]
struct Qcow {
    table: u64,
    tables: u64,
    entry_bytes: u64,
    packing: Packing,
}

struct Cache {
    /// The cluster that was unpacked last, by its place in the file.
    unpacked: Option<(u64, Vec<u8>)>,
    left: u64,
    work: usize,
    is_unsound: bool,
}

/// Where a block of a disk stands.
pub(super) enum Block {
    Missing,
    /// It was never written.
    Empty,
    At(u64),
}

/// Where a cluster stands, if it is not packed, and how it is.
enum Cluster {
    Block(Block),
    Packed {
        at: u64,
        bytes: u64,
        packing: Packing,
    },
    /// As many clusters as this, this one among them, are in no table.
    Unmapped(u64),
    /// The first table ends before it.
    Beyond,
}

/// Where reading goes on.
pub(super) enum Next {
    At(u64),
    /// Places up to here were passed.
    Passed(u64),
    /// The tables end.
    Beyond,
}

impl Mapped {
    /// The disk in a file of so many bytes, if it is one that can be read.
    pub fn of(kept: &dyn ReadAt, file_bytes: u64, limits: &Limits) -> Result<Mapped, Fault> {
        let header = read(kept, 0, SECTOR as usize);
        let (bytes, cluster_bytes, map) = match &header {
            header if header.starts_with(QCOW) => qcow(header)?,
            header if header.starts_with(VMDK) => vmdk(header, kept, file_bytes)?,
            header => vdi(header),
        };
        if !cluster_bytes.is_power_of_two() || !(SECTOR..=CLUSTER_BYTES_MAX).contains(&cluster_bytes) {
            return Err(METHOD);
        }
        let left = file_bytes.saturating_mul(AGAIN).saturating_add(CLUSTER_BYTES_MAX);
        let cache = RefCell::new(Cache { unpacked: None, left, work: 0, is_unsound: false });
        Ok(Mapped { bytes, cluster_bytes, map, limits: limits.clone(), cache })
    }

    /// Returns the work since the last call, and a fault of clusters.
    pub fn take_work(&self) -> (usize, Option<Fault>) {
        let mut cache = self.cache.borrow_mut();
        (std::mem::take(&mut cache.work), std::mem::take(&mut cache.is_unsound).then_some(DATA))
    }

    /// Looks for the next place from `at` on that stands in the file.
    pub fn next(&self, kept: &dyn ReadAt, at: u64) -> Next {
        let mut at = at;
        self.cache.borrow_mut().work += STEPS as usize * 8;
        for _ in 0..STEPS {
            let (passed, unit) = match self.cluster(kept, at) {
                _ if at >= self.bytes => break,
                Cluster::Unmapped(clusters) => (clusters, self.cluster_bytes),
                Cluster::Block(Block::Empty) => (1, self.unit()),
                Cluster::Beyond => return Next::Beyond,
                _ => return Next::At(at),
            };
            at = (at / unit).saturating_add(passed).saturating_mul(unit);
        }
        Next::Passed(at)
    }

    /// Fills a prefix of the buffer from a place of the disk; 0 where no bytes are kept.
    pub fn read_at(&self, kept: &dyn ReadAt, at: u64, buffer: &mut [u8]) -> usize {
        if at >= self.bytes {
            return 0;
        }
        let within = at % self.cluster_bytes;
        let unit = self.unit();
        let count = (unit - at % unit).min(self.bytes - at).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..count];
        match self.cluster(kept, at) {
            Cluster::Block(Block::Missing) | Cluster::Beyond => 0,
            Cluster::Block(Block::Empty) | Cluster::Unmapped(_) => {
                buffer.fill(0);
                count
            }
            Cluster::Block(Block::At(start)) => kept.read_at(start.saturating_add(within), buffer),
            Cluster::Packed { at, bytes, packing } => {
                let mut cache = self.cache.borrow_mut();
                let Some(cluster) = self.unpack(&mut cache, kept, at, bytes, packing) else { return 0 };
                let from = cluster.get(within as usize..).unwrap_or_default();
                let there = from.len().min(count);
                buffer[..there].copy_from_slice(&from[..there]);
                // The missing rest of a broken cluster is zero.
                buffer[there..].fill(0);
                count
            }
        }
    }

    fn unpack<'a>(
        &self,
        cache: &'a mut Cache,
        kept: &dyn ReadAt,
        at: u64,
        bytes: u64,
        packing: Packing,
    ) -> Option<&'a [u8]> {
        if cache.unpacked.as_ref().is_none_or(|unpacked| unpacked.0 != at) {
            let packed = read(kept, at, usize::try_from(bytes).ok()?);
            if packed.is_empty() {
                return None;
            }
            let (cluster, is_sound) = packing.unpack(&packed, self.cluster_bytes as usize, &self.limits);
            cache.left = cache.left.checked_sub((packed.len() + cluster.len() / PAGE) as u64)?;
            cache.work += packed.len() + cluster.len();
            cache.is_unsound |= !is_sound;
            cache.unpacked = Some((at, cluster));
        }
        cache.unpacked.as_ref().map(|(_, cluster)| &cluster[..])
    }

    /// Size of the unit that is present or absent as a whole.
    pub const fn unit(&self) -> u64 {
        match self.map {
            Map::Qcow(Qcow { entry_bytes: 16, .. }) => self.cluster_bytes / SUBCLUSTERS,
            _ => self.cluster_bytes,
        }
    }

    fn cluster(&self, kept: &dyn ReadAt, at: u64) -> Cluster {
        let index = at / self.cluster_bytes;
        match self.map {
            Map::Qcow(tables) => self.qcow_cluster(kept, at, tables),
            Map::Vmdk { table, entries, is_packed } => self.vmdk_cluster(kept, index, table, entries, is_packed),
            Map::Vdi { table, blocks, data } => {
                const FREE: u32 = u32::MAX - 1;
                let entry = read(kept, table.saturating_add(index * 4), 4);
                Cluster::Block(match le32(&entry, 0) {
                    _ if index >= blocks || entry.len() < 4 => return Cluster::Beyond,
                    FREE.. => Block::Empty,
                    block => Block::At(data.saturating_add(u64::from(block) * self.cluster_bytes)),
                })
            }
        }
    }

    fn qcow_cluster(&self, kept: &dyn ReadAt, at: u64, tables: Qcow) -> Cluster {
        const PLACE: u64 = 0x00ff_ffff_ffff_fe00;
        const PACKED: u64 = 1 << 62;
        const ZERO: u64 = 1;
        let Qcow { table, tables, entry_bytes, packing } = tables;
        let (index, in_table) = (at / self.cluster_bytes, self.cluster_bytes / entry_bytes);
        let first = read(kept, table.saturating_add(index / in_table * 8), 8);
        let second = be64(&first, 0) & PLACE;
        if index / in_table >= tables || first.len() < 8 {
            return Cluster::Beyond;
        }
        if second == 0 {
            return Cluster::Unmapped(in_table - index % in_table);
        }
        let entry = read(kept, second.saturating_add(index % in_table * entry_bytes), entry_bytes as usize);
        if (entry.len() as u64) < entry_bytes {
            return Cluster::Block(Block::Missing);
        }
        let value = be64(&entry, 0);
        if value & PACKED != 0 {
            let shift = 62 - (self.cluster_bytes.trailing_zeros() - 8);
            let at = value & ((1 << shift) - 1);
            let sectors = ((value & !(3 << 62)) >> shift) + 1;
            return Cluster::Packed { at, bytes: sectors * SECTOR - at % SECTOR, packing };
        }
        let subcluster = at % self.cluster_bytes * SUBCLUSTERS / self.cluster_bytes;
        // With subclusters, a bitmap lists the present ones.
        let is_zero = if entry_bytes == 16 { be64(&entry, 8) >> subcluster & 1 == 0 } else { value & ZERO != 0 };
        Cluster::Block(match value & PLACE {
            place if place == 0 || is_zero => Block::Empty,
            place => Block::At(place),
        })
    }

    fn vmdk_cluster(&self, kept: &dyn ReadAt, index: u64, table: u64, entries: u64, is_packed: bool) -> Cluster {
        const HEADER: u64 = 12;
        let first = read(kept, table.saturating_add(index / entries * 4), 4);
        if first.len() < 4 {
            return Cluster::Beyond;
        }
        let second = u64::from(le32(&first, 0)) * SECTOR;
        if second == 0 {
            return Cluster::Unmapped(entries - index % entries);
        }
        let entry = read(kept, second.saturating_add(index % entries * 4), 4);
        let at = match le32(&entry, 0) {
            _ if entry.len() < 4 => return Cluster::Block(Block::Missing),
            0 | 1 => return Cluster::Block(Block::Empty),
            sector => u64::from(sector) * SECTOR,
        };
        if !is_packed {
            return Cluster::Block(Block::At(at));
        }
        let header = read(kept, at, HEADER as usize);
        let bytes = u64::from(le32(&header, 8)).min(2 * CLUSTER_BYTES_MAX);
        Cluster::Packed { at: at + HEADER, bytes, packing: Packing::Zlib }
    }
}

fn qcow(header: &[u8]) -> Result<(u64, u64, Map), Fault> {
    const EXTERNAL: u64 = 1 << 2;
    const HAS_PACKING: u64 = 1 << 3;
    const HAS_SUBCLUSTERS: u64 = 1 << 4;
    if be32(header, 32) != 0 {
        return Err(ENCRYPTED);
    }
    let features = if be32(header, 4) >= 3 { be64(header, 72) } else { 0 };
    let packing = match header.get(104) {
        Some(1) if features & HAS_PACKING != 0 => Packing::Zstd,
        _ => Packing::Deflate,
    };
    if features & EXTERNAL != 0 {
        return Err(METHOD);
    }
    let cluster_bytes = 1u64.checked_shl(be32(header, 20)).ok_or(METHOD)?;
    let entry_bytes = if features & HAS_SUBCLUSTERS != 0 { 16 } else { 8 };
    let map = Map::Qcow(Qcow { table: be64(header, 40), tables: be32(header, 36).into(), entry_bytes, packing });
    Ok((be64(header, 24), cluster_bytes, map))
}

fn vmdk(header: &[u8], kept: &dyn ReadAt, file_bytes: u64) -> Result<(u64, u64, Map), Fault> {
    const AT_END: u64 = u64::MAX;
    const FOOTER_BEFORE_END: u64 = 1024;
    const PACKED: u32 = 1 << 16;
    const DEFLATE: u16 = 1;
    let footer = match le64(header, 56) {
        AT_END => read(kept, file_bytes.saturating_sub(FOOTER_BEFORE_END), SECTOR as usize),
        _ => Vec::new(),
    };
    let header = if footer.starts_with(VMDK) { &footer } else { header };
    let is_packed = le32(header, 8) & PACKED != 0;
    let entries = u64::from(le32(header, 44));
    if entries == 0 || is_packed && le16(header, 77) != DEFLATE {
        return Err(METHOD);
    }
    let map = Map::Vmdk { table: le64(header, 56).saturating_mul(SECTOR), entries, is_packed };
    Ok((le64(header, 12).saturating_mul(SECTOR), le64(header, 20).saturating_mul(SECTOR), map))
}

fn vdi(header: &[u8]) -> (u64, u64, Map) {
    let (table, data) = (le32(header, 340), le32(header, 344));
    let map = Map::Vdi { table: table.into(), blocks: le32(header, 384).into(), data: data.into() };
    (le64(header, 368), le32(header, 376).into(), map)
}
