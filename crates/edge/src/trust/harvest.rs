//! Whether somebody tries out addresses: how many of the recipients that it asked for are unknown, in numbers that halve with
//! time, so that yesterday's do not count against today's.

/// From when on somebody is a harvester, and for how long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Minimum of unknown recipients of a harvester; 0: there are no harvesters.
    pub unknown_min: u32,
    /// Unknown recipients out of a hundred.
    pub share_percent: u32,
    /// How long it is deferred, in milliseconds.
    pub rest_ms: u64,
    /// After which time a recipient counts half, in milliseconds.
    pub half_life_ms: u64,
}

/// Recipients known and unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Harvest {
    known: f32,
    unknown: f32,
    at: u64,
    until: u64,
}

impl Harvest {
    /// A recipient was known, or not; whether this makes it a harvester who was none.
    pub fn count(&mut self, is_known: bool, bound: &Bound, now: u64) -> bool {
        let halves = now.saturating_sub(self.at) as f32 / bound.half_life_ms.max(1) as f32;
        let left = (-halves).exp2();
        (self.known, self.unknown, self.at) = (self.known * left, self.unknown * left, now);
        if is_known {
            self.known += 1.0;
            return false;
        }
        self.unknown += 1.0;
        let share = 100.0 * self.unknown / (self.known + self.unknown);
        // A moment ago is not quite now: what is worth nearly as many counts as that.
        let many = bound.unknown_min > 0 && self.unknown + 0.5 >= bound.unknown_min as f32;
        if !many || share < bound.share_percent as f32 {
            return false;
        }
        let is_new = !self.is_resting(now);
        self.until = now.saturating_add(bound.rest_ms);
        is_new
    }

    /// Whether it is deferred.
    pub const fn is_resting(&self, now: u64) -> bool {
        now < self.until
    }

    /// Whether anything of it is left that matters.
    pub fn is_faint(&self, half_life_ms: u64, now: u64) -> bool {
        !self.is_resting(now) && now.saturating_sub(self.at) > half_life_ms.saturating_mul(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const BOUND: Bound = Bound { unknown_min: 20, share_percent: 80, rest_ms: 600_000, half_life_ms: HOUR };

    #[test]
    fn many_unknown_recipients_and_few_known_ones_make_a_harvester_for_a_while() {
        let mut harvest = Harvest::default();
        let counted: Vec<bool> = (0..25).map(|second| harvest.count(false, &BOUND, second * 1_000)).collect();
        assert_eq!(counted.iter().position(|&new| new), Some(19));
        assert_eq!(counted.iter().filter(|&&new| new).count(), 1, "told once");
        assert!(harvest.is_resting(24_000 + 599_999) && !harvest.is_resting(24_000 + 600_000));
    }

    #[test]
    fn a_sender_of_real_mail_with_stale_addresses_is_none() {
        let mut harvest = Harvest::default();
        for number in 0..1_000 {
            assert!(!harvest.count(number % 2 == 0, &BOUND, number * 100), "half of them are unknown");
        }
    }

    #[test]
    fn what_was_long_ago_does_not_count() {
        let mut harvest = Harvest::default();
        for hour in 0..100 {
            for _ in 0..9 {
                assert!(!harvest.count(false, &BOUND, hour * HOUR));
            }
        }
        assert!(!harvest.is_faint(HOUR, 100 * HOUR) && harvest.is_faint(HOUR, 108 * HOUR));
    }
}
