//! How fast a client sends content.

use std::time::Duration;

/// How fast content comes: what came, and how long was waited for it. The time that we or the next hop take is not the
/// client's.
#[derive(Default)]
pub struct Pace {
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// The time over which is measured.
    const SPAN: Duration = Duration::from_secs(180);

    /// Notes bytes that came after a wait.
    pub fn came(&mut self, waited: Duration, count: usize) {
        self.waited += waited;
        self.bytes += count as u64;
    }

    /// Whether less came than so many bytes a second, once there is something to measure; then it begins anew.
    pub fn is_too_slow(&mut self, least: u64) -> bool {
        if self.waited < Pace::SPAN {
            return false;
        }
        let too_slow = self.bytes < least.saturating_mul(self.waited.as_secs());
        *self = Pace::default();
        too_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_is_too_slow() {
        let minute = Duration::from_secs(60);
        let mut pace = Pace::default();
        let mut slow = |count| {
            pace.came(minute, count);
            pace.is_too_slow(100)
        };
        assert_eq!([slow(1), slow(1), slow(1)], [false, false, true]);
        // A pause is none, if enough came before or comes behind it.
        assert_eq!([slow(0), slow(0), slow(18_000)], [false, false, false]);
        pace.came(9 * minute, 1);
        assert!(!Pace { waited: 9 * minute, bytes: 1 }.is_too_slow(0));
        assert!(pace.is_too_slow(100));
    }
}
