//! The memory that inspections hold, as the allocator counts it.
//!
//! What one inspection holds is bounded by its limits, but those let it have a dictionary of 64 MiB and keep 32 MiB: many
//! mails at once that want as much would be too much for any machine. So all inspections of the doors borrow from one
//! [`Memory`] whatever they allocate, decompressors of other crates included. One that gets nothing ends without a verdict,
//! which is a temporary refusal; the others go on.
//!
//! A client with several inspections has half of what one may hold for all of them, and leaves as much free as one may: the mails of
//! some, which may never end, do not keep out the first mail of another.
#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use tikv_jemalloc_sys::mallctl;
use tikv_jemallocator::Jemalloc;

use crate::account::{Account, SLICE_BYTES};

thread_local! {
    /// Bytes that this thread has been given, less those that it gave back.
    static BALANCE: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has been given, less those that it gave back.
pub fn balance() -> isize {
    BALANCE.get()
}

/// The allocator, which counts. Memory that one event loop has freed serves the next, and the system gets back what nobody
/// wants for a while.
pub struct Counting;

/// Counts memory as given to this thread. With less than none it becomes somebody else's.
pub(crate) fn count(bytes: isize) {
    BALANCE.with(|balance| balance.set(balance.get().wrapping_add(bytes)));
}

// SAFETY: every call goes to the allocator with the caller's own arguments. Counting neither allocates nor panics:
// the counter needs no initialisation and is never destroyed. A size fits isize, as every `Layout` promises.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps this method's contract.
        unsafe { Jemalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps this method's contract.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps this method's contract.
        unsafe { Jemalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps this method's contract.
        unsafe { Jemalloc.realloc(pointer, layout, size) }
    }
}

/// Gives freed memory back to the system now. The allocator keeps it for ten seconds, and looks only when it has more to do: a
/// process that sleeps would keep it for ever.
pub(crate) fn release() {
    // In turn: what this thread keeps for itself, and the pages of all arenas.
    for name in [c"thread.tcache.flush", c"arena.4096.purge"] {
        // SAFETY: both names take no value and give none (jemalloc(3)); one that is unknown changes nothing.
        let _ = unsafe { mallctl(name.as_ptr(), null_mut(), null_mut(), null_mut(), 0) };
    }
}

/// Memory that all inspections together may hold.
#[derive(Debug)]
pub struct Memory {
    free: AtomicUsize,
    /// The most that one of them may.
    share: usize,
    /// Where more can be had.
    account: Option<Account>,
    /// Bytes that inspections hold of each client that has any.
    by_client: Mutex<HashMap<IpAddr, usize>>,
}

/// What other inspections of a client hold while one counts as its first.
const LITTLE_BYTES: usize = 4 << 20;

impl Memory {
    /// So many bytes, of which one inspection may hold a quarter.
    pub fn new(bytes: usize) -> Memory {
        Memory::of(bytes, bytes / 4, None)
    }

    /// So many bytes and what can be had from an account, of which one inspection may hold this share.
    pub(crate) fn with_account(bytes: usize, share: usize, account: Account) -> Memory {
        Memory::of(bytes, share, Some(account))
    }

    fn of(bytes: usize, share: usize, account: Option<Account>) -> Memory {
        Memory { free: AtomicUsize::new(bytes), share, account, by_client: Mutex::default() }
    }

    /// Whether an inspection of a client may hold so much, which holds so much now.
    fn allows(&self, client: Option<IpAddr>, held: usize, wanted: usize) -> bool {
        let Some(client) = client else { return wanted <= self.share };
        let by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        let others = by_client.get(&client).copied().unwrap_or(0).saturating_sub(held);
        if others <= LITTLE_BYTES.min(self.share) {
            return wanted <= self.share;
        }
        let free = self.free_bytes() + self.account.as_ref().map_or(0, |account| account.free_bytes() as usize);
        others + wanted <= self.share / 2 && free >= self.share + (wanted - held)
    }

    /// An inspection of a client holds so much instead of so much.
    fn note(&self, client: Option<IpAddr>, before: usize, now: usize) {
        let Some(client) = client else { return };
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = by_client.entry(client).or_default();
        *bytes = bytes.saturating_sub(before).saturating_add(now);
        if *bytes == 0 {
            by_client.remove(&client);
        }
    }

    /// Takes so many bytes from the pool; returns whether there were enough.
    fn take(&self, bytes: usize) -> bool {
        if self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok() {
            return true;
        }
        let Some(account) = &self.account else { return false };
        let lacking = bytes.saturating_sub(self.free_bytes());
        let Some(more) = account.borrow(lacking as u64) else { return false };
        self.free.fetch_add(more as usize, Relaxed);
        self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok()
    }

    /// Somebody gives back what it had. What of that came from the account goes there, but for a slice that is wanted again
    /// soon.
    fn give_back(&self, bytes: usize) {
        let free = self.free.fetch_add(bytes, Relaxed) + bytes;
        let Some(account) = &self.account else { return };
        let (borrowed, slice) = (account.borrowed_bytes() as usize, SLICE_BYTES as usize);
        let back = free.saturating_sub(slice).min(borrowed);
        let is_worth_it = back > 0 && back >= slice.min(borrowed);
        if is_worth_it && self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(back)).is_ok() {
            account.give_back(back as u64);
        }
    }

    /// Free bytes of the pool.
    pub fn free_bytes(&self) -> usize {
        self.free.load(Relaxed)
    }
}

/// Memory that one inspection has borrowed.
#[derive(Debug)]
pub(crate) struct Loan {
    memory: Arc<Memory>,
    client: Option<IpAddr>,
    held: isize,
    borrowed: usize,
    refused: bool,
}

impl Loan {
    /// Nothing yet.
    pub fn new(memory: Arc<Memory>) -> Loan {
        Loan { memory, client: None, held: 0, borrowed: 0, refused: false }
    }

    /// The same for an inspection of a client; one of this machine stands for many, and has no share of its own.
    pub fn of(mut self, client: Option<IpAddr>) -> Loan {
        self.client = client.and_then(flow::share_of);
        self
    }

    /// Does some of the inspection's work, and borrows what that has allocated. Looks only afterwards, so the work should be
    /// little.
    pub fn work<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = BALANCE.get();
        let done = work();
        self.held += BALANCE.get().wrapping_sub(before);
        self.settle();
        done
    }

    /// Whether the inspection wanted more than there was, and has to end.
    pub const fn is_refused(&self) -> bool {
        self.refused
    }

    fn settle(&mut self) {
        // Work also frees what others have allocated.
        let wanted = usize::try_from(self.held).unwrap_or(0);
        let Some(more) = wanted.checked_sub(self.borrowed) else {
            self.memory.give_back(self.borrowed - wanted);
            self.hold(wanted);
            return;
        };
        match more == 0 || self.memory.allows(self.client, self.borrowed, wanted) && self.memory.take(more) {
            true => self.hold(wanted),
            false => self.refused = true,
        }
    }

    fn hold(&mut self, bytes: usize) {
        self.memory.note(self.client, self.borrowed, bytes);
        self.borrowed = bytes;
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.memory.give_back(self.borrowed);
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statm::resident_bytes;

    #[test]
    fn what_work_allocates_is_borrowed_and_comes_back() {
        let memory = Arc::new(Memory::new(4_000));
        let mut loan = Loan::new(memory.clone());
        let mut held = loan.work(|| vec![0_u8; 300]);
        assert_eq!(memory.free_bytes(), 3_700);
        loan.work(|| held.reserve_exact(600));
        assert_eq!(memory.free_bytes(), 3_100);
        loan.work(|| drop(held));
        assert_eq!(memory.free_bytes(), 4_000);
        let held = loan.work(|| vec![0_u8; 500].into_boxed_slice());
        drop(loan);
        assert_eq!(memory.free_bytes(), 4_000);
        drop(held);
    }

    #[test]
    fn the_inspections_of_a_client_leave_room_for_the_first_of_another() {
        let memory = Arc::new(Memory::new(800 << 20));
        let loan = |address: &str| Loan::new(memory.clone()).of(Some(address.parse().unwrap()));
        let mut held = Vec::new();
        let mut fill = |address: &str, most: usize| {
            let mut count = 0;
            for _ in 0..most {
                let mut loan = loan(address);
                let bytes = loan.work(|| vec![0_u8; 20 << 20]);
                count += usize::from(!loan.is_refused());
                held.push((loan, bytes));
            }
            count
        };
        let counts: Vec<usize> = (1..9).map(|number| fill(&format!("192.0.2.{number}"), 50)).collect();
        assert_eq!(&counts[..5], &[5; 5], "half of a share each");
        assert!(counts[6..].iter().all(|&count| count <= 1), "{counts:?}");
        let mut whole = loan("2001:db8::1");
        let bytes = whole.work(|| vec![0_u8; 60 << 20]);
        assert!(!whole.is_refused());
        let mut again = loan("2001:db8::2");
        let more = again.work(|| vec![0_u8; 60 << 20]);
        assert!(again.is_refused(), "of the same network");
        drop((whole, again, bytes, more, held));
        assert_eq!(memory.free_bytes(), 800 << 20);
        assert!(memory.by_client.lock().unwrap().is_empty());
    }

    #[test]
    fn one_gets_a_share_and_all_what_there_is() {
        let memory = Arc::new(Memory::new(4_000));
        let mut greedy = Loan::new(memory.clone());
        let _held = greedy.work(|| vec![0_u8; 1_001]);
        assert!(greedy.is_refused());
        assert_eq!(memory.free_bytes(), 4_000);
        let mut loans: Vec<_> = (0..5).map(|_| Loan::new(memory.clone())).collect();
        let _held: Vec<_> = loans.iter_mut().map(|loan| loan.work(|| vec![0_u8; 900])).collect();
        let refused: Vec<_> = loans.iter().map(Loan::is_refused).collect();
        assert_eq!(refused, [false, false, false, false, true]);
        drop(loans);
        assert_eq!(memory.free_bytes(), 4_000);
    }

    #[test]
    fn one_that_is_full_borrows_what_another_does_not_use_and_gives_it_back() {
        let slice = SLICE_BYTES as usize;
        let (account, file) = Account::new(4 * SLICE_BYTES).unwrap();
        let jails = [(); 2].map(|()| {
            let account = Account::open(&file, 4 * SLICE_BYTES).unwrap();
            Arc::new(Memory::with_account(2 * slice, 8 * slice, account))
        });
        let [mut first, mut second] = jails.clone().map(Loan::new);
        let held = first.work(|| vec![0_u8; 5 * slice + 1]);
        assert!(!first.is_refused());
        assert_eq!(account.free_bytes(), 0);
        // What each has for itself is left to it.
        let _few = second.work(|| vec![0_u8; 2 * slice]);
        assert!(!second.is_refused());
        let _more = second.work(|| vec![0_u8; 1]);
        assert!(second.is_refused());
        first.work(|| drop(held));
        assert_eq!(account.free_bytes(), 4 * SLICE_BYTES);
        assert_eq!(jails[0].free_bytes(), 2 * slice);
    }

    #[test]
    fn the_system_gets_back_what_was_freed() {
        const FREED: u64 = 64 << 20;
        let resident = || resident_bytes(std::fs::File::open("/proc/self/statm").unwrap());
        let pieces: Vec<Box<[u8]>> = (0..FREED >> 12).map(|_| vec![1; 4 << 10].into()).collect();
        let before = resident();
        drop(pieces);
        release();
        let after = resident();
        assert!(after + FREED / 2 < before, "{after} bytes after {before}");
    }

    #[test]
    fn what_others_have_allocated_is_nobody_s_gain() {
        let memory = Arc::new(Memory::new(4_000));
        let others = vec![0_u8; 2_000];
        let mut loan = Loan::new(memory.clone());
        loan.work(|| drop(others));
        assert_eq!(memory.free_bytes(), 4_000);
        assert!(!loan.is_refused());
    }
}
