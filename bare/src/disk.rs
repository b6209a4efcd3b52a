//! A virtio block device as the store's [`Device`], which reads and writes from any byte to any byte.

use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use store::{Call, Device, DeviceError};
use virtio_drivers::device::blk::SECTOR_SIZE;

use crate::cache::{Cache, PAGE_BYTES};
use crate::machine::pci::Block;

/// Bytes of one request to the device.
const REQUEST_BYTES: usize = 1 << 20;
/// Reads of so many bytes are not kept: they go through a whole log.
const CACHED_BYTES_MAX: usize = 128 << 10;

/// A disk.
pub struct Disk {
    device: RefCell<Block>,
    cache: RefCell<Cache>,
    bytes: u64,
    is_read_only: bool,
}

impl Disk {
    pub fn new(device: Block) -> Disk {
        let bytes = device.capacity().saturating_mul(SECTOR_SIZE as u64);
        let is_read_only = device.readonly();
        Disk { device: RefCell::new(device), cache: RefCell::default(), bytes, is_read_only }
    }

    /// Keeps what was read lately.
    pub fn cached(self, memory_bytes: usize) -> Disk {
        Disk { cache: RefCell::new(Cache::of(memory_bytes)), ..self }
    }

    /// Whether it cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Reads whole sectors.
    fn read_sectors(&self, first: u64, buffer: &mut [u8]) -> Option<()> {
        let mut device = self.device.borrow_mut();
        let mut sector = usize::try_from(first).ok()?;
        for piece in buffer.chunks_mut(REQUEST_BYTES) {
            device.read_blocks(sector, piece).ok()?;
            sector = sector.checked_add(piece.len() / SECTOR_SIZE)?;
        }
        Some(())
    }

    fn write_sectors(&self, first: u64, bytes: &[u8]) -> Option<()> {
        let mut device = self.device.borrow_mut();
        let mut sector = usize::try_from(first).ok()?;
        for piece in bytes.chunks(REQUEST_BYTES) {
            device.write_blocks(sector, piece).ok()?;
            sector = sector.checked_add(piece.len() / SECTOR_SIZE)?;
        }
        Some(())
    }

    /// The sectors that a range is on, as a buffer, and where it begins there.
    fn span(&self, at: u64, length: usize) -> Option<(u64, Vec<u8>, usize)> {
        let sector = SECTOR_SIZE as u64;
        let end = at.checked_add(length as u64).filter(|end| *end <= self.bytes)?;
        let (first, last) = (at / sector, end.div_ceil(sector));
        let bytes = usize::try_from(last.checked_sub(first)?.checked_mul(sector)?).ok()?;
        Some((first, vec![0; bytes], usize::try_from(at % sector).ok()?))
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Option<()> {
        if buffer.is_empty() {
            return Some(());
        }
        if buffer.len() < CACHED_BYTES_MAX && !self.cache.borrow().is_empty() {
            return self.read_cached(at, buffer);
        }
        let (first, mut sectors, skip) = self.span(at, buffer.len())?;
        self.read_sectors(first, &mut sectors)?;
        buffer.copy_from_slice(sectors.get(skip..)?.get(..buffer.len())?);
        Some(())
    }

    fn read_cached(&self, at: u64, buffer: &mut [u8]) -> Option<()> {
        at.checked_add(buffer.len() as u64).filter(|end| *end <= self.bytes)?;
        let (mut cache, mut at, mut rest) = (self.cache.borrow_mut(), at, buffer);
        while !rest.is_empty() {
            let (page, skip) = (at / PAGE_BYTES as u64, (at % PAGE_BYTES as u64) as usize);
            let from = page.checked_mul(PAGE_BYTES as u64)?;
            let content = cache.page(page, |content| {
                // The last page of a disk may be shorter.
                let bytes = self.bytes.checked_sub(from)?.min(PAGE_BYTES as u64) as usize;
                self.read_sectors(from / SECTOR_SIZE as u64, content.get_mut(..bytes)?)
            })?;
            let (now, later) = rest.split_at_mut(rest.len().min(PAGE_BYTES - skip));
            now.copy_from_slice(content.get(skip..skip + now.len())?);
            at = at.checked_add(now.len() as u64)?;
            rest = later;
        }
        Some(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Option<()> {
        let written = self.write_through(at, bytes);
        self.cache.borrow_mut().wrote(at, written.map(|()| bytes), bytes.len());
        written
    }

    fn write_through(&self, at: u64, bytes: &[u8]) -> Option<()> {
        if bytes.is_empty() {
            return Some(());
        }
        let (first, mut sectors, skip) = self.span(at, bytes.len())?;
        if skip == 0 && sectors.len() == bytes.len() {
            return self.write_sectors(first, bytes);
        }
        // What stands beside it on its first and last sector is written as it was.
        let last = sectors.len().checked_sub(SECTOR_SIZE)?;
        let sector = SECTOR_SIZE as u64;
        self.read(first.checked_mul(sector)?, sectors.get_mut(..SECTOR_SIZE)?)?;
        self.read(first.checked_mul(sector)?.checked_add(last as u64)?, sectors.get_mut(last..)?)?;
        sectors.get_mut(skip..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.write_sectors(first, &sectors)
    }
}

impl Device for Disk {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        self.read(at, buffer).ok_or(DeviceError { call: Call::Read, at, code: 0 })
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.write(at, bytes).ok_or(DeviceError { call: Call::Write, at, code: 0 })
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.device.borrow_mut().flush().map_err(|_| DeviceError { call: Call::Flush, at: 0, code: 0 })
    }

    fn discard(&mut self, _: u64, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }
}
