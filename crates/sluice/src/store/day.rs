//! Days of UTC, for reports that are sent once a day.

use std::time::{Duration, SystemTime};

/// Seconds of a day.
pub const SECONDS: u64 = 86_400;

/// How often it is looked whether the day is over: a clock may be set, and a machine may sleep.
pub const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Number of this day since 1970.
pub fn today() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / SECONDS)
}
