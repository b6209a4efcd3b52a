//! Common budget of the scans of all objects of one inspection, for work that a few bytes can ask for much of.
//!
//! Bounds: `Limits::pixels_max` and `Limits::search_work_max`. The scans of one inspection share one [`Allowance`].

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stream::Limits;

/// Budget that is left.
#[derive(Debug)]
pub struct Allowance {
    pixels: AtomicU64,
    search_work: AtomicU64,
}

impl Allowance {
    /// So many pixels of pictures, and so much work of regular expressions.
    pub const fn new(pixels: u64, search_work: u64) -> Allowance {
        Allowance { pixels: AtomicU64::new(pixels), search_work: AtomicU64::new(search_work) }
    }

    /// Spends pixels; whether there were as many.
    #[cfg_attr(not(feature = "pictures"), expect(dead_code, reason = "without it no picture is decoded"))]
    pub(crate) fn grants_pixels(&self, count: u64) -> bool {
        spend(&self.pixels, count)
    }

    /// Spends work on a search; whether there was as much. If not, nothing is left.
    pub(crate) fn grants_search(&self, work: u64) -> bool {
        let granted = spend(&self.search_work, work);
        if !granted {
            self.search_work.store(0, Relaxed);
        }
        granted
    }
}

impl Default for Allowance {
    fn default() -> Allowance {
        let limits = Limits::default();
        Allowance::new(limits.pixels_max, limits.search_work_max)
    }
}

fn spend(left: &AtomicU64, count: u64) -> bool {
    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(count)).is_ok()
}
