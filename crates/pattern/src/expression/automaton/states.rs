//! The states that one search has reached, and where bytes lead from them.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::side::Side;
use super::{Automaton, key};

/// A state: where its row of transitions begins, in pieces of [`PIECE`]. The top bit tags what has to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::expression) struct State(u16);

/// Transitions of a piece of a row.
const PIECE: usize = 8;
const TAG: u16 = 1 << 15;
/// The transition was not asked for yet.
const UNKNOWN: u16 = u16::MAX;
/// Nothing matches any more.
const DEAD: u16 = u16::MAX - 1;

impl State {
    /// Whether it is a match, dead, or a marked start.
    #[inline]
    pub fn is_tagged(self) -> bool {
        self.0 >= TAG
    }

    /// Whether nothing matches any more.
    #[inline]
    pub fn is_dead(self) -> bool {
        self.0 == DEAD
    }
}

/// States of one automaton. Where they would take more memory than they may, all are forgotten and built again as they are
/// reached.
#[derive(Debug, Default)]
pub(in crate::expression) struct States {
    /// A row for each state.
    rows: Vec<u16>,
    /// Keys of the states, one after the other, and their ends.
    keys: Vec<u8>,
    ends: Vec<u32>,
    /// States by what they are, at the place that its hash says or behind it; one more than the number of each.
    table: Vec<u16>,
    /// The states before the first byte: those that search, and those that do not, by side.
    starts: Option<Box<[u16; STARTS]>>,
    /// Steps of the program that were followed to build them.
    followed: u64,
}

const STARTS: usize = 2 * Side::ALL.len();

impl States {
    /// The memory they hold, in bytes.
    pub fn memory(&self) -> usize {
        2 * (self.rows.capacity() + self.table.capacity()) + self.keys.capacity() + 4 * self.ends.capacity()
    }

    /// How many steps of the program were followed to build them, and those that are forgotten.
    pub fn followed(&self) -> u64 {
        self.followed
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Key of a state.
    fn key(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.keys[start..self.ends[number] as usize]
    }

    /// Where a state of this hash and key is in the table, or could be put.
    fn place(&self, key: &[u8]) -> usize {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key) as usize;
        let mask = self.table.len() - 1;
        let mut at = hash & mask;
        while let Some(number) = usize::from(self.table[at]).checked_sub(1) {
            if self.key(number) == key {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// Makes room in the table, half of which stays empty.
    fn grow(&mut self) {
        if 2 * (self.ends.len() + 1) <= self.table.len() {
            return;
        }
        self.table = vec![0; (2 * self.table.len()).max(8)];
        for number in 0..self.ends.len() {
            let at = self.place(self.key(number));
            self.table[at] = number as u16 + 1;
        }
    }

    fn clear(&mut self) {
        *self = States { followed: self.followed, ..States::default() };
    }
}

impl Automaton {
    /// The state in front of `at`, from which matches may begin anywhere behind, or only there.
    pub fn start(&self, states: &mut States, before: Option<u8>, is_searching: bool) -> State {
        let side = Side::of(before);
        let place = usize::from(is_searching) * Side::ALL.len() + side as usize;
        if let Some(starts) = &states.starts
            && starts[place] != UNKNOWN
        {
            return State(starts[place]);
        }
        let key = self.first(side, is_searching);
        let state = self.intern(states, &key).unwrap_or_else(|| {
            states.clear();
            self.intern(states, &key).unwrap_or(State(DEAD))
        });
        let tag = if is_searching && self.marks_start && !state.is_dead() { TAG } else { 0 };
        let state = State(state.0 | tag);
        states.starts.get_or_insert_with(|| Box::new([UNKNOWN; STARTS]))[place] = state.0;
        state
    }

    /// Where a byte leads from a state that is not tagged, if that is known, or a state that is.
    #[inline]
    pub fn known(&self, states: &States, state: State, byte: u8) -> State {
        let row = usize::from(state.0) * PIECE;
        State(states.rows.get(row + self.classes.column(byte)).copied().unwrap_or(UNKNOWN))
    }

    /// Where a byte leads, or the end of the haystack.
    pub fn next_state(&self, states: &mut States, state: State, byte: Option<u8>) -> State {
        if state.is_dead() {
            return state;
        }
        let column = byte.map_or(self.classes.count(), |byte| self.classes.column(byte));
        let at = usize::from(state.0 & !TAG) * PIECE + column;
        match states.rows[at] {
            UNKNOWN => self.build(states, state, byte, at),
            next => State(next),
        }
    }

    #[cold]
    fn build(&self, states: &mut States, state: State, byte: Option<u8>, at: usize) -> State {
        let (key, followed) = self.next(states.key(self.number(state)), byte);
        // To clear the bits of those that were seen is work too, and so is to put what was followed into a state.
        states.followed = states.followed.saturating_add(followed + self.steps() as u64 / 64 + STEPS_OF_STATE);
        if let Some(next) = self.intern(states, &key) {
            states.rows[at] = next.0;
            return next;
        }
        states.clear();
        self.intern(states, &key).unwrap_or(State(DEAD))
    }

    /// Whether a match is known to have ended in front of the byte that led here.
    #[inline]
    pub fn is_match(&self, states: &States, state: State) -> bool {
        state.is_tagged() && !state.is_dead() && key::flags(states.key(self.number(state))).is_match()
    }

    /// Whether it is a start that was marked, where nothing has begun.
    #[inline]
    pub fn is_start(&self, states: &States, state: State) -> bool {
        state.is_tagged() && states.starts.as_ref().is_some_and(|starts| starts[Side::ALL.len()..].contains(&state.0))
    }

    /// The patterns of which a match is known to have ended.
    pub fn patterns<'s>(&self, states: &'s States, state: State) -> impl Iterator<Item = u32> + use<'s> {
        key::patterns(states.key(self.number(state)))
    }

    /// Pieces of a row.
    fn pieces(&self) -> usize {
        (self.classes.count() + 1).div_ceil(PIECE)
    }

    fn number(&self, state: State) -> usize {
        usize::from(state.0 & !TAG) / self.pieces()
    }

    /// The state that this is, a new one if need be; none if there is no room for it.
    fn intern(&self, states: &mut States, key: &[u8]) -> Option<State> {
        if key::is_dead(key) {
            return Some(State(DEAD));
        }
        let tag = if key::flags(key).is_match() { TAG } else { 0 };
        let pieces = self.pieces();
        states.grow();
        let at = states.place(key);
        let (number, is_new) = match usize::from(states.table[at]).checked_sub(1) {
            Some(number) => (number, false),
            None => (states.ends.len(), true),
        };
        let row = number * pieces;
        if is_new {
            let is_over = states.memory() + key.len() > self.states_bytes_max && number > 0;
            if is_over || row >= usize::from(DEAD & !TAG) {
                return None;
            }
            extend(&mut states.rows, pieces * PIECE);
            states.rows.resize(states.rows.len() + pieces * PIECE, UNKNOWN);
            extend(&mut states.keys, key.len());
            states.keys.extend_from_slice(key);
            extend(&mut states.ends, 1);
            states.ends.push(states.keys.len() as u32);
            states.table[at] = number as u16 + 1;
        }
        let state = State(row as u16);
        let is_marked = self.marks_start && self.is_start(states, State(state.0 | TAG));
        Some(State(state.0 | tag | if is_marked { TAG } else { 0 }))
    }
}

/// Steps that are followed in the time in which a state is put together, found or added.
const STEPS_OF_STATE: u64 = 12;

/// Room for so many more, and a quarter beyond what there is, so that little is held for nothing.
fn extend<T>(values: &mut Vec<T>, more: usize) {
    if values.capacity() - values.len() < more {
        values.reserve_exact(more.max(values.len() / 4));
    }
}
