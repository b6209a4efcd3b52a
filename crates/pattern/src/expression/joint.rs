//! Many expressions as one automaton: which of them may match in a haystack that is ASCII.
//!
//! The plain way: walk each expression's automaton over the haystack. Instead the [`Parts`] of all of them are alternatives of one
//! lazy automaton, which is walked once and tells which it has seen. Ordinary text has few of them, so that a walk takes the place
//! of many, and one table of states lies in the cache in place of many.
//!
//! An expression that is not told has no match in the haystack. One that is told, since all its parts are there, may have one: it
//! has to be searched for.
//!
//! States are built as they are reached. Where that costs too much (its steps are counted, and the caller bounds them) the walk
//! is given up, and nothing is known.

use std::sync::OnceLock;

use super::automaton::{Automaton, State, States};
use super::factor::Parts;
use super::syntax::Node;
use super::trie::for_hits;

/// Expressions that are walked together, known by their places.
#[derive(Default, Debug)]
pub struct Joint {
    /// Parts of all, each once.
    parts: Vec<Node>,
    /// For each expression, the places of its parts.
    members: Vec<Vec<u32>>,
    automaton: OnceLock<Option<Box<Automaton>>>,
}

/// The states of a [`Joint`] that one thread has built.
#[derive(Default, Debug)]
pub struct JointRoom {
    states: States,
    /// A bit for each part that was seen.
    seen: Vec<u64>,
}

/// Work that walks may still spend: each transition that is not there yet, by the work of it, or leads to a match.
#[derive(Debug, Clone, Copy)]
pub struct Toil(u64);

impl Joint {
    /// Adds an expression behind the others, by what its matches have in haystacks that are ASCII.
    pub fn push(&mut self, parts: &Parts) {
        let places = parts.nodes.iter().map(|part| {
            self.parts.iter().position(|known| known == part).unwrap_or_else(|| {
                self.parts.push(part.clone());
                self.parts.len() - 1
            }) as u32
        });
        let places = places.collect();
        self.members.push(places);
        self.automaton = OnceLock::new();
    }

    /// How many expressions there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Tells the places of the expressions that may match in a haystack, which is ASCII; all others do not. False where the walk
    /// was given up: each may match.
    pub fn find(&self, room: &mut JointRoom, haystack: &[u8], toil: &mut Toil, mut found: impl FnMut(u32)) -> bool {
        if self.members.is_empty() {
            return true;
        }
        let Some(automaton) = self.automaton.get_or_init(|| self.build().map(Box::new)).as_deref() else {
            return false;
        };
        let seen = &mut room.seen;
        seen.clear();
        seen.resize(self.parts.len().div_ceil(64), 0);
        let mut is_any = false;
        let walked = walk(automaton, &mut room.states, haystack, toil, |part| {
            seen[part / 64] |= 1 << (part % 64);
            is_any = true;
        });
        if is_any {
            let has = |part: &u32| seen[*part as usize / 64] >> (part % 64) & 1 != 0;
            let all = (0..).zip(&self.members).filter(|(_, parts)| parts.iter().all(has));
            all.for_each(|(member, _)| found(member));
        }
        walked.is_some()
    }

    fn build(&self) -> Option<Automaton> {
        let all: Vec<Node> = self.parts.iter().map(for_hits).collect();
        Automaton::of_many(&all, STATES_BYTES)
    }
}

/// Bytes of the states of one thread, of large expressions up to eight times as many; beyond them they are built again.
const STATES_BYTES: usize = 192 << 10;

/// One walk; none where it is given up.
fn walk(
    automaton: &Automaton,
    states: &mut States,
    haystack: &[u8],
    toil: &mut Toil,
    mut found: impl FnMut(usize),
) -> Option<()> {
    let mut tell = |states: &States, state: State| {
        automaton.patterns(states, state).for_each(|pattern| found(pattern as usize));
    };
    let mut state = automaton.start(states, None, true);
    let mut at = 0;
    loop {
        let mut cost = COST_OF_TAGGED;
        if !state.is_tagged() {
            // As far as states are nothing particular and have been built.
            for &byte in &haystack[at..] {
                let next = automaton.known(states, state, byte);
                if next.is_tagged() {
                    break;
                }
                (state, at) = (next, at + 1);
            }
            cost = COST_OF_NEW;
        }
        let Some(&byte) = haystack.get(at) else { break };
        let followed = states.followed();
        toil.0 = toil.0.checked_sub(cost)?;
        state = automaton.next_state(states, state, Some(byte));
        let beyond = ((states.followed() - followed) / FOLLOWED_IN_A_UNIT).saturating_sub(cost);
        toil.0 = toil.0.checked_sub(beyond)?;
        at += 1;
        if state.is_dead() {
            return Some(());
        }
        if automaton.is_match(states, state) {
            tell(states, state);
        }
    }
    let last = automaton.next_state(states, state, None);
    if automaton.is_match(states, last) {
        tell(states, last);
    }
    Some(())
}

/// Cost of a step that may build a state, and of one from a state that has just reported a match. One for which more
/// steps of the program were followed costs more.
const COST_OF_NEW: u64 = 8;
const COST_OF_TAGGED: u64 = 1;
const FOLLOWED_IN_A_UNIT: u64 = 512;

impl Toil {
    /// So many units, of some microseconds at most: one to eight for a transition, or as many as the steps that are followed for
    /// it need.
    pub fn new(units: u64) -> Toil {
        Toil(units)
    }
}

impl JointRoom {
    /// The memory of its states, in bytes.
    pub fn memory(&self) -> usize {
        self.states.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ask, Expression, Flags};
    use super::*;

    const ASK: Ask<'_> = Ask { any: &[], ascii: &[], share_rare: 0.0, share_common: 1.0 };

    fn joint(texts: &[&str]) -> Joint {
        let mut joint = Joint::default();
        for text in texts {
            let (_, needs) =
                Expression::with_needs(text.as_bytes(), Flags::of("i").unwrap(), &ASK).expect("an expression");
            joint.push(&needs.parts.expect("parts"));
        }
        joint
    }

    fn found(joint: &Joint, haystack: &str) -> Vec<u32> {
        let mut found = Vec::new();
        let is_known = joint
            .find(&mut JointRoom::default(), haystack.as_bytes(), &mut Toil::new(1 << 20), |member| found.push(member));
        assert!(is_known);
        found
    }

    #[test]
    fn expressions_of_which_all_parts_are_there_are_told() {
        let joint =
            joint(&["free .{0,9}money", r"\bviagra\b|cialis", "[a-z]+ing", r"(?=x)(x)y\1", "free .{0,9}money!"]);
        assert_eq!(found(&joint, "Nothing at all"), [2]);
        assert_eq!(found(&joint, "money is never free "), [0]);
        assert_eq!(found(&joint, "FREE as all MONEY!"), [0, 4]);
        assert_eq!(found(&joint, "viagras"), []);
        assert_eq!(found(&joint, "Cialis"), [1]);
        assert_eq!(found(&joint, "viagra"), [1]);
        assert_eq!(found(&joint, "xyx"), [3]);
    }

    #[test]
    fn parts_that_several_have_are_followed_once() {
        let joint = joint(&["(?:name|address): .*pills", "(?:name|address): .*money"]);
        assert_eq!(joint.parts.len(), 3);
        assert_eq!(found(&joint, "your name: money"), [1]);
    }

    #[test]
    fn a_walk_that_costs_too_much_is_given_up() {
        let joint = joint(&["abcdefgh"]);
        let mut room = JointRoom::default();
        assert!(!joint.find(&mut room, b"abcdefgh", &mut Toil::new(16), |_| {}));
        assert!(joint.find(&mut room, b"abcdefgh", &mut Toil::new(1000), |_| {}));
        // What has been built costs nothing.
        assert!(joint.find(&mut room, b"abcdefg", &mut Toil::new(0), |_| {}));
    }

    #[test]
    fn a_walk_of_very_many_costs_more() {
        let words: Vec<String> = (0..9000).map(|word| format!("{word:04}")).collect();
        let joint = joint(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let costs = |units| !joint.find(&mut JointRoom::default(), b"12", &mut Toil::new(units), |_| {});
        assert!(costs(20) && !costs(200));
    }
}
