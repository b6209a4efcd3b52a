//! Memory that jails may borrow besides their own share: one number in memory that they share.
//!
//! Half of what inspections may hold is divided among the jails for good, so that one which is full, or has been taken over, cannot
//! take everything from the others. The other half lies in the account: whoever needs more borrows of it in slices of [`SLICE_BYTES`],
//! and gives back what it does not use. So a jail has up to `total / 2 + total / (2 * jails)`.
//!
//! What a jail had borrowed that died is put back by the host, who takes the jail's word for it; the number never passes the
//! account's size, so that what is put back twice comes right again. So the worst that a lie costs is a temporary refusal elsewhere, or as much memory as a jail that has been
//! taken over can allocate anyway.
#![allow(unsafe_code, reason = "a number that other processes change is reached by a pointer")]

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::ring::{Side, Told};

/// Bytes borrowed at a time, where there is as much.
pub const SLICE_BYTES: u64 = 1 << 20;

/// The memory that the number lies in: a page.
const PAGE_BYTES: usize = 4096;

/// The account, as the host or one of the jails has it.
#[derive(Debug)]
pub struct Account {
    map: MmapRaw,
    bytes: u64,
    /// Bytes that this one has borrowed, where the host reads that.
    borrowed: AtomicU64,
    ledger: Option<Side>,
}

impl Account {
    /// One with so many bytes, and the file that stands for it.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(bytes: u64) -> std::io::Result<(Account, OwnedFd)> {
        let file = rustix::fs::memfd_create("account", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, PAGE_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let account = Account::open(&file, bytes)?;
        account.free().store(bytes, Relaxed);
        Ok((account, file))
    }

    /// The one that a file stands for, of which this was the size.
    ///
    /// # Errors
    /// When it is something else, or cannot be mapped.
    pub fn open(file: &OwnedFd, bytes: u64) -> std::io::Result<Account> {
        if rustix::fs::fstat(file)?.st_size != PAGE_BYTES as i64 {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        let map = MmapOptions::new().len(PAGE_BYTES).map_raw(file)?;
        Ok(Account { map, bytes, borrowed: AtomicU64::new(0), ledger: None })
    }

    /// The same, that tells beside these frames what it has borrowed: before it does, and after it has given back, so that
    /// nothing is lost with it.
    pub fn with_ledger(self, side: Side) -> Account {
        Account { ledger: Some(side), ..self }
    }

    /// Bytes that this one has borrowed.
    pub fn borrowed_bytes(&self) -> u64 {
        self.borrowed.load(Relaxed)
    }

    fn note(&self, borrowed: u64) {
        self.borrowed.store(borrowed, Relaxed);
        self.ledger.iter().for_each(|side| side.tell(Told::BorrowedBytes, borrowed));
    }

    fn free(&self) -> &AtomicU64 {
        // SAFETY: the map is a page, so it is aligned and long enough, and lives as long as `self`; it holds nothing but this
        // number, for which any bits are valid and which others may change.
        unsafe { &*self.map.as_mut_ptr().cast::<AtomicU64>() }
    }

    /// Free bytes of the pool.
    pub fn free_bytes(&self) -> u64 {
        self.free().load(Relaxed).min(self.bytes)
    }

    /// Borrows what is needed, rounded up to slices where there is as much; how much it was, none where there is not enough.
    pub fn borrow(&self, bytes: u64) -> Option<u64> {
        let slices = bytes.checked_next_multiple_of(SLICE_BYTES)?;
        let take = |count: u64| {
            let before = self.borrowed_bytes();
            self.note(before.saturating_add(count));
            let less = |free: u64| free.min(self.bytes).checked_sub(count);
            let taken = self.free().fetch_update(Relaxed, Relaxed, less).ok().map(|_| count);
            if taken.is_none() {
                self.note(before);
            }
            taken
        };
        take(slices).or_else(|| take(bytes))
    }

    /// Gives back what was borrowed.
    pub fn give_back(&self, bytes: u64) {
        self.put_back(bytes);
        self.note(self.borrowed_bytes().saturating_sub(bytes));
    }

    /// Puts back what another had borrowed.
    pub fn put_back(&self, bytes: u64) {
        let more = |free: u64| Some(free.saturating_add(bytes).min(self.bytes));
        let _ = self.free().fetch_update(Relaxed, Relaxed, more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_needs_more_borrows_slices_and_the_last_bytes_one_by_one() {
        let (account, file) = Account::new(5 * SLICE_BYTES / 2).unwrap();
        let other = Account::open(&file, 5 * SLICE_BYTES / 2).unwrap();
        assert_eq!(account.borrow(1), Some(SLICE_BYTES));
        assert_eq!(other.borrow(SLICE_BYTES + 1), Some(SLICE_BYTES + 1), "not two slices");
        assert_eq!(account.borrow(SLICE_BYTES), None);
        assert_eq!(account.free_bytes(), SLICE_BYTES / 2 - 1);
        account.give_back(SLICE_BYTES);
        other.give_back(SLICE_BYTES + 1);
        assert_eq!(account.free_bytes(), 5 * SLICE_BYTES / 2);
    }

    #[test]
    fn a_number_that_somebody_has_spoiled_is_no_more_than_all_of_it() {
        let (account, _file) = Account::new(SLICE_BYTES).unwrap();
        account.free().store(u64::MAX, Relaxed);
        assert_eq!(account.free_bytes(), SLICE_BYTES);
        assert_eq!(account.borrow(SLICE_BYTES), Some(SLICE_BYTES));
        assert_eq!(account.borrow(1), None);
        account.put_back(u64::MAX);
        assert_eq!(account.free_bytes(), SLICE_BYTES);
    }
}
