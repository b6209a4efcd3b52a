//! A device in memory that behaves as disks do when the power fails: unflushed writes are dropped, torn and reordered.
//!
//! Also one that fails or lies on demand. For tests, and for volumes that need not last.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::device::{Call, Device, DeviceError};

/// Page of a disk's cache: unflushed pages are lost or kept one by one.
const PAGE_BYTES: usize = 4096;
/// Unit that a disk writes as a whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Bytes in memory; unflushed ones may be lost.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    stable: Vec<u8>,
    /// Pages whose current content differs from the stable one.
    cached: BTreeMap<usize, Vec<u8>>,
    /// Faults of the device.
    pub faults: Faults,
    /// Writes and flushes so far.
    pub counts: Counts,
}

/// Faults of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Writes fail once this many were made.
    pub writes_until_failure: Option<u64>,
    /// Flushes fail once this many were made.
    pub flushes_until_failure: Option<u64>,
    /// Flushes return at once and keep nothing.
    pub lies: bool,
}

/// Numbers of calls to a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Writes.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

impl Memory {
    /// `length` zero bytes.
    pub fn new(length: usize) -> Self {
        Memory { stable: vec![0; length], ..Memory::default() }
    }

    /// A device with these bytes, all stable.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Memory { stable: bytes, ..Memory::default() }
    }

    /// All bytes as they read now.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.stable.clone();
        for (&page, cached) in &self.cached {
            let at = page * PAGE_BYTES;
            bytes[at..at + cached.len()].copy_from_slice(cached);
        }
        bytes
    }

    /// The device after a power failure: the stable bytes, and of the unflushed pages a subset that `seed` chooses, one
    /// in four of them torn at a sector. A seed of 0 leaves none of them, `u64::MAX` all.
    pub fn after_power_failure(&self, seed: u64) -> Memory {
        let mut stable = self.stable.clone();
        let mut random = seed;
        for (&page, cached) in &self.cached {
            let at = page * PAGE_BYTES;
            let kept = match seed {
                0 => 0..0,
                u64::MAX => 0..cached.len(),
                _ => survivors(&mut random, cached.len()),
            };
            stable[at + kept.start..at + kept.end].copy_from_slice(&cached[kept]);
        }
        Memory::from_bytes(stable)
    }

    /// How many pages are not flushed.
    pub fn unflushed_pages(&self) -> usize {
        self.cached.len()
    }

    fn check(&self, call: Call, at: u64, length: usize) -> Result<usize, DeviceError> {
        let error = DeviceError { call, at, code: 0 };
        let start = usize::try_from(at).map_err(|_| error)?;
        let end = start.checked_add(length).ok_or(error)?;
        if end > self.stable.len() { Err(error) } else { Ok(start) }
    }

    fn page(&mut self, page: usize) -> &mut Vec<u8> {
        let stable = &self.stable;
        self.cached.entry(page).or_insert_with(|| {
            let at = page * PAGE_BYTES;
            stable[at..stable.len().min(at + PAGE_BYTES)].to_vec()
        })
    }
}

/// The part of a page that reaches the disk.
fn survivors(random: &mut u64, length: usize) -> core::ops::Range<usize> {
    *random = mix(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
    let sectors = length / SECTOR_BYTES;
    let cut = (*random >> 8) as usize % (sectors + 1) * SECTOR_BYTES;
    match *random % 8 {
        0..3 => 0..0,
        3..6 => 0..length,
        6 => 0..cut,
        _ => cut..length,
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Device for Memory {
    fn len(&self) -> u64 {
        self.stable.len() as u64
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError> {
        let start = self.check(Call::Read, at, buffer.len())?;
        buffer.copy_from_slice(&self.stable[start..start + buffer.len()]);
        let end = start + buffer.len();
        for (&page, cached) in self.cached.range(start / PAGE_BYTES..end.div_ceil(PAGE_BYTES)) {
            let page_at = page * PAGE_BYTES;
            let (from, to) = (start.max(page_at), end.min(page_at + cached.len()));
            buffer[from - start..to - start].copy_from_slice(&cached[from - page_at..to - page_at]);
        }
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut start = self.check(Call::Write, at, bytes.len())?;
        if self.faults.writes_until_failure.is_some_and(|count| self.counts.writes >= count) {
            return Err(DeviceError { call: Call::Write, at, code: 5 });
        }
        self.counts.writes += 1;
        self.counts.written_bytes += bytes.len() as u64;
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let (page, offset) = (start / PAGE_BYTES, start % PAGE_BYTES);
            let length = bytes.len().min(PAGE_BYTES - offset);
            self.page(page)[offset..offset + length].copy_from_slice(&bytes[..length]);
            bytes = &bytes[length..];
            start += length;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        if self.faults.flushes_until_failure.is_some_and(|count| self.counts.flushes >= count) {
            return Err(DeviceError { call: Call::Flush, at: 0, code: 5 });
        }
        self.counts.flushes += 1;
        if self.faults.lies {
            return Ok(());
        }
        for (page, cached) in core::mem::take(&mut self.cached) {
            let at = page * PAGE_BYTES;
            self.stable[at..at + cached.len()].copy_from_slice(&cached);
        }
        Ok(())
    }

    fn discard(&mut self, at: u64, length: u64) -> Result<(), DeviceError> {
        // Reads after it have to be harmless: the worst is the old content.
        let length = usize::try_from(length).map_err(|_| DeviceError { call: Call::Discard, at, code: 0 })?;
        self.check(Call::Discard, at, length).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_survives_and_the_rest_may_not() {
        let mut memory = Memory::new(16 << 10);
        memory.write_at(4000, &[1; 200]).unwrap();
        memory.flush().unwrap();
        memory.write_at(4100, &[2; 8000]).unwrap();
        let mut read = [0; 300];
        memory.read_at(4000, &mut read).unwrap();
        assert_eq!((&read[..100], &read[100..]), (&[1; 100][..], &[2; 200][..]));
        let lost = memory.after_power_failure(0).bytes();
        assert_eq!(lost[4000..4200], [1; 200]);
        assert!(lost[4200..].iter().all(|&byte| byte == 0));
        assert_eq!(memory.after_power_failure(u64::MAX).bytes(), memory.bytes());
        let kept: Vec<_> = (1..64).map(|seed| memory.after_power_failure(seed).bytes()).collect();
        assert!(kept.iter().any(|bytes| *bytes != lost && *bytes != memory.bytes()));
    }
}
