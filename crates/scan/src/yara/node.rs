//! Conditions of YARA rules, as flat arrays.
//!
//! A condition is a tree whose nodes stand in one array for all rules and name each other by their places in it. What a
//! node speaks of in any number (the strings of a set, the steps of a list) is a run of the second array.

use std::ops::Range;

use super::fact::{Comparison, Field, Head, OfSection, Text};
use super::header::{Entry, OfElf, OfHeader};
use super::id::{NodeId, StringId, TextId};
use super::math::{Measure, Over};

/// The string that a loop over strings is at.
pub(crate) const CURRENT: StringId = StringId::MAX;

/// A run of [`Arena::lists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

/// How many of several must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantifier {
    All,
    Any,
    None,
    /// That many.
    Number(NodeId),
    /// That share of them.
    Percent(NodeId),
}

/// Where a string must be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    Anywhere,
    At(NodeId),
    In(NodeId, NodeId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) const fn is_comparison(self) -> bool {
        matches!(
            self,
            Operator::Equal
                | Operator::NotEqual
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual
        )
    }

    /// The result for two constants. `None` of a calculation that has none, or one that does not fit; YARA refuses such.
    pub(crate) fn of_constants(self, left: i64, right: i64) -> Option<i64> {
        let by = u32::try_from(right);
        match self {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
            Operator::BitOr => Some(left | right),
            Operator::BitXor => Some(left ^ right),
            Operator::BitAnd => Some(left & right),
            Operator::ShiftLeft => by.ok().map(|by| left.checked_shl(by).unwrap_or(0)),
            Operator::ShiftRight => by.ok().map(|by| left.checked_shr(by).unwrap_or(0)),
            _ => None,
        }
    }
}

/// A number read from the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Width {
    pub(crate) bytes: u8,
    pub(crate) signed: bool,
    pub(crate) big: bool,
}

/// A node. Truth is 1 or 0; what has no value (a read beyond the end, the third match of two) is undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    Number(i64),
    /// `true` or `false`.
    Truth(bool),
    /// A number with a fraction, by its bits.
    Float(u64),
    /// Measure of bytes, with a fraction; count of a byte, and the most frequent byte.
    Measure(Measure, Over),
    CountByte(NodeId, Over),
    Mode(Over),
    /// Whether the first lies between the others.
    InRange(NodeId, NodeId, NodeId),
    /// The smaller and the larger number, compared without a sign.
    Least(NodeId, NodeId),
    Most(NodeId, NodeId),
    Absolute(NodeId),
    /// A calculation and a comparison one side of which has a fraction.
    FloatPair(Operator, NodeId, NodeId),
    FloatNegative(NodeId),
    FloatCompare(Operator, NodeId, NodeId),
    FileSize,
    /// The offset of an executable's entry point.
    EntryPoint,
    /// How many sections an executable has.
    Sections,
    /// Whether a text that is known of the object compares with another.
    Compare(Field, Comparison, TextId),
    /// Whether such a text is known, by something other than nothing: it has no value as a number.
    Has(Field),
    /// Section of that name, and section at that place of the file.
    SectionNamed(TextId),
    SectionAt(NodeId),
    Head(Head),
    /// A number in the headers of a PE file, and the address or the size of the data directory with that number.
    Header(OfHeader),
    Directory(NodeId, bool),
    /// A number in the head of an ELF file.
    Elf(OfElf),
    /// A number in the entry of its section or segment with that number.
    ElfEntry(Entry, NodeId),
    /// A number in the head of the section with that number.
    Section(OfSection, NodeId),
    /// Whether it imports that, from a library and, if one is named, a function of it.
    Imports(TextId, Option<TextId>),
    Exports(TextId),
    /// The variable of a loop, counted from the outermost.
    Variable(u32),
    /// Whether another rule holds.
    Rule(u32),
    Found(StringId, Where),
    Count(StringId, Where),
    /// The start of the match with that number, from 1.
    Offset(StringId, NodeId),
    /// The length of the match with that number.
    Length(StringId, NodeId),
    Read(Width, NodeId),
    Not(NodeId),
    Negative(NodeId),
    Complement(NodeId),
    Defined(NodeId),
    Pair(Operator, NodeId, NodeId),
    /// So many of these strings are found there.
    Of(Quantifier, List, Where),
    /// The condition holds for so many of these strings.
    ForOf(Quantifier, List, NodeId),
    /// The condition holds for so many of the numbers of a range.
    ForRange(Quantifier, (NodeId, NodeId), NodeId),
    /// The condition holds for so many of these numbers.
    ForList(Quantifier, List, NodeId),
}

/// The nodes of all conditions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    lists: Vec<u32>,
    /// Texts in conditions; those of refused rules stay.
    texts: Vec<Text>,
}

impl Arena {
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    pub(crate) fn add_list(&mut self, items: &[u32]) -> List {
        let start = self.lists.len() as u32;
        self.lists.extend_from_slice(items);
        List { start, length: items.len() as u32 }
    }

    pub(crate) fn add_text(&mut self, text: Text) -> TextId {
        self.texts.push(text);
        (self.texts.len() - 1) as TextId
    }

    /// The text at that place.
    pub(crate) fn text(&self, id: TextId) -> Option<&Text> {
        self.texts.get(id as usize)
    }

    /// The node at that place; beyond the array there is nothing that holds.
    pub(crate) fn get(&self, id: NodeId) -> Node {
        self.nodes.get(id as usize).copied().unwrap_or(Node::Number(0))
    }

    pub(crate) fn list(&self, list: List) -> &[u32] {
        let range: Range<usize> = list.start as usize..(list.start as usize).saturating_add(list.length as usize);
        self.lists.get(range).unwrap_or(&[])
    }

    /// Whether what is there has a fraction.
    pub(crate) fn is_float(&self, id: NodeId) -> bool {
        matches!(self.get(id), Node::Float(_) | Node::Measure(..) | Node::FloatPair(..) | Node::FloatNegative(_))
    }

    /// Whether what is there is true or false, and so no number to calculate with.
    pub(crate) fn is_truth(&self, id: NodeId) -> bool {
        match self.get(id) {
            Node::Pair(operator, ..) => operator.is_comparison() || matches!(operator, Operator::Or | Operator::And),
            Node::Truth(_)
            | Node::Not(_)
            | Node::Defined(_)
            | Node::FloatCompare(..)
            | Node::Compare(..)
            | Node::Has(_)
            | Node::Rule(_)
            | Node::Found(..)
            | Node::Of(..)
            | Node::ForOf(..)
            | Node::ForRange(..)
            | Node::ForList(..) => true,
            _ => false,
        }
    }

    /// How much there is, so that it can be cut back to it.
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.nodes.len(), self.lists.len())
    }

    /// Forgets what was added since.
    pub(crate) fn cut(&mut self, (nodes, lists): (usize, usize)) {
        self.nodes.truncate(nodes);
        self.lists.truncate(lists);
    }

    /// The nodes added since a mark.
    pub(crate) fn since(&self, (nodes, _): (usize, usize)) -> &[Node] {
        self.nodes.get(nodes..).unwrap_or(&[])
    }

    /// Whether a node is about the head of an executable, or its tables.
    pub(crate) const fn is_of_head(node: &Node) -> bool {
        matches!(
            node,
            Node::EntryPoint
                | Node::Sections
                | Node::Head(_)
                | Node::Header(_)
                | Node::Directory(..)
                | Node::Elf(_)
                | Node::ElfEntry(..)
                | Node::Section(..)
                | Node::Imports(..)
                | Node::Exports(_)
                | Node::SectionNamed(_)
                | Node::SectionAt(_)
                | Node::Has(Field::ImportHash | Field::SectionName(_) | Field::Signer(..) | Field::Version(_))
                | Node::Compare(Field::ImportHash | Field::SectionName(_) | Field::Signer(..) | Field::Version(_), ..)
                | Node::Has(Field::ElfSectionName(_))
                | Node::Compare(Field::ElfSectionName(_), ..)
        )
    }

    /// Whether it asks about bytes of the object.
    pub(crate) const fn is_of_bytes(node: &Node) -> bool {
        matches!(
            node,
            Node::Measure(_, Over::Range(..) | Over::Object)
                | Node::CountByte(_, Over::Range(..) | Over::Object)
                | Node::Mode(Over::Range(..) | Over::Object)
                | Node::ElfEntry(..)
                | Node::Has(Field::ElfSectionName(_))
                | Node::Compare(Field::ElfSectionName(_), ..)
        )
    }

    /// Whether a condition may hold of an object in which no string was found, but those that are `always` looked for. Only
    /// `false` is certain.
    pub(crate) fn may_hold_untouched(
        &self,
        id: NodeId,
        of_rule: &dyn Fn(u32) -> bool,
        always: &dyn Fn(StringId) -> bool,
    ) -> bool {
        let may = |id: NodeId| self.may_hold_untouched(id, of_rule, always);
        let none = |list: List| list.length == 0 || self.list(list).iter().any(|&string| always(string));
        let counts = |id: NodeId| matches!(self.get(id), Node::Count(string, _) if !always(string));
        let wants_one = |quantifier: Quantifier| match quantifier {
            Quantifier::All | Quantifier::Any => true,
            Quantifier::None => false,
            Quantifier::Number(count) | Quantifier::Percent(count) => {
                matches!(self.get(count), Node::Number(count) if count > 0)
            }
        };
        match self.get(id) {
            Node::Number(number) => number != 0,
            Node::Truth(truth) => truth,
            Node::Found(string, _) => always(string),
            Node::Rule(rule) => of_rule(rule),
            Node::Pair(Operator::And, left, right) => may(left) && may(right),
            Node::Pair(Operator::Or, left, right) => may(left) || may(right),
            Node::Of(quantifier, list, _) => none(list) || !wants_one(quantifier),
            Node::ForOf(quantifier, list, body) => none(list) || !wants_one(quantifier) || may(body),
            Node::Count(string, _) => always(string),
            Node::Pair(Operator::Greater, left, right) => {
                !(counts(left) && matches!(self.get(right), Node::Number(least) if least >= 0))
            }
            Node::Pair(Operator::GreaterOrEqual | Operator::Equal, left, right) => {
                !(counts(left) && matches!(self.get(right), Node::Number(least) if least > 0))
            }
            _ => true,
        }
    }
}
