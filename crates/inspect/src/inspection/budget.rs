//! The processor time that an inspection may use.
//!
//! What the thread worked during a work call is charged when the call ends, and looked at every few turns within it, so that a
//! call with much fuel is bounded, too. Reading the clock is a system call, and so not done at every turn. One turn may
//! overrun the budget by what is indivisible in it.

use stream::{Fuel, Limits};

/// What is added to the budget for each MiB fed: who sends more may have more looked at.
const CPU_MS_PER_MIB: u64 = 20;

/// The turns, and the fuel, after which the clock is read again.
const TURNS: u32 = 64;
const FUEL: u64 = 64 << 10;

/// The processor time of one inspection.
#[derive(Debug)]
pub(super) struct Budget {
    clock: Option<fn() -> u64>,
    nanos_max: u64,
    /// Used in the calls before this one.
    used: u64,
    /// When this call began.
    began: u64,
    /// Turns since the clock was read, and the fuel that was left then.
    turns: u32,
    fuel: u64,
}

impl Budget {
    pub(super) fn new(limits: &Limits) -> Budget {
        let nanos_max = limits.cpu_ms_max.saturating_mul(1_000_000);
        Budget { clock: None, nanos_max, used: 0, began: 0, turns: 0, fuel: 0 }
    }

    pub(super) fn measure_by(&mut self, clock: fn() -> u64) {
        self.clock = Some(clock);
    }

    /// A work call begins.
    pub(super) fn begin(&mut self, fuel: &Fuel) {
        self.began = self.clock.map_or(0, |clock| clock());
        (self.turns, self.fuel) = (0, fuel.left());
    }

    /// The call ends; the next one may come in another thread.
    pub(super) fn end(&mut self) {
        self.used = self.used_now();
    }

    /// Whether the clock is to be read again, after a turn.
    pub(super) fn is_due(&mut self, fuel: &Fuel) -> bool {
        self.turns += 1;
        let due = self.turns >= TURNS || self.fuel - fuel.left() >= FUEL;
        if due {
            (self.turns, self.fuel) = (0, fuel.left());
        }
        due
    }

    /// Whether all of it is used, within a call, `fed` bytes having come.
    pub(super) fn is_spent(&self, fed: u64) -> bool {
        let more = (fed >> 20).saturating_mul(CPU_MS_PER_MIB * 1_000_000);
        self.clock.is_some() && self.used_now() >= self.nanos_max.saturating_add(more)
    }

    fn used_now(&self) -> u64 {
        self.clock.map_or(0, |clock| self.used.saturating_add(clock().saturating_sub(self.began)))
    }
}
