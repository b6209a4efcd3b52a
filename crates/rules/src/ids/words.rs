//! A rule in words, as it was understood: its tests by buffers, its bits, its thresholds, the text that selects it, and the doors
//! where it can match.
//!
//! Bytes that are no printable ASCII are written as rules have them, between `|`.

use super::buffer::{App, Buffer, Direction};
use super::group;
use super::rule::{
    Amount, BitVerb, Bits, Bytes, Condition, Content, From, Order, Port, Rate, Rule, Scope, Section, SetChange, Sizes,
    StreamSide, Test, Threshold, Track, Transport, Value, Verb,
};
use super::set::RuleSet;
use crate::spam::Place;

/// A rule in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    /// The way of the bytes that it looks at.
    pub way: &'static str,
    /// Buffers with their transforms, each with its tests in the order in which they are tried.
    pub buffers: Vec<(String, Vec<String>)>,
    /// Conditions on bits and numbers, and changes of them when the rule matches.
    pub state: Vec<String>,
    /// Bounds of its alerts, with the file and line of those that are not in the rule.
    pub thresholds: Vec<(String, Option<Place>)>,
    /// The buffer and the text that select the rule; none where it is tried each time.
    pub selector: Option<(String, String)>,
    /// Whether it never alerts.
    pub is_silent: bool,
    /// The doors where it can match, or the reason why there is none.
    pub doors: Result<Vec<&'static str>, String>,
}

impl RuleSet {
    /// A rule of the set in words.
    pub fn words(&self, rule: &Rule) -> Words {
        let ways = [Direction::ToServer, Direction::ToClient].map(|way| rule.goes(way));
        let selector = group::choice(rule).filter(|_| rule.idle.is_none() && !rule.is_of_packet());
        Words {
            way: match ways {
                [true, false] => "bytes of the client",
                [false, true] => "bytes of the server",
                _ => "bytes of both sides",
            },
            buffers: rule.sections.iter().map(|section| (buffer(section), self.tests(&section.tests))).collect(),
            state: rule
                .conditions
                .iter()
                .map(|one| self.condition(one))
                .chain(rule.bits.iter().map(|bits| self.bits(bits)))
                .collect(),
            thresholds: rule.thresholds.iter().map(|one| (threshold(one), one.place.clone())).collect(),
            selector: selector.map(|(section, content)| (buffer(section), shown(group::text_of(content)))),
            is_silent: rule.is_silent,
            doors: doors(rule),
        }
    }

    /// The rules whose match sets a bit that a rule asks for.
    pub fn setters(&self, rule: &Rule) -> Vec<u32> {
        let asked = |bits: &&Bits| bits.verb == BitVerb::IsSet;
        let asked: Vec<u32> = rule.bits.iter().filter(asked).flat_map(|bits| bits.names.iter().copied()).collect();
        let sets = |bits: &Bits| {
            matches!(bits.verb, BitVerb::Set(_) | BitVerb::Toggle) && bits.names.iter().any(|name| asked.contains(name))
        };
        let setters = self.rules.iter().filter(|other| other.sid != rule.sid && other.bits.iter().any(sets));
        setters.map(|rule| rule.sid).collect()
    }

    fn tests(&self, tests: &[Test]) -> Vec<String> {
        tests.iter().map(|test| self.test(test)).collect()
    }

    fn test(&self, test: &Test) -> String {
        match test {
            Test::Content(one) => content(one),
            Test::Pcre(pcre) => {
                let place = if pcre.is_relative { ", from the end of the test before" } else { "" };
                format!("{}expression {}{place}", not(pcre.is_negated), String::from_utf8_lossy(&pcre.source))
            }
            Test::Bytes(bytes) => number(bytes),
            Test::DataAt { count, is_relative, is_negated } => {
                let from = if *is_relative { " behind the test before" } else { "" };
                format!("{}a byte at {}{from}", not(*is_negated), value(*count))
            }
            Test::Size(sizes) => format!("length {}", size(*sizes)),
            Test::Base64 { bytes, offset, is_relative, tests } => {
                let count = if *bytes > 0 { format!("{bytes} bytes of ") } else { String::new() };
                let from = if *is_relative { " behind the test before" } else { "" };
                format!("{count}Base64 from byte {offset}{from}, decoded: {}", self.tests(tests).join("; "))
            }
            Test::Set { set, change } => {
                let verb = match change {
                    SetChange::Set => "is added to",
                    SetChange::Unset => "is removed from",
                    SetChange::IsSet => "is in",
                    SetChange::IsNotSet => "is not in",
                };
                format!("{verb} the data set {}", self.sets.name(*set))
            }
            Test::Reputation { set, order: by, value } => {
                format!("reputation in {} {} {value}", self.sets.name(*set), order(*by))
            }
            Test::Absent { or_else: true } => "the buffer is absent, or the tests hold".into(),
            Test::Absent { or_else: false } => "the buffer is absent".into(),
        }
    }

    fn condition(&self, one: &Condition) -> String {
        match one {
            Condition::Address { end, test } => {
                let end = if *end == Port::Source { "source" } else { "destination" };
                format!("the address of the {end}: {}", self.test(test))
            }
            _ => condition(one),
        }
    }

    fn bits(&self, bits: &Bits) -> String {
        let name = |name: &u32| self.bit_names.get(*name as usize).map(|name| &**name).unwrap_or_default();
        let amount = |amount: Amount| match amount {
            Amount::Number(number) => number.to_string(),
            Amount::Named(number) => name(&number).into(),
        };
        let names = bits.names.iter().map(name).collect::<Vec<_>>().join(" or ");
        let of = match bits.scope {
            Scope::Flow => "",
            Scope::Transaction => " of the transaction",
            Scope::Source => " of the source",
            Scope::Target => " of the destination",
            Scope::Pair => " of both addresses",
        };
        match bits.verb {
            BitVerb::Set(0) => format!("sets {names}{of}"),
            BitVerb::Set(seconds) => format!("sets {names}{of} for {seconds} s"),
            BitVerb::Unset => format!("removes {names}{of}"),
            BitVerb::Toggle => format!("toggles {names}{of}"),
            BitVerb::IsSet => format!("needs {names}{of}"),
            BitVerb::IsNotSet => format!("needs {names}{of} not set"),
            BitVerb::Put(value) => format!("sets {names} to {}", amount(value)),
            BitVerb::Add(value) => format!("adds {} to {names}", amount(value)),
            BitVerb::Subtract(value) => format!("takes {} from {names}", amount(value)),
            BitVerb::Compare(by, value) => format!("needs {names} {} {}", order(by), amount(value)),
        }
    }
}

/// The doors, and the protocol that rules are told there.
const DOORS: [(&str, App, &[Direction]); 4] = [
    ("HTTP and ICAP", App::Http, &[Direction::ToServer, Direction::ToClient]),
    ("SMTP, LMTP and milter", App::Smtp, &[Direction::ToServer]),
    ("POP3", App::Pop3, &[Direction::ToClient]),
    ("IMAP", App::Imap, &[Direction::ToClient]),
];

/// Buffers that are filled in captures alone.
fn is_of_captures(buffer: Buffer) -> bool {
    let of_tls = buffer.apps() == [App::Tls] && buffer != Buffer::TlsSni;
    of_tls || matches!(buffer, Buffer::DnsQuery | Buffer::Event | Buffer::Http2HeaderName)
}

fn doors(rule: &Rule) -> Result<Vec<&'static str>, String> {
    if let Some(keyword) = &rule.idle {
        return Err(format!("nowhere: nothing here has what {keyword} is about"));
    }
    let buffers = || rule.sections.iter().map(|section| section.buffer);
    if let Some(buffer) = buffers().find(|buffer| matches!(buffer, Buffer::EmailUrl | Buffer::EmailBodyMd5)) {
        return Err(format!("nowhere: nothing here fills {}", buffer.name()));
    }
    if rule.is_of_packet() {
        return Err("in captures alone: doors have no packets".into());
    }
    if let Some(buffer) = buffers().find(|buffer| is_of_captures(*buffer)) {
        return Err(format!("in captures alone: no door fills {}", buffer.name()));
    }
    if rule.head.transport == Some(Transport::Udp) {
        return Err("in captures alone: doors have no UDP".into());
    }
    let speaks = |app: App| rule.head.apps.is_empty() || rule.head.apps.contains(&app);
    let fills = |app: App| buffers().all(|buffer| buffer.apps().is_empty() || buffer.apps().contains(&app));
    if speaks(App::Tls) && fills(App::Tls) && buffers().any(|buffer| buffer == Buffer::TlsSni) {
        return Ok(vec!["HTTP, where TLS is opened"]);
    }
    let opens = |(_, app, ways): &&(_, App, &[Direction])| {
        speaks(*app) && fills(*app) && ways.iter().any(|way| rule.goes(*way))
    };
    let doors: Vec<&str> = DOORS.iter().filter(opens).map(|(name, ..)| *name).collect();
    if doors.is_empty() { Err("in captures alone: no door speaks its protocol".into()) } else { Ok(doors) }
}

fn buffer(section: &Section) -> String {
    let transforms: Vec<&str> = section.transforms.iter().map(|transform| transform.name()).collect();
    let name = if section.buffer == Buffer::Payload { "the stream" } else { section.buffer.name() };
    let way = match section.way {
        Some(Direction::ToServer) => &["of the client"][..],
        Some(Direction::ToClient) => &["of the server"],
        None => &[],
    };
    [&[name][..], way, &transforms[..]].concat().join(", ")
}

const fn not(is_negated: bool) -> &'static str {
    if is_negated { "no " } else { "" }
}

fn value(value: Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Variable(number) => format!("value {}", number + 1),
    }
}

/// A content with its place.
fn content(content: &Content) -> String {
    let mut text = format!("{}text {:?}", not(content.is_negated), shown(&content.bytes));
    if content.is_caseless {
        text.push_str(", cases ignored");
    }
    let length = i64::try_from(content.bytes.len()).unwrap_or(i64::MAX);
    match (content.offset, content.depth) {
        (Some(Value::Number(0)), Some(Value::Number(depth))) if depth == length => text.push_str(", at the beginning"),
        (Some(offset), Some(depth)) => text.push_str(&format!(", in {} bytes from {}", value(depth), value(offset))),
        (Some(offset), None) => text.push_str(&format!(", from byte {}", value(offset))),
        (None, Some(depth)) => text.push_str(&format!(", in the first {} bytes", value(depth))),
        (None, None) => {}
    }
    if let Some(distance) = content.distance {
        text.push_str(&format!(", {} bytes or more behind the test before", value(distance)));
    }
    if let Some(within) = content.within {
        text.push_str(&format!(", within {} bytes of there", value(within)));
    }
    if content.at_end {
        text.push_str(", at the end");
    }
    text
}

/// Bytes as rules have them.
fn shown(bytes: &[u8]) -> String {
    let (mut text, mut is_hex) = (String::new(), false);
    for &byte in bytes {
        let is_plain = (byte.is_ascii_graphic() || byte == b' ') && byte != b'|';
        if is_plain == is_hex {
            text.push('|');
        } else if is_hex {
            text.push(' ');
        }
        is_hex = !is_plain;
        match is_plain {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("{byte:02x}")),
        }
    }
    if is_hex { text + "|" } else { text }
}

fn number(bytes: &Bytes) -> String {
    let from = if bytes.is_relative { " behind the test before" } else { "" };
    let kind = match (bytes.base, bytes.is_little) {
        (Some(base), _) => format!("digits of base {base}"),
        (None, true) => "bytes, little endian".into(),
        (None, false) => "bytes".into(),
    };
    let mask = bytes.mask.map(|mask| format!(", masked by {mask:#x}")).unwrap_or_default();
    let number = format!("{} {kind} at {}{from}{mask}", value(bytes.count), value(bytes.offset));
    match bytes.verb {
        Verb::Test { order: by, is_negated, value: other } => {
            format!("number of {number}: {}{} {}", not(is_negated), order(by), value(other))
        }
        Verb::Jump { from, .. } => {
            let from = match from {
                From::Here => "",
                From::Beginning => " from the beginning",
                From::End => " from the end",
            };
            format!("as many bytes are passed over{from} as {number} say")
        }
        Verb::Extract { variable, .. } => format!("value {}: {number}", variable + 1),
        Verb::Math { variable, operator, value: other } => {
            format!("value {}: {number}, {} {}", variable + 1, char::from(operator), value(other))
        }
    }
}

/// A condition on the flow.
fn condition(condition: &Condition) -> String {
    match condition {
        Condition::App { apps, is_negated } => {
            let names: Vec<&str> = apps.iter().map(|app| app.name()).collect();
            let not = if *is_negated { "not " } else { "" };
            format!("needs the protocol {not}{}", names.join(" or "))
        }
        Condition::Carried(number) => format!("needs the number of the transport protocol {}", size(*number)),
        Condition::Address { .. } => String::new(),
        Condition::SameAddress => "needs one address on both sides".into(),
        Condition::Stream { side, size: bytes } => {
            let side = match side {
                StreamSide::One(Direction::ToServer) => "the client's stream",
                StreamSide::One(Direction::ToClient) => "the server's stream",
                StreamSide::Both => "both streams",
                StreamSide::Either => "either stream",
            };
            format!("needs {side} with {} bytes", size(*bytes))
        }
    }
}

fn size(size: Sizes) -> String {
    match size {
        Sizes::Compared(by, value) => format!("{} {value}", order(by)),
        Sizes::Between(low, high) => format!("between {low} and {high}"),
    }
}

const fn order(order: Order) -> &'static str {
    match order {
        Order::Less => "<",
        Order::LessOrEqual => "<=",
        Order::Greater => ">",
        Order::GreaterOrEqual => ">=",
        Order::Equal => "=",
        Order::NotEqual => "!=",
        Order::And => "&",
        Order::Or => "^",
    }
}

fn threshold(threshold: &Threshold) -> String {
    let Threshold { count, seconds, .. } = threshold;
    let of_ports = match threshold.unique {
        None => "",
        Some(Port::Source) => ", each of another source port",
        Some(Port::Target) => ", each to another destination port",
    };
    let by = match threshold.track {
        Track::Rule => "",
        Track::Source => " for each source",
        Track::Target => " for each destination",
        Track::Both => " for each pair of addresses",
        Track::Either => " for either address",
        Track::Flow => " for each flow",
    };
    let text = match threshold.rate {
        Rate::Limit => format!("at most {count} alerts in {seconds} s{by}"),
        Rate::Threshold => format!("an alert each {count} matches in {seconds} s{by}"),
        Rate::Both => format!("one alert in {seconds} s, after {count} matches{by}"),
        Rate::Backoff(factor) => {
            format!("an alert at {count} matches, then each time they are {factor} times as many{by}")
        }
        Rate::Filter => format!("matches only after {count} matches in {seconds} s{by}"),
        Rate::Change { action, seconds: on } => {
            format!("{} for {on} s, after more than {count} matches in {seconds} s{by}", action.name())
        }
        Rate::Suppress if threshold.addresses.is_some() => format!("no alerts{by}, for some addresses"),
        Rate::Suppress => "no alerts".into(),
    };
    text + of_ports
}
