//! One text of each rule by which it is selected, all texts of one buffer in one pass.
//!
//! Streams and files are long, so they have a pass for each kind of flow, with the rules alone that can match in such a flow. It is one
//! pass for both, since a body without codings is the stream, a file and a body at once; but in mail, where they differ, each has its own.

use std::collections::{BTreeMap, HashMap};

use pattern::{Builder, Match, Patterns, Piece, State};

use super::address::Ports;
use super::buffer::{App, Buffer, Direction};
use super::rule::{Content, Rule, Section, Test, Transport};
use super::transform::Transform;

/// A kind of flow, by the way of the bytes, the server's port and what is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    direction: Direction,
    port: Port,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Port {
    Web,
    /// Mail at its usual ports.
    Mail,
    /// Mail at any other port, and where the port is not known.
    AnyMail,
    /// Any other, and those that are not known.
    Other,
}

/// Protocols of mail.
const MAIL_APPS: [App; 3] = [App::Smtp, App::Pop3, App::Imap];

impl Port {
    const ALL: [Port; 4] = [Port::Web, Port::Mail, Port::AnyMail, Port::Other];

    fn is_mail(self) -> bool {
        matches!(self, Port::Mail | Port::AnyMail)
    }

    fn numbers(self) -> &'static [u16] {
        match self {
            Port::Web => &[80, 443, 8080],
            Port::Mail => &[25, 465, 587],
            Port::AnyMail | Port::Other => &[],
        }
    }
}

impl Kind {
    /// The kind of a flow; none for buffers that have one pass for all.
    pub fn of(
        buffer: Buffer,
        direction: Direction,
        (transport, server_port): (Transport, u16),
        app: Option<App>,
    ) -> Option<Kind> {
        let is_tcp = transport == Transport::Tcp;
        let is_at = |port: Port| port.numbers().contains(&server_port);
        let port = match app.is_some_and(|app| MAIL_APPS.contains(&app)) {
            _ if !is_tcp => Port::Other,
            true if is_at(Port::Mail) => Port::Mail,
            true => Port::AnyMail,
            false if is_at(Port::Web) => Port::Web,
            false => Port::Other,
        };
        is_long(buffer).then_some(Kind { direction, port })
    }

    /// The kind of flows of which nothing is known; none for buffers that have one pass for all.
    pub fn any(buffer: Buffer, direction: Direction) -> Option<Kind> {
        is_long(buffer).then_some(Kind { direction, port: Port::Other })
    }

    /// All kinds in which a text of a rule is looked for.
    fn all(buffer: Buffer, rule: &Rule) -> Vec<Option<Kind>> {
        let ways = [Direction::ToServer, Direction::ToClient];
        let kinds = ways.into_iter().flat_map(|direction| Port::ALL.map(|port| Kind { direction, port }));
        match buffer {
            Buffer::Payload | Buffer::FileData => kinds.filter(|kind| kind.has(rule)).map(Some).collect(),
            Buffer::ResponseBody => kinds.filter(|kind| kind.direction == Direction::ToClient).map(Some).collect(),
            _ => vec![None],
        }
    }

    /// Whether a rule can match in flows of the kind.
    fn has(self, rule: &Rule) -> bool {
        let head = &rule.head;
        let numbers = self.port.numbers();
        let has = |ports: &Ports| numbers.is_empty() || numbers.iter().any(|port| ports.has(*port));
        let (there, back) = match self.direction {
            Direction::ToServer => (&head.target_ports, &head.source_ports),
            Direction::ToClient => (&head.source_ports, &head.target_ports),
        };
        let is_of_mail = head.transport.is_none_or(|of| of == Transport::Tcp)
            && (head.apps.is_empty() || head.apps.iter().any(|app| MAIL_APPS.contains(app)));
        (is_of_mail || !self.port.is_mail())
            && rule.goes(self.direction)
            && (has(there) || head.goes_both_ways && has(back))
    }
}

/// Whether a buffer is long, so that it has a pass for each kind of flow.
pub(super) fn is_long(buffer: Buffer) -> bool {
    matches!(buffer, Buffer::Payload | Buffer::FileData | Buffer::ResponseBody)
}

/// The buffer in whose pass the texts of a buffer are looked for.
pub(super) fn home(buffer: Buffer, kind: Option<Kind>) -> Buffer {
    let is_one = is_long(buffer) && kind.is_some_and(|kind| !kind.port.is_mail());
    if is_one { Buffer::Payload } else { buffer }
}

/// The texts of one buffer, and the rules that they select.
#[derive(Debug)]
pub(super) struct Group {
    pub transforms: Vec<Transform>,
    patterns: Patterns,
    rules: Vec<Vec<u32>>,
}

impl Group {
    /// Scans a piece and tells texts, by number, with the places where they end; the state is that of the pieces before.
    pub fn scan(&self, state: &mut State, piece: &[u8], found: &mut impl FnMut(u32, u64)) {
        self.patterns.scan(state, piece, &mut |one: Match| found(one.part, one.known));
    }

    /// Scans what is there as a whole, and tells rules.
    pub fn scan_whole(&self, bytes: &[u8], select: &mut impl FnMut(u32)) {
        self.patterns
            .scan_whole(bytes, &mut |one: Match| self.rules_of(one.part).iter().for_each(|&rule| select(rule)));
    }

    /// Ends the scan of what came in pieces.
    pub fn finish(&self, state: &mut State, found: &mut impl FnMut(u32, u64)) {
        self.patterns.finish(state, &mut |one: Match| found(one.part, one.known));
    }

    /// The rules that a text selects.
    pub fn rules_of(&self, part: u32) -> &[u32] {
        self.rules.get(part as usize).map_or(&[], Vec::as_slice)
    }
}

/// All groups, and the rules that no text selects.
#[derive(Debug, Default)]
pub(super) struct Groups {
    list: Vec<Group>,
    places: BTreeMap<(Buffer, Option<Kind>), Vec<usize>>,
    always: usize,
    /// By the way of the bytes: rules about transactions, and those about streams, rules with one head together.
    of_transactions: [Vec<Vec<u32>>; 2],
    of_streams: [Vec<Vec<u32>>; 2],
    /// Rules about packets, whether a text selects them or not: they are few.
    of_packets: [Vec<u32>; 2],
}

/// A group that is being built.
struct Draft {
    buffer: Buffer,
    kind: Option<Kind>,
    transforms: Vec<Transform>,
    builder: Builder,
    rules: Vec<Vec<u32>>,
}

impl Groups {
    /// Chooses a text of each rule that can match.
    pub fn build(rules: &[Rule]) -> Groups {
        let (mut groups, mut drafts) = (Groups::default(), Vec::new());
        let mut unselected = Vec::new();
        for (number, rule) in (0u32..).zip(rules).filter(|(_, rule)| rule.idle.is_none()) {
            if rule.is_of_packet() {
                let ways = [Direction::ToServer, Direction::ToClient].into_iter().zip(&mut groups.of_packets);
                ways.filter(|(way, _)| rule.goes(*way)).for_each(|(_, list)| list.push(number));
                continue;
            }
            if choice(rule).is_none_or(|(section, content)| !place(&mut drafts, section, content, (number, rule))) {
                unselected.push((number, rule));
            }
        }
        groups.put_unselected(&unselected);
        for (at, draft) in drafts.into_iter().enumerate() {
            groups.places.entry((draft.buffer, draft.kind)).or_default().push(at);
            let Draft { transforms, builder, rules, .. } = draft;
            groups.list.push(Group { transforms, patterns: builder.build(), rules });
        }
        groups
    }

    fn put_unselected(&mut self, rules: &[(u32, &Rule)]) {
        self.always = rules.len();
        for (at, way) in [Direction::ToServer, Direction::ToClient].into_iter().enumerate() {
            let goes = |rule: &Rule| rule.goes(way);
            self.of_streams[at] = by_head(rules, |rule| goes(rule) && (rule.is_of_stream() || rule.is_bare()));
            self.of_transactions[at] = by_head(rules, |rule| goes(rule) && !rule.is_of_stream());
        }
    }

    pub fn always(&self) -> usize {
        self.always
    }

    /// The rules about transactions that are tried each time, those with one head together.
    pub fn of_transactions(&self, direction: Direction) -> &[Vec<u32>] {
        &self.of_transactions[usize::from(direction == Direction::ToClient)]
    }

    /// The rules about streams that are tried each time, those with one head together.
    pub fn of_streams(&self, direction: Direction) -> &[Vec<u32>] {
        &self.of_streams[usize::from(direction == Direction::ToClient)]
    }

    /// The rules about packets.
    pub fn of_packets(&self, direction: Direction) -> &[u32] {
        &self.of_packets[usize::from(direction == Direction::ToClient)]
    }

    /// The groups of a buffer in flows of a kind, by number.
    pub fn of(&self, buffer: Buffer, kind: Option<Kind>) -> impl Iterator<Item = (usize, &Group)> {
        let places = self.places.get(&(home(buffer, kind), kind)).into_iter().flatten();
        places.filter_map(|&at| Some((at, self.list.get(at)?)))
    }

    pub fn get(&self, number: usize) -> Option<&Group> {
        self.list.get(number)
    }
}

/// Some of these rules, those with one head together.
fn by_head(rules: &[(u32, &Rule)], is_wanted: impl Fn(&Rule) -> bool) -> Vec<Vec<u32>> {
    let mut heads: HashMap<_, Vec<u32>> = HashMap::new();
    for (number, rule) in rules.iter().filter(|(_, rule)| is_wanted(rule)) {
        heads.entry(&rule.head).or_default().push(*number);
    }
    heads.into_values().collect()
}

/// Puts a text into the groups of its buffer; says whether it can be looked for.
fn place(drafts: &mut Vec<Draft>, section: &Section, content: &Content, (number, rule): (u32, &Rule)) -> bool {
    let piece = if content.is_caseless { Piece::caseless } else { Piece::byte };
    let pieces: Vec<Piece> = text_of(content).iter().map(|&byte| piece(byte)).collect();
    Kind::all(section.buffer, rule).into_iter().all(|kind| {
        let draft = draft(drafts, section, kind);
        let Ok(part) = draft.builder.add(&pieces) else { return false };
        let part = part as usize;
        if draft.rules.len() <= part {
            draft.rules.resize(part + 1, Vec::new());
        }
        draft.rules[part].push(number);
        true
    })
}

/// The draft of a buffer, which is made where there is none.
fn draft<'d>(drafts: &'d mut Vec<Draft>, section: &Section, kind: Option<Kind>) -> &'d mut Draft {
    let buffer = home(section.buffer, kind);
    let is_it = |draft: &Draft| (draft.buffer, draft.kind) == (buffer, kind) && draft.transforms == section.transforms;
    let at = drafts.iter().position(is_it).unwrap_or_else(|| {
        let transforms = section.transforms.clone();
        drafts.push(Draft { buffer, kind, transforms, builder: Builder::new(), rules: Vec::new() });
        drafts.len() - 1
    });
    &mut drafts[at]
}

/// Bytes of a text that is looked for in long buffers: shorter ones stand everywhere, and it costs less to try their few rules.
const LONG_BUFFER_TEXT_BYTES_MIN: usize = 4;

/// The bytes of a content that are looked for.
pub(super) fn text_of(content: &Content) -> &[u8] {
    content.fast_part.and_then(|(at, length)| content.bytes.get(at..at + length)).unwrap_or(&content.bytes)
}

/// Bytes of a text that is rarer than what a rule names for its search, where that has at most so many.
const RARE_TEXT_BYTES_MIN: usize = 12;
const SHORT_NAMED_TEXT_BYTES_MAX: usize = 5;

/// The rank of a text among those of a rule, by its length and by whether the rule names it: `.zip` stands in many a text without an
/// attachment. `short` is the buffer of a short text that the rule names.
fn rank(buffer: Buffer, content: &Content, short: Option<Buffer>) -> u8 {
    match (content.is_fast, text_of(content).len()) {
        (true, length) if length > SHORT_NAMED_TEXT_BYTES_MAX => 3,
        (false, RARE_TEXT_BYTES_MIN..) if short == Some(buffer) => 2,
        (true, _) => 1,
        (false, _) => 0,
    }
}

/// Whether a content is long enough to select rules.
fn is_telling(section: &Section, content: &Content) -> bool {
    let is_long =
        matches!(section.buffer, Buffer::Payload | Buffer::FileData | Buffer::RequestBody | Buffer::ResponseBody);
    text_of(content).len() >= if is_long { LONG_BUFFER_TEXT_BYTES_MIN } else { 2 }
}

/// The text that selects a rule: the one that it names unless that is short, else the longest; those of a stream only where there is no
/// other.
pub(super) fn choice(rule: &Rule) -> Option<(&Section, &Content)> {
    let contents = rule.sections.iter().flat_map(|section| {
        section.tests.iter().filter_map(move |test| match test {
            Test::Content(content) if !content.is_negated => Some((section, &**content)),
            _ => None,
        })
    });
    let telling = contents.filter(|(section, content)| is_telling(section, content) && !section.may_be_absent());
    let is_short = |content: &Content| content.is_fast && text_of(content).len() <= SHORT_NAMED_TEXT_BYTES_MAX;
    let short = telling.clone().find(|(_, content)| is_short(content)).map(|(section, _)| section.buffer);
    telling.max_by_key(|(section, content)| {
        (rank(section.buffer, content, short), section.buffer != Buffer::Payload, content.bytes.len())
    })
}
