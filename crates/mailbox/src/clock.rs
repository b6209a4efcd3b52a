//! The time that protocol halves are told: milliseconds since the server began, without a bound on how long it runs.

use std::time::{Duration, Instant};

/// Longer than a server runs: the deadline of a half that has none. Instants do not reach as far as its milliseconds do.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A clock that began with the server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    began: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { began: Instant::now() }
    }

    /// The same clock, begun so much earlier.
    pub fn aged(self, by: Duration) -> Clock {
        Clock { began: self.began.checked_sub(by).unwrap_or(self.began) }
    }

    /// Milliseconds since the beginning.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The instant of a time of this clock.
    pub fn at(&self, ms: u64) -> Instant {
        let instant = self.began.checked_add(Duration::from_millis(ms));
        let latest = Instant::now() + NEVER;
        instant.map_or(latest, |instant| instant.min(latest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_ahead_however_long_the_server_runs() {
        for days in [0, 49, 50, 500, 5_000, 40_000] {
            let clock = Clock::start().aged(Duration::from_secs(days * 86_400));
            let now = clock.now();
            assert!(now >= days * 86_400_000, "{days} days");
            for ms in [1_000, 120_000, 1_800_000, 1 << 32] {
                let left = clock.at(now + ms).saturating_duration_since(Instant::now());
                let expected = Duration::from_millis(ms);
                assert!(
                    left <= expected && left + Duration::from_secs(1) > expected,
                    "{days} days: {left:?} of {ms} ms"
                );
            }
            assert!(clock.at(u64::MAX) > Instant::now() + Duration::from_secs(86_400), "{days} days");
        }
    }
}
