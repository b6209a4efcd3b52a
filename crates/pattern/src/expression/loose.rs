//! Expressions made regular by letting more match.
//!
//! What an expression that is not regular asks for beyond is left out: looks around, what a group has matched, that a choice is
//! final. Loops are counted no further than a little, so that automata are small. What is left runs on an automaton, and where
//! that finds nothing the matcher need not look.
//!
//! The same helps a regular expression whose loops are long: its automaton has so many states that each step misses the caches,
//! where that of the loosened one has few ([`is_worth_it`]).

use super::syntax::{Assertion, Node, Repeat, UNBOUNDED};
use crate::ByteSet;

/// An expression that matches wherever the given one does, and elsewhere; it has neither looks around nor references.
pub(super) fn loosened(node: &Node) -> Node {
    counting(node, (TURNS_MAX, TURNS_MAX))
}

/// The same with fewer states: loops have to turn three times at most, and may turn as often as they can where that is more than
/// twice.
pub(super) fn shrunk(node: &Node) -> Node {
    counting(node, (3, 2))
}

/// Whether [`shrunk`] saves so many states that it pays to run it first.
pub(super) fn is_worth_it(node: &Node) -> bool {
    let states = states(node);
    states >= STATES_MIN && states >= TIMES_FEWER * self::states(&shrunk(node))
}

/// Automata of fewer states stay near the processor.
const STATES_MIN: usize = 256;
const TIMES_FEWER: usize = 2;

/// About how many states a program for it has.
fn states(node: &Node) -> usize {
    let sum = |nodes: &[Node]| nodes.iter().map(states).fold(0, usize::saturating_add);
    match node {
        Node::Concat(nodes) => sum(nodes),
        Node::Alternate(nodes) => sum(nodes),
        Node::Group(node, _) | Node::Atomic(node) => states(node),
        Node::Repeat(repeat) => {
            let turns = if repeat.max == UNBOUNDED { repeat.min.saturating_add(1) } else { repeat.max };
            states(&repeat.node).saturating_mul(turns as usize)
        }
        _ => 1,
    }
}

/// Loosened, with the turns that loops have to do, and those that they may do, counted so far.
fn counting(node: &Node, turns: (u32, u32)) -> Node {
    let all = |nodes: &[Node]| nodes.iter().map(|node| counting(node, turns)).collect();
    match node {
        Node::Look(_) | Node::Assert(Assertion::From) => Node::Empty,
        Node::Assert(Assertion::LastLine) => Node::Assert(Assertion::LineEnd),
        Node::Backreference { .. } => anything(),
        Node::Group(node, _) | Node::Atomic(node) => counting(node, turns),
        Node::Concat(nodes) => Node::Concat(all(nodes)),
        Node::Alternate(nodes) => Node::Alternate(nodes.iter().map(|node| counting(node, turns)).collect()),
        Node::Repeat(repeat) => {
            let min = repeat.min.min(turns.0);
            let max = if repeat.max > turns.1 { UNBOUNDED } else { repeat.max };
            Node::Repeat(Box::new(Repeat { node: counting(&repeat.node, turns), min, max, lazy: repeat.lazy }))
        }
        node => node.clone(),
    }
}

/// The most turns that are counted.
const TURNS_MAX: u32 = 6;

/// Any bytes, as many as there are.
fn anything() -> Node {
    let set = Node::Set(ByteSet::EMPTY.complement());
    Node::Repeat(Box::new(Repeat { node: set, min: 0, max: UNBOUNDED, lazy: false }))
}
