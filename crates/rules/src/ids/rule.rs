//! A rule as it was compiled: its head, its tests by buffers, its state, and what it does.

use pattern::expression::{Expression, Opening};

use super::action::Action;
use super::address::{Addresses, Ports};
use super::buffer::{App, Buffer, Buffers, Direction, Side};
use super::transform::Transform;

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// Its number in IP.
    pub(super) fn number(self) -> i64 {
        match self {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        }
    }
}

/// The head of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Head {
    pub transport: Option<Transport>,
    /// Protocols of applications; empty where any will do.
    pub apps: Vec<App>,
    pub sources: Addresses,
    pub source_ports: Ports,
    pub targets: Addresses,
    pub target_ports: Ports,
    pub goes_both_ways: bool,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The number of the rule, its generator and its revision.
    pub sid: u32,
    /// The generator.
    pub gid: u32,
    /// The revision.
    pub rev: u32,
    /// The text that an alert has.
    pub message: String,
    /// The description of its class.
    pub category: String,
    /// From 1, the worst.
    pub priority: u32,
    /// The action.
    pub action: Action,
    /// The file and the line.
    pub place: crate::spam::Place,
    /// The keyword because of which it never matches here.
    pub idle: Option<String>,
    pub(super) head: Head,
    /// The way that bytes go, where the rule says so.
    pub(super) direction: Option<Direction>,
    pub(super) sections: Vec<Section>,
    pub(super) conditions: Vec<Condition>,
    pub(super) bits: Vec<Bits>,
    pub(super) is_silent: bool,
    /// Whether its texts are looked for in packets, and not in streams.
    pub(super) is_about_packets: bool,
    /// Whether it alerts although it lets by.
    pub(super) tells: bool,
    pub(super) thresholds: Vec<Threshold>,
    /// How many values tests hand on.
    pub(super) variables: usize,
    /// The set of buffers without which it does not match, a bit each.
    pub(super) needs: Buffers,
}

impl Rule {
    /// Whether it looks at the stream alone, and not at a transaction.
    pub(super) fn is_of_stream(&self) -> bool {
        self.sections.iter().all(|section| section.buffer == Buffer::Payload) && !self.sections.is_empty()
    }

    /// Whether it looks at packets, each by itself.
    pub(super) fn is_of_packet(&self) -> bool {
        self.sections.iter().any(|section| section.buffer == Buffer::Packet)
    }

    /// Whether bytes that go this way can make it match.
    pub(super) fn goes(&self, direction: Direction) -> bool {
        if let Some(only) = self.direction {
            return only == direction;
        }
        let has = |side: Side| self.sections.iter().any(|section| section.side() == side);
        match (has(Side::Request), has(Side::Response)) {
            (true, false) => direction == Direction::ToServer,
            (false, true) => direction == Direction::ToClient,
            _ => true,
        }
    }

    /// Whether it looks at no buffer of any protocol.
    pub(super) fn is_bare(&self) -> bool {
        self.sections.is_empty() && self.head.apps.is_empty()
    }

    /// The buffers of its sections, without those that may be absent, and those that may be the other side's.
    pub(super) fn needed(&self) -> Buffers {
        let needed = self.sections.iter().filter(|section| !section.may_be_absent() && section.way.is_none());
        needed.fold(0, |set, section| set | section.buffer.bit())
    }

    /// How many tests it has.
    pub(super) fn tests(&self) -> usize {
        self.sections.iter().map(|section| section.tests.len()).sum()
    }
}

/// Tests of one buffer.
#[derive(Debug, Clone)]
pub(super) struct Section {
    pub buffer: Buffer,
    /// The way of the bytes in its buffer, where the rule says it.
    pub way: Option<Direction>,
    pub transforms: Vec<Transform>,
    pub tests: Vec<Test>,
}

impl Section {
    /// The side whose buffer it looks into.
    pub fn side(&self) -> Side {
        match self.way {
            Some(Direction::ToServer) => Side::Request,
            Some(Direction::ToClient) => Side::Response,
            None => self.buffer.side(),
        }
    }

    /// Whether it looks into a buffer of bytes that go one way, when a rule is tried on bytes that go another.
    pub fn fits(&self, of: Direction, tried: Direction) -> bool {
        match self.way {
            Some(way) => of == way,
            None => self.buffer.side() != Side::Both || of == tried,
        }
    }

    /// Whether it may hold where there is no such buffer.
    pub fn may_be_absent(&self) -> bool {
        self.tests.iter().any(|test| matches!(test, Test::Absent { .. }))
    }
}

/// A number, or one that a test before has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Number(i64),
    Variable(usize),
}

impl Default for Value {
    fn default() -> Value {
        Value::Number(0)
    }
}

/// A test at a place of a buffer.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Content(Box<Content>),
    Pcre(Box<Pcre>),
    Bytes(Box<Bytes>),
    DataAt { count: Value, is_relative: bool, is_negated: bool },
    Size(Sizes),
    Base64 { bytes: usize, offset: usize, is_relative: bool, tests: Vec<Test> },
    Set { set: usize, change: SetChange },
    Reputation { set: usize, order: Order, value: i64 },
    Absent { or_else: bool },
}

impl Test {
    /// Whether it begins where the test before has ended.
    pub fn is_relative(&self) -> bool {
        match self {
            Test::Content(content) => content.is_relative(),
            Test::Pcre(pcre) => pcre.is_relative,
            Test::Bytes(bytes) => bytes.is_relative,
            Test::DataAt { is_relative, .. } | Test::Base64 { is_relative, .. } => *is_relative,
            _ => false,
        }
    }

    /// Whether it looks at the bytes of its buffer alone.
    pub fn is_of_buffer(&self) -> bool {
        match self {
            Test::Set { .. } | Test::Reputation { .. } | Test::Absent { .. } => false,
            Test::Base64 { tests, .. } => tests.iter().all(Test::is_of_buffer),
            _ => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetChange {
    Set,
    Unset,
    IsSet,
    IsNotSet,
}

/// A text that occurs, or does not.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// In lower case where cases do not count.
    pub bytes: Vec<u8>,
    pub is_caseless: bool,
    pub is_negated: bool,
    pub offset: Option<Value>,
    pub depth: Option<Value>,
    pub distance: Option<Value>,
    pub within: Option<Value>,
    pub at_end: bool,
    pub is_fast: bool,
    pub fast_part: Option<(usize, usize)>,
}

impl Content {
    pub fn is_relative(&self) -> bool {
        self.distance.is_some() || self.within.is_some()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Pcre {
    pub expression: Expression,
    /// As it is written, with its slashes and letters.
    pub source: Box<[u8]>,
    pub is_relative: bool,
    pub is_negated: bool,
    /// Whether it matches as little as it can, which shows only where a relative test follows.
    pub is_ungreedy: bool,
    /// Texts in lower case of which each match has one; none where they are not known.
    pub literals: Vec<Box<[u8]>>,
    /// The beginning of each match.
    pub opening: Option<Opening>,
}

/// An order of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Order {
    pub fn named(name: &[u8]) -> Option<Order> {
        Some(match name {
            b"<" => Order::Less,
            b"<=" => Order::LessOrEqual,
            b">" => Order::Greater,
            b">=" => Order::GreaterOrEqual,
            b"=" | b"==" => Order::Equal,
            b"!=" | b"!" => Order::NotEqual,
            b"&" => Order::And,
            b"^" | b"|" => Order::Or,
            _ => return None,
        })
    }

    pub fn holds(self, one: i64, other: i64) -> bool {
        match self {
            Order::Less => one < other,
            Order::LessOrEqual => one <= other,
            Order::Greater => one > other,
            Order::GreaterOrEqual => one >= other,
            Order::Equal => one == other,
            Order::NotEqual => one != other,
            Order::And => one & other != 0,
            Order::Or => one ^ other != 0,
        }
    }

    /// Compares numbers of 64 bits without a sign.
    pub fn holds_unsigned(self, one: i64, other: i64) -> bool {
        // The sign bit turns the order round, and matters to no bits that are compared one by one.
        match self {
            Order::And | Order::Or => self.holds(one, other),
            _ => self.holds(one ^ i64::MIN, other ^ i64::MIN),
        }
    }
}

/// A length, as it is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sizes {
    Compared(Order, i64),
    Between(i64, i64),
}

impl Sizes {
    pub fn has(self, size: i64) -> bool {
        match self {
            Sizes::Compared(order, value) => order.holds(size, value),
            Sizes::Between(low, high) => low < size && size < high,
        }
    }
}

/// A number that stands in the bytes, and what is done with it.
#[derive(Debug, Clone)]
pub(super) struct Bytes {
    pub count: Value,
    pub offset: Value,
    pub is_relative: bool,
    pub is_little: bool,
    /// The base of digits; none where bytes are binary.
    pub base: Option<u32>,
    pub mask: Option<u64>,
    pub verb: Verb,
}

#[derive(Debug, Clone)]
pub(super) enum Verb {
    Test { order: Order, is_negated: bool, value: Value },
    Jump { multiplier: i64, align: bool, from: From, post_offset: Value },
    Extract { variable: usize, multiplier: i64, align: i64 },
    Math { variable: usize, operator: u8, value: Value },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Here,
    Beginning,
    End,
}

/// A condition on a flow as a whole.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    /// The protocol is one of these, or, negated, is known and none of them.
    App { apps: Vec<App>, is_negated: bool },
    /// The number of bytes of a stream. The opening of a connection counts one, as its sequence numbers do.
    Stream { side: StreamSide, size: Sizes },
    /// The number of the protocol that IP carries.
    Carried(Sizes),
    /// Both addresses are one.
    SameAddress,
    /// A data set has the address of one end, or has a reputation for it.
    Address { end: Port, test: Box<Test> },
}

impl Condition {
    /// Whether it changes a data set, so that it is asked when all else holds.
    pub fn changes(&self) -> bool {
        let Condition::Address { test, .. } = self else { return false };
        matches!(**test, Test::Set { change: SetChange::Set | SetChange::Unset, .. })
    }
}

/// The side whose bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamSide {
    One(Direction),
    Both,
    Either,
}

/// Bits of a flow, of addresses, and numbers of a flow.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    /// Whether the keyword is `xbits`, whose `toggle` and `unset` come behind tests.
    pub is_xbits: bool,
    pub scope: Scope,
    pub names: Vec<u32>,
    pub verb: BitVerb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Flow,
    Transaction,
    Source,
    Target,
    Pair,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BitVerb {
    /// Seconds after which it is forgotten; 0 for never.
    Set(u64),
    Unset,
    Toggle,
    IsSet,
    IsNotSet,
    /// Numbers: set, add, subtract, compare.
    Put(Amount),
    Add(Amount),
    Subtract(Amount),
    Compare(Order, Amount),
}

/// A number, or another number of the flow by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Amount {
    Number(i64),
    Named(u32),
}

impl BitVerb {
    pub fn is_test(self) -> bool {
        matches!(self, BitVerb::IsSet | BitVerb::IsNotSet | BitVerb::Compare(..))
    }

    /// Whether it changes a number by another one.
    pub fn takes_another(self) -> bool {
        use BitVerb::{Add, Put, Subtract};
        matches!(self, Put(Amount::Named(_)) | Add(Amount::Named(_)) | Subtract(Amount::Named(_)))
    }
}

/// How often a rule alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rate {
    /// At most so often.
    Limit,
    /// Each time that so many have been counted.
    Threshold,
    /// Once so many have been counted, once in the time.
    Both,
    /// At the count, and each time that it has grown by this factor.
    Backoff(u32),
    /// From then on when more have been counted.
    Filter,
    /// As often as it matches; beyond the count it has another action for so many seconds.
    Change { action: Action, seconds: u64 },
    /// Never.
    Suppress,
}

#[derive(Debug, Clone)]
pub(super) struct Threshold {
    pub rate: Rate,
    pub track: Track,
    pub count: u32,
    pub seconds: u64,
    /// The port of which each value counts once.
    pub unique: Option<Port>,
    /// Of a suppression: the addresses that it is about.
    pub addresses: Option<Addresses>,
    /// The file and the line, where it does not stand in the rule.
    pub place: Option<crate::spam::Place>,
}

/// A port of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Source,
    Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Track {
    Rule,
    Source,
    Target,
    Both,
    /// One of both, in suppressions.
    Either,
    Flow,
}
