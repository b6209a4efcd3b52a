//! Expressions made regular by letting more match.
//!
//! What an expression that is not regular asks for beyond is left out: looks around, what a group has matched, that a choice is
//! final. Loops are counted no further than a little, so that automata are small. What is left runs on an automaton, and where
//! that finds nothing the matcher need not look.

use super::syntax::{Assertion, Node, Repeat, UNBOUNDED};
use crate::ByteSet;

/// An expression that matches wherever the given one does, and elsewhere; it has neither looks around nor references.
pub(super) fn loosened(node: &Node) -> Node {
    let all = |nodes: &[Node]| nodes.iter().map(loosened).collect();
    match node {
        Node::Look(_) | Node::Assert(Assertion::From) => Node::Empty,
        Node::Assert(Assertion::LastLine) => Node::Assert(Assertion::LineEnd),
        Node::Backreference { .. } => anything(),
        Node::Group(node, _) | Node::Atomic(node) => loosened(node),
        Node::Concat(nodes) => Node::Concat(all(nodes)),
        Node::Alternate(nodes) => Node::Alternate(nodes.iter().map(loosened).collect()),
        Node::Repeat(repeat) => {
            let min = repeat.min.min(TURNS_MAX);
            let max = if repeat.max > TURNS_MAX { UNBOUNDED } else { repeat.max };
            Node::Repeat(Box::new(Repeat { node: loosened(&repeat.node), min, max, lazy: repeat.lazy }))
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
