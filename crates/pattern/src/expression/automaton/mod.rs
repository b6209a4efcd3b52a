//! Automata whose states are built as they are reached.
//!
//! A program ([`steps`]) is what an expression, or many, come to: byte by byte, with branches. A state is the set of its steps
//! that may take the next byte, and where a byte leads is computed once and then looked up ([`States`]): in time linear in the
//! haystack whatever the expression.
//!
//! An automaton is small and shared; the states of a search are its own, and bounded. They are what takes memory, so they are
//! stored as tightly as speed lets them:
//! * bytes that no step tells apart share a column ([`Classes`]), letters in either case among them;
//! * a transition is two bytes;
//! * of a state that also looks for new beginnings only what has begun is stored, since the rest is the same in all of them;
//! * where it only matters whether there is a match, the order of alternatives does not, and one state stands for all matches.
//!
//! What an assertion says of the next byte is known one byte later, and so is that a match has ended, as in RE2 (Cox, "Regular
//! Expression Matching in the Wild", 2010).

mod classes;
mod key;
mod side;
mod states;
mod steps;

use classes::Classes;
use key::{Flags, Key};
use side::Side;
pub(super) use states::{State, States};
use steps::{Program, Step};

use super::syntax::Node;

/// Question to an automaton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Whether there is a match.
    Any,
    /// Where the match ends that Perl prefers of those that begin first.
    First,
    /// Every place where a match ends, and of what.
    Each,
}

/// An expression, or several, ready to run.
#[derive(Debug)]
pub(super) struct Automaton {
    program: Program,
    classes: Classes,
    pub wanted: Wanted,
    /// Whether the states in which nothing has begun stand out.
    marks_start: bool,
    starts: Starts,
    states_bytes_max: usize,
}

/// The steps with which matches begin, by what stands behind.
#[derive(Debug, Default)]
struct Starts {
    lists: Vec<Box<[u32]>>,
    /// For each side, its list.
    list: [u8; Side::ALL.len()],
    /// For each side, one that makes no difference to new matches.
    like: [Side; Side::ALL.len()],
}

impl Automaton {
    /// Automaton of one expression, to be run forward; `None` if it is not regular, or too large.
    pub fn forward(node: &Node, wanted: Wanted, marks_start: bool, states_bytes: usize) -> Option<Automaton> {
        let program = Program::of(std::slice::from_ref(node), false)?;
        Some(Automaton::new(program, wanted, marks_start, states_bytes))
    }

    /// An automaton of many expressions.
    pub fn of_many(nodes: &[Node], states_bytes: usize) -> Option<Automaton> {
        Some(Automaton::new(Program::of(nodes, false)?, Wanted::Each, false, states_bytes))
    }

    /// Automaton of one expression, to be run from the end of a match back to its start.
    pub fn reverse(node: &Node, states_bytes: usize) -> Option<Automaton> {
        let program = Program::of(std::slice::from_ref(node), true)?;
        Some(Automaton::new(program, Wanted::Each, false, states_bytes))
    }

    fn new(program: Program, wanted: Wanted, marks_start: bool, states_bytes: usize) -> Automaton {
        // An automaton of many words has about as many states as they have letters.
        let many = program.steps.len().saturating_mul(BYTES_OF_EACH);
        let states_bytes_max = many.clamp(states_bytes, states_bytes.saturating_mul(TIMES_MAX));
        let (classes, starts) = (Classes::of(&program), Starts::default());
        let mut automaton = Automaton { program, classes, wanted, marks_start, starts, states_bytes_max };
        automaton.starts = automaton.starts();
        automaton
    }

    /// How many steps its program has.
    pub fn steps(&self) -> usize {
        self.program.steps.len()
    }

    fn starts(&self) -> Starts {
        let mut starts = Starts::default();
        let mut sides: Vec<(Side, u8, Side)> = Vec::new();
        for side in Side::ALL {
            let mut list = Vec::new();
            self.close(0, side, None, &mut Walkthrough::new(self.steps()), &mut list);
            if self.wanted != Wanted::First {
                list.sort_unstable();
            }
            let place = starts.lists.iter().position(|known| **known == *list).unwrap_or_else(|| {
                starts.lists.push(list.clone().into());
                starts.lists.len() - 1
            }) as u8;
            let needed = self.needed(side, &list);
            let known = sides.iter().find(|&&(_, list, other)| (list, other) == (place, needed));
            let like = known.map_or(side, |&(like, ..)| like);
            sides.push((side, place, needed));
            starts.list[side as usize] = place;
            starts.like[side as usize] = like;
        }
        starts
    }

    /// The steps with which matches begin there.
    fn beginnings(&self, behind: Side) -> &[u32] {
        &self.starts.lists[usize::from(self.starts.list[behind as usize])]
    }

    /// The state before the first byte. With `is_searching`, matches may begin behind it too.
    fn first(&self, behind: Side, is_searching: bool) -> Vec<u8> {
        // Where it searches, what begins is not told.
        let begun = if is_searching { &[] } else { self.beginnings(behind) };
        let mut key = Key::new(self.flags(is_searching, behind, begun));
        begun.iter().for_each(|&step| key.push(step));
        key.finish()
    }

    /// The state that a byte leads to, or the end of the haystack, and how many steps were followed to find out.
    fn next(&self, state: &[u8], byte: Option<u8>) -> (Vec<u8>, u64) {
        let (flags, begun) = key::read(state, self.wanted == Wanted::Each);
        let (behind, ahead) = (flags.side(), Side::of(byte));
        let restarts = if flags.is_searching() { self.beginnings(behind) } else { &[] };

        // What the assertions come to, now that both sides are known.
        let mut walk = Walkthrough::new(self.steps());
        let mut ready = Vec::new();
        for step in begun.chain(restarts.iter().copied()) {
            self.close(step, behind, Some(ahead), &mut walk, &mut ready);
        }

        let mut matched = Vec::new();
        let mut begun = Vec::new();
        let mut is_searching = flags.is_searching() && byte.is_some();
        let mut walk = Walkthrough { followed: walk.followed, ..Walkthrough::new(self.steps()) };
        if is_searching && self.wanted != Wanted::First {
            // What begins anew is in every such state.
            walk.pass(self.beginnings(ahead));
        }
        for step in ready {
            if let Step::Match(pattern) = self.program.steps[step as usize] {
                match self.wanted {
                    Wanted::Any => return (Key::new(Flags::matched()).finish(), walk.followed),
                    // Those behind it are not preferred.
                    Wanted::First => {
                        matched.push(pattern);
                        is_searching = false;
                        break;
                    }
                    Wanted::Each => matched.push(pattern),
                }
            } else if byte.is_some_and(|byte| self.program.takes(step, byte)) {
                self.close(step + 1, ahead, None, &mut walk, &mut begun);
            }
        }
        if self.wanted != Wanted::First {
            begun.sort_unstable();
            matched.sort_unstable();
        }
        let mut key = Key::new(self.flags(is_searching, ahead, &begun));
        if !matched.is_empty() {
            key.matched(if self.wanted == Wanted::Each { &matched } else { &[] });
        }
        begun.into_iter().for_each(|step| key.push(step));
        (key.finish(), walk.followed)
    }

    /// Flags of a state after `side` in which these steps have begun.
    fn flags(&self, is_searching: bool, side: Side, begun: &[u32]) -> Flags {
        match (is_searching, self.needed(side, begun)) {
            (true, Side::Other) => Flags::searching(self.starts.like[side as usize]),
            (true, _) => Flags::searching(side),
            (false, needed) => Flags::alone(needed),
        }
    }

    /// Adds the steps that take the next byte, or end a match, from a step on, in the order of preference; and assertions that
    /// hold or not by what is `ahead`, where that is not known.
    fn close(&self, step: u32, behind: Side, ahead: Option<Side>, walk: &mut Walkthrough, steps: &mut Vec<u32>) {
        walk.ahead.push(step);
        while let Some(step) = walk.ahead.pop() {
            walk.followed += 1;
            if !walk.is_new(step) {
                continue;
            }
            match self.program.steps[step as usize] {
                Step::Byte(_) | Step::Letter(_) | Step::Set(_) | Step::Match(_) => steps.push(step),
                Step::Fail => {}
                Step::Jump(to) => walk.ahead.push(to),
                Step::Branch(other) => walk.ahead.extend([other, step + 1]),
                Step::Away(other) => walk.ahead.extend([step + 1, other]),
                Step::Look(look) => match look.holds(behind, ahead, self.program.is_reverse) {
                    Some(true) => walk.ahead.push(step + 1),
                    Some(false) => {}
                    None => steps.push(step),
                },
            }
        }
    }

    /// The side behind, reduced to what assertions among the steps still test.
    fn needed(&self, behind: Side, steps: &[u32]) -> Side {
        let waits = |step: &u32| matches!(self.program.steps[*step as usize], Step::Look(_));
        if steps.iter().any(waits) { self.program.sides[behind as usize] } else { Side::Other }
    }
}

/// Seen steps, steps that are still to be followed, and their number.
struct Walkthrough {
    seen: Vec<u64>,
    ahead: Vec<u32>,
    followed: u64,
}

impl Walkthrough {
    fn new(steps: usize) -> Walkthrough {
        Walkthrough { seen: vec![0; steps.div_ceil(64)], ahead: Vec::new(), followed: 0 }
    }

    /// Marks steps as done, so that they are not followed.
    fn pass(&mut self, steps: &[u32]) {
        for &step in steps {
            self.is_new(step);
        }
    }

    /// Whether the step had not been seen; now it has.
    fn is_new(&mut self, step: u32) -> bool {
        let (word, bit) = (&mut self.seen[step as usize / 64], 1 << (step % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// Room for states, for each step of the program, and the most of it, as a multiple of the least.
const BYTES_OF_EACH: usize = 160;
const TIMES_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::{Flags, parse};
    use super::*;

    fn node(text: &str, flags: &str) -> Node {
        let flags = Flags::of(flags).expect("flags");
        parse::parse(text.as_bytes(), flags, 200, &mut parse::Memo::default()).expect("an expression").node
    }

    /// Where the walk over a haystack tells matches, as places behind them.
    fn ends(automaton: &Automaton, states: &mut States, haystack: &[u8], is_searching: bool) -> Vec<usize> {
        let mut state = automaton.start(states, None, is_searching);
        let mut ends = Vec::new();
        for (at, byte) in haystack.iter().copied().map(Some).chain([None]).enumerate() {
            state = automaton.next_state(states, state, byte);
            ends.extend(automaton.is_match(states, state).then_some(at));
        }
        ends
    }

    #[test]
    fn every_end_is_told_or_the_first_or_that_there_is_one() {
        let (node, haystack) = (node("ab|abc?d*", ""), b"xabcddab");
        let ends = |wanted| {
            let automaton = Automaton::forward(&node, wanted, false, 1 << 16).expect("an automaton");
            ends(&automaton, &mut States::default(), haystack, true)
        };
        assert_eq!(ends(Wanted::Each), [3, 4, 5, 6, 8]);
        assert_eq!(ends(Wanted::First), [3]);
        assert_eq!(ends(Wanted::Any), [3]);
    }

    #[test]
    fn matches_that_begin_later_share_what_has_begun() {
        let automaton = Automaton::forward(&node("(?:free|cheap) pills", "i"), Wanted::Any, false, 1 << 16);
        let (automaton, mut states) = (automaton.expect("an automaton"), States::default());
        assert_eq!(ends(&automaton, &mut states, b"Free CHEAP pill Cheap PillS", true), [27]);
        let count = states.count();
        // The start, one for each letter of `free cheap` and of `pills`, and the match.
        assert!(count <= 20, "{count} states");
        // Letters in either case, the blank, what is none of them, and the end.
        assert_eq!(automaton.classes.count(), "freechapils ".len());
    }

    #[test]
    fn states_without_room_are_built_again() {
        let node = node("[ab]*a[ab]{6}c", "");
        let (roomy, cramped) = (1 << 20, 1);
        let noise = (0..2000u32).scan(1u32, |state, _| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some(b"ab"[(*state >> 31) as usize])
        });
        let haystack: Vec<u8> = noise.chain(*b"aababbac").collect();
        let run = |states_bytes| {
            let automaton = Automaton::forward(&node, Wanted::Each, false, states_bytes).expect("an automaton");
            let mut states = States::default();
            let ends = ends(&automaton, &mut states, &haystack, true);
            (ends, states)
        };
        let ((all, roomy), (again, cramped)) = (run(roomy), run(cramped));
        assert_eq!(all, again);
        assert!(roomy.count() > 64 && cramped.count() < 64, "{} states, {}", roomy.count(), cramped.count());
        assert!(cramped.followed() > 4 * roomy.followed() && cramped.memory() < 8 << 10, "{cramped:?}");
        // Each costs something, even where next to nothing is followed.
        assert!(cramped.followed() > 16 * haystack.len() as u64, "{cramped:?}");
    }

    #[test]
    fn assertions_behind_one_that_waits_know_what_was_passed() {
        for (text, haystack, is_match) in [
            (r"a\z\b", "a", true),
            (r"\z\b", " ", false),
            (r"\n\z^", "\n", false),
            (r"\n$^", "\n\n", true),
            (r"$\A", "\n", true),
        ] {
            let node = node(text, "m");
            for automaton in
                [Automaton::forward(&node, Wanted::Any, false, 1 << 16), Automaton::reverse(&node, 1 << 16)]
            {
                let automaton = automaton.expect("an automaton");
                let mut bytes = haystack.as_bytes().to_vec();
                if automaton.program.is_reverse {
                    bytes.reverse();
                }
                let ends = (0..=bytes.len()).flat_map(|from| {
                    let before = from.checked_sub(1).map(|before| bytes[before]);
                    let (mut states, mut found) = (States::default(), false);
                    let mut state = automaton.start(&mut states, before, false);
                    for byte in bytes[from..].iter().copied().map(Some).chain([None]) {
                        state = automaton.next_state(&mut states, state, byte);
                        found |= automaton.is_match(&states, state);
                    }
                    found.then_some(from)
                });
                assert_eq!(ends.count() > 0, is_match, "{text} in {haystack:?}");
            }
        }
    }

    #[test]
    fn turns_of_nothing_are_no_work() {
        let node = node("(?:(?:(?:){60000}){60000}){60000}a", "");
        assert!(Automaton::forward(&node, Wanted::First, false, 1).expect("an automaton").steps() < 8);
        assert!(Automaton::reverse(&super::super::syntax::Node::Empty, 1).is_some());
    }
}
