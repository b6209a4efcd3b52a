//! Expressions of many words, put so that their automata are small, where it only matters whether there is a match.
//!
//! Which alternative is preferred does not matter then: those that begin with the same byte are put together, as in a trie, so
//! that a state of the automaton follows one of them and not each. What may be missing at the start is left out.

use super::syntax::{Node, Repeat};
use crate::ByteSet;

/// An expression that matches somewhere in a haystack where the given one does, and nowhere else.
pub(super) fn for_hits(node: &Node) -> Node {
    factored(&without_lead(node))
}

/// Removes optional nodes at the start: they are of no use to a search that begins everywhere.
fn without_lead(node: &Node) -> Node {
    match node {
        Node::Group(node, _) => without_lead(node),
        Node::Alternate(nodes) => Node::Alternate(nodes.iter().map(without_lead).collect()),
        Node::Concat(nodes) => {
            let lead = nodes.iter().take_while(|node| may_be_missing(node)).count();
            let Some((first, rest)) = nodes[lead..].split_first() else {
                return node.clone();
            };
            let mut all = vec![without_lead(first)];
            all.extend_from_slice(rest);
            Node::Concat(all)
        }
        Node::Repeat(repeat) if repeat.min > 0 && repeat.max > 1 && may_begin_late(&repeat.node) => {
            let max = if repeat.max == super::syntax::UNBOUNDED { repeat.max } else { repeat.max - 1 };
            let rest = Repeat { node: repeat.node.clone(), min: repeat.min - 1, max, lazy: repeat.lazy };
            Node::Concat(vec![without_lead(&repeat.node), Node::Repeat(Box::new(rest))])
        }
        node => node.clone(),
    }
}

/// Whether something stands at its start that may be missing.
fn may_begin_late(node: &Node) -> bool {
    match node {
        Node::Group(node, _) => may_begin_late(node),
        Node::Concat(nodes) => nodes.len() > 1 && nodes.first().is_some_and(may_be_missing),
        _ => false,
    }
}

/// Whether it can match nothing, whatever stands around it.
fn may_be_missing(node: &Node) -> bool {
    node.is_nullable() && !node.any(&mut |node| matches!(node, Node::Assert(_) | Node::Look(_) | Node::Never))
}

/// With all alternatives as tries.
fn factored(node: &Node) -> Node {
    match node {
        Node::Group(node, _) => factored(node),
        Node::Concat(nodes) => Node::Concat(nodes.iter().map(factored).collect()),
        Node::Repeat(repeat) => {
            let Repeat { node, min, max, lazy } = &**repeat;
            Node::Repeat(Box::new(Repeat { node: factored(node), min: *min, max: *max, lazy: *lazy }))
        }
        Node::Alternate(nodes) => {
            let mut sequences = Vec::with_capacity(nodes.len());
            nodes.iter().for_each(|node| sequence(node, &mut sequences));
            tree(sequences, DEPTH_MAX)
        }
        node => node.clone(),
    }
}

/// The most bytes in a row that are put together.
const DEPTH_MAX: usize = 32;

/// Adds an alternative, as what stands one behind the other; alternatives of alternatives are alternatives.
fn sequence(node: &Node, sequences: &mut Vec<Vec<Node>>) {
    match node {
        Node::Group(node, _) => sequence(node, sequences),
        Node::Alternate(nodes) => nodes.iter().for_each(|node| sequence(node, sequences)),
        Node::Concat(nodes) => sequences.push(nodes.iter().map(factored).collect()),
        Node::Empty => sequences.push(Vec::new()),
        node => sequences.push(vec![factored(node)]),
    }
}

/// Alternatives, those that begin with the same byte together.
fn tree(sequences: Vec<Vec<Node>>, depth: usize) -> Node {
    let mut groups: Vec<(Option<ByteSet>, Vec<Vec<Node>>)> = Vec::new();
    for sequence in sequences {
        let (first, rest) = split(sequence);
        match groups.iter_mut().find(|(known, _)| first.is_some() && *known == first) {
            Some((_, rests)) => rests.push(rest),
            None => groups.push((first, vec![rest])),
        }
    }
    let mut all: Vec<Node> = groups
        .into_iter()
        .map(|(first, mut rests)| {
            let rest = match rests.len() {
                1 => Node::Concat(rests.swap_remove(0)),
                _ if depth == 0 => Node::Alternate(rests.into_iter().map(Node::Concat).collect()),
                _ => tree(rests, depth - 1),
            };
            match first {
                Some(first) => Node::Concat(vec![Node::Set(first), rest]),
                None => rest,
            }
        })
        .collect();
    if all.len() == 1 { all.swap_remove(0) } else { Node::Alternate(all.into()) }
}

/// The bytes of which a sequence begins with one, if it takes exactly one there, and what is behind it.
fn split(mut sequence: Vec<Node>) -> (Option<ByteSet>, Vec<Node>) {
    let first = match sequence.first_mut() {
        Some(Node::Set(set)) => {
            let set = *set;
            sequence.remove(0);
            Some(set)
        }
        Some(Node::Literal { bytes, fold }) if !bytes.is_empty() => {
            let one = Node::Literal { bytes: vec![bytes.remove(0)], fold: *fold };
            if bytes.is_empty() {
                sequence.remove(0);
            }
            one.first()
        }
        _ => None,
    };
    (first, sequence)
}
