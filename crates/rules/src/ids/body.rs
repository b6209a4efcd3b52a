//! A buffer that comes in pieces, as a window that moves on by half of it, and the rules that its texts select.
//!
//! A rule needs the text that selects it in the window, so it is enough to know where each text was found last: before the window, and
//! the rule is not tried.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use pattern::State;

use super::buffer::{Buffer, Direction};
use super::digests::Digests;
use super::evaluate::{LowerCase, View};
use super::group::{Group, Kind, home, is_long};
use super::set::RuleSet;
use super::transform::apply_all;

/// A content that comes in pieces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub buffer: Buffer,
    /// Another buffer that has the same bytes.
    pub also: Option<Buffer>,
    /// Its number among those of the buffer that are open at a time.
    pub part: u64,
    /// The stream has the same bytes, and its pass selects the rules.
    pub is_stream: bool,
}

impl Open {
    /// A content of one buffer.
    pub fn of(buffer: Buffer, part: u64) -> Open {
        Open { buffer, also: None, part, is_stream: false }
    }
}

/// A pass over a buffer.
#[derive(Debug)]
struct Pass {
    /// The number of its group.
    group: usize,
    /// Bytes of the buffer in front of it.
    before: u64,
    /// None once the buffer has ended.
    state: Option<State>,
    /// Where each text was found last, by the bytes up to its end.
    found: HashMap<u32, u64, RandomState>,
}

/// A place in a stream, whose pass looks for the texts of a file, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// The number of the stream.
    pub stream: u64,
    /// Bytes of the stream in front of the file, and perhaps more behind.
    pub before: u64,
}

/// A buffer that comes in pieces.
#[derive(Debug)]
pub(super) struct Body {
    pub open: Open,
    pub direction: Direction,
    kind: Option<Kind>,
    base: u64,
    pub bytes: Vec<u8>,
    /// The bytes in lower case, once a rule has asked for them.
    folded: LowerCase,
    passes: Vec<Pass>,
    /// The place in the stream, where the stream has the same bytes.
    pub anchor: Option<Anchor>,
    pub is_ended: bool,
    digests: Option<Box<Digests>>,
}

impl Body {
    pub fn new(open: Open, direction: Direction, kind: Option<Kind>, rules: &RuleSet) -> Body {
        let (bytes, folded, passes) = (Vec::new(), LowerCase::default(), Vec::new());
        let is_hashed = open.buffer == Buffer::FileData && rules.digests.is_any();
        let digests = is_hashed.then(|| Box::new(Digests::new(rules.digests)));
        let (base, anchor, is_ended) = (0, None, false);
        let mut body = Body { open, direction, kind, base, bytes, folded, passes, anchor, is_ended, digests };
        body.begin(rules);
        body
    }

    /// Begins the passes.
    fn begin(&mut self, rules: &RuleSet) {
        let is_of_stream = |home| self.open.is_stream && home == Buffer::Payload;
        let plain = self
            .groups(rules)
            .filter(|(_, home, group)| group.transforms.is_empty() && !is_of_stream(*home))
            .map(|(group, ..)| Pass { group, before: self.base, state: Some(State::new()), found: HashMap::default() });
        self.passes = plain.collect();
    }

    /// Has the bytes of the window looked at once more if the kind of its flow has turned out to be another.
    pub fn set_kind(&mut self, kind: Option<Kind>, rules: &RuleSet) {
        if self.kind != kind {
            self.kind = kind;
            self.begin(rules);
            let bytes = std::mem::take(&mut self.bytes);
            self.scan(&bytes, rules);
            self.bytes = bytes;
        }
    }

    /// Whether it is what was opened, and has not ended.
    pub fn is(&self, open: Open, direction: Direction) -> bool {
        (self.open.buffer, self.open.part, self.direction) == (open.buffer, open.part, direction) && !self.is_ended
    }

    /// Whether it is a content of the buffer.
    pub fn has(&self, buffer: Buffer) -> bool {
        self.open.buffer == buffer || self.open.also == Some(buffer)
    }

    /// The groups of its buffers, by number, with the buffer in whose pass they are.
    fn groups<'r>(&self, rules: &'r RuleSet) -> impl Iterator<Item = (usize, Buffer, &'r Group)> + use<'r> {
        let place = |buffer| {
            let kind = self.kind.filter(|_| is_long(buffer));
            (home(buffer, kind), kind)
        };
        let own = place(self.open.buffer);
        let other = self.open.also.map(place).filter(|other| *other != own);
        let groups = |(home, kind)| rules.groups.of(home, kind).map(move |(number, group)| (number, home, group));
        [Some(own), other].into_iter().flatten().flat_map(groups)
    }

    /// Bytes of the buffer in front of the window.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of the buffer that have come.
    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes.len() as u64)
    }

    /// The place in a stream behind which a text can stand in the window, if that stream has the same bytes.
    pub fn stream_place(&self, stream: u64) -> Option<u64> {
        let known = self.anchor.filter(|anchor| anchor.stream == stream);
        self.open.is_stream.then(|| known.map_or(0, |anchor| anchor.before.saturating_add(self.base)))
    }

    /// Tells the rules whose texts were found behind a place last, and where.
    pub fn selected_behind(&self, place: u64, rules: &RuleSet, select: &mut impl FnMut(u32, u64)) {
        for pass in &self.passes {
            let Some(group) = rules.groups.get(pass.group) else { continue };
            let found = pass.found.iter().filter(|(_, at)| **at > place);
            found.for_each(|(&part, &at)| group.rules_of(part).iter().for_each(|&rule| select(rule, at)));
        }
    }

    /// Tells the rules whose texts may stand in the window, and where they were found last.
    pub fn selected(&self, rules: &RuleSet, select: &mut impl FnMut(u32, u64)) {
        self.selected_behind(self.base, rules, select);
    }

    /// The window, as tests look at it.
    pub fn view(&self) -> View<'_> {
        View::folded_once(&self.bytes, &self.folded, self.base, self.is_ended)
    }

    /// Takes what fits into the window.
    pub fn take(&mut self, piece: &[u8], rules: &RuleSet) -> usize {
        let room = rules.limits.window_bytes.saturating_sub(self.bytes.len()).min(piece.len());
        let piece = &piece[..room];
        if let Some(digests) = &mut self.digests {
            digests.update(piece);
        }
        self.folded.grow();
        self.scan(piece, rules);
        self.bytes.extend_from_slice(piece);
        room
    }

    /// Looks for texts in the bytes that come next.
    fn scan(&mut self, piece: &[u8], rules: &RuleSet) {
        for Pass { group, before, state, found } in &mut self.passes {
            let (Some(group), Some(state)) = (rules.groups.get(*group), state) else { continue };
            group.scan(state, piece, &mut |part, at| _ = found.insert(part, before.saturating_add(at)));
        }
    }

    pub fn is_full(&self, rules: &RuleSet) -> bool {
        self.bytes.len() >= rules.limits.window_bytes
    }

    /// Moves the window on by half of it.
    pub fn advance(&mut self) {
        let half = self.bytes.len() / 2;
        self.bytes.drain(..half);
        self.folded.drain(half);
        self.base = self.base.saturating_add(half as u64);
    }

    pub fn finish(&mut self, rules: &RuleSet, selected: &mut BTreeSet<u32>) {
        self.is_ended = true;
        for Pass { group, before, state, found } in &mut self.passes {
            let (Some(group), Some(mut state)) = (rules.groups.get(*group), state.take()) else { continue };
            group.finish(&mut state, &mut |part, at| _ = found.insert(part, before.saturating_add(at)));
        }
        self.select_derived(rules, selected);
    }

    /// The digests of a file that has ended, where rules ask for them.
    pub fn digests(&mut self) -> Vec<Vec<u8>> {
        self.digests.take().map(|digests| digests.finish()).unwrap_or_default()
    }

    /// Looks into buffers that are derived from the window.
    pub fn select_derived(&self, rules: &RuleSet, selected: &mut BTreeSet<u32>) {
        let groups = self.groups(rules).map(|(.., group)| group).filter(|group| !group.transforms.is_empty());
        select(groups, &self.bytes, selected);
    }
}

/// Selects rules by the texts in a whole buffer, or in what is derived from it.
pub(super) fn select<'g>(groups: impl Iterator<Item = &'g Group>, bytes: &[u8], selected: &mut BTreeSet<u32>) {
    for group in groups {
        let Some(bytes) = apply_all(&group.transforms, bytes) else { continue };
        group.scan_whole(&bytes, &mut |rule| {
            selected.insert(rule);
        });
    }
}
