//! A search: its matches, and its position while it is suspended.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use stream::Fuel;

use super::Compiled;
use super::automaton::{Automaton, States};
use super::machine::{Machine, Outcome, Room};
use super::meter::Meter;
use super::walk::{Walk, Walked, Walker};

/// Question to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// Whether there is a match.
    Hit,
    /// Where the first match ends. What is told begins where the search did.
    End,
    /// Where the first match is.
    Span,
    /// Spans of its groups.
    Groups,
}

/// Result of one call of [`Search::run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Here is the first match; with [`Want::Hit`], some match lies in here; with [`Want::End`], it ends where this does.
    Match(Range<usize>),
    /// The haystack has no match.
    None,
    /// The fuel is used up; call again.
    Tired,
    /// The search took more steps or memory than [`Limits`](super::Limits) allow. Whether there is a match is not known.
    Exhausted,
}

/// A search for the first match of an expression, and the memory that it works in.
///
/// It is run until it is done: [`Self::run`] is called with the same haystack until it returns something else than
/// [`Progress::Tired`]. [`Self::restart`] begins another, in the same memory; so does a haystack of another length.
pub struct Search {
    compiled: Arc<Compiled>,
    state: State,
}

/// Where a search stands, and its memory.
struct State {
    want: Want,
    /// It backtracks from the first byte on.
    is_bare: bool,
    from: usize,
    /// No match ends behind it.
    until: usize,
    phase: Phase,
    /// The length of the haystack that is being searched.
    length: usize,
    /// Steps taken in this search.
    used: u64,
    gate: Option<Box<States>>,
    forward: Option<Box<States>>,
    reverse: Option<Box<States>>,
    machine: Machine,
}

#[derive(Debug)]
enum Phase {
    Begin,
    /// On the automaton of a regular expression that was loosened.
    Gate(Walk),
    /// On the automaton of an expression that is not regular and was loosened.
    Loose(Walk),
    Forward(Walk),
    /// With where the match ends.
    Reverse(Walk, usize),
    /// Backtracking; anchored, the start is known to be that of a match.
    Machine,
    Done(Progress),
}

impl Search {
    pub(super) fn new(compiled: Arc<Compiled>, want: Want) -> Search {
        let state = State {
            want,
            is_bare: false,
            from: 0,
            until: usize::MAX,
            phase: Phase::Begin,
            length: 0,
            used: 0,
            gate: None,
            forward: None,
            reverse: None,
            machine: Machine::default(),
        };
        Search { compiled, state }
    }

    pub(super) fn without_automaton(mut self) -> Search {
        self.state.is_bare = true;
        self
    }

    /// Begins another search, for a match that begins at or behind byte `from`. What lies before it is seen by `\b`, `^`
    /// and looks behind.
    pub fn restart(&mut self, from: usize) {
        self.restart_within(from..usize::MAX);
    }

    /// The same where the caller knows that no match ends behind the end of `place`: it need not be looked for there.
    pub fn restart_within(&mut self, place: Range<usize>) {
        self.state.until = place.end;
        self.state.restart(place.start);
    }

    /// Goes on until something is known or the fuel is used up. A unit is about one byte, or one instruction. Each call
    /// with fuel gets on by at least one step, and may overrun by one: a run of bytes of one set, or 1,024 bytes.
    pub fn run(&mut self, haystack: &[u8], fuel: &mut Fuel) -> Progress {
        self.state.run(&self.compiled, haystack, fuel)
    }

    /// Where a group matched, by its number; 0 is the whole. Known after a match, with [`Want::Groups`]; the whole also
    /// with [`Want::Span`].
    pub fn group(&self, number: usize) -> Option<Range<usize>> {
        let Phase::Done(Progress::Match(span)) = &self.state.phase else {
            return None;
        };
        match (number, self.state.want) {
            (0, _) => Some(span.clone()),
            (_, Want::Groups) => self.state.machine.group(number).map(|(start, end)| start..end),
            _ => None,
        }
    }

    /// How many steps the search has taken.
    pub fn steps(&self) -> u64 {
        self.state.used
    }

    /// About how many bytes of memory it holds, without the expression.
    pub fn memory(&self) -> usize {
        let states = |states: &Option<Box<States>>| states.as_ref().map_or(0, |states| states.memory());
        let state = &self.state;
        size_of::<Search>()
            + states(&state.gate)
            + states(&state.forward)
            + states(&state.reverse)
            + state.machine.memory()
    }
}

impl State {
    fn restart(&mut self, from: usize) {
        (self.from, self.phase, self.used) = (from, Phase::Begin, 0);
    }

    fn run(&mut self, compiled: &Compiled, haystack: &[u8], fuel: &mut Fuel) -> Progress {
        if self.length != haystack.len() {
            self.length = haystack.len();
            self.restart(self.from);
        }
        loop {
            if let Phase::Done(progress) = &self.phase {
                return progress.clone();
            }
            let left = compiled.limits.steps_max.saturating_sub(self.used);
            if left == 0 {
                return self.done(Progress::Exhausted);
            }
            if fuel.is_empty() {
                return Progress::Tired;
            }
            let mut meter = Meter::new(left.min(fuel.left()));
            self.turn(compiled, haystack, &mut meter);
            self.used = self.used.saturating_add(meter.used());
            fuel.burn(usize::try_from(meter.used()).unwrap_or(usize::MAX));
        }
    }

    fn done(&mut self, progress: Progress) -> Progress {
        self.phase = Phase::Done(progress.clone());
        self.machine.shrink(MACHINE_AT_REST_MAX);
        progress
    }

    /// One piece of work.
    fn turn(&mut self, compiled: &Compiled, haystack: &[u8], meter: &mut Meter) {
        match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::Begin => self.begin(compiled, haystack, meter),
            Phase::Gate(walk) => self.walk_to_gate(compiled, walk, haystack, meter),
            Phase::Loose(walk) => self.walk_loosely(compiled, walk, haystack, meter),
            Phase::Forward(walk) => self.walk_forward(compiled, walk, haystack, meter),
            Phase::Reverse(walk, end) => self.walk_back(compiled, walk, end, haystack, meter),
            Phase::Machine => self.backtrack(compiled, haystack, meter),
            done @ Phase::Done(_) => self.phase = done,
        }
    }

    fn begin(&mut self, compiled: &Compiled, haystack: &[u8], meter: &mut Meter) {
        meter.burn(1);
        if self.from > haystack.len() {
            self.done(Progress::None);
            return;
        }
        if let Some(automaton) = compiled.gate().filter(|_| !self.is_bare) {
            let states = self.gate.get_or_insert_default();
            self.phase = Phase::Gate(Walker { automaton, states }.from(haystack, self.from, &compiled.start));
            return;
        }
        self.begin_forward(compiled, haystack);
    }

    fn begin_forward(&mut self, compiled: &Compiled, haystack: &[u8]) {
        let Some(automaton) = self.automaton(compiled) else {
            return self.begin_machine(compiled, self.from, false);
        };
        let states = self.forward.get_or_insert_default();
        let walk = Walker { automaton, states }.from(haystack, self.from, &compiled.start);
        self.phase = if compiled.is_regular { Phase::Forward(walk) } else { Phase::Loose(walk) };
    }

    /// Walks the loosened form of a large regular expression: without a match of it there is none.
    fn walk_to_gate(&mut self, compiled: &Compiled, mut walk: Walk, haystack: &[u8], meter: &mut Meter) {
        let (Some(automaton), Some(states)) = (compiled.gate(), self.gate.as_deref_mut()) else {
            return self.begin_forward(compiled, haystack);
        };
        match (Walker { automaton, states }).forward(&mut walk, (haystack, self.until), &compiled.start, meter) {
            Walked::On => self.phase = Phase::Gate(walk),
            Walked::Done(None) => drop(self.done(Progress::None)),
            Walked::Done(Some(_)) => self.begin_forward(compiled, haystack),
        }
    }

    /// Walks the loosened form of an expression that is not regular: without a match of it there is none.
    fn walk_loosely(&mut self, compiled: &Compiled, mut walk: Walk, haystack: &[u8], meter: &mut Meter) {
        let (Some(automaton), Some(states)) = (compiled.hits(), self.forward.as_deref_mut()) else {
            return self.begin_machine(compiled, self.from, false);
        };
        match (Walker { automaton, states }).forward(&mut walk, (haystack, self.until), &compiled.start, meter) {
            Walked::On => self.phase = Phase::Loose(walk),
            Walked::Done(None) => drop(self.done(Progress::None)),
            Walked::Done(Some(_)) => self.begin_machine(compiled, self.from, false),
        }
    }

    /// The automaton that walks forward, where that is wanted.
    fn automaton<'c>(&self, compiled: &'c Compiled) -> Option<&'c Automaton> {
        if self.is_bare {
            return None;
        }
        let is_enough = self.want == Want::Hit || !compiled.is_regular;
        if is_enough { compiled.hits() } else { compiled.forward() }
    }

    fn walk_forward(&mut self, compiled: &Compiled, mut walk: Walk, haystack: &[u8], meter: &mut Meter) {
        let (Some(automaton), Some(states)) = (self.automaton(compiled), self.forward.as_deref_mut()) else {
            return self.begin_machine(compiled, self.from, false);
        };
        let earliest = self.want == Want::Hit;
        match (Walker { automaton, states }).forward(&mut walk, (haystack, self.until), &compiled.start, meter) {
            Walked::On => self.phase = Phase::Forward(walk),
            Walked::Done(None) => drop(self.done(Progress::None)),
            Walked::Done(Some(end)) if earliest => drop(self.done(Progress::Match(self.from..end))),
            Walked::Done(Some(end)) if self.want == Want::End && self.is_settled(compiled, haystack, end) => {
                self.done(Progress::Match(self.from..end));
            }
            Walked::Done(Some(end)) => self.begin_back(compiled, haystack, end),
        }
    }

    fn begin_back(&mut self, compiled: &Compiled, haystack: &[u8], end: usize) {
        let Some(automaton) = compiled.reverse() else {
            return self.begin_machine(compiled, self.from, false);
        };
        let states = self.reverse.get_or_insert_default();
        self.phase = Phase::Reverse(Walker { automaton, states }.back_from(haystack, end), end);
    }

    fn walk_back(&mut self, compiled: &Compiled, mut walk: Walk, end: usize, haystack: &[u8], meter: &mut Meter) {
        let (Some(automaton), Some(states)) = (compiled.reverse(), self.reverse.as_deref_mut()) else {
            return self.begin_machine(compiled, self.from, false);
        };
        match (Walker { automaton, states }).backward(&mut walk, haystack, self.from, meter) {
            Walked::On => self.phase = Phase::Reverse(walk, end),
            Walked::Done(Some(start)) if self.is_settled(compiled, haystack, end) => {
                self.done(Progress::Match(start..end));
            }
            Walked::Done(Some(start)) => self.begin_machine(compiled, start, true),
            Walked::Done(None) => self.begin_machine(compiled, self.from, false),
        }
    }

    /// Whether no more is to be known about a match that ends there.
    fn is_settled(&self, compiled: &Compiled, haystack: &[u8], end: usize) -> bool {
        let may_be_short = compiled.has_last_line && end == haystack.len() && haystack.ends_with(b"\n");
        self.want != Want::Groups && !may_be_short
    }

    fn begin_machine(&mut self, compiled: &Compiled, from: usize, is_anchored: bool) {
        self.machine.begin(compiled.program(self.want == Want::Groups), from, is_anchored);
        self.phase = Phase::Machine;
    }

    fn backtrack(&mut self, compiled: &Compiled, haystack: &[u8], meter: &mut Meter) {
        let limits = &compiled.limits;
        let room = Room { frames_max: limits.frames_max, memo_bytes_max: limits.memo_bytes_max };
        let program = compiled.program(self.want == Want::Groups);
        let progress = match self.machine.run(program, haystack, room, meter) {
            Outcome::Tired => {
                self.phase = Phase::Machine;
                return;
            }
            Outcome::Match => self.machine.group(0).map_or(Progress::None, |(start, end)| Progress::Match(start..end)),
            Outcome::None => Progress::None,
            Outcome::Full => Progress::Exhausted,
        };
        self.done(progress);
    }
}

/// Memory of the backtracking matcher between two searches.
const MACHINE_AT_REST_MAX: usize = 64 << 10;

impl fmt::Debug for Search {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Search")
            .field("want", &self.state.want)
            .field("from", &self.state.from)
            .field("phase", &self.state.phase)
            .finish()
    }
}
