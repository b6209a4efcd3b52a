//! How much work may be done, and how much has been.

/// Counts steps. What is one piece is counted in one piece, so more may be used than was allowed; what is used does not
/// depend on how often the work was left and taken up again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    allowed: u64,
    used: u64,
}

impl Meter {
    pub fn new(allowed: u64) -> Meter {
        Meter { allowed, used: 0 }
    }

    #[inline]
    pub fn burn(&mut self, units: u64) {
        self.used = self.used.saturating_add(units);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used >= self.allowed
    }

    pub fn used(&self) -> u64 {
        self.used
    }
}
