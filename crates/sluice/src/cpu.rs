//! The processor time of threads, as the kernel counts it.

use rustix::time::{ClockId, clock_gettime};

/// The nanoseconds that the calling thread has worked.
pub fn nanoseconds() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
