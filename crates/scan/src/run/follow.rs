//! Following matches: gaps, places, counts and expressions of one table over one stream.
//!
//! Of an open gap only the earliest end of what is before it matters; of a bounded gap the ends within its reach. Ends
//! that follow each other (a part of zeros in a run of zeros) are one entry. What would pass a bound is counted as lost
//! and told, never dropped silently.

mod decision;
mod repeated;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use pattern::Match;
use stream::FileType;

use crate::layout::Layout;
use crate::run::ends::{Ends, RUNS_MAX};
use crate::run::rule::{Ending, RuleState};
use crate::syntax::location::Location;
use crate::syntax::signature::Logic;
use crate::table::content::{Asks, Chain, Link, Links, Table, User};
use crate::table::rules::Rule;
use decision::MEMBER_BYTES_MAX;

/// The most chains, and the most logical signatures, that are followed at a time in one stream.
const FOLLOWED_MAX: usize = 32_768;

/// The most runs of starts that are remembered of one chain whose place is only known later, as long as all of them have
/// no more than the second number beyond what each may have.
const PLACED_RUNS_OF_ONE_MAX: usize = 1024;
const PLACED_RUNS_MAX: usize = 32_768;

/// The most runs of ends at one gap of a chain whose place is only known later.
const LATE_RUNS_MAX: usize = 256;

/// The most starts of one chain before the end of a stream that are counted.
const PLACED_MAX: usize = 65_536;

/// Signature and chain numbers are spread by one multiplication.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

type Map<T> = HashMap<u32, T, BuildHasherDefault<NumberHasher>>;

/// A signature that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    /// Stream offset at which the match was complete.
    pub(crate) known: u64,
    pub(crate) signature: u32,
    /// Where its (first) match starts.
    pub(crate) start: u64,
}

/// State of the signatures over a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follower {
    chains: Map<ChainState>,
    rules: Map<RuleState>,
    /// The starts of the members of each macro group.
    groups: Map<Ends>,
    /// Readings that wait for bytes: signature, and which of its comparisons.
    reading: Vec<(u32, usize)>,
    told: HashSet<u32, BuildHasherDefault<NumberHasher>>,
    /// Signatures of which it is still to be looked at whether they hold, at the end.
    due: VecDeque<u32>,
    /// Signatures to search for at the end, and the starts of the first matches.
    ending: VecDeque<(u32, u64, Box<Ending>)>,
    /// Runs of starts beyond what each chain may have.
    placed_runs: usize,
    /// Room for the starts that a match goes on with.
    spans: Vec<(u64, u64)>,
    lost: u64,
}

/// The ends of all links of a chain but the last, and, for a chain that is placed from the end, its starts.
#[derive(Debug, Clone, Default)]
struct ChainState {
    ends: Vec<Ends>,
    complete: Ends,
}

/// Facts about the stream for a follower.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) table: &'a Table,
    pub(crate) layout: Option<&'a Layout>,
    /// The containers that the stream lies in, the innermost last.
    pub(crate) containers: &'a [FileType],
}

impl Follower {
    /// How much was given up because a bound was reached.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// A part matched.
    pub(crate) fn on_match(&mut self, context: Context<'_>, found: Match, hits: &mut Vec<Hit>) {
        for user in context.table.users(found.part) {
            self.on_user(context, user, found, hits);
        }
    }

    /// A part matched that is that link of a chain.
    fn on_user(&mut self, context: Context<'_>, user: User, found: Match, hits: &mut Vec<Hit>) {
        let chain = &context.table.chains[user.chain as usize];
        if self.told.contains(&chain.signature) {
            return;
        }
        let links = context.table.links(chain);
        if user.link == 0 {
            if context.table.location(chain).admits(found.start, context.layout) {
                self.reached(context, (chain, links), user, (found.start, found.start), found, hits);
            }
            return;
        }
        let mut spans = std::mem::take(&mut self.spans);
        self.predecessors(context, (chain, links), user, found, &mut spans);
        for span in spans.drain(..) {
            self.reached(context, (chain, links), user, span, found, hits);
        }
        self.spans = spans;
    }

    /// The starts of the chains that this match goes on with: one, or all if it matters which.
    fn predecessors(
        &self,
        context: Context<'_>,
        (chain, links): (&Chain, Links<'_>),
        user: User,
        found: Match,
        spans: &mut Vec<(u64, u64)>,
    ) {
        let before = usize::from(user.link) - 1;
        let ends = self.chains.get(&user.chain).and_then(|state| state.ends.get(before));
        let (Some(ends), Some(link)) = (ends, links.get(usize::from(user.link))) else {
            return;
        };
        let Some(high) = found.start.checked_sub(u64::from(link.gap.min)) else {
            return;
        };
        let low = if link.gap.is_open() { 0 } else { found.start.saturating_sub(u64::from(link.gap.max)) };
        if context.table.location(chain).is_late(context.layout) {
            spans.extend(ends.spans(low, high));
        } else {
            spans.extend(ends.between(low, high).next().map(|start| (start, start)));
        }
    }

    /// The ends of one link of a chain.
    fn ends_of(&mut self, (chain, link): (u32, usize), links: Links<'_>) -> Option<&mut Ends> {
        let state = chain_state(&mut self.chains, chain, &mut self.lost)?;
        if state.ends.len() <= link {
            state.ends.resize_with(links.len() - 1, Ends::default);
        }
        state.ends.get_mut(link)
    }

    /// A chain that starts in `span` has got to this link; of which starts there is more than one only if all matter.
    fn reached(
        &mut self,
        context: Context<'_>,
        (chain, links): (&Chain, Links<'_>),
        user: User,
        span: (u64, u64),
        found: Match,
        hits: &mut Vec<Hit>,
    ) {
        let number = usize::from(user.link);
        let Some(next) = links.get(number + 1) else {
            return self.complete(context, chain, user.chain, span, found, hits);
        };
        let location = context.table.location(chain);
        let Some(ends) = self.ends_of((user.chain, number), links) else {
            return;
        };
        if !next.gap.is_open() {
            ends.forget(found.known.saturating_sub(reach(next)));
        }
        if location.is_late(context.layout) {
            // Which start will be in place is only known at the end, so each is kept.
            ends.forget_starts(oldest(location, found.known));
            let lost = ends.push_span(LATE_RUNS_MAX, found.end, span);
            self.lost += u64::from(lost);
        } else if next.gap.is_open() {
            ends.keep_earliest(found.end, span.0);
        } else {
            let lost = ends.push(found.end, span.0);
            self.lost += u64::from(lost);
        }
    }

    fn complete(
        &mut self,
        context: Context<'_>,
        chain: &Chain,
        number: u32,
        span: (u64, u64),
        found: Match,
        hits: &mut Vec<Hit>,
    ) {
        if context.table.location(chain).is_late(context.layout) {
            let Some(state) = chain_state(&mut self.chains, number, &mut self.lost) else {
                return;
            };
            state.complete.forget(oldest(context.table.location(chain), found.known));
            let runs_max = if self.placed_runs < PLACED_RUNS_MAX { PLACED_RUNS_OF_ONE_MAX } else { RUNS_MAX };
            let before = state.complete.runs();
            self.lost += u64::from(state.complete.push_places(runs_max, span));
            self.placed_runs += usize::from(state.complete.runs() > before.max(RUNS_MAX));
            return;
        }
        let (start, _) = span;
        if let Location::Group(group) = context.table.location(chain) {
            return self.in_group(context, group, start, found.known, hits);
        }
        let counted = Counted { signature: chain.signature, sub: chain.sub, start, known: found.known };
        self.count(context, counted, hits);
    }

    /// A body matched for good, or what stands for one.
    fn count(&mut self, context: Context<'_>, counted: Counted, hits: &mut Vec<Hit>) {
        let Counted { signature, sub, start, known } = counted;
        let Rule { logic, early } = match context.table.asks(signature) {
            Asks::Rule(rule) => rule,
            Asks::Nothing => return self.tell(signature, start, known, hits),
            Asks::Unknown => return,
        };
        if self.rules.len() >= FOLLOWED_MAX && !self.rules.contains_key(&signature) {
            self.lost += 1;
            return;
        }
        let state = self.rules.entry(signature).or_insert_with(|| RuleState::new(logic, start));
        if !state.count(sub, start) {
            return;
        }
        for (index, compare) in logic.compares.iter().enumerate().filter(|(_, compare)| compare.of == sub) {
            self.lost += u64::from(!state.read(index, compare, start, known));
            if !self.reading.contains(&(signature, index)) {
                self.reading.push((signature, index));
            }
        }
        if *early && logic.lies_in(context.containers) && logic.expression.holds(|sub| state.count_of(sub)) {
            let first = state.first();
            self.tell(signature, first, known, hits);
        }
        for index in (0..logic.macros.len()).filter(|&index| logic.macros[index].sub == sub + 1) {
            self.before_macro(context, (logic, index), counted, hits);
        }
    }

    /// The subsignature before a macro subsignature matched: members of the group may have started behind it already.
    fn before_macro(
        &mut self,
        context: Context<'_>,
        (logic, index): (&Logic, usize),
        counted: Counted,
        hits: &mut Vec<Hit>,
    ) {
        let Counted { signature, start, known, .. } = counted;
        let one = logic.macros[index];
        if let Some(state) = self.rules.get_mut(&signature) {
            self.lost +=
                u64::from(state.before(index, start, known.saturating_sub(u64::from(one.max) + MEMBER_BYTES_MAX)));
        }
        let starts: Option<Vec<u64>> = self.groups.get(&u32::from(one.group)).map(|starts| {
            starts
                .within(start.saturating_add(one.min.into()), start.saturating_add(one.max.into()))
                .take(RUNS_MAX)
                .collect()
        });
        for start in starts.unwrap_or_default() {
            self.count(context, Counted { signature, sub: one.sub, start, known }, hits);
        }
    }

    /// A member of a macro group matched.
    fn in_group(&mut self, context: Context<'_>, group: u8, start: u64, known: u64, hits: &mut Vec<Hit>) {
        let starts = self.groups.entry(group.into()).or_default();
        starts.forget(known.saturating_sub(2 * MEMBER_BYTES_MAX));
        self.lost += u64::from(starts.push(start, start));
        for (signature, index) in context.table.macros(group) {
            let one = context.table.rule(signature).and_then(|rule| rule.logic.macros.get(index).copied());
            let (Some(one), Some(state)) = (one, self.rules.get(&signature)) else {
                continue;
            };
            if state.is_before(index, start.saturating_sub(one.max.into()), start.checked_sub(one.min.into())) {
                self.count(context, Counted { signature, sub: one.sub, start, known }, hits);
            }
        }
    }

    /// Hands bytes of the stream, which stand at `offset`, to the readings that wait for some.
    pub(crate) fn supply(&mut self, offset: u64, bytes: &[u8]) {
        let rules = &mut self.rules;
        self.reading.retain(|(signature, index)| {
            let state = rules.get_mut(signature);
            state.is_some_and(|state| !state.take(*index, offset, bytes))
        });
    }

    /// Whether a reading waits for bytes.
    pub(crate) fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    fn tell(&mut self, signature: u32, start: u64, known: u64, hits: &mut Vec<Hit>) {
        if self.told.insert(signature) {
            hits.push(Hit { known, signature, start });
        }
    }
}

/// A subsignature that matched.
#[derive(Debug, Clone, Copy)]
struct Counted {
    signature: u32,
    sub: u8,
    start: u64,
    /// Stream offset at which the match was complete.
    known: u64,
}

/// How far behind the end of a part what comes next may be known.
fn reach(next: &Link) -> u64 {
    u64::from(next.gap.max) + u64::from(next.bytes_max) + 2
}

/// The oldest start that still matters of a body whose place is known too late.
fn oldest(location: Location, known: u64) -> u64 {
    location.back().map_or(0, |back| known.saturating_sub(back))
}

fn chain_state<'a>(chains: &'a mut Map<ChainState>, number: u32, lost: &mut u64) -> Option<&'a mut ChainState> {
    if chains.len() >= FOLLOWED_MAX && !chains.contains_key(&number) {
        *lost += 1;
        return None;
    }
    Some(chains.entry(number).or_default())
}
