//! The memory that inspections hold, as the allocator counts it.
//!
//! What one inspection holds is bounded by its limits, but those let it have a dictionary of 64 MiB and keep 32 MiB: many
//! mails at once that want as much would be too much for any machine. So all inspections of the doors borrow from one
//! [`Memory`] whatever they allocate, decompressors of other crates included. One that gets nothing ends without a verdict,
//! which is a temporary refusal; the others go on.
#![allow(unsafe_code, reason = "an allocator is unsafe to implement")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tikv_jemallocator::Jemalloc;

thread_local! {
    /// Bytes that this thread has been given, less those that it gave back.
    static BALANCE: Cell<isize> = const { Cell::new(0) };
}

/// The allocator, which counts. Memory that one event loop has freed serves the next, and the system gets back what nobody
/// wants for a while.
pub struct Counting;

fn count(bytes: isize) {
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

/// What all inspections together may hold.
#[derive(Debug)]
pub struct Memory {
    free: AtomicUsize,
    /// The most that one of them may.
    share: usize,
}

impl Memory {
    /// So many bytes, of which one inspection may hold a quarter.
    pub fn new(bytes: usize) -> Memory {
        Memory { free: AtomicUsize::new(bytes), share: bytes / 4 }
    }

    /// So many bytes, of which one inspection may hold this share.
    pub(crate) fn with_share(bytes: usize, share: usize) -> Memory {
        Memory { free: AtomicUsize::new(bytes), share }
    }

    /// Bytes that nobody has borrowed.
    pub fn free_bytes(&self) -> usize {
        self.free.load(Relaxed)
    }
}

/// What one inspection has borrowed.
#[derive(Debug)]
pub(crate) struct Loan {
    memory: Arc<Memory>,
    held: isize,
    borrowed: usize,
    refused: bool,
}

impl Loan {
    /// Nothing yet.
    pub fn new(memory: Arc<Memory>) -> Loan {
        Loan { memory, held: 0, borrowed: 0, refused: false }
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
            self.memory.free.fetch_add(self.borrowed - wanted, Relaxed);
            self.borrowed = wanted;
            return;
        };
        let granted = wanted <= self.memory.share
            && self.memory.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(more)).is_ok();
        match granted {
            true => self.borrowed = wanted,
            false => self.refused = true,
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.memory.free.fetch_add(self.borrowed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_others_have_allocated_is_nobody_s_gain() {
        let memory = Arc::new(Memory::new(4_000));
        let others = vec![0_u8; 2_000];
        let mut loan = Loan::new(memory.clone());
        loan.work(|| drop(others));
        assert_eq!(memory.free_bytes(), 4_000);
        assert!(!loan.is_refused());
    }
}
