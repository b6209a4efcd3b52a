//! How much work a stream may cause beside being swept.
//!
//! Ordinary content causes a few verifications a kilobyte. Content made of the anchors themselves causes thousands,
//! and what a database cannot rule out (a part of zeros in a run of zeros) causes as many honestly. So work is paid for
//! by bytes, generously and with a store for bursts; what is not paid for is not done, and counted.

use std::cell::Cell;

/// Units of work that each byte of the stream brings. A unit is a look at a table entry or an op of a verification, five
/// to ten nanoseconds: at worst a stream is scanned at some 30 MB/s.
const WORK_PER_BYTE: u64 = 4;
/// The most units in store, and those that a stream begins with.
pub(crate) const STORE_MAX: u64 = 1 << 20;

/// Work left to be spent, and how often there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Budget {
    left: Cell<u64>,
    lost: Cell<u64>,
}

impl Budget {
    /// So much, and nothing lost.
    pub(crate) const fn new(left: u64) -> Budget {
        Budget { left: Cell::new(left), lost: Cell::new(0) }
    }

    /// Adds what a number of bytes brings.
    pub(crate) fn earn(&self, bytes: usize) {
        let earned = (bytes as u64).saturating_mul(WORK_PER_BYTE);
        self.left.set(self.left.get().saturating_add(earned).min(STORE_MAX));
    }

    /// Pays for work; if there is nothing left, says no and counts it.
    #[inline]
    pub(crate) fn spend(&self, units: u64) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(units));
        self.lost.set(self.lost.get() + u64::from(left == 0));
        left > 0
    }

    /// Work left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }

    /// How many pieces of work were not done since this was asked last.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_paid_for_by_bytes_and_what_is_not_is_counted() {
        let budget = Budget::new(2);
        assert!(budget.spend(1) && budget.spend(5));
        assert!(!budget.spend(1));
        assert_eq!((budget.left(), budget.take_lost(), budget.take_lost()), (0, 1, 0));
        budget.earn(3);
        assert_eq!(budget.left(), 3 * WORK_PER_BYTE);
        budget.earn(usize::MAX);
        assert_eq!(budget.left(), STORE_MAX);
    }
}
