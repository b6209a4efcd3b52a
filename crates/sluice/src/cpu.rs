//! The clocks by which an inspection's work is charged.

use inspect::Clocks;
use rustix::time::{ClockId, clock_gettime};

/// Both of them, as the kernel counts.
pub const CLOCKS: Clocks = Clocks { passed: || read(ClockId::Monotonic), worked: || read(ClockId::ThreadCPUTime) };

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
