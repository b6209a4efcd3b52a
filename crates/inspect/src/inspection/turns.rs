//! Turns: what a node does when it is its turn.

use digest::Batch;
use scan::{Roll, Scan};
use stream::{Class, Event, FileType, Finding, Fuel, Limits, Object, Step};

use super::events::{SPOOL_EXCEEDED, Told, spool};
use super::gathering::GATHERED_FIELD_BYTES_MAX;
use super::observers::Sight;
use super::ruling::forbids;
use super::{Inspection, Unit, keys};
use crate::node::{Form, Node, Open, Reader, Work};
use crate::opener;
use flow::{Action, ObjectReport, Out, StageTime, Way};
use unpack::Doubt;

/// Memory granted to each decompressor whatever others have: enough for bzip2.
const CODEC_BYTES_MIN: u32 = 4 << 20;

/// How many parts are remembered after their end: as many as fit one window, all but empty.
const UNITS_MAX: usize = 64;

impl Inspection {
    pub(super) fn recognise(&mut self, node: &mut Node, slot: usize) {
        let head = node.window.filled();
        let wanted = unpack::head_bytes(&head[..head.len().min(unpack::HEAD_BYTES)]);
        if head.len() < wanted && !node.closing {
            return node.want_head(wanted);
        }
        let head = &head[..head.len().min(wanted)];
        let content = opener::recognise(&node.object, head, node.source.is_none());
        let file_type = opener::with_magic(&self.engine.database, head, content);
        let head_bytes = head.len();
        node.file_type = Some(file_type);
        let rule = self.rule(node, file_type);
        let way = rule.map_or(Way::Open, |rule| rule.way);
        let forbidden = rule.filter(|rule| rule.way == Way::Forbid).map(|rule| rule.label.clone());
        self.renew_passwords(node, file_type);
        if matches!(way, Way::Open | Way::Forbid) {
            if content == FileType::Mail {
                node.tail = Some(self.tail(node, &node.window.filled()[..head_bytes]));
            }
            self.add_openers(node, slot, [content, file_type], head_bytes);
        }
        node.roll = Roll::new(self.engine.database.clone(), file_type).filter(|_| way == Way::Open).map(Box::new);
        let is_page = !matches!(content, FileType::Mail | FileType::Empty)
            && node.object.content_codings.is_empty()
            && unpack::is_page(node.object.media_type.as_deref(), node.object.name.as_deref());
        self.add_observers(node, &Sight { slot, content, file_type, is_page, head_bytes, way });
        node.readers.shrink_to_fit();
        if let Some(label) = forbidden {
            self.spotted(node, slot, Finding { class: Class::Forbidden, name: forbids(&label), offset: 0 }, false);
        }
    }

    /// Adds the stages that open an object.
    fn add_openers(&mut self, node: &mut Node, slot: usize, types: [FileType; 2], head_bytes: usize) {
        let limits = self.remaining_limits();
        let head = &node.window.filled()[..head_bytes];
        for (opener, unnamed) in opener::openers(&node.object, types, head, &limits, &self.passwords) {
            if node.tail.is_some_and(|tail| tail.omits(opener.name)) {
                continue;
            }
            let mut reader = Reader::new(opener.name, Work::Stage(opener.stage));
            reader.expands = opener.expands;
            reader.second_reading = node.second_reading;
            reader.doubt = if node.is_doubted { Doubt::Always } else { opener.doubt };
            if unnamed {
                // What it converts to is read afresh: nothing that was said of the original holds.
                let seed = self.child(node, slot, &reader, Object::default());
                let child = self.plant(seed);
                reader.open.push(Open::Node(child));
            }
            node.readers.push(reader);
        }
    }

    /// The limits, less what decompressors within decompressors have been granted: each gets half of what is left.
    fn remaining_limits(&self) -> Limits {
        let readers = self.nodes.iter().flatten().flat_map(|node| &node.readers);
        let codecs = readers.filter(|reader| reader.expands && !reader.ended).count();
        let limits = &self.engine.limits;
        let codec_bytes_max = limits.codec_bytes_max >> codecs.min(31);
        Limits { codec_bytes_max: codec_bytes_max.max(limits.codec_bytes_max.min(CODEC_BYTES_MIN)), ..limits.clone() }
    }

    /// Types of the node's containers, the innermost last.
    pub(super) fn containers(&self, node: &Node) -> Vec<FileType> {
        let mut containers = Vec::new();
        let mut source = node.source;
        while let Some(above) = source.and_then(|slot| self.nodes[slot].as_ref()) {
            containers.extend(above.file_type);
            source = above.source;
        }
        containers.reverse();
        containers
    }

    pub(super) fn step(&mut self, node: &mut Node, slot: usize, index: usize, batch: &mut Batch, fuel: &mut Fuel) {
        let started = self.clock.map(|clock| clock());
        let reader = &mut node.readers[index];
        let target = reader.target();
        // What is told verbatim has to fit the target's window.
        let input_max = target.map_or(usize::MAX, |target| self.node(target).window.room());
        let skip = usize::try_from(reader.at - node.base).expect("a window's length fits usize");
        let input = &node.window.filled()[skip..];
        let input = &input[..input.len().min(input_max)];

        let mut window = self.lend(target);
        let before = fuel.left();
        let Step { taken, event } = reader.work.step(batch, input, &mut window, fuel);
        let at = reader.at - reader.began;
        let content = match event {
            Event::Verbatim => &input[..taken],
            Event::Wrote => window.filled(),
            _ => &[],
        };
        if let Some(Open::Field(field)) = reader.open.last_mut() {
            let is_sought = self.context.wants.sought.is_some();
            keys::collect(field, content, if is_sought { GATHERED_FIELD_BYTES_MAX } else { keys::FIELD_BYTES_MAX });
        }
        if slot == 0 && reader.is_of_mail() {
            self.out.extend(self.facts.see(&input[..taken], &event, content, false));
        }
        let mut told = self.settle(target, window);
        let mut lost = false;
        if let (Event::Verbatim, Some(target)) = (&event, target) {
            told = self.node(target).window.push(&input[..taken]);
            lost = told < taken;
            debug_assert!(!lost, "verbatim content is lost");
        }
        let stalled = reader.stands(taken + told, &event, before - fuel.left(), fuel);
        let overfull = spool(reader, &input[..taken], &mut self.spooled, self.engine.limits.spool_bytes_max);
        reader.at += taken as u64;
        self.read_again += if reader.forked { taken as u64 } else { 0 };
        if let (Some(clock), Some(started)) = (self.clock, started) {
            reader.nanos += clock().saturating_sub(started);
        }
        self.report_gathered(node, index, false);
        self.report_watched();
        if stalled || lost {
            return self.stall(node, slot, index, false);
        }
        // A scan tells by itself where it would have needed what is not kept.
        if overfull && !node.readers[index].is_scan() {
            self.said(node, slot, index, Finding::new(Class::Limit, SPOOL_EXCEEDED, at), false);
        }
        self.heed(node, slot, index, batch, Told { event, bytes: told, at_end: false });
    }

    pub(super) fn finish(&mut self, node: &mut Node, slot: usize, index: usize, batch: &mut Batch, fuel: &mut Fuel) {
        let started = self.clock.map(|clock| clock());
        let reader = &mut node.readers[index];
        let target = reader.target();
        let mut window = self.lend(target);
        let before = fuel.left();
        let event = reader.work.finish(batch, &reader.spool, &mut window, fuel);
        if slot == 0 && reader.is_of_mail() {
            let content = if matches!(event, Event::Wrote) { window.filled() } else { &[] };
            self.out.extend(self.facts.see(&[], &event, content, true));
        }
        let told = self.settle(target, window);
        let stalled = reader.stands(told, &event, before - fuel.left(), fuel);
        if let (Some(clock), Some(started)) = (self.clock, started) {
            reader.nanos += clock().saturating_sub(started);
        }
        self.report_gathered(node, index, true);
        self.report_watched();
        if stalled {
            return self.stall(node, slot, index, true);
        }
        self.heed(node, slot, index, batch, Told { event, bytes: told, at_end: true });
    }

    /// Ends a reader that comes no further.
    fn stall(&mut self, node: &mut Node, slot: usize, index: usize, at_end: bool) {
        self.found(node, slot, index, Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Stall", 0), at_end);
        self.cut_off(node, index);
    }

    /// Forgets a node whose readers are done.
    pub(super) fn retire(&mut self, mut node: Node, slot: usize) {
        self.strike_off(&node);
        self.note_end(&node);
        self.discount_scrap(&node);
        self.conclude_roll(&mut node, slot);
        self.take_words(&mut node);
        self.take_page(&mut node);
        self.order.retain(|&other| other != slot);
        self.awake.remove(&(self.births[slot], slot));
        if node.form.is_none() && node.scan().is_some_and(Scan::allowed) {
            self.ledger.allowed.push(node.id);
        }
        if let (Some(start), true) = (node.raw_start, node.source.is_some()) {
            if self.units.len() == UNITS_MAX {
                self.units.pop_front();
            }
            self.units.push_back(Unit { start, end: start + node.bytes, coding: node.object.coding });
        }
        if node.form.is_none() {
            self.ledger.bytes += node.bytes;
            self.report(&node);
        }
        if node.source.is_none() {
            self.conclude(node.bytes);
        }
    }

    pub(super) fn report(&mut self, node: &Node) {
        if !self.context.wants.objects {
            return;
        }
        let spotted = self.ledger.findings.iter().filter(|spotted| spotted.object == node.id);
        let report = ObjectReport {
            id: node.id,
            parent: (node.id != 0).then(|| self.ledger.parents[node.id as usize]),
            path: node.path.clone(),
            kind: node.object.kind,
            name: node.object.name.clone(),
            file_type: node.file_type,
            media_type: node.object.media_type.clone(),
            coding: node.object.coding,
            bytes: node.bytes,
            sha256: node.sha256(),
            second_reading: node.second_reading,
            findings: spotted.map(|spotted| spotted.finding.clone()).collect(),
            stages: self.stage_times(node),
        };
        self.out.push_back(Out::Object(Box::new(report)));
    }

    /// The time spent by the node's readers, and in undoing its transfer coding.
    fn stage_times(&self, node: &Node) -> Vec<StageTime> {
        let source = node
            .source
            .and_then(|slot| self.nodes[slot].as_deref())
            .filter(|source| source.form == Some(Form::Encoded));
        source.into_iter().chain([node]).flat_map(Node::stage_times).collect()
    }

    pub(super) fn conclude(&mut self, fed: u64) {
        self.done = true;
        self.end_watch();
        if fed > self.cleared {
            self.out.push_back(Out::Cleared(fed));
        }
        self.out.extend(self.facts.finish());
        if self.stopped.is_none() {
            self.report_unread();
        }
        let mut verdict = std::mem::take(&mut self.ledger).verdict(&self.context);
        if let Some(page) = self.page.take() {
            verdict.action = verdict.action.max(if page.is_blocked() { Action::Reject } else { Action::Pass });
            verdict.page = Some(Box::new(page));
        }
        self.out.push_back(Out::Verdict(verdict));
    }
}
