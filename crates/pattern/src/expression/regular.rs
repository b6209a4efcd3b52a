//! Regular expressions that automata can run, which prefer the same match as Perl.
//!
//! An expression is regular if it has no references, looks around, atomic groups, `\G`, or loops whose inside can match
//! nothing (so many times exactly is no loop); `$` without `m` only where nothing can follow.
//!
//! `$` is compiled as an optional line feed and the end. Where a match ends with the line feed that ends the haystack, the
//! automaton cannot tell whether `$` took it, and the backtracking matcher is asked for the end.

use super::syntax::{Assertion, Node, Repeat};

/// Whether automata can run it.
pub(super) fn is_regular(node: &Node) -> bool {
    regular(node, true)
}

fn regular(node: &Node, is_end: bool) -> bool {
    match node {
        Node::Empty | Node::Never | Node::Literal { .. } | Node::Set(_) => true,
        Node::Assert(assertion) => match assertion {
            Assertion::LastLine => is_end,
            assertion => *assertion != Assertion::From,
        },
        Node::Concat(nodes) => {
            let last = nodes.len().saturating_sub(1);
            nodes.iter().enumerate().all(|(at, node)| regular(node, is_end && at == last))
        }
        Node::Alternate(nodes) => nodes.iter().all(|node| regular(node, is_end)),
        Node::Repeat(repeat) => !is_empty_loop(repeat) && regular(&repeat.node, is_end && repeat.max == 1),
        Node::Group(node, _) => regular(node, is_end),
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
