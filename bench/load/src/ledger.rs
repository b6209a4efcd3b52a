//! What arrived at the sink, and when: the page that sender and sink share during a run.
//!
//! Each mail carries `X-Bench-Id: RUN.INDEX`; the sink enters its arrival under that index. A mail of an earlier run (a
//! late delivery, a notice that quotes a header) is counted as a stranger and changes nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the sink finds the ledger of the present run.
#[derive(Default)]
pub struct Board {
    current: Mutex<Option<Arc<Ledger>>>,
}

impl Board {
    /// Starts run `run` of `mails` mails; `sunk`: they are expected at the sink of this process.
    pub fn open(&self, run: u32, mails: usize, sunk: bool) -> Arc<Ledger> {
        let ledger = Arc::new(Ledger {
            run,
            sunk,
            start: Instant::now(),
            arrivals: (0..mails).map(|_| AtomicU64::new(0)).collect(),
            arrived: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
            strangers: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&ledger));
        ledger
    }

    /// The ledger of the present run.
    pub fn current(&self) -> Option<Arc<Ledger>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One run's arrivals. Times are nanoseconds since the run began; 0 means "not yet".
pub struct Ledger {
    /// The number of the run, the first half of each mail's id.
    pub run: u32,
    /// Whether there is a sink that arrivals are expected at.
    pub sunk: bool,
    start: Instant,
    arrivals: Box<[AtomicU64]>,
    arrived: AtomicU64,
    duplicates: AtomicU64,
    strangers: AtomicU64,
    bytes: AtomicU64,
}

impl Ledger {
    /// Nanoseconds since the run began, never 0.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Whether the run has lasted longer than `limit`.
    pub fn is_over(&self, limit: Duration) -> bool {
        self.start.elapsed() > limit
    }

    /// Enters a mail of `bytes` on the wire that was whole at the sink at `time`.
    pub fn enter(&self, id: Option<(u32, usize)>, time: u64, bytes: u64) {
        let index = id.filter(|&(run, _)| run == self.run).map(|(_, index)| index);
        let Some(cell) = index.and_then(|index| self.arrivals.get(index)) else {
            self.strangers.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if cell.compare_exchange(0, time, Ordering::Release, Ordering::Relaxed).is_err() {
            self.duplicates.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.arrived.fetch_add(1, Ordering::Release);
    }

    /// When mail `index` arrived, 0 if it has not.
    pub fn arrival(&self, index: usize) -> u64 {
        self.arrivals.get(index).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// How many different mails of this run arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Acquire)
    }

    /// How many mails of this run arrived once more.
    pub fn duplicates(&self) -> u64 {
        self.duplicates.load(Ordering::Relaxed)
    }

    /// How many mails arrived that are not of this run.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// The bytes on the wire of the mails that arrived.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Finds `X-Bench-Id: RUN.INDEX` in the first bytes of a mail.
pub fn mail_id(head: &[u8]) -> Option<(u32, usize)> {
    const FIELD: &[u8] = b"X-Bench-Id: ";
    let at = memchr::memmem::find(head, FIELD)?;
    let value = head.get(at + FIELD.len()..)?;
    let end = value.iter().position(|&byte| byte == b'\r')?;
    let (run, index) = std::str::from_utf8(value.get(..end)?).ok()?.split_once('.')?;
    Some((run.parse().ok()?, index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_behind_a_gateways_own_fields() {
        assert_eq!(mail_id(b"Received: by x\r\nX-Bench-Id: 7.42\r\nDate: y\r\n"), Some((7, 42)));
        assert_eq!(mail_id(b"X-Bench-Id: 7.42"), None);
    }

    #[test]
    fn late_and_double_mails_are_counted_apart() {
        let ledger = Board::default().open(2, 1, true);
        for id in [Some((2, 0)), Some((2, 0)), Some((1, 0)), Some((2, 9)), None] {
            ledger.enter(id, 5, 10);
        }
        assert_eq!((ledger.arrived(), ledger.duplicates(), ledger.strangers()), (1, 1, 3));
        assert_eq!((ledger.arrival(0), ledger.bytes()), (5, 10));
    }
}
