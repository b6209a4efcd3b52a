//! A flow between two peers, its transactions, and the rules that match them.
//!
//! A host makes a [`Flow`], and a [`Transaction`] for each request with its response, for each mail, for each question. It fills
//! buffers ([`Transaction::fill`]), feeds bodies ([`Flow::feed`]) and the streams themselves ([`Flow::payload`]), and has the rules
//! tried where its protocol has a border ([`Flow::inspect`], [`Flow::turn`]). [`Flow::verdict`] says what to do with the flow.
//!
//! Long buffers are looked at in windows that lie at fixed places of them, so it does not matter how they are cut; what is further
//! apart than half a window may not be seen together.

use core::cell::Cell;
use core::net::IpAddr;
use std::collections::{HashMap, HashSet};

use stream::Fuel;

use super::action::Action;
use super::body::{Body, Open};
use super::buffer::{App, Buffer, Buffers, Direction};
use super::evaluate::{Run, View};
use super::limits::Limits;
use super::rate::{Event, Rates};
use super::rule::{Bits, Rule, Scope, Section, Test, Transport};
use super::set::RuleSet;
use super::sets::Added;
use super::transaction::{Transaction, Trial};
use super::transform::apply_all;

mod candidates;

use candidates::{Tried, has, ordered};

/// One end of a flow.
pub type Peer = (IpAddr, u16);

/// Two peers and what carries their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// The side that began.
    pub client: Peer,
    /// The other.
    pub server: Peer,
    /// The transport.
    pub transport: Transport,
}

/// A rule that matched and alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alert {
    /// The place of the rule in [`RuleSet::rules`].
    pub rule: usize,
    /// The way the bytes went.
    pub direction: Direction,
    /// When, in milliseconds.
    pub now_ms: u64,
}

/// Verdict on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// It goes on and is inspected.
    #[default]
    Inspect,
    /// A rule let it by: nothing more is looked at.
    Pass,
    /// It is cut.
    Drop,
    /// It is cut, and its peers are told.
    Reject,
}

/// State that all flows share: bits of addresses, rates, and additions to data sets.
#[derive(Debug, Default)]
pub struct Site {
    pub(super) bits: HashMap<(u32, Option<IpAddr>, Option<IpAddr>), u64>,
    rates: Rates,
    pub(super) added: Added,
    flows: u64,
    /// Somebody else counts how often rules alert.
    is_uncounted: bool,
}

impl Site {
    /// One that reports each match of a rule that alerts or blocks: the host counts.
    pub fn uncounted() -> Site {
        Site { is_uncounted: true, ..Site::default() }
    }
}

/// The rules, what they share, and the time, for one call.
pub struct Desk<'d> {
    /// The rules.
    pub rules: &'d RuleSet,
    /// State that all flows share.
    pub site: &'d mut Site,
    /// The time, in milliseconds since the host's beginning of time.
    pub now_ms: u64,
}

fn side(direction: Direction) -> usize {
    usize::from(direction == Direction::ToClient)
}

/// Rules, by number, with the buffers that they need, a bit each.
type Unselected = Box<[(u32, Buffers)]>;

/// A flow.
#[derive(Debug)]
pub struct Flow {
    tuple: Tuple,
    app: Option<App>,
    number: u64,
    /// Bytes of both streams.
    sent: [u64; 2],
    pub(super) bits: HashMap<u32, i64>,
    streams: [Option<Body>; 2],
    /// How many streams there were in front of them.
    turns: [u64; 2],
    trials: [Trial; 2],
    /// Rules without tests of bytes that have matched.
    bare: HashSet<u32>,
    /// Rules about this flow that no text selects, and the buffers that they need; none before they are tried.
    unselected: [Option<Unselected>; 4],
    verdict: Verdict,
    alerts: Vec<Alert>,
    /// Bytes that tests may still look at; none before anything came.
    work: Cell<Option<u64>>,
}

impl Flow {
    /// A flow that begins.
    pub fn new(tuple: Tuple, app: Option<App>, site: &mut Site) -> Flow {
        site.flows = site.flows.wrapping_add(1);
        Flow {
            tuple,
            app,
            number: site.flows,
            sent: [0, 0],
            bits: HashMap::new(),
            streams: [None, None],
            turns: [0, 0],
            trials: [Trial::default(), Trial::default()],
            bare: HashSet::new(),
            unselected: Default::default(),
            verdict: Verdict::Inspect,
            alerts: Vec::new(),
            work: Cell::new(None),
        }
    }

    /// Whether tests have looked at as much as they may, so that no rule matches any more.
    pub fn is_spent(&self) -> bool {
        self.work.get() == Some(0)
    }

    /// More content has come: tests may look at more.
    fn grant(&self, bytes: usize, limits: &Limits) {
        let left = self.work.get().unwrap_or(limits.work_max);
        if left > 0 {
            self.work.set(Some(left.saturating_add(limits.work_a_byte.saturating_mul(bytes as u64))));
        }
    }

    /// Says which protocol it has turned out to be.
    pub fn set_app(&mut self, app: App) {
        self.app = Some(app);
        self.unselected = Default::default();
    }

    /// Bytes of its streams that it holds.
    pub fn held_bytes(&self) -> usize {
        self.streams.iter().flatten().map(|body| body.bytes.len()).sum()
    }

    /// The protocol that it has turned out to be.
    pub fn app(&self) -> Option<App> {
        self.app
    }

    /// Bytes that the client and the server have sent in their streams.
    pub(super) fn sent(&self) -> [u64; 2] {
        self.sent
    }

    /// The transport.
    pub(super) fn transport(&self) -> Transport {
        self.tuple.transport
    }

    /// Verdict on the flow.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The alerts since the last call.
    pub fn alerts(&mut self) -> Vec<Alert> {
        std::mem::take(&mut self.alerts)
    }

    /// Feeds a piece of a buffer that comes in pieces, and tries rules where a window is full.
    pub fn feed(
        &mut self,
        transaction: &mut Transaction,
        direction: Direction,
        buffer: Buffer,
        piece: &[u8],
        desk: &mut Desk<'_>,
    ) {
        self.feed_open(transaction, direction, Open::of(buffer, 0), piece, desk);
    }

    /// Feeds a piece of a content that is opened with its first piece.
    pub(super) fn feed_open(
        &mut self,
        transaction: &mut Transaction,
        direction: Direction,
        open: Open,
        piece: &[u8],
        desk: &mut Desk<'_>,
    ) {
        let buffers = 1 + usize::from(open.also.is_some());
        self.grant(piece.len().saturating_mul(buffers), &desk.rules.limits);
        let mut rest = piece;
        let kind = self.kind(open.buffer, direction);
        if !transaction.bodies.iter().any(|body| body.is(open, direction)) {
            transaction.shrink(desk.rules);
            let mut body = Body::new(open, direction, kind, desk.rules);
            body.anchor = self.anchor(direction, piece).filter(|_| open.is_stream);
            transaction.bodies.push(body);
        }
        transaction.note_change_of(open, direction);
        while let Some(body) = transaction.bodies.iter_mut().rev().find(|body| body.is(open, direction)) {
            body.set_kind(kind, desk.rules);
            let taken = body.take(rest, desk.rules);
            rest = &rest[taken..];
            if !body.is_full(desk.rules) {
                return;
            }
            body.select_derived(desk.rules, &mut transaction.trial.pending);
            self.inspect(transaction, direction, desk);
            if let Some(body) = transaction.bodies.iter_mut().rev().find(|body| body.is(open, direction)) {
                body.advance();
                transaction.note_change_of(open, direction);
            }
        }
    }

    /// Ends a buffer that came in pieces, and tries rules.
    pub fn end_buffer(
        &mut self,
        transaction: &mut Transaction,
        direction: Direction,
        buffer: Buffer,
        desk: &mut Desk<'_>,
    ) {
        self.end_open(transaction, direction, Open::of(buffer, 0), desk);
    }

    /// Ends a content, and tries rules.
    pub(super) fn end_open(
        &mut self,
        transaction: &mut Transaction,
        direction: Direction,
        open: Open,
        desk: &mut Desk<'_>,
    ) {
        if let Some(body) = transaction.bodies.iter_mut().find(|body| body.is(open, direction)) {
            body.finish(desk.rules, &mut transaction.trial.pending);
            let (open, digests) = (body.open, body.digests());
            transaction.note_change_of(open, direction);
            transaction.fill_digests(desk.rules, direction, digests);
            self.inspect(transaction, direction, desk);
        }
    }

    /// Ends one side of a transaction, and tries rules.
    pub fn end(&mut self, transaction: &mut Transaction, direction: Direction, desk: &mut Desk<'_>) {
        let is_open = |body: &&mut Body| body.direction == direction && !body.is_ended;
        let mut ended = Vec::new();
        for body in transaction.bodies.iter_mut().filter(is_open) {
            body.finish(desk.rules, &mut transaction.trial.pending);
            ended.push((body.open, body.digests()));
        }
        for (open, digests) in ended {
            transaction.note_change_of(open, direction);
            transaction.fill_digests(desk.rules, direction, digests);
        }
        transaction.ended[side(direction)] = true;
        self.inspect(transaction, direction, desk);
    }

    /// Tries the rules on what has been filled.
    pub fn inspect(&mut self, transaction: &mut Transaction, direction: Direction, desk: &mut Desk<'_>) {
        transaction.select(desk.rules);
        transaction.has_news = false;
        let stream = self.streams[side(direction)].as_ref().map_or(0, |_| Buffer::Payload.bit());
        let present = transaction.present(direction) | stream;
        let groups = &desk.rules.groups;
        self.know(Tried::Transactions, direction, groups.of_transactions(direction), desk.rules);
        let unselected = self.unselected(Tried::Transactions, direction, present);
        let selected = self.selected(transaction, direction, desk.rules);
        let numbers = ordered(&selected, unselected);
        let mut trial = std::mem::take(&mut transaction.trial);
        for number in numbers {
            let Some(rule) = desk.rules.rules.get(number as usize) else { continue };
            if self.verdict == Verdict::Pass {
                break;
            }
            if rule.needs & !present != 0 || rule.is_of_stream() || !self.concerns(rule, direction) {
                continue;
            }
            if trial.fired.contains(&(number, direction)) {
                continue;
            }
            if rule.sections.is_empty() && self.bare.contains(&number) {
                continue;
            }
            // Rules that look at the stream may change the bits that it asks for.
            if stream != 0 && rule.is_bare() && rule.bits.iter().any(|bits| bits.verb.is_test()) {
                continue;
            }
            if !trial.is_due(number, rule, direction, transaction) {
                continue;
            }
            if self.matches(rule, number, direction, transaction, &mut trial, desk) {
                trial.fired.insert((number, direction));
                trial.pending.remove(&number);
                if rule.sections.is_empty() {
                    self.bare.insert(number);
                }
                for bits in rule.bits.iter().filter(|bits| bits.scope == Scope::Transaction) {
                    transaction.change_bits(bits, desk.rules.limits.bits_max);
                }
                self.fire(rule, number, direction, desk);
            } else if has(&selected, number) && trial.has_begun(number, rule, direction) {
                trial.pending.insert(number);
            }
        }
        transaction.trial = trial;
    }

    /// Feeds bytes of a stream, and tries rules where a window is full.
    pub fn payload(&mut self, direction: Direction, piece: &[u8], desk: &mut Desk<'_>) {
        self.grant(piece.len(), &desk.rules.limits);
        let mut rest = piece;
        let at = side(direction);
        self.sent[at] = self.sent[at].saturating_add(piece.len() as u64);
        while !rest.is_empty() && self.verdict != Verdict::Pass {
            let (open, kind) = (Open::of(Buffer::Payload, 0), self.kind(Buffer::Payload, direction));
            let body = self.streams[at].get_or_insert_with(|| Body::new(open, direction, kind, desk.rules));
            body.set_kind(kind, desk.rules);
            let taken = body.take(rest, desk.rules);
            rest = &rest[taken..];
            if body.is_full(desk.rules) {
                body.select_derived(desk.rules, &mut self.trials[at].pending);
                self.try_stream(direction, desk);
                if let Some(body) = &mut self.streams[at] {
                    body.advance();
                }
            }
        }
    }

    /// Tries rules on a stream whose peer speaks next, or which has ended. What comes behind is looked at for itself, as a message of
    /// its own.
    pub fn turn(&mut self, direction: Direction, desk: &mut Desk<'_>) {
        self.end_stream(direction, desk);
        self.forget_stream(side(direction));
    }

    fn end_stream(&mut self, direction: Direction, desk: &mut Desk<'_>) {
        let (at, kind) = (side(direction), self.kind(Buffer::Payload, direction));
        if let Some(body) = &mut self.streams[at] {
            body.set_kind(kind, desk.rules);
            body.finish(desk.rules, &mut self.trials[at].pending);
        }
        self.try_stream(direction, desk);
    }

    fn forget_stream(&mut self, at: usize) {
        (self.streams[at], self.trials[at]) = (None, Trial::default());
        self.turns[at] = self.turns[at].wrapping_add(1);
    }

    /// Tries rules on a datagram, which is a stream of its own until it is ended.
    pub fn datagram(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        self.forget_stream(side(direction));
        self.payload(direction, bytes, desk);
        self.end_stream(direction, desk);
    }

    /// Forgets a datagram, after the transactions that it carries.
    pub fn end_datagram(&mut self, direction: Direction) {
        self.forget_stream(side(direction));
    }

    /// Tries rules about packets on one.
    pub fn packet(&mut self, direction: Direction, bytes: &[u8], desk: &mut Desk<'_>) {
        let numbers = desk.rules.groups.of_packets(direction);
        if numbers.is_empty() {
            return;
        }
        self.grant(bytes.len(), &desk.rules.limits);
        let (mut packet, mut trial) = (Transaction::new(), Trial::default());
        packet.fill(desk.rules, direction, Buffer::Packet, bytes);
        for &number in numbers {
            let Some(rule) = desk.rules.rules.get(number as usize) else { continue };
            if self.verdict == Verdict::Pass {
                break;
            }
            if self.concerns(rule, direction) && self.matches(rule, number, direction, &packet, &mut trial, desk) {
                self.fire(rule, number, direction, desk);
            }
        }
    }

    fn try_stream(&mut self, direction: Direction, desk: &mut Desk<'_>) {
        let at = side(direction);
        let mut trial = std::mem::take(&mut self.trials[at]);
        let present = self.streams[at].as_ref().map_or(0, |_| Buffer::Payload.bit());
        self.know(Tried::Streams, direction, desk.rules.groups.of_streams(direction), desk.rules);
        let unselected = self.unselected(Tried::Streams, direction, present);
        let (mut selected, mut come): (Vec<u32>, u64) = (trial.pending.iter().copied().collect(), 0);
        if let Some(stream) = &self.streams[at] {
            let is_new = |rule, place| trial.told.get(&rule).is_none_or(|told| *told < place);
            stream.selected(desk.rules, &mut |rule, place| selected.extend(is_new(rule, place).then_some(rule)));
            come = stream.end();
        }
        selected.sort_unstable();
        selected.dedup();
        let numbers = ordered(&selected, unselected);
        let nothing = Transaction::new();
        for number in numbers {
            let Some(rule) = desk.rules.rules.get(number as usize) else { continue };
            if self.verdict == Verdict::Pass {
                break;
            }
            let is_bare = rule.is_bare();
            if rule.needs & !present != 0 || !(rule.is_of_stream() || is_bare) || !self.concerns(rule, direction) {
                continue;
            }
            if is_bare && self.bare.contains(&number) || trial.fired.contains(&(number, direction)) {
                continue;
            }
            if self.matches(rule, number, direction, &nothing, &mut trial, desk) {
                if has(&selected, number) {
                    trial.pending.remove(&number);
                    trial.told.insert(number, come);
                } else {
                    trial.fired.insert((number, direction));
                }
                trial.forget(number);
                if is_bare {
                    self.bare.insert(number);
                }
                self.fire(rule, number, direction, desk);
            } else if has(&selected, number) && trial.has_begun(number, rule, direction) {
                trial.pending.insert(number);
            }
        }
        self.trials[at] = trial;
    }

    pub(super) fn peers(&self, direction: Direction) -> (Peer, Peer) {
        match direction {
            Direction::ToServer => (self.tuple.client, self.tuple.server),
            Direction::ToClient => (self.tuple.server, self.tuple.client),
        }
    }

    fn matches(
        &self,
        rule: &Rule,
        rule_number: u32,
        direction: Direction,
        transaction: &Transaction,
        trial: &mut Trial,
        desk: &mut Desk<'_>,
    ) -> bool {
        let asks = |bits: &&Bits| bits.verb.is_test() || bits.verb.takes_another();
        let (last, first): (Vec<_>, Vec<_>) = rule.conditions.iter().partition(|condition| condition.changes());
        if !first.iter().all(|condition| self.meets(condition, direction, desk))
            || !rule.bits.iter().filter(asks).all(|bits| self.test_bits(bits, direction, transaction, desk))
        {
            return false;
        }
        let left = self.work.get().unwrap_or(desk.rules.limits.work_max);
        if left == 0 {
            return false;
        }
        let mut run = Run {
            limits: &desk.rules.limits,
            sets: &desk.rules.sets,
            added: &mut desk.site.added,
            tries: 0,
            fuel: Fuel::new(desk.rules.limits.expression_steps_max),
            work: left,
            variables: vec![0; rule.variables],
            is_settled: false,
        };
        let holds = self.sections(rule, rule_number, direction, transaction, trial, &mut run);
        self.work.set(Some(run.work));
        holds && last.iter().all(|condition| self.meets(condition, direction, desk))
    }

    /// Whether all sections of a rule hold.
    fn sections(
        &self,
        rule: &Rule,
        rule_number: u32,
        direction: Direction,
        transaction: &Transaction,
        trial: &mut Trial,
        run: &mut Run<'_>,
    ) -> bool {
        // Tests that change a data set come last, when all other sections have matched.
        let changes = |section: &Section| section.tests.iter().any(|test| matches!(test, Test::Set { .. }));
        // A number from another buffer may change what a section asks for.
        let is_alone = rule.variables == 0 || rule.sections.len() == 1;
        for is_last in [false, true] {
            for (at, section) in rule.sections.iter().enumerate().filter(|(_, section)| changes(section) == is_last) {
                if trial.has_matched(rule_number, at, section, direction) {
                    continue;
                }
                let changes = transaction.changes_for(section).filter(|_| is_alone);
                if changes.is_some_and(|changes| trial.has_failed(rule_number, at, section, direction, changes)) {
                    return false;
                }
                if !self.section(section, direction, transaction, run) {
                    if let Some(changes) = changes.filter(|_| !run.is_spent()) {
                        trial.put_failed(rule_number, at, section, direction, changes);
                    }
                    return false;
                }
                trial.put_matched(rule_number, at, section, direction);
            }
        }
        true
    }

    /// Whether one instance of its buffer has what a section asks for.
    fn section(&self, section: &Section, direction: Direction, transaction: &Transaction, run: &mut Run<'_>) -> bool {
        let mut is_present = false;
        let mut holds = |view: &View<'_>, run: &mut Run<'_>| {
            is_present = true;
            if section.transforms.is_empty() {
                return run.holds(&section.tests, view);
            }
            let Some(bytes) = apply_all(&section.transforms, view.bytes()) else { return false };
            run.holds(&section.tests, &view.derived(&bytes))
        };
        let fits = |of: Direction| section.fits(of, direction);
        if section.buffer == Buffer::Payload {
            let stream = self.streams[side(direction)].as_ref();
            return stream.is_some_and(|body| holds(&body.view(), run));
        }
        let value = transaction.values.iter().filter(|(buffer, of, _)| *buffer == section.buffer && fits(*of));
        for (.., bytes) in value {
            if holds(&View::new(bytes, 0, true), run) {
                return true;
            }
        }
        let body = transaction.bodies.iter().filter(|body| body.has(section.buffer) && fits(body.direction));
        for body in body {
            if holds(&body.view(), run) {
                return true;
            }
        }
        section.may_be_absent() && !is_present && transaction.ended[side(direction)]
    }

    /// Does what a rule that has matched says.
    fn fire(&mut self, rule: &Rule, number: u32, direction: Direction, desk: &mut Desk<'_>) {
        for bits in rule.bits.iter().filter(|bits| !bits.verb.is_test()) {
            self.change_bits(bits, direction, desk);
        }
        let (source, target) = self.peers(direction);
        let event = Event { rule: number, flow: self.number, source, target, now_ms: desk.now_ms };
        let bits_max = desk.rules.limits.bits_max;
        let is_uncounted = desk.site.is_uncounted;
        let is_allowed = is_uncounted || desk.site.rates.allow(&rule.thresholds, event, bits_max);
        let has_filter = rule.thresholds.iter().any(|threshold| threshold.rate == super::rule::Rate::Filter);
        let changed = desk.site.rates.changed(&rule.thresholds, event, bits_max).filter(|_| !is_uncounted);
        let action = changed.unwrap_or(rule.action);
        if !is_allowed && (has_filter || action == Action::Alert) {
            return;
        }
        match action {
            Action::Pass => self.verdict = Verdict::Pass,
            Action::Drop if self.verdict == Verdict::Inspect => self.verdict = Verdict::Drop,
            Action::Reject => self.verdict = Verdict::Reject,
            _ => {}
        }
        if is_allowed
            && (!rule.is_silent || is_uncounted && rule.action.blocks())
            && (action != Action::Pass || rule.tells)
            && self.alerts.len() < desk.rules.limits.bits_max
        {
            self.alerts.push(Alert { rule: number as usize, direction, now_ms: desk.now_ms });
        }
    }
}
