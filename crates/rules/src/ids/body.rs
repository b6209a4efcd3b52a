//! A buffer that comes in pieces, as a window that moves on by half of it, and the rules that its texts select.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use pattern::State;

use super::buffer::{Buffer, Direction};
use super::digests::Digests;
use super::evaluate::View;
use super::group::{Group, Kind, home};
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

/// A buffer that comes in pieces.
#[derive(Debug)]
pub(super) struct Body {
    pub open: Open,
    pub direction: Direction,
    kind: Option<Kind>,
    base: u64,
    pub bytes: Vec<u8>,
    /// The bytes in lower case, once a rule has asked for them.
    folded: OnceCell<Vec<u8>>,
    states: Vec<(usize, State)>,
    pub is_ended: bool,
    digests: Option<Box<Digests>>,
}

impl Body {
    pub fn new(open: Open, direction: Direction, server_port: u16, rules: &RuleSet) -> Body {
        let kind = Kind::of(open.buffer, direction, server_port);
        let (bytes, folded, states) = (Vec::new(), OnceCell::new(), Vec::new());
        let is_hashed = open.buffer == Buffer::FileData && rules.digests.is_any();
        let digests = is_hashed.then(|| Box::new(Digests::new(rules.digests)));
        let mut body = Body { open, direction, kind, base: 0, bytes, folded, states, is_ended: false, digests };
        let plain = body
            .groups(rules)
            .filter(|(_, home, group)| group.transforms.is_empty() && !(open.is_stream && *home == Buffer::Payload));
        body.states = plain.map(|(number, ..)| (number, State::new())).collect();
        body
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
        let own = (home(self.open.buffer), self.kind);
        let other = self.open.also.map(|also| (home(also), None)).filter(|other| other.0 != own.0);
        let groups = |(home, kind)| rules.groups.of(home, kind).map(move |(number, group)| (number, home, group));
        [Some(own), other].into_iter().flatten().flat_map(groups)
    }

    /// The window, as tests look at it.
    pub fn view(&self) -> View<'_> {
        View::folded_once(&self.bytes, &self.folded, self.base, self.is_ended)
    }

    /// Takes what fits into the window.
    pub fn take(&mut self, piece: &[u8], rules: &RuleSet, selected: &mut BTreeSet<u32>) -> usize {
        let room = rules.limits.window_bytes.saturating_sub(self.bytes.len()).min(piece.len());
        let piece = &piece[..room];
        self.bytes.extend_from_slice(piece);
        if let Some(digests) = &mut self.digests {
            digests.update(piece);
        }
        self.folded.take();
        for (group, state) in &mut self.states {
            let Some(group) = rules.groups.get(*group) else { continue };
            group.scan(state, piece, &mut |rule| {
                selected.insert(rule);
            });
        }
        room
    }

    pub fn is_full(&self, rules: &RuleSet) -> bool {
        self.bytes.len() >= rules.limits.window_bytes
    }

    /// Moves the window on by half of it.
    pub fn advance(&mut self) {
        let half = self.bytes.len() / 2;
        self.bytes.drain(..half);
        self.folded.take();
        self.base = self.base.saturating_add(half as u64);
    }

    pub fn end(&mut self, rules: &RuleSet, selected: &mut BTreeSet<u32>) {
        self.is_ended = true;
        for (group, state) in &mut self.states {
            let Some(group) = rules.groups.get(*group) else { continue };
            group.finish(state, &mut |rule| {
                selected.insert(rule);
            });
        }
        self.states = Vec::new();
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
