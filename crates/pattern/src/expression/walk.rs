//! Walks of automata over haystacks, byte by byte, which can be left between any two chunks.

use super::automaton::{Automaton, State, States, Wanted};
use super::machine::skip;
use super::meter::Meter;
use super::program::Start;

/// A walk through an automaton, which can be left and taken up again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    state: State,
    /// Forward, the next byte; backward, the byte behind it.
    at: usize,
    /// Where a match ends, or begins, that a longer or better one may replace.
    found: Option<usize>,
    /// Only matches that begin at one place are followed.
    tried: Option<Tried>,
}

/// Where matches begin at few places, these are tried one after the other: most die within a few bytes.
#[derive(Debug, Clone, Copy)]
struct Tried {
    /// The place that is tried.
    at: usize,
    /// The first that was.
    first: usize,
    /// Bytes walked for those before.
    spent: usize,
}

/// How far a walk came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Walked {
    On,
    /// To the end, with a match up to or from there.
    Done(Option<usize>),
}

/// An automaton with the memory that it works in.
pub(super) struct Walker<'a> {
    pub automaton: &'a Automaton,
    pub states: &'a mut States,
}

impl Walker<'_> {
    /// Begins a walk forward, for matches that begin as `start` says.
    pub fn from(&mut self, haystack: &[u8], from: usize, start: &Start) -> Walk {
        if !matches!(start, Start::First | Start::Line) {
            return self.anywhere_from(haystack, from);
        }
        let skipped = haystack.get(from..).and_then(|rest| skip(start, haystack, rest, from, from));
        let at = skipped.map_or(haystack.len(), |skipped| from + skipped);
        self.alone_from(haystack, Tried { at, first: at, spent: 0 })
    }

    /// Begins a walk for matches that begin at `from` or behind it.
    fn anywhere_from(&mut self, haystack: &[u8], from: usize) -> Walk {
        let state = self.automaton.start(self.states, before(haystack, from), true);
        Walk { state, at: from, found: None, tried: None }
    }

    /// Begins a walk for matches that begin at one place.
    fn alone_from(&mut self, haystack: &[u8], tried: Tried) -> Walk {
        let state = self.automaton.start(self.states, before(haystack, tried.at), false);
        Walk { state, at: tried.at, found: None, tried: Some(tried) }
    }

    /// Begins a walk back from `end`.
    pub fn back_from(&mut self, haystack: &[u8], end: usize) -> Walk {
        let end = end.min(haystack.len());
        let state = self.automaton.start(self.states, haystack.get(end).copied(), false);
        Walk { state, at: end, found: None, tried: None }
    }

    /// How many bytes are walked in one piece: fewer of a large program, whose steps may be long.
    fn chunk(&self) -> usize {
        (WORK_IN_ONE_PIECE / self.automaton.steps().max(1)).clamp(1, 1024)
    }

    /// Cost of a chunk of `length` bytes: a unit a byte, and one for each few steps that were followed to build new
    /// states.
    fn cost(&self, length: usize, followed: u64) -> u64 {
        1 + length as u64 + (self.states.followed() - followed) / FOLLOWED_IN_A_UNIT
    }

    /// Walks forward over one chunk, no farther than a match may end. It ends as soon as what is wanted is known.
    pub fn forward(
        &mut self,
        walk: &mut Walk,
        (haystack, until): (&[u8], usize),
        start: &Start,
        meter: &mut Meter,
    ) -> Walked {
        loop {
            let walked = self.stretch(walk, (haystack, until), start, meter);
            let again = match (walked, walk.tried) {
                // It does not die: matches that begin behind it are followed with it.
                (Walked::On, Some(tried)) => self.anywhere_from(haystack, tried.at),
                (Walked::Done(None), Some(tried)) => {
                    let Some(place) = next_place(start, haystack, tried.at + 1).filter(|&place| place <= until) else {
                        return Walked::Done(None);
                    };
                    let spent = tried.spent + walk.at.saturating_sub(tried.at);
                    match spent > SPENT_MAX + 2 * (place - tried.first) {
                        true => self.anywhere_from(haystack, place),
                        false => self.alone_from(haystack, Tried { at: place, spent, ..tried }),
                    }
                }
                _ => return walked,
            };
            *walk = again;
            if walked == Walked::On || meter.is_empty() {
                return Walked::On;
            }
        }
    }

    /// Walks forward over one chunk, or to the end of what is tried.
    fn stretch(
        &mut self,
        walk: &mut Walk,
        (haystack, until): (&[u8], usize),
        start: &Start,
        meter: &mut Meter,
    ) -> Walked {
        let followed = self.states.followed();
        let mut begun = walk.at;
        // That a match ends somewhere is known behind the next byte.
        let last = haystack.len().min(until.saturating_add(1));
        let mut end = walk.at.saturating_add(self.chunk()).min(last);
        while walk.at < end {
            let may_leap = walk.tried.is_none() && walk.found.is_none() && leaps(start);
            if may_leap && self.automaton.is_start(self.states, walk.state) {
                let Some(skipped) = skip(start, haystack, &haystack[walk.at..], walk.at, walk.at) else {
                    meter.burn((haystack.len() - walk.at) as u64 / 16);
                    return Walked::Done(None);
                };
                if skipped > 0 {
                    meter.burn(skipped as u64 / 16);
                    *walk = self.anywhere_from(haystack, walk.at + skipped);
                    (begun, end) = (begun + skipped, (end + skipped).min(last));
                    if walk.at >= end {
                        break;
                    }
                }
            }
            let (next, at) = self.run(walk.state, &haystack[..end], walk.at);
            (walk.state, walk.at) = (next, at);
            if next.is_dead() {
                meter.burn(self.cost(walk.at - begun, followed));
                return Walked::Done(walk.found);
            }
            if self.automaton.is_match(self.states, next) {
                walk.found = Some(walk.at);
                if self.automaton.wanted == Wanted::Any {
                    return Walked::Done(walk.found);
                }
            }
            walk.at += 1;
        }
        meter.burn(self.cost(walk.at.saturating_sub(begun), followed));
        if walk.at < last {
            return Walked::On;
        }
        if last < haystack.len() {
            return Walked::Done(walk.found);
        }
        let last = self.automaton.next_state(self.states, walk.state, None);
        Walked::Done(if self.automaton.is_match(self.states, last) { Some(haystack.len()) } else { walk.found })
    }

    /// Goes on from `at` to a state that is something particular, or to the last byte: the state, and the byte that led there.
    #[inline]
    fn run(&mut self, mut state: State, haystack: &[u8], mut at: usize) -> (State, usize) {
        loop {
            // As far as states are nothing particular and have been built.
            let states = &*self.states;
            for &byte in haystack.get(at..).filter(|_| !state.is_tagged()).unwrap_or_default() {
                let next = self.automaton.known(states, state, byte);
                if next.is_tagged() {
                    break;
                }
                (state, at) = (next, at + 1);
            }
            let Some(&byte) = haystack.get(at) else {
                return (state, at.saturating_sub(1));
            };
            state = self.automaton.next_state(self.states, state, Some(byte));
            if state.is_tagged() {
                return (state, at);
            }
            at += 1;
        }
    }

    /// Walks back over one chunk, not beyond `from`.
    pub fn backward(&mut self, walk: &mut Walk, haystack: &[u8], from: usize, meter: &mut Meter) -> Walked {
        let followed = self.states.followed();
        let begun = walk.at;
        let end = walk.at.saturating_sub(self.chunk()).max(from);
        while walk.at > end {
            walk.state = self.automaton.next_state(self.states, walk.state, Some(haystack[walk.at - 1]));
            if walk.state.is_dead() {
                meter.burn(self.cost(begun - walk.at, followed));
                return Walked::Done(walk.found);
            }
            if self.automaton.is_match(self.states, walk.state) {
                walk.found = Some(walk.at);
            }
            walk.at -= 1;
        }
        meter.burn(self.cost(begun - walk.at, followed));
        if walk.at > from {
            return Walked::On;
        }
        let last = self.automaton.next_state(self.states, walk.state, before(haystack, from));
        Walked::Done(if self.automaton.is_match(self.states, last) { Some(from) } else { walk.found })
    }
}

/// The byte in front of a place.
fn before(haystack: &[u8], at: usize) -> Option<u8> {
    at.checked_sub(1).and_then(|before| haystack.get(before)).copied()
}

/// The first place at or behind `from` where a match can begin and take a byte.
fn next_place(start: &Start, haystack: &[u8], from: usize) -> Option<usize> {
    let rest = haystack.get(from..)?;
    skip(start, haystack, rest, from, from).map(|skipped| from + skipped).filter(|&place| place < haystack.len())
}

/// Bytes that may be walked over more than twice, where places are tried one after the other.
const SPENT_MAX: usize = 512;

/// Whether where a match can begin is found faster than the automaton gets there.
pub(super) fn leaps(start: &Start) -> bool {
    !matches!(start, Start::Anywhere | Start::Set(_))
}

/// Steps that are followed in the time of a byte.
const FOLLOWED_IN_A_UNIT: u64 = 4;

/// States of a program that are visited in one piece, at most.
const WORK_IN_ONE_PIECE: usize = 1 << 17;
