//! The rules that are tried on a flow: those whose texts were found, and those that no text selects, if their heads are about it.

use super::super::address::{Addresses, Ports, number};
use super::super::body::Anchor;
use super::super::buffer::{Buffer, Buffers, Direction};
use super::super::group::Kind;
use super::super::rule::Rule;
use super::super::set::RuleSet;
use super::super::transaction::Transaction;
use super::{Flow, Peer, side};

/// The object of rules.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tried {
    Transactions,
    Streams,
}

impl Tried {
    /// The place of such rules about one way.
    fn at(self, direction: Direction) -> usize {
        2 * usize::from(matches!(self, Tried::Streams)) + side(direction)
    }
}

impl Flow {
    /// The rules whose texts stand in the buffers, in order.
    pub(super) fn selected(&self, transaction: &Transaction, direction: Direction, rules: &RuleSet) -> Vec<u32> {
        let at = side(direction);
        let mut selected: Vec<u32> =
            transaction.trial.pending.iter().chain(&self.trials[at].pending).copied().collect();
        let mut select = |rule, _| selected.push(rule);
        transaction.bodies.iter().for_each(|body| body.selected(rules, &mut select));
        if let Some(stream) = &self.streams[at] {
            let files = transaction.bodies.iter().filter(|body| body.direction == direction);
            let places = files.filter_map(|body| body.stream_place(self.turns[at]));
            stream.selected_behind(places.fold(stream.base(), u64::min), rules, &mut select);
        }
        selected.sort_unstable();
        selected.dedup();
        selected
    }

    /// The kind of flow that it is for a buffer.
    pub(super) fn kind(&self, buffer: Buffer, direction: Direction) -> Option<Kind> {
        Kind::of(buffer, direction, (self.tuple.transport, self.tuple.server.1), self.app)
    }

    /// The place of a piece in the stream, which has had it.
    pub(super) fn anchor(&self, direction: Direction, piece: &[u8]) -> Option<Anchor> {
        let at = side(direction);
        let before = self.streams[at].as_ref()?.end().saturating_sub(piece.len() as u64);
        Some(Anchor { stream: self.turns[at], before })
    }

    /// Finds out which of the rules that no text selects are about this flow, once.
    pub(super) fn know(&mut self, tried: Tried, direction: Direction, by_head: &[Vec<u32>], rules: &RuleSet) {
        let at = tried.at(direction);
        if self.unselected[at].is_some() {
            return;
        }
        let rule = |number: &u32| rules.rules.get(*number as usize);
        let is_about =
            |list: &&Vec<u32>| list.first().and_then(rule).is_some_and(|first| self.concerns(first, direction));
        let numbers = by_head.iter().filter(is_about).flatten();
        let mut known: Vec<_> = numbers.filter_map(|number| Some((*number, rule(number)?.needs))).collect();
        known.sort_unstable();
        self.unselected[at] = Some(known.into());
    }

    /// The rules about this flow that no text selects and whose buffers are there.
    pub(super) fn unselected(
        &self,
        tried: Tried,
        direction: Direction,
        present: Buffers,
    ) -> impl Iterator<Item = u32> + use<'_> {
        let known = self.unselected[tried.at(direction)].iter().flatten();
        known.filter(move |(_, needs)| needs & !present == 0).map(|(number, _)| *number)
    }

    /// Whether the head of a rule is about this flow.
    pub(super) fn concerns(&self, rule: &Rule, direction: Direction) -> bool {
        let head = &rule.head;
        let has_transport = head.transport.is_none_or(|transport| transport == self.tuple.transport);
        let has_app = head.apps.is_empty() || self.app.is_some_and(|app| head.apps.contains(&app));
        if !has_transport || !has_app || !rule.goes(direction) {
            return false;
        }
        let (source, target) = self.peers(direction);
        let fits = |source: Peer, target: Peer| {
            // A peer that is not known may be any.
            let has = |(address, port): Peer, addresses: &Addresses, ports: &Ports| {
                (port == 0 || ports.has(port)) && (address.is_unspecified() || addresses.has(number(address)))
            };
            has(source, &head.sources, &head.source_ports) && has(target, &head.targets, &head.target_ports)
        };
        fits(source, target) || head.goes_both_ways && fits(target, source)
    }
}

/// The rules that are tried, in their order.
pub(super) fn ordered(selected: &[u32], unselected: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = selected.iter().copied().chain(unselected).collect();
    numbers.sort();
    numbers.dedup();
    numbers
}

/// Whether a rule is among these, which are in order.
pub(super) fn has(numbers: &[u32], number: u32) -> bool {
    numbers.binary_search(&number).is_ok()
}
