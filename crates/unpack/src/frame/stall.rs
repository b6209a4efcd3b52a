//! Counts turns without progress: a stalled reader is ended with a finding, however little each of its turns costs.
//!
//! Every adapter burns fuel for each turn, so a stalled reader yields to others; here it ends. A sound reader never
//! gets near the bounds: its turns without a byte taken or written are bounded by its own tables.

/// Turns in a row that a reader may take without getting on.
pub(crate) const READER_TURNS_MAX: u32 = 1 << 20;

/// How long standing still is borne.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    turns_max: u32,
    turns: u32,
    /// The furthest that was reached.
    place: u64,
}

impl Patience {
    pub const fn of(turns_max: u32) -> Patience {
        Patience { turns_max, turns: 0, place: 0 }
    }

    /// Counts a turn; whether it may go on. One that `moved` begins the count anew.
    pub fn bears(&mut self, moved: bool) -> bool {
        self.turns = if moved { 0 } else { self.turns.saturating_add(1) };
        self.turns <= self.turns_max
    }

    /// Counts a turn that got to this place: only further than ever before is on.
    pub fn bears_at(&mut self, place: u64) -> bool {
        let moved = place > self.place;
        self.place = self.place.max(place);
        self.bears(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_gets_further_than_before_moves() {
        let mut patience = Patience::of(2);
        assert!(patience.bears_at(5));
        assert!(patience.bears_at(3) && patience.bears_at(5));
        assert!(!patience.bears_at(4));
        assert!(patience.bears_at(6));
        assert!(patience.bears(false) && patience.bears(false) && !patience.bears(false));
    }
}
