//! The processor time that an inspection may use.
//!
//! What the thread worked during a work call is charged when the call ends, and looked at every few turns within it, so that a
//! call with much fuel is bounded, too. One turn may overrun the budget by what is indivisible in it.
//!
//! The clock of a thread's work is a system call, and a mail has a thousand looks. So the first part of the budget, a
//! [`CHEAP`]th, is charged by the time of day, which is never less; few inspections use more. After that the thread's clock
//! is read, each millisecond.

use stream::{Fuel, Limits};

/// The clocks of a host, in nanoseconds from any moment.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    /// The time that has passed; read often.
    pub passed: fn() -> u64,
    /// The time that the calling thread has worked.
    pub worked: fn() -> u64,
}

/// Addition to the budget for each MiB fed: longer content may take longer.
const CPU_MS_PER_MIB: u64 = 20;

/// The turns, and the fuel, after which the clock is read again.
const TURNS: u32 = 8;
const FUEL: u64 = 64 << 10;

/// The part of the budget that is charged by the time that has passed.
const CHEAP: u64 = 64;

/// The nanoseconds that have to pass before the thread's clock is read again within a call.
const APART: u64 = 1_000_000;

/// The processor time of one inspection.
#[derive(Debug)]
pub(super) struct Budget {
    clocks: Option<Clocks>,
    nanos_max: u64,
    /// Time charged so far.
    used: u64,
    /// Whether the thread's clock counts.
    exact: bool,
    /// Up to when that is charged, by the clock that counts.
    charged: u64,
    /// When the thread's clock was read, by the other one.
    read: u64,
    /// Turns since a clock was read, and the fuel that was left then.
    turns: u32,
    fuel: u64,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Budget {
        let nanos_max = limits.cpu_ms_max.saturating_mul(1_000_000);
        Budget { clocks: None, nanos_max, used: 0, exact: false, charged: 0, read: 0, turns: 0, fuel: 0 }
    }

    pub(super) fn measure_by(&mut self, clocks: Clocks) {
        self.clocks = Some(clocks);
    }

    /// A work call begins.
    pub(super) fn begin(&mut self, fuel: &Fuel) {
        self.charged = self.now();
        (self.turns, self.fuel) = (0, fuel.left());
    }

    /// The call ends; the next one may come in another thread. Whether all is used, `fed` bytes having come.
    pub(super) fn end(&mut self, fed: u64) -> bool {
        self.charge();
        self.is_used(fed)
    }

    /// Whether a clock is to be read again, after a turn.
    pub(super) fn is_due(&mut self, fuel: &Fuel) -> bool {
        self.turns += 1;
        let due = self.turns >= TURNS || self.fuel - fuel.left() >= FUEL;
        if due {
            (self.turns, self.fuel) = (0, fuel.left());
        }
        due
    }

    /// Whether all of it is used, within a call, `fed` bytes having come.
    pub(super) fn is_spent(&mut self, fed: u64) -> bool {
        let Some(clocks) = self.clocks else { return false };
        if self.exact {
            let passed = (clocks.passed)();
            if passed.saturating_sub(self.read) < APART {
                return false;
            }
            self.read = passed;
        }
        self.charge();
        self.is_used(fed)
    }

    fn is_used(&self, fed: u64) -> bool {
        let more = (fed >> 20).saturating_mul(CPU_MS_PER_MIB * 1_000_000);
        self.clocks.is_some() && self.used >= self.nanos_max.saturating_add(more)
    }

    /// Charges what has been worked until now.
    fn charge(&mut self) {
        let now = self.now();
        self.used = self.used.saturating_add(now.saturating_sub(std::mem::replace(&mut self.charged, now)));
        let cheap = self.nanos_max / CHEAP;
        if !self.exact && self.used >= cheap {
            // A thread that waited for a processor meanwhile is not charged for what is beyond.
            (self.used, self.exact) = (cheap, true);
            self.charged = self.now();
        }
    }

    /// By the clock that counts; always the same moment without clocks.
    fn now(&self) -> u64 {
        self.clocks.map_or(0, |clocks| if self.exact { (clocks.worked)() } else { (clocks.passed)() })
    }
}
