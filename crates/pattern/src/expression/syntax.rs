//! Nodes of an expression, and their properties without a run: lengths, first bytes.
//!
//! Everything here is about bytes; case has already been folded into sets and literals by the parser.

use std::sync::Arc;

use crate::ByteSet;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// Matches where it stands.
    Empty,
    /// Matches nowhere.
    Never,
    /// These bytes; with `fold`, letters in either case (and the bytes are in lower case).
    Literal {
        bytes: Vec<u8>,
        fold: bool,
    },
    /// One byte of a set.
    Set(ByteSet),
    Assert(Assertion),
    Concat(Vec<Node>),
    /// The first that leads to a match.
    Alternate(Arc<[Node]>),
    Repeat(Box<Repeat>),
    /// A match is remembered under a number from 1.
    Group(Box<Node>, u32),
    Look(Box<Look>),
    /// Once it has matched it is not asked for another way.
    Atomic(Box<Node>),
    /// Text of a group's match; with `fold`, letters in either case.
    Backreference {
        group: u32,
        fold: bool,
    },
}

/// Something so many times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repeat {
    pub node: Node,
    pub min: u32,
    /// [`UNBOUNDED`] if there is no most.
    pub max: u32,
    pub lazy: bool,
}

/// More times than a quantifier can say.
pub(super) const UNBOUNDED: u32 = u32::MAX;

/// Condition on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub node: Node,
    pub negative: bool,
    /// For a look behind: the fewest and the most bytes that it takes.
    pub behind: Option<(u32, u32)>,
}

/// Condition at a place between bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Assertion {
    /// `\A`, and `^` without `m`.
    Start,
    /// `^` with `m`: the start, and behind a line feed that is not the last byte.
    LineStart,
    /// `\z`.
    End,
    /// `\Z`, and `$` without `m`: the end, or in front of a line feed that is the last byte.
    LastLine,
    /// `$` with `m`: the end, or in front of a line feed.
    LineEnd,
    /// `\b`.
    Word,
    /// `\B`.
    NotWord,
    /// `\G`: where the search began.
    From,
}

impl Assertion {
    /// Whether it holds in front of byte `at`, in a search that began at `from`.
    #[inline]
    pub fn holds(self, haystack: &[u8], at: usize, from: usize) -> bool {
        let before = || at.checked_sub(1).and_then(|before| haystack.get(before)).copied();
        let after = || haystack.get(at).copied();
        match self {
            Assertion::Start => at == 0,
            Assertion::LineStart => at == 0 || before() == Some(b'\n') && at < haystack.len(),
            Assertion::End => at == haystack.len(),
            Assertion::LastLine => at == haystack.len() || haystack[at..] == *b"\n",
            Assertion::LineEnd => after().is_none_or(|byte| byte == b'\n'),
            Assertion::Word => before().is_some_and(is_word) != after().is_some_and(is_word),
            Assertion::NotWord => before().is_some_and(is_word) == after().is_some_and(is_word),
            Assertion::From => at == from,
        }
    }
}

/// Whether the byte has another case under Perl's `/aai`: the letters of ASCII, and those of Latin-1, which differ by the
/// same bit.
pub(super) const fn has_case(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0xc0 && byte != 0xd7 && byte != 0xf7 && byte != 0xdf && byte != 0xff
}

/// The byte in lower case.
pub(super) const fn lower(byte: u8) -> u8 {
    if has_case(byte) { byte | 0x20 } else { byte }
}

/// Whether two strings are the same but for case.
pub(super) fn is_same_folded(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(&one, &other)| lower(one) == lower(other))
}

/// Whether the byte is one of `\w`.
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl Node {
    /// The fewest and the most bytes it takes; no most if it has none, or one that nobody can count on.
    pub fn lengths(&self) -> (usize, Option<usize>) {
        match self {
            Node::Empty | Node::Assert(_) | Node::Look(_) => (0, Some(0)),
            // As a character beyond a byte would take.
            Node::Never => (1, Some(1)),
            Node::Literal { bytes, .. } => (bytes.len(), Some(bytes.len())),
            Node::Set(_) => (1, Some(1)),
            Node::Backreference { .. } => (0, None),
            Node::Group(node, _) | Node::Atomic(node) => node.lengths(),
            Node::Concat(nodes) => nodes.iter().map(Node::lengths).fold((0, Some(0)), |(min, max), (low, high)| {
                (min.saturating_add(low), max.zip(high).map(|(max, high)| max.saturating_add(high)))
            }),
            Node::Alternate(nodes) => {
                let all = nodes.iter().map(Node::lengths);
                let both = all.reduce(|a, b| (a.0.min(b.0), a.1.zip(b.1).map(|(a, b)| a.max(b))));
                both.unwrap_or((0, Some(0)))
            }
            Node::Repeat(repeat) => {
                let (low, high) = repeat.node.lengths();
                let max = match high {
                    Some(0) => Some(0),
                    _ if repeat.max == UNBOUNDED => None,
                    high => high.map(|high| high.saturating_mul(repeat.max as usize)),
                };
                (low.saturating_mul(repeat.min as usize), max)
            }
        }
    }

    /// Whether it can match without taking a byte.
    pub fn is_nullable(&self) -> bool {
        match self {
            Node::Concat(nodes) => nodes.iter().all(Node::is_nullable),
            Node::Alternate(nodes) => nodes.iter().any(Node::is_nullable),
            Node::Group(node, _) | Node::Atomic(node) => node.is_nullable(),
            Node::Repeat(repeat) => repeat.min == 0 || repeat.node.is_nullable(),
            Node::Literal { bytes, .. } => bytes.is_empty(),
            Node::Set(_) => false,
            _ => true,
        }
    }

    /// The bytes with which a match begins; nothing if it may take none.
    pub fn first(&self) -> Option<ByteSet> {
        let mut set = ByteSet::EMPTY;
        (!self.add_first(&mut set)).then_some(set)
    }

    /// Adds the bytes with which a match may begin, and says whether it may take none.
    pub fn add_first(&self, set: &mut ByteSet) -> bool {
        match self {
            Node::Never => false,
            Node::Empty | Node::Assert(_) | Node::Look(_) => true,
            Node::Backreference { .. } => {
                *set = ByteSet::EMPTY.complement();
                true
            }
            Node::Literal { bytes, fold } => {
                let Some(&byte) = bytes.first() else {
                    return true;
                };
                set.insert(byte);
                if *fold {
                    set.insert(if has_case(byte) { byte ^ 0x20 } else { byte });
                }
                false
            }
            Node::Set(bytes) => {
                *set = set.union(bytes);
                false
            }
            Node::Concat(nodes) => nodes.iter().all(|node| node.add_first(set)),
            Node::Alternate(nodes) => {
                let mut is_empty = false;
                for node in &**nodes {
                    is_empty |= node.add_first(set);
                }
                is_empty
            }
            Node::Group(node, _) | Node::Atomic(node) => node.add_first(set),
            Node::Repeat(repeat) => repeat.max == 0 || repeat.node.add_first(set) || repeat.min == 0,
        }
    }

    /// The parts it is made of.
    pub fn children(&self) -> &[Node] {
        match self {
            Node::Concat(nodes) => nodes,
            Node::Alternate(nodes) => nodes,
            Node::Group(node, _) | Node::Atomic(node) => std::slice::from_ref(node),
            Node::Repeat(repeat) => std::slice::from_ref(&repeat.node),
            Node::Look(look) => std::slice::from_ref(&look.node),
            _ => &[],
        }
    }

    /// Whether any node of the tree satisfies `holds`.
    pub fn any(&self, holds: &mut impl FnMut(&Node) -> bool) -> bool {
        holds(self) || self.children().iter().any(|node| node.any(holds))
    }
}
