//! From text to [`Node`]s, by Perl's rules.
//!
//! Plain recursive descent: alternatives, sequences, pieces with quantifiers, atoms. Each group costs one level of
//! recursion, and there are no more levels than the limit says. Every byte is looked at a bounded number of times. An
//! expression in which `\10` and the like could be octal numbers is read twice, since what they are depends on how many
//! groups there are.

mod atom;
mod bracket;
mod cursor;
mod group;

use std::collections::HashMap;
use std::sync::Arc;

use super::BEHIND_MAX;
use super::error::{SyntaxError, Wrong};
use super::flags::Flags;
use super::syntax::{Look, Node, Repeat, UNBOUNDED, has_case};

/// The most times that a quantifier can ask for.
pub const REPEAT_MAX: u32 = 65_534;

/// An expression that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub node: Node,
    /// How many groups capture.
    pub groups: u32,
    /// The groups that have names, in their order.
    pub names: Vec<(String, u32)>,
}

/// Reads an expression; what was read before is taken from `memo`.
pub(super) fn parse(text: &[u8], flags: Flags, depth_max: usize, memo: &mut Memo) -> Result<Parsed, SyntaxError> {
    let mut parser = Parser::new(text, flags, depth_max, 0, memo);
    let mut parsed = parser.whole()?;
    if parser.is_unsure && parsed.groups >= 10 {
        let groups = parsed.groups;
        parser = Parser::new(text, flags, depth_max, groups, parser.memo);
        parsed = parser.whole()?;
    }
    parser.check_references(&mut parsed)?;
    Ok(parsed)
}

/// Groups that were read before: their nodes, by their text. A group that captures nothing and refers to nothing is the same
/// wherever it stands, and where it ends depends on itself alone.
#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Groups by their first bytes.
    groups: HashMap<[u8; KEY_BYTES], Vec<Read>>,
    /// Bytes of all texts.
    bytes: usize,
}

/// A group that was read.
#[derive(Debug)]
struct Read {
    text: Box<[u8]>,
    flags: Flags,
    /// How many groups stand in each other, it among them.
    height: usize,
    node: Node,
}

/// Bytes by which a group is looked for.
const KEY_BYTES: usize = 32;
/// Groups are remembered that have as many bytes, from the fewest that make it worth it.
const GROUP_BYTES: std::ops::RangeInclusive<usize> = 48..=8192;
/// Bytes of the groups that are remembered, all together.
const MEMO_BYTES_MAX: usize = 1 << 20;
/// Groups that begin alike and are remembered.
const ALIKE_MAX: usize = 16;

impl Memo {
    /// One that takes nothing.
    pub fn full() -> Memo {
        Memo { groups: HashMap::new(), bytes: MEMO_BYTES_MAX }
    }

    /// The group at the start of `rest`, if it was read before with these flags.
    fn find(&self, rest: &[u8], flags: Flags) -> Option<&Read> {
        let all = self.groups.get(rest.first_chunk::<KEY_BYTES>()?)?;
        all.iter().find(|read| read.flags == flags && rest.starts_with(&read.text))
    }

    fn insert(&mut self, read: Read) {
        let Some(&key) = read.text.first_chunk() else { return };
        let all = self.groups.entry(key).or_default();
        if self.bytes + read.text.len() <= MEMO_BYTES_MAX && all.len() < ALIKE_MAX {
            self.bytes += read.text.len();
            all.push(read);
        }
    }
}

struct Parser<'t, 'm> {
    memo: &'m mut Memo,
    text: &'t [u8],
    at: usize,
    flags: Flags,
    depth: usize,
    depth_max: usize,
    /// The greatest depth so far.
    deepest: usize,
    groups: u32,
    names: Vec<(String, u32)>,
    /// How many groups there are, as the reading before this one told.
    groups_told: u32,
    /// Whether a number was read that may be a group or octal.
    is_unsure: bool,
    /// Whether what is read stands between `\Q` and `\E`.
    is_quoted: bool,
    /// Groups that are referred to, and where.
    referred: Vec<(u32, usize)>,
    /// Names that are referred to, the number that stands for each in the tree, and where.
    referred_names: Vec<(String, usize)>,
}

/// References by name have numbers from here until all names are known.
const NAMED: u32 = 1 << 31;

impl<'t, 'm> Parser<'t, 'm> {
    fn new(text: &'t [u8], flags: Flags, depth_max: usize, groups_told: u32, memo: &'m mut Memo) -> Parser<'t, 'm> {
        Parser {
            memo,
            text,
            at: 0,
            flags,
            depth: 0,
            depth_max,
            deepest: 0,
            groups: 0,
            names: Vec::new(),
            groups_told,
            is_unsure: false,
            is_quoted: false,
            referred: Vec::new(),
            referred_names: Vec::new(),
        }
    }

    fn whole(&mut self) -> Result<Parsed, SyntaxError> {
        let node = self.alternatives()?;
        if self.at < self.text.len() {
            return self.fail(Wrong::StrayParenthesis);
        }
        Ok(Parsed { node, groups: self.groups, names: self.names.clone() })
    }

    /// Up to the `)` that closes the group, or the end.
    fn alternatives(&mut self) -> Result<Node, SyntaxError> {
        let mut all = vec![self.sequence()?];
        while self.eat(b'|') {
            all.push(self.sequence()?);
        }
        Ok(alternate(all))
    }

    fn sequence(&mut self) -> Result<Node, SyntaxError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_comments()?;
            match self.peek() {
                None => break,
                Some(b'|' | b')') if !self.is_quoted => break,
                Some(_) => {}
            }
            if let Some(byte) = self.plain() {
                self.at += 1;
                push_byte(&mut nodes, self.folded(byte));
                continue;
            }
            let start = self.at;
            let Some(atom) = self.atom()? else {
                continue;
            };
            self.skip_comments()?;
            let piece = self.quantified(atom, start)?;
            push(&mut nodes, piece);
        }
        Ok(concat(nodes))
    }

    /// The byte that stands here, if it stands for itself and nothing that may be said of it follows.
    fn plain(&self) -> Option<u8> {
        let &[byte, ref behind @ ..] = self.rest() else { return None };
        let is_special = matches!(byte, b'*' | b'+' | b'?' | b'(' | b'[' | b'.' | b'^' | b'$' | b'\\');
        let may_follow = matches!(behind.first(), Some(b'*' | b'+' | b'?' | b'{' | b'(' | b'\\'));
        (!is_special && !may_follow && !self.is_quoted && !self.flags.extended).then_some(byte)
    }

    /// The atom with the quantifier that follows.
    fn quantified(&mut self, atom: Node, start: usize) -> Result<Node, SyntaxError> {
        let Some((min, max)) = self.quantifier()? else {
            return Ok(atom);
        };
        self.skip_comments()?;
        let is_lazy = self.eat_plain(b'?');
        let is_possessive = !is_lazy && self.eat_plain(b'+');
        self.skip_comments()?;
        if self.quantifier()?.is_some() {
            return self.fail(Wrong::NestedQuantifier);
        }
        debug_assert!(start < self.at);
        let repeated = match (min, max) {
            (min, max) if min > max => Node::Never,
            (_, 0) => Node::Empty,
            (1, 1) => atom,
            _ => Node::Repeat(Box::new(Repeat { node: atom, min, max, lazy: is_lazy })),
        };
        Ok(if is_possessive { Node::Atomic(Box::new(repeated)) } else { repeated })
    }

    /// The counts of a quantifier, if one stands here.
    fn quantifier(&mut self) -> Result<Option<(u32, u32)>, SyntaxError> {
        if self.is_quoted {
            return Ok(None);
        }
        let counts = match self.peek() {
            Some(b'*') => (0, UNBOUNDED),
            Some(b'+') => (1, UNBOUNDED),
            Some(b'?') => (0, 1),
            Some(b'{') => return self.counts(),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(counts))
    }

    /// `{n}`, `{n,}`, `{n,m}` or `{,m}`, with blanks inside the braces; anything else is no quantifier.
    fn counts(&mut self) -> Result<Option<(u32, u32)>, SyntaxError> {
        let Some(length) = self.text[self.at..].iter().take(64).position(|&byte| byte == b'}') else {
            return Ok(None);
        };
        let inside = &self.text[self.at + 1..self.at + length];
        let trim = |part: &'t [u8]| -> Option<&'t [u8]> {
            let part = part.trim_ascii();
            part.iter().all(u8::is_ascii_digit).then_some(part)
        };
        let mut parts = inside.splitn(2, |&byte| byte == b',');
        let (Some(low), high) = (parts.next().and_then(trim), parts.next().map(trim)) else {
            return Ok(None);
        };
        let (min, max) = match (low, high) {
            (_, Some(None)) | (b"", None | Some(Some(b""))) => return Ok(None),
            (b"", Some(Some(high))) => (0, self.count(high)?),
            (low, None) => (self.count(low)?, self.count(low)?),
            (low, Some(Some(b""))) => (self.count(low)?, UNBOUNDED),
            (low, Some(Some(high))) => (self.count(low)?, self.count(high)?),
        };
        self.at += length + 1;
        Ok(Some((min, max)))
    }

    fn count(&self, digits: &[u8]) -> Result<u32, SyntaxError> {
        let number = digits.iter().try_fold(0u32, |number, digit| {
            let number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            (number <= REPEAT_MAX).then_some(number)
        });
        number.map_or_else(|| self.fail(Wrong::CountTooBig), Ok)
    }

    /// Whether all groups exist that are referred to; names get their numbers, and look-behinds their bounds.
    fn check_references(&self, parsed: &mut Parsed) -> Result<(), SyntaxError> {
        if let Some(&(_, offset)) = self.referred.iter().find(|(group, _)| *group > self.groups) {
            return Err(SyntaxError { offset, wrong: Wrong::NoSuchGroup });
        }
        let mut numbers = Vec::new();
        for (name, offset) in &self.referred_names {
            let mut of_name = self.names.iter().filter(|(other, _)| other == name);
            let error = |wrong| Err(SyntaxError { offset: *offset, wrong });
            let Some((_, number)) = of_name.next() else {
                return error(Wrong::NoSuchGroup);
            };
            if of_name.next().is_some() {
                return error(Wrong::AmbiguousName);
            }
            numbers.push(*number);
        }
        if !numbers.is_empty() {
            resolve(&mut parsed.node, &numbers);
        }
        Ok(())
    }

    /// A look around, once its inside is known.
    fn look(&self, node: Node, negative: bool, is_behind: bool, start: usize) -> Result<Node, SyntaxError> {
        let mut behind = None;
        if is_behind {
            let (min, max) = node.lengths();
            let max = max.filter(|&max| max <= BEHIND_MAX);
            let Some(max) = max else {
                return Err(SyntaxError { offset: start, wrong: Wrong::LongLookBehind });
            };
            behind = Some((min as u32, max as u32));
        }
        Ok(Node::Look(Box::new(Look { node, negative, behind })))
    }
}

/// Gives references by name the numbers of their groups.
fn resolve(node: &mut Node, numbers: &[u32]) {
    match node {
        Node::Backreference { group, .. } if *group >= NAMED => {
            *group = numbers.get((*group - NAMED) as usize).copied().unwrap_or(0);
        }
        Node::Concat(nodes) => nodes.iter_mut().for_each(|node| resolve(node, numbers)),
        Node::Alternate(nodes) => Arc::make_mut(nodes).iter_mut().for_each(|node| resolve(node, numbers)),
        Node::Group(node, _) | Node::Atomic(node) => resolve(node, numbers),
        Node::Repeat(repeat) => resolve(&mut repeat.node, numbers),
        Node::Look(look) => resolve(&mut look.node, numbers),
        _ => {}
    }
}

/// Adds a piece to a sequence; literals grow together.
fn push(nodes: &mut Vec<Node>, piece: Node) {
    match (nodes.last_mut(), piece) {
        (_, Node::Empty) => {}
        (Some(Node::Literal { bytes, fold }), Node::Literal { bytes: more, fold: other })
            if are_alike(bytes, *fold, &more, other) =>
        {
            *fold |= other;
            bytes.extend(more);
        }
        (_, Node::Concat(more)) => more.into_iter().for_each(|node| push(nodes, node)),
        (_, piece) => nodes.push(piece),
    }
}

/// Adds a byte to a sequence, as [`push`] does.
fn push_byte(nodes: &mut Vec<Node>, (byte, other): (u8, bool)) {
    match nodes.last_mut() {
        Some(Node::Literal { bytes, fold }) if are_alike(bytes, *fold, &[byte], other) => {
            *fold |= other;
            bytes.push(byte);
        }
        _ => nodes.push(Node::Literal { bytes: vec![byte], fold: other }),
    }
}

/// Whether two literals can be one.
fn are_alike(bytes: &[u8], fold: bool, more: &[u8], other: bool) -> bool {
    let has_case = |bytes: &[u8]| bytes.iter().any(|&byte| has_case(byte));
    fold == other || !has_case(bytes) || !has_case(more)
}

fn concat(mut nodes: Vec<Node>) -> Node {
    match nodes.len() {
        0 => Node::Empty,
        1 => nodes.pop().unwrap_or(Node::Empty),
        _ => Node::Concat(nodes),
    }
}

/// The alternatives; single bytes beside each other become a set.
fn alternate(all: Vec<Node>) -> Node {
    let mut nodes: Vec<Node> = Vec::with_capacity(all.len());
    for node in all {
        match (nodes.last_mut().and_then(as_set), as_set(&node)) {
            (Some(before), Some(set)) => {
                nodes.pop();
                nodes.push(Node::Set(before.union(&set)));
            }
            _ => nodes.push(node),
        }
    }
    if nodes.len() > 1 { Node::Alternate(nodes.into()) } else { nodes.pop().unwrap_or(Node::Empty) }
}

/// Set of a node that takes exactly one byte.
fn as_set(node: impl std::borrow::Borrow<Node>) -> Option<crate::ByteSet> {
    match node.borrow() {
        Node::Set(set) => Some(*set),
        Node::Literal { bytes, .. } if bytes.len() == 1 => node.borrow().first(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
