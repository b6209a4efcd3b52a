//! The clocks by which an inspection's work is charged and measured.

use inspect::Clocks;
use rustix::time::{ClockId, clock_gettime};

/// Both of them, as the kernel counts.
pub(crate) const CLOCKS: Clocks = Clocks { passed: nanoseconds, worked: || read(ClockId::ThreadCPUTime) };

/// Time that passes, in nanoseconds.
pub(crate) fn nanoseconds() -> u64 {
    read(ClockId::Monotonic)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time of day, in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    clock_gettime(ClockId::Realtime).tv_sec
}
