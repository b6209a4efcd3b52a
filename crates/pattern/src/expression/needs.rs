//! Needs of every match, computed once for an expression: by them it can be ruled out for a haystack without a search.
//!
//! For haystacks of ASCII alone the tree is pruned first: sets lose what lies beyond ASCII, and what cannot match any more is
//! taken out. Of what rules write for letters that look alike little is left then.

use std::sync::LazyLock;

use super::factor::Parts;
use super::facts::Facts;
use super::literals::{self, Literals};
use super::loose::loosened;
use super::outline::Outline;
use super::strings::LiteralLimits;
use super::syntax::{Assertion, Look, Node, Repeat, has_case};
use crate::ByteSet;
use crate::rarity;

/// Needs of every match of an expression.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Needs {
    /// Bytes of the shortest match.
    pub bytes_min: usize,
    /// Bytes of the longest, if there is a longest, and it does not depend on where the search began (`\G`).
    pub bytes_max: Option<usize>,
    /// Sets of each of which a match has a byte; the rarest ones, not all.
    pub sets: Vec<ByteSet>,
    /// Literals in any haystack.
    pub any: Option<Literals>,
    /// Literals in haystacks that are ASCII, where there are others than in any haystack.
    pub ascii: Option<Literals>,
    /// Sets of bytes that it goes through, in order.
    pub outline: Option<Outline>,
    /// Parts that it has in haystacks that are ASCII, where it has no literals.
    pub parts: Option<Parts>,
    /// Bytes of a set that a match has in a row, and how many: of long runs alone.
    pub run: Option<(ByteSet, usize)>,
    /// The set of an expression whose matches in ASCII haystacks are its bytes, one each.
    pub byte: Option<ByteSet>,
}

/// Literals that are asked for, first those that are preferred.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// In any haystack.
    pub any: &'a [LiteralLimits],
    /// In haystacks that are ASCII, unless those in any haystack are rare.
    pub ascii: &'a [LiteralLimits],
    /// Literals up to this share of places are so rare that others are not asked for.
    pub share_rare: f64,
    /// Literals beyond this share are so common that an outline is asked for.
    pub share_common: f64,
}

/// Literals beyond this share are told only where the limits that are asked for next have none that are rarer.
const SHARE_OF_NO_USE: f64 = 0.01;

/// The most sets that are told.
const SETS_MAX: usize = 4;

impl Needs {
    pub(super) fn of(node: &Node, ask: &Ask, facts: &Facts) -> Needs {
        let find =
            |node: &Node, all: &[LiteralLimits]| all.iter().find_map(|limits| literals::needed(node, *limits, facts));
        let mut sets = Vec::new();
        required(node, facts, &mut sets);
        sets.sort_unstable();
        sets.dedup();
        sets.sort_by_cached_key(frequency);
        sets.truncate(SETS_MAX);
        // What all haystacks of a kind have is of no use: then the next limits are asked for, too.
        let mut any = find(node, ask.any.get(..1).unwrap_or_default());
        if any.as_ref().is_none_or(|any| any.share > SHARE_OF_NO_USE) {
            any = rarer(any, find(node, ask.any.get(1..).unwrap_or_default()));
        }
        let is_rare = any.as_ref().is_some_and(|any| any.share <= ask.share_rare);
        let pruned = if is_rare { Node::Empty } else { prune(node, facts) };
        let ascii = if is_rare { None } else { find(&pruned, ask.ascii) };
        let ascii = ascii.filter(|ascii| any.as_ref().is_none_or(|any| ascii.share < any.share));
        let is_common = |literals: Option<&Literals>| literals.is_none_or(|all| all.share > ask.share_common);
        let wants_outline = is_common(any.as_ref()) || is_common(ascii.as_ref().or(any.as_ref()));
        let parts = if any.is_none() && ascii.is_none() { Parts::of(&loosened(&pruned)) } else { None };
        let outline = if wants_outline { Outline::of(node, facts) } else { None };
        let (bytes_min, bytes_max) = node.lengths();
        let bytes_max = bytes_max.filter(|_| !node.any(&mut |node| *node == Node::Assert(Assertion::From)));
        Needs { bytes_min, bytes_max, sets, any, ascii, outline, parts, run: run(node), byte: byte(node) }
    }
}

/// The literals whose strings are rarer.
fn rarer(one: Option<Literals>, other: Option<Literals>) -> Option<Literals> {
    one.into_iter().chain(other).min_by(|one, other| one.share.total_cmp(&other.share))
}

/// Shorter runs are not told.
const RUN_MIN: u32 = 64;

/// The first long run of bytes of a set that every match has.
fn run(node: &Node) -> Option<(ByteSet, usize)> {
    match node {
        Node::Concat(nodes) => nodes.iter().find_map(run),
        Node::Group(node, _) | Node::Atomic(node) => run(node),
        Node::Repeat(repeat) if repeat.min >= RUN_MIN => match repeat.node {
            Node::Set(set) => Some((set, repeat.min as usize)),
            _ => None,
        },
        _ => None,
    }
}

impl Needs {
    /// Whether a haystack has the run that a match has. It is looked at from the ends of where the run may be, so that most bytes
    /// are not.
    pub fn has_run(&self, haystack: &[u8]) -> bool {
        let Some((set, length)) = &self.run else { return true };
        let mut rest = haystack;
        while let Some(window) = rest.get(..*length) {
            let Some(odd) = window.iter().rposition(|&byte| !set.has(byte)) else { return true };
            rest = &rest[odd + 1..];
        }
        false
    }
}

/// The bytes of which a node matches one in haystacks that are ASCII, and nothing else; none where it matches more.
fn byte(node: &Node) -> Option<ByteSet> {
    match node {
        Node::Never => Some(ByteSet::EMPTY),
        Node::Literal { bytes, .. } if !bytes.is_ascii() => Some(ByteSet::EMPTY),
        Node::Literal { bytes, fold } => match bytes[..] {
            [byte] => Some(cases(byte, *fold).intersection(&ASCII)),
            _ => None,
        },
        Node::Set(set) => Some(set.intersection(&ASCII)),
        Node::Group(node, _) | Node::Atomic(node) => byte(node),
        Node::Alternate(nodes) => nodes.iter().try_fold(ByteSet::EMPTY, |all, node| Some(all.union(&byte(node)?))),
        Node::Concat(nodes) => match &nodes[..] {
            [node] => byte(node),
            nodes if nodes.iter().any(|node| byte(node) == Some(ByteSet::EMPTY)) => Some(ByteSet::EMPTY),
            _ => None,
        },
        Node::Empty | Node::Assert(_) | Node::Look(_) | Node::Repeat(_) | Node::Backreference { .. } => None,
    }
}

/// A byte, or with `fold` the letter in either case.
fn cases(byte: u8, fold: bool) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    set.insert(byte);
    set.insert(if fold && has_case(byte) { byte ^ 0x20 } else { byte });
    set
}

/// Reduces a node to ASCII haystacks. Conditions of look arounds and references are left out, so that more may match.
pub(super) fn prune(node: &Node, facts: &Facts) -> Node {
    match node {
        Node::Empty | Node::Assert(_) | Node::Never => node.clone(),
        Node::Literal { bytes, fold } => literal(bytes, *fold),
        Node::Set(set) => prune_set(set),
        Node::Concat(nodes) => {
            let mut all = Vec::with_capacity(nodes.len());
            for node in nodes {
                match prune(node, facts) {
                    Node::Empty => {}
                    Node::Never => return Node::Never,
                    Node::Concat(nodes) => all.extend(nodes),
                    node => all.push(node),
                }
            }
            match all.len() {
                0 => Node::Empty,
                1 => all.swap_remove(0),
                _ => Node::Concat(all),
            }
        }
        Node::Alternate(nodes) => match facts.of(nodes) {
            Some(fact) => fact.pruned.get_or_init(|| prune_alternatives(nodes, facts)).clone(),
            None => prune_alternatives(nodes, facts),
        },
        Node::Repeat(repeat) => match prune(&repeat.node, facts) {
            Node::Never if repeat.min == 0 => Node::Empty,
            Node::Never => Node::Never,
            Node::Empty => Node::Empty,
            node => Node::Repeat(Box::new(Repeat { node, min: repeat.min, max: repeat.max, lazy: repeat.lazy })),
        },
        Node::Group(node, _) | Node::Atomic(node) => prune(node, facts),
        Node::Look(look) => prune_look(look, facts),
        Node::Backreference { .. } => node.clone(),
    }
}

fn prune_alternatives(nodes: &[Node], facts: &Facts) -> Node {
    let all = nodes.iter().map(|node| prune(node, facts));
    let mut all: Vec<Node> = all.filter(|node| *node != Node::Never).collect();
    match all.len() {
        0 => Node::Never,
        1 => all.swap_remove(0),
        _ => Node::Alternate(all.into()),
    }
}

/// A look around that has to find what cannot be there finds nothing; all others are left out.
fn prune_look(look: &Look, facts: &Facts) -> Node {
    if look.negative || prune(&look.node, facts) != Node::Never { Node::Empty } else { Node::Never }
}

fn literal(bytes: &[u8], fold: bool) -> Node {
    if !bytes.is_ascii() {
        return Node::Never;
    }
    Node::Literal { bytes: bytes.to_vec(), fold }
}

fn prune_set(set: &ByteSet) -> Node {
    let ascii = set.intersection(&ASCII);
    if ascii.is_empty() { Node::Never } else { Node::Set(ascii) }
}

const ASCII: ByteSet = ByteSet::from_words([u64::MAX, u64::MAX, 0, 0]);

/// Adds sets of each of which a match has a byte.
fn required(node: &Node, facts: &Facts, sets: &mut Vec<ByteSet>) {
    match node {
        Node::Literal { bytes, fold } => sets.extend(bytes.iter().map(|&byte| cases(byte, *fold))),
        Node::Set(set) => sets.push(*set),
        Node::Concat(nodes) => nodes.iter().for_each(|node| required(node, facts, sets)),
        Node::Group(node, _) | Node::Atomic(node) => required(node, facts, sets),
        Node::Repeat(repeat) if repeat.min > 0 => required(&repeat.node, facts, sets),
        Node::Alternate(nodes) => sets.extend(match facts.of(nodes) {
            Some(fact) => *fact.rarest.get_or_init(|| alternatives(nodes, facts)),
            None => alternatives(nodes, facts),
        }),
        _ => {}
    }
}

/// The rarest set of each alternative, together.
fn alternatives(nodes: &[Node], facts: &Facts) -> Option<ByteSet> {
    nodes.iter().try_fold(ByteSet::EMPTY, |all, node| {
        let mut sets = Vec::new();
        required(node, facts, &mut sets);
        let rarest = sets.into_iter().min_by_key(frequency)?;
        Some(all.union(&rarest))
    })
}

/// How common the bytes of a set are in ordinary content: places of 2^32.
fn frequency(set: &ByteSet) -> u64 {
    static FREQUENCIES: LazyLock<[u64; 256]> = LazyLock::new(|| {
        std::array::from_fn(|byte| ((-f64::from(rarity::alone(byte as u8)) / 8.0).exp2() * 4_294_967_296.0) as u64)
    });
    let frequencies = &*FREQUENCIES;
    set.iter().map(|byte| frequencies[usize::from(byte)]).sum()
}

#[cfg(test)]
mod tests {
    use super::super::{Expression, Flags};
    use super::*;

    const LONG: LiteralLimits = LiteralLimits { count_max: 64, bytes_min: 3, bytes_max: 24 };
    const ASK: Ask<'_> = Ask { any: &[LONG], ascii: &[], share_rare: 0.0, share_common: 1e-4 };

    fn needs(text: &str) -> Needs {
        Expression::with_needs(text.as_bytes(), Flags::NONE, &ASK).expect("an expression").1
    }

    #[test]
    fn a_long_run_has_to_be_there_whole() {
        let has_run = |text: &str, lines: &[usize]| {
            let lines: Vec<Vec<u8>> = lines.iter().map(|&bytes| vec![b'x'; bytes]).collect();
            needs(text).has_run(&lines.join(&b'\n'))
        };
        assert!(has_run("^[^\n]{70}", &[0, 69, 70]));
        assert!(has_run("(?:a[^\n]{70})", &[70]));
        assert!(!has_run("^[^\n]{70}", &[69, 1, 68, 69]));
        assert!(!has_run("[^\n]{70}", &[]));
        assert!(has_run("[^\n]{70}|b", &[1]), "not every match has it");
        assert!(has_run("x{9}", &[1]), "short runs are not looked for");
    }

    #[test]
    fn what_frames_relays_is_no_literal() {
        let literals = |text: &str| needs(text).any.expect("literals").strings;
        assert_eq!(literals(r"^[^\]]+ rdns=\S*(?:catv|docsis)"), [b"catv".to_vec(), b"docsis".to_vec()]);
        assert_eq!(literals(r"^\[ ip=\S+ helo=localhost "), [b" helo=localhost ".to_vec()]);
        assert_eq!(literals(r"^[^\]]+ auth= "), [b" auth= ".to_vec()], "nothing else is there");
    }
}
