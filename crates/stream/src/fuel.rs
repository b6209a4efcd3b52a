//! The measure of work that makes a stage return.

/// How much work may still be done before the driver wants to be asked again. One unit is about one byte taken or
/// written. A stage may overrun by the work of one indivisible item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fuel(u64);

impl Fuel {
    /// `units` of work.
    pub const fn new(units: u64) -> Fuel {
        Fuel(units)
    }

    /// Fuel that does not run out in practice.
    pub const fn unlimited() -> Fuel {
        Fuel(u64::MAX)
    }

    /// Whether all of it is used.
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// The fuel that is left.
    pub const fn left(&self) -> u64 {
        self.0
    }

    /// Uses `units`, or all that is left.
    pub fn burn(&mut self, units: usize) {
        self.0 = self.0.saturating_sub(units as u64);
    }

    /// How many of `bytes` bytes may be worked on now: no more than there is fuel.
    pub fn allows(&self, bytes: usize) -> usize {
        usize::try_from(self.0).map_or(bytes, |left| bytes.min(left))
    }
}
