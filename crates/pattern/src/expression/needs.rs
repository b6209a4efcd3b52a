//! What every match needs, told once for an expression: so that it can be ruled out for a haystack without a search.
//!
//! For haystacks of ASCII alone the tree is pruned first: sets lose what lies beyond ASCII, and what cannot match any more is
//! taken out. Of what rules write for letters that look alike little is left then. A second tree is pruned further, to letters
//! and digits: it is about haystacks of which all else was taken out ([`Haystacks::Squeezed`]), so that what stands between the
//! letters of a word does not hide it.

use std::sync::LazyLock;

use super::literals::{self, LiteralLimits, Literals};
use super::syntax::{Look, Node, Repeat, has_case};
use crate::ByteSet;
use crate::rarity;

/// The haystacks that literals are looked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haystacks {
    /// Any bytes, folded ([`fold`](super::fold)).
    Any,
    /// ASCII alone, folded.
    Ascii,
    /// The letters and digits of a haystack that is ASCII, one behind the other, letters in lower case.
    Squeezed,
}

/// What every match of an expression needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Needs {
    /// Bytes of the shortest match.
    pub bytes_min: usize,
    /// Sets of each of which a match has a byte; the rarest ones, not all.
    pub sets: Vec<ByteSet>,
    /// Literals in any haystack.
    pub any: Option<Literals>,
    /// What to look for where the haystack is ASCII, and in which form of it.
    pub ascii: Option<(Haystacks, Literals)>,
}

/// Literals that are asked for, first those that are preferred.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// In any haystack.
    pub any: &'a [LiteralLimits],
    /// In haystacks that are ASCII.
    pub ascii: &'a [LiteralLimits],
    /// In what is left of them without blanks and signs.
    pub squeezed: &'a [LiteralLimits],
}

/// The most sets that are told.
const SETS_MAX: usize = 4;

impl Needs {
    pub(super) fn of(node: &Node, ask: &Ask) -> Needs {
        let find = |node: &Node, all: &[LiteralLimits]| all.iter().find_map(|limits| literals::needed(node, *limits));
        let mut sets = Vec::new();
        required(node, &mut sets);
        sets.sort_unstable();
        sets.dedup();
        sets.sort_by_cached_key(frequency);
        sets.truncate(SETS_MAX);
        let ascii = prune(node, Haystacks::Ascii);
        let plain = find(&ascii, ask.ascii);
        let is_rare = plain.as_ref().is_some_and(|plain| plain.share < SHARE_RARE);
        let squeezed = if is_rare { None } else { find(&prune(&ascii, Haystacks::Squeezed), ask.squeezed) };
        let ascii = match (plain, squeezed) {
            (Some(plain), Some(squeezed)) if squeezed.share < plain.share / SHARE_GAIN => {
                Some((Haystacks::Squeezed, squeezed))
            }
            (Some(plain), _) => Some((Haystacks::Ascii, plain)),
            (None, squeezed) => squeezed.map(|squeezed| (Haystacks::Squeezed, squeezed)),
        };
        Needs { bytes_min: node.lengths().0, sets, any: find(node, ask.any), ascii }
    }
}

/// A share from which on literals are rare enough.
const SHARE_RARE: f64 = 1e-5;
/// By how much squeezed literals have to be rarer to be taken: what stood apart is together there.
const SHARE_GAIN: f64 = 16.0;

/// What is left of a node in such haystacks. What a look around or a reference asks for is left out, so that more may match.
fn prune(node: &Node, haystacks: Haystacks) -> Node {
    match node {
        Node::Empty | Node::Assert(_) => Node::Empty,
        Node::Never => Node::Never,
        Node::Literal { bytes, fold } => literal(bytes, *fold, haystacks),
        Node::Set(set) => prune_set(set, haystacks),
        Node::Concat(nodes) => {
            let mut all = Vec::with_capacity(nodes.len());
            for node in nodes {
                match prune(node, haystacks) {
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
        Node::Alternate(nodes) => {
            let all = nodes.iter().map(|node| prune(node, haystacks));
            let mut all: Vec<Node> = all.filter(|node| *node != Node::Never).collect();
            match all.len() {
                0 => Node::Never,
                1 => all.swap_remove(0),
                _ => Node::Alternate(all),
            }
        }
        Node::Repeat(repeat) => match prune(&repeat.node, haystacks) {
            Node::Never if repeat.min == 0 => Node::Empty,
            Node::Never => Node::Never,
            Node::Empty => Node::Empty,
            node => Node::Repeat(Box::new(Repeat { node, min: repeat.min, max: repeat.max, lazy: repeat.lazy })),
        },
        Node::Group(node, _) | Node::Atomic(node) => prune(node, haystacks),
        Node::Look(look) => prune_look(look, haystacks),
        Node::Backreference { .. } => node.clone(),
    }
}

/// A look around that has to find what cannot be there finds nothing; all others are left out.
fn prune_look(look: &Look, haystacks: Haystacks) -> Node {
    if look.negative || prune(&look.node, haystacks) != Node::Never { Node::Empty } else { Node::Never }
}

fn literal(bytes: &[u8], fold: bool, haystacks: Haystacks) -> Node {
    if !bytes.is_ascii() {
        return Node::Never;
    }
    match haystacks {
        Haystacks::Squeezed => {
            let bytes: Vec<u8> = bytes.iter().copied().filter(u8::is_ascii_alphanumeric).collect();
            if bytes.is_empty() { Node::Empty } else { Node::Literal { bytes, fold } }
        }
        Haystacks::Any | Haystacks::Ascii => Node::Literal { bytes: bytes.to_vec(), fold },
    }
}

fn prune_set(set: &ByteSet, haystacks: Haystacks) -> Node {
    let ascii = set.intersection(&ASCII);
    if ascii.is_empty() {
        return Node::Never;
    }
    if haystacks != Haystacks::Squeezed {
        return Node::Set(Box::new(ascii));
    }
    let kept = ascii.intersection(&SQUEEZED);
    match (kept.is_empty(), kept == ascii) {
        (true, _) => Node::Empty,
        (_, true) => Node::Set(Box::new(kept)),
        // A sign that is taken out, or one that stays.
        _ => Node::Repeat(Box::new(Repeat { node: Node::Set(Box::new(kept)), min: 0, max: 1, lazy: false })),
    }
}

const ASCII: ByteSet = ByteSet::from_words([u64::MAX, u64::MAX, 0, 0]);
/// `0` to `9`, `A` to `Z`, `a` to `z`.
const SQUEEZED: ByteSet = ByteSet::from_words([0x3ff << 48, 0x07ff_fffe_07ff_fffe, 0, 0]);

/// Adds sets of each of which a match has a byte.
fn required(node: &Node, sets: &mut Vec<ByteSet>) {
    match node {
        Node::Literal { bytes, fold } => sets.extend(bytes.iter().map(|&byte| {
            let mut set = ByteSet::EMPTY;
            set.insert(byte);
            set.insert(if *fold && has_case(byte) { byte ^ 0x20 } else { byte });
            set
        })),
        Node::Set(set) => sets.push(**set),
        Node::Concat(nodes) => nodes.iter().for_each(|node| required(node, sets)),
        Node::Group(node, _) | Node::Atomic(node) => required(node, sets),
        Node::Repeat(repeat) if repeat.min > 0 => required(&repeat.node, sets),
        Node::Alternate(nodes) => sets.extend(alternatives(nodes)),
        _ => {}
    }
}

/// The rarest set of each alternative, together.
fn alternatives(nodes: &[Node]) -> Option<ByteSet> {
    nodes.iter().try_fold(ByteSet::EMPTY, |all, node| {
        let mut sets = Vec::new();
        required(node, &mut sets);
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
