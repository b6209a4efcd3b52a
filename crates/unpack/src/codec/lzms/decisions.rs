//! The range coder: decisions between two, each with the share of zeros among its last 64 as its probability.

use crate::frame::codec::le16;

/// The state of the coder; its words are read from the front of the chunk.
pub(super) struct Decisions {
    range: u32,
    code: u32,
    at: usize,
}

impl Decisions {
    pub fn new(packed: &[u8]) -> Decisions {
        let code = u32::from(le16(packed, 0)) << 16 | u32::from(le16(packed, 2));
        Decisions { range: u32::MAX, code, at: 4 }
    }
}

/// A kind of decision, its probabilities chosen by the `STATES` of its last outcomes.
pub(super) struct Decision<const STATES: usize> {
    state: usize,
    histories: [History; STATES],
}

/// The last 64 outcomes, and how many of them were zero.
#[derive(Clone, Copy)]
struct History {
    outcomes: u64,
    zeros: u32,
}

impl<const STATES: usize> Decision<STATES> {
    pub const fn new() -> Decision<STATES> {
        const START: History = History { outcomes: 0x5555_5555, zeros: 48 };
        Decision { state: 0, histories: [START; STATES] }
    }

    /// The next outcome; behind the end of the chunk words are zero.
    pub fn next(&mut self, decisions: &mut Decisions, packed: &[u8]) -> bool {
        const BITS: u32 = 6;
        let history = &mut self.histories[self.state];
        let probability = history.zeros.clamp(1, 63);
        if decisions.range <= 0xffff {
            decisions.range <<= 16;
            decisions.code = decisions.code << 16 | u32::from(le16(packed, decisions.at));
            decisions.at += 2;
        }
        let bound = (decisions.range >> BITS) * probability;
        let outcome = decisions.code >= bound;
        if outcome {
            decisions.range -= bound;
            decisions.code -= bound;
        } else {
            decisions.range = bound;
        }
        history.zeros = history.zeros + (history.outcomes >> 63) as u32 - u32::from(outcome);
        history.outcomes = history.outcomes << 1 | u64::from(outcome);
        self.state = (self.state << 1 | usize::from(outcome)) % STATES;
        outcome
    }
}
