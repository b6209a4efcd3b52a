//! Following the strings of rules over one object: which were found, how often and where.
//!
//! Bounds: the places of [`PLACES_OF_ONE_MAX`] matches of a string whose places are asked for, [`PLACES_MAX`] for all;
//! [`FOLLOWED_MAX`] strings and as many chains half seen. What passes a bound is counted as lost.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use pattern::{Match, State};

use crate::run::ends::{Ends, RUNS_MAX};
use crate::run::follow::NumberHasher;
use crate::syntax::pcre::KEPT_BYTES;
use crate::yara::id::StringId;
use crate::yara::table::{Chain, Link, Table, Text, User};

/// The most strings that are remembered, and the most chains.
const FOLLOWED_MAX: usize = 32_768;
/// The most places of one string.
const PLACES_OF_ONE_MAX: usize = 1024;
/// The most places of all strings together.
const PLACES_MAX: usize = 65_536;

pub(crate) type Map<T> = HashMap<u32, T, BuildHasherDefault<NumberHasher>>;

/// Matches of one string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Matches {
    pub(crate) count: u64,
    pub(crate) first: u64,
    last: u64,
    /// Start and length of matches, in the order of the starts: of each, if places are asked for; of those whose start may be
    /// found again, if only their number is.
    pub(crate) places: Vec<(u64, u64)>,
}

impl Matches {
    /// Adds a match, unless one that starts there is known: the last one, or any of the places.
    pub(crate) fn add(&mut self, start: u64, length: u64, placed: bool) {
        let at = self.places.partition_point(|(known, _)| *known < start);
        if self.count > 0 && (self.last == start || self.places.get(at).is_some_and(|(known, _)| *known == start)) {
            return;
        }
        self.first = if self.count == 0 { start } else { self.first.min(start) };
        (self.count, self.last) = (self.count + 1, start);
        if placed {
            self.places.insert(at, (start, length));
        }
    }

    /// Forgets places before an offset.
    fn forget(&mut self, oldest: u64) {
        let past = self.places.partition_point(|(start, _)| *start < oldest);
        self.places.drain(..past);
    }
}

/// State of the strings over an object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follower {
    pub(crate) state: State,
    pub(crate) found: Map<Matches>,
    chains: Map<Vec<Ends>>,
    places: usize,
    lost: u64,
}

impl Follower {
    /// How much was given up because a bound was reached.
    pub(crate) fn lost(&self) -> u64 {
        self.lost + self.state.lost()
    }

    /// Takes in the next bytes.
    pub(crate) fn look(&mut self, table: &Table, bytes: &[u8]) {
        let mut state = std::mem::take(&mut self.state);
        table.patterns.scan(&mut state, bytes, &mut |found| self.on_match(table, found));
        self.state = state;
    }

    /// The object is at its end.
    pub(crate) fn finish(&mut self, table: &Table) {
        let mut state = std::mem::take(&mut self.state);
        table.patterns.finish(&mut state, &mut |found| self.on_match(table, found));
        self.state = state;
    }

    fn on_match(&mut self, table: &Table, found: Match) {
        for user in table.users(found.part) {
            let Some(chain) = table.chains.get(user.chain as usize) else {
                continue;
            };
            let links = table.links(chain);
            if user.link == 0 {
                let (low, high) = table.texts.get(chain.string as usize).map_or((0, u64::MAX), |text| text.at);
                if (low..=high).contains(&found.start) {
                    self.reached(table, (chain, links), *user, found.start, found);
                }
                continue;
            }
            for start in self.predecessors(links, *user, found) {
                self.reached(table, (chain, links), *user, start, found);
            }
        }
    }

    /// The starts of the chains that this match goes on with.
    fn predecessors(&self, links: &[Link], user: User, found: Match) -> Vec<u64> {
        let before = usize::from(user.link) - 1;
        let ends = self.chains.get(&user.chain).and_then(|ends| ends.get(before));
        let (Some(ends), Some(link)) = (ends, links.get(usize::from(user.link))) else {
            return Vec::new();
        };
        let Some(high) = found.start.checked_sub(link.gap.min.into()) else {
            return Vec::new();
        };
        let low = if link.gap.is_open() { 0 } else { found.start.saturating_sub(link.gap.max.into()) };
        ends.between(low, high).take(RUNS_MAX).collect()
    }

    /// A chain that starts at `start` has got to this link.
    fn reached(&mut self, table: &Table, (chain, links): (&Chain, &[Link]), user: User, start: u64, found: Match) {
        let number = usize::from(user.link);
        let Some(next) = links.get(number + 1) else {
            return self.found(table, chain.string, start, found);
        };
        if self.chains.len() >= FOLLOWED_MAX && !self.chains.contains_key(&user.chain) {
            self.lost += 1;
            return;
        }
        let all = self.chains.entry(user.chain).or_insert_with(|| vec![Ends::default(); links.len() - 1]);
        let Some(ends) = all.get_mut(number) else {
            return;
        };
        let text = table.texts.get(chain.string as usize);
        let every = text.is_some_and(|text| text.placed && !text.is_hint);
        if next.gap.is_open() && !every {
            return ends.keep_earliest(found.end, start);
        }
        if !next.gap.is_open() {
            let reach = u64::from(next.gap.max) + u64::from(next.bytes_max) + 2;
            ends.forget(found.known.saturating_sub(reach));
        }
        // Ends that follow each other are one run, of which a match tells one start.
        let lost = if every { ends.push_alone(found.end, start) } else { ends.push(found.end, start) };
        self.lost += u64::from(lost && !is_found_again(text, found));
    }

    fn found(&mut self, table: &Table, string: StringId, start: u64, found: Match) {
        /// So much later than its end a match may be known.
        const LATE: u64 = 2;
        if self.found.len() >= FOLLOWED_MAX && !self.found.contains_key(&string) {
            self.lost += 1;
            return;
        }
        let text = table.texts.get(string as usize);
        let is_hint = text.is_some_and(|text| text.is_hint);
        let placed = text.is_some_and(|text| text.placed && !text.is_hint);
        let again = text.filter(|text| text.counted && !placed && !is_hint).and_then(|text| text.again);
        let matches = self.found.entry(string).or_default();
        let before = matches.places.len();
        if let Some(bytes_max) = again {
            matches.forget(found.known.saturating_sub(u64::from(bytes_max) + LATE));
        }
        let kept = placed || again.is_some();
        let room = matches.places.len() < PLACES_OF_ONE_MAX && self.places < PLACES_MAX;
        matches.add(start, found.end - start, kept && room);
        self.places = self.places + matches.places.len() - before;
        self.lost += u64::from(kept && !room && !is_found_again(text, found));
    }
}

/// Whether a finder looks for the string there.
fn is_found_again(text: Option<&Text>, found: Match) -> bool {
    text.is_some_and(|text| text.kept.is_some()) && found.end <= KEPT_BYTES
}
