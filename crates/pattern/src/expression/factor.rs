//! Short parts that every match of an expression has, made of words and small sets: small automata find them.
//!
//! A part is what stands between two loops of many kinds of bytes, such as `.*` or `\w+`, which would let an automaton wait in them: of
//! many expressions that wait side by side the states would be as many as there are combinations. Of alternatives each has
//! its own part. The rarest few parts are told, by a model of single bytes.
//!
//! It is given what was loosened ([`loosened`](super::loose::loosened)): neither looks around nor references.

use super::outline::surprise;
use super::syntax::{Node, has_case};
use crate::ByteSet;

/// The most parts of an expression.
const PARTS_MAX: usize = 3;
/// Less rare parts are no use beside another, in bits.
const BITS_MIN: f64 = 8.0;
/// A loop of bytes that are rarer together, in bits, may stand in a part.
const BITS_OF_LOOP: f64 = 2.5;
/// A loop of few turns may stand in a part whatever its bytes.
const TURNS_MAX: u32 = 2;
/// So many turns of a loop are written out.
const WRITTEN_MAX: u32 = 3;

/// Parts that stand in every match, one at least.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    pub(super) nodes: Vec<Node>,
    /// How rare the rarest is in ordinary content, in bits, by a model of single bytes.
    pub bits: f64,
}

/// A part, and how rare it is in bits.
#[derive(Debug, Clone)]
struct Part {
    node: Node,
    bits: f64,
}

impl Parts {
    /// Parts of an expression that was loosened; `None` if there are too few.
    pub(super) fn of(node: &Node) -> Option<Parts> {
        let mut run = Run::default();
        run.node(node);
        run.flush();
        let mut parts = run.parts;
        parts.sort_by(|one, other| other.bits.total_cmp(&one.bits));
        let bits = parts.first()?.bits;
        let count = parts.iter().take_while(|part| part.bits >= BITS_MIN).count().max(1);
        let mut nodes: Vec<Node> = parts.into_iter().take(count.min(PARTS_MAX)).map(|part| part.node).collect();
        nodes.dedup();
        Some(Parts { nodes, bits })
    }
}

/// A sequence under way.
#[derive(Default)]
struct Run {
    nodes: Vec<Node>,
    parts: Vec<Part>,
}

impl Run {
    /// Continues with a node.
    fn node(&mut self, node: &Node) {
        if is_compact(node) {
            self.nodes.push(node.clone());
            return;
        }
        match node {
            Node::Concat(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::Group(node, _) | Node::Atomic(node) => self.node(node),
            Node::Alternate(nodes) => {
                self.flush();
                self.parts.extend(alternatives(nodes));
            }
            Node::Repeat(repeat) if repeat.min > 0 => {
                (0..repeat.min.min(WRITTEN_MAX)).for_each(|_| self.node(&repeat.node));
                if repeat.max > repeat.min.min(WRITTEN_MAX) {
                    self.flush();
                }
            }
            _ => self.flush(),
        }
    }

    /// Ends a part.
    fn flush(&mut self) {
        let node = Node::Concat(std::mem::take(&mut self.nodes));
        let bits = bits(&node);
        if bits > 0.0 {
            self.parts.push(Part { node, bits });
        }
    }
}

/// One part of each alternative.
fn alternatives(nodes: &[Node]) -> Option<Part> {
    let mut all = Vec::with_capacity(nodes.len());
    for node in nodes {
        let mut run = Run::default();
        run.node(node);
        run.flush();
        all.push(run.parts.into_iter().max_by(|one, other| one.bits.total_cmp(&other.bits))?.node);
    }
    let node = Node::Alternate(all.into());
    let bits = bits(&node);
    Some(Part { node, bits })
}

/// Whether an automaton waits nowhere in it.
fn is_compact(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Never | Node::Literal { .. } | Node::Set(_) | Node::Assert(_) => true,
        Node::Concat(_) | Node::Alternate(_) => node.children().iter().all(is_compact),
        Node::Group(node, _) | Node::Atomic(node) => is_compact(node),
        Node::Repeat(repeat) => is_compact(&repeat.node) && (repeat.max <= TURNS_MAX || is_narrow(&repeat.node)),
        Node::Look(_) | Node::Backreference { .. } => false,
    }
}

/// Whether a loop of it is of bytes that seldom follow each other.
fn is_narrow(node: &Node) -> bool {
    match node {
        Node::Set(set) => surprise(set) >= BITS_OF_LOOP,
        Node::Literal { bytes, .. } => bytes.len() == 1,
        Node::Group(node, _) | Node::Atomic(node) => is_narrow(node),
        _ => false,
    }
}

/// How rare a node is, in bits.
fn bits(node: &Node) -> f64 {
    match node {
        Node::Empty | Node::Assert(_) | Node::Look(_) | Node::Backreference { .. } => 0.0,
        Node::Never => 1000.0,
        Node::Literal { bytes, fold } => bytes.iter().map(|&byte| surprise(&letter(byte, *fold))).sum(),
        Node::Set(set) => surprise(set),
        Node::Concat(nodes) => nodes.iter().map(bits).sum(),
        Node::Alternate(nodes) => -nodes.iter().map(|node| (-bits(node)).exp2()).sum::<f64>().log2(),
        Node::Group(node, _) | Node::Atomic(node) => bits(node),
        Node::Repeat(repeat) => f64::from(repeat.min) * bits(&repeat.node),
    }
}

fn letter(byte: u8, fold: bool) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    set.insert(byte);
    set.insert(if fold && has_case(byte) { byte ^ 0x20 } else { byte });
    set
}

#[cfg(test)]
mod tests {
    use super::super::{Expression, Flags, loose::loosened};
    use super::*;

    fn bits(text: &str) -> Option<f64> {
        let expression = Expression::new(text.as_bytes(), Flags::default()).expect("an expression");
        Parts::of(&loosened(&expression.0.node())).map(|parts| parts.bits)
    }

    #[test]
    fn what_stands_between_loops_of_many_bytes_is_a_part() {
        let parts = |text: &str| {
            let expression = Expression::new(text.as_bytes(), Flags::default()).expect("an expression");
            Parts::of(&loosened(&expression.0.node())).map_or(0, |parts| parts.nodes.len())
        };
        assert_eq!(parts("viagra"), 1);
        assert_eq!(parts("viagra.*cialis"), 2);
        assert_eq!(parts("viagra-+cialis"), 1, "hyphens are rare");
        assert_eq!(parts("(?:viagra|cialis.*pills)"), 1);
        assert_eq!(parts("(?:viagra.*){2,}"), 1, "the same twice");
        assert_eq!(parts(".*"), 0);
        assert_eq!(parts("(?:viagra)?"), 0);
    }

    #[test]
    fn alternatives_are_as_rare_as_the_commonest() {
        assert!(bits("viagra|z") < bits("viagra|cialis"));
        assert!(bits("viagra|e").is_some_and(|bits| bits < 8.0));
        assert_eq!(bits("viagra|"), None);
    }
}
