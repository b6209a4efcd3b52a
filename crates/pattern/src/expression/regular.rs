//! Expressions that are regular, on lazily built automata.
//!
//! An expression is regular if it has no references, looks around, atomic groups, `\G`, or loops whose inside can match
//! nothing (so many times exactly is no loop); `$` without `m` only where nothing can follow, and `^` with `m` only where a
//! byte has to. It then becomes a tree of `regex-syntax`, built node by node, and runs on the lazy automata of
//! `regex-automata`, which prefer the same match as Perl. They are driven byte by byte from here, so that a search can be
//! left between any two chunks.
//!
//! `$` is compiled as an optional line feed and the end. Where a match ends with the line feed that ends the haystack, the
//! automaton cannot tell whether `$` took it, and the backtracking matcher is asked for the end.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, Look, Repetition};

use super::machine::skip;
use super::meter::Meter;
use super::program::Start;
use super::syntax::{Assertion, Node, Repeat, UNBOUNDED, has_case};
use crate::ByteSet;

/// The expression as a tree of `regex-syntax`, if it is regular.
pub(super) fn translate(node: &Node) -> Option<Hir> {
    hir(node, After { takes: false, is_end: true, is_loose: false })
}

/// The same of one that was loosened: of what depends on more than the language, more may match.
pub(super) fn translate_loosely(node: &Node) -> Option<Hir> {
    hir(node, After { takes: false, is_end: true, is_loose: true })
}

/// Whether [`translate`] makes a tree of it.
pub(super) fn is_regular(node: &Node) -> bool {
    regular(node, After { takes: false, is_end: true, is_loose: false })
}

fn regular(node: &Node, after: After) -> bool {
    match node {
        Node::Empty | Node::Never | Node::Literal { .. } | Node::Set(_) => true,
        Node::Assert(assertion) => assert(*assertion, after).is_some(),
        Node::Concat(nodes) => {
            let mut behind = after;
            nodes.iter().rev().all(|node| {
                let is_regular = regular(node, behind);
                behind = behind.in_front_of(node);
                is_regular
            })
        }
        Node::Alternate(nodes) => nodes.iter().all(|node| regular(node, after)),
        Node::Repeat(repeat) => {
            let inside = if repeat.max == 1 { after } else { After { takes: false, is_end: false, ..after } };
            !is_empty_loop(repeat) && regular(&repeat.node, inside)
        }
        Node::Group(node, _) => regular(node, after),
        Node::Look(_) | Node::Atomic(_) | Node::Backreference { .. } => false,
    }
}

/// Whether it is a loop around what can match nothing.
fn is_empty_loop(repeat: &Repeat) -> bool {
    repeat.max > 1 && repeat.min != repeat.max && repeat.node.is_nullable()
}

/// Whether `$` stands in it, so that a line feed at the end may be one that `$` took.
pub(super) fn has_last_line(node: &Node) -> bool {
    node.any(&mut |node| *node == Node::Assert(Assertion::LastLine))
}

/// What follows a node.
#[derive(Clone, Copy)]
struct After {
    /// At least one byte is taken.
    takes: bool,
    /// Nothing follows.
    is_end: bool,
    /// More may match than the expression says.
    is_loose: bool,
}

impl After {
    /// What follows that which stands in front of `node`.
    fn in_front_of(self, node: &Node) -> After {
        After { takes: self.takes || node.takes(), is_end: false, ..self }
    }
}

fn hir(node: &Node, after: After) -> Option<Hir> {
    Some(match node {
        Node::Empty => Hir::empty(),
        Node::Never => Hir::fail(),
        Node::Literal { bytes, fold: false } => Hir::literal(bytes.clone()),
        Node::Literal { bytes, .. } => Hir::concat(bytes.iter().map(|&byte| letter(byte)).collect()),
        Node::Set(set) => class(set),
        Node::Assert(assertion) => assert(*assertion, after)?,
        Node::Concat(nodes) => concat(nodes, after)?,
        Node::Alternate(nodes) => {
            Hir::alternation(nodes.iter().map(|node| hir(node, after)).collect::<Option<Vec<_>>>()?)
        }
        Node::Repeat(repeat) => {
            if is_empty_loop(repeat) && !after.is_loose {
                return None;
            }
            let inside = if repeat.max == 1 { after } else { After { takes: false, is_end: false, ..after } };
            Hir::repetition(Repetition {
                min: repeat.min,
                max: (repeat.max != UNBOUNDED).then_some(repeat.max),
                greedy: !repeat.lazy,
                sub: Box::new(hir(&repeat.node, inside)?),
            })
        }
        Node::Group(node, _) => hir(node, after)?,
        Node::Look(_) | Node::Atomic(_) | Node::Backreference { .. } => return None,
    })
}

fn concat(nodes: &[Node], after: After) -> Option<Hir> {
    let mut all = Vec::with_capacity(nodes.len());
    let mut behind = after;
    for node in nodes.iter().rev() {
        all.push(hir(node, behind)?);
        behind = behind.in_front_of(node);
    }
    all.reverse();
    Some(Hir::concat(all))
}

fn assert(assertion: Assertion, after: After) -> Option<Hir> {
    Some(match assertion {
        Assertion::Start => Hir::look(Look::Start),
        Assertion::LineStart if after.takes || after.is_loose => Hir::look(Look::StartLF),
        Assertion::End => Hir::look(Look::End),
        Assertion::LineEnd => Hir::look(Look::EndLF),
        Assertion::Word => Hir::look(Look::WordAscii),
        Assertion::NotWord => Hir::look(Look::WordAsciiNegate),
        Assertion::LastLine if after.is_end => {
            let feed = Hir::literal(*b"\n");
            let optional = Repetition { min: 0, max: Some(1), greedy: true, sub: Box::new(feed) };
            Hir::concat(vec![Hir::repetition(optional), Hir::look(Look::End)])
        }
        Assertion::LineStart | Assertion::LastLine | Assertion::From => return None,
    })
}

fn letter(byte: u8) -> Hir {
    let mut set = ByteSet::EMPTY;
    set.insert(byte);
    set.insert(if has_case(byte) { byte ^ 0x20 } else { byte });
    class(&set)
}

fn class(set: &ByteSet) -> Hir {
    let mut class = ClassBytes::empty();
    let mut bytes = set.iter().peekable();
    while let Some(start) = bytes.next() {
        let mut end = start;
        while let Some(next) = bytes.next_if(|&next| u16::from(next) == u16::from(end) + 1) {
            end = next;
        }
        class.push(ClassBytesRange::new(start, end));
    }
    Hir::class(Class::Bytes(class))
}

/// The most bytes of an automaton's program before it is determinized.
const NFA_BYTES_MAX: usize = 64 << 20;

/// The automaton that finds where the first match ends.
pub(super) fn forward(hir: &Hir, start: &Start, cache_bytes: usize) -> Option<DFA> {
    // The state in which nothing has begun stands out only where the next start is found faster.
    let config = DFA::config().match_kind(MatchKind::LeftmostFirst).specialize_start_states(leaps(start));
    build(std::slice::from_ref(hir), config, cache_bytes, false)
}

/// The automaton that finds which of many match, each at every place where a match ends.
pub(super) fn forward_of_many(all: &[Hir], cache_bytes: usize) -> Option<DFA> {
    build(all, DFA::config().match_kind(MatchKind::All), cache_bytes, false)
}

/// The automaton that finds where a match begins, from where it ends.
pub(super) fn reverse(hir: &Hir, cache_bytes: usize) -> Option<DFA> {
    build(std::slice::from_ref(hir), DFA::config().match_kind(MatchKind::All), cache_bytes, true)
}

fn build(all: &[Hir], config: Config, cache_bytes: usize, is_reverse: bool) -> Option<DFA> {
    let thompson = thompson::Config::new()
        .utf8(false)
        .reverse(is_reverse)
        .which_captures(WhichCaptures::None)
        .nfa_size_limit(Some(NFA_BYTES_MAX));
    let nfa = thompson::Compiler::new().configure(thompson).build_many_from_hir(all).ok()?;
    // An automaton of many words has about as many states as they have letters.
    let cache_bytes =
        nfa.states().len().saturating_mul(BYTES_OF_EACH).clamp(cache_bytes, cache_bytes.saturating_mul(8));
    let config = config.cache_capacity(cache_bytes).skip_cache_capacity_check(true);
    DFA::builder().configure(config).build_from_nfa(nfa).ok()
}

/// Room in the cache for each state of the program.
const BYTES_OF_EACH: usize = 512;

/// A walk through an automaton, which can be left and taken up again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    state: LazyStateID,
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
    /// The automaton cannot go on.
    Stuck,
}

/// An automaton with the memory that it works in.
pub(super) struct Automaton<'a> {
    pub dfa: &'a DFA,
    pub cache: &'a mut Cache,
}

impl Automaton<'_> {
    /// Begins a walk forward, for matches that begin as `start` says.
    pub fn from(&mut self, haystack: &[u8], from: usize, start: &Start) -> Option<Walk> {
        if !matches!(start, Start::First | Start::Line) {
            return self.anywhere_from(haystack, from);
        }
        let skipped = haystack.get(from..).and_then(|rest| skip(start, haystack, rest, from, from));
        let at = skipped.map_or(haystack.len(), |skipped| from + skipped);
        self.alone_from(haystack, Tried { at, first: at, spent: 0 })
    }

    /// Begins a walk for matches that begin at `from` or behind it.
    fn anywhere_from(&mut self, haystack: &[u8], from: usize) -> Option<Walk> {
        let input = Input::new(haystack).range(from.min(haystack.len())..);
        let state = self.dfa.start_state_forward(self.cache, &input).ok()?;
        Some(Walk { state, at: from, found: None, tried: None })
    }

    /// Begins a walk for matches that begin at one place.
    fn alone_from(&mut self, haystack: &[u8], tried: Tried) -> Option<Walk> {
        let input = Input::new(haystack).range(tried.at..).anchored(Anchored::Yes);
        let state = self.dfa.start_state_forward(self.cache, &input).ok()?;
        Some(Walk { state, at: tried.at, found: None, tried: Some(tried) })
    }

    /// Begins a walk back from `end`, not beyond `from`.
    pub fn back_from(&mut self, haystack: &[u8], from: usize, end: usize) -> Option<Walk> {
        let end = end.min(haystack.len());
        let input = Input::new(haystack).range(from.min(end)..end).anchored(Anchored::Yes);
        let state = self.dfa.start_state_reverse(self.cache, &input).ok()?;
        Some(Walk { state, at: end, found: None, tried: None })
    }

    /// How many bytes are walked in one piece: fewer of a large program, whose steps may be long.
    fn chunk(&self) -> usize {
        (WORK_IN_ONE_PIECE / self.dfa.get_nfa().states().len().max(1)).clamp(8, 1024)
    }

    /// What a chunk of `length` bytes costs: a unit a byte, and where new states were built the size of the program for
    /// each byte, as far as it was looked at.
    fn cost(&self, length: usize, memory: usize, clears: usize) -> u64 {
        let is_cheap = self.cache.memory_usage() == memory && self.cache.clear_count() == clears;
        let each = if is_cheap { 1 } else { 1 + self.dfa.get_nfa().states().len().min(64) / 8 };
        1 + (length * each) as u64
    }

    /// Walks forward over one chunk, no farther than a match may end. With `earliest` it ends as soon as it is known that
    /// there is a match.
    pub fn forward(
        &mut self,
        walk: &mut Walk,
        (haystack, until): (&[u8], usize),
        start: &Start,
        earliest: bool,
        meter: &mut Meter,
    ) -> Walked {
        loop {
            let walked = self.stretch(walk, (haystack, until), start, earliest, meter);
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
            let Some(again) = again else { return Walked::Stuck };
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
        earliest: bool,
        meter: &mut Meter,
    ) -> Walked {
        let (memory, clears) = (self.cache.memory_usage(), self.cache.clear_count());
        let mut begun = walk.at;
        // That a match ends somewhere is known behind the next byte.
        let last = haystack.len().min(until.saturating_add(1));
        let mut end = walk.at.saturating_add(self.chunk()).min(last);
        while walk.at < end {
            let may_leap = walk.tried.is_none() && walk.found.is_none() && leaps(start);
            if may_leap && walk.state.is_tagged() && walk.state.is_start() {
                let Some(skipped) = skip(start, haystack, &haystack[walk.at..], walk.at, walk.at) else {
                    meter.burn((haystack.len() - walk.at) as u64 / 16);
                    return Walked::Done(None);
                };
                if skipped > 0 {
                    meter.burn(skipped as u64 / 16);
                    let Some(again) = self.anywhere_from(haystack, walk.at + skipped) else {
                        return Walked::Stuck;
                    };
                    *walk = again;
                    (begun, end) = (begun + skipped, (end + skipped).min(last));
                    if walk.at >= end {
                        break;
                    }
                }
            }
            let Some((next, at)) = self.run(walk.state, &haystack[..end], walk.at) else {
                return Walked::Stuck;
            };
            (walk.state, walk.at) = (next, at);
            if next.is_tagged() {
                if next.is_match() {
                    walk.found = Some(walk.at);
                    if earliest {
                        return Walked::Done(walk.found);
                    }
                } else if next.is_dead() {
                    meter.burn(self.cost(walk.at - begun, memory, clears));
                    return Walked::Done(walk.found);
                } else if next.is_quit() {
                    return Walked::Stuck;
                }
            }
            walk.at += 1;
        }
        meter.burn(self.cost(walk.at.saturating_sub(begun), memory, clears));
        if walk.at < last {
            return Walked::On;
        }
        if last < haystack.len() {
            return Walked::Done(walk.found);
        }
        match self.dfa.next_eoi_state(self.cache, walk.state) {
            Ok(last) if last.is_match() => Walked::Done(Some(haystack.len())),
            Ok(_) => Walked::Done(walk.found),
            Err(_) => Walked::Stuck,
        }
    }

    /// Goes on from `at` to a state that is something particular, or to the last byte: the state, and the byte that led there.
    #[inline]
    fn run(&mut self, mut state: LazyStateID, haystack: &[u8], mut at: usize) -> Option<(LazyStateID, usize)> {
        loop {
            // As far as states are nothing particular and have been built.
            let cache = &*self.cache;
            for &byte in haystack.get(at..).filter(|_| !state.is_tagged()).unwrap_or_default() {
                let next = self.dfa.next_state_untagged(cache, state, byte);
                if next.is_tagged() {
                    break;
                }
                (state, at) = (next, at + 1);
            }
            let Some(&byte) = haystack.get(at) else {
                return Some((state, at.saturating_sub(1)));
            };
            state = self.dfa.next_state(self.cache, state, byte).ok()?;
            if state.is_tagged() {
                return Some((state, at));
            }
            at += 1;
        }
    }

    /// Walks back over one chunk, not beyond `from`.
    pub fn backward(&mut self, walk: &mut Walk, haystack: &[u8], from: usize, meter: &mut Meter) -> Walked {
        let (memory, clears) = (self.cache.memory_usage(), self.cache.clear_count());
        let begun = walk.at;
        let end = walk.at.saturating_sub(self.chunk()).max(from);
        while walk.at > end {
            let Ok(next) = self.dfa.next_state(self.cache, walk.state, haystack[walk.at - 1]) else {
                return Walked::Stuck;
            };
            walk.state = next;
            if next.is_tagged() {
                if next.is_match() {
                    walk.found = Some(walk.at);
                } else if next.is_dead() {
                    meter.burn(self.cost(begun - walk.at, memory, clears));
                    return Walked::Done(walk.found);
                } else if next.is_quit() {
                    return Walked::Stuck;
                }
            }
            walk.at -= 1;
        }
        meter.burn(self.cost(begun - walk.at, memory, clears));
        if walk.at > from {
            return Walked::On;
        }
        let last = match from.checked_sub(1).and_then(|before| haystack.get(before)) {
            Some(&before) => self.dfa.next_state(self.cache, walk.state, before),
            None => self.dfa.next_eoi_state(self.cache, walk.state),
        };
        match last {
            Ok(last) if last.is_match() => Walked::Done(Some(from)),
            Ok(_) => Walked::Done(walk.found),
            Err(_) => Walked::Stuck,
        }
    }
}

/// The first place at or behind `from` where a match can begin and take a byte.
fn next_place(start: &Start, haystack: &[u8], from: usize) -> Option<usize> {
    let rest = haystack.get(from..)?;
    skip(start, haystack, rest, from, from).map(|skipped| from + skipped).filter(|&place| place < haystack.len())
}

/// Bytes that may be walked over more than twice, where places are tried one after the other.
const SPENT_MAX: usize = 512;

/// Whether where a match can begin is found faster than the automaton gets there.
fn leaps(start: &Start) -> bool {
    !matches!(start, Start::Anywhere | Start::Set(_))
}

/// States of a program that are visited in one piece, at most.
const WORK_IN_ONE_PIECE: usize = 1 << 17;
