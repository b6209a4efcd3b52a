//! A thread that works little gives freed memory back to the system.
//!
//! The allocator keeps freed memory for ten seconds, and looks only when it has more to do: a process that sleeps, or serves slow
//! clients alone, would keep it for ever. A thread that works much soon has use for it.

use crate::clock::CLOCKS;
use crate::memory::release;

/// A thread works little if it works for less than this part of the time.
const PART: u64 = 20;

/// Looks at one thread once in a while.
#[derive(Debug, Default)]
pub struct Thrift {
    worked: u64,
    passed: u64,
}

impl Thrift {
    /// To be called by the thread, about once a second: gives freed memory back if it has worked little since the last call.
    /// Whether it has.
    pub fn look(&mut self) -> bool {
        let now = Thrift::now();
        let (worked, passed) = (now.worked.saturating_sub(self.worked), now.passed.saturating_sub(self.passed));
        let works_little = is_little(worked, passed);
        if works_little {
            release();
        }
        // To give back is no work of the thread's.
        *self = Thrift::now();
        works_little
    }

    fn now() -> Thrift {
        Thrift { worked: (CLOCKS.worked)(), passed: (CLOCKS.passed)() }
    }
}

const fn is_little(worked: u64, passed: u64) -> bool {
    worked < passed / PART
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::statm::resident_bytes;

    #[test]
    fn a_thread_that_works_little_gives_back_what_it_has_freed() {
        const FREED: u64 = 64 << 20;
        let resident = || resident_bytes(std::fs::File::open("/proc/self/statm").unwrap());
        let mut thrift = Thrift::default();
        let pieces: Vec<Box<[u8]>> = (0..FREED >> 12).map(|_| vec![1; 4 << 10].into()).collect();
        let before = resident();
        drop(pieces);
        thrift.look();
        std::thread::sleep(Duration::from_millis(100));
        assert!(thrift.look());
        let after = resident();
        assert!(after + FREED / 2 < before, "{after} bytes after {before}");
    }

    #[test]
    fn a_twentieth_of_the_time_is_much() {
        assert!(is_little(49, 1_000) && !is_little(50, 1_000));
        assert!(!is_little(0, 0), "no time has passed");
    }
}
