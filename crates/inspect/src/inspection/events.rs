//! Events: what a reader's words do to the tree.

use std::borrow::Cow;

use digest::Batch;
use stream::{Class, Coding, Event, FileType, Finding, Kind, Note, Object, Window};

use super::Inspection;
use super::ruling::inherit_names;
use crate::node::{Form, Node, Open, Reader, Seed, Work};
use flow::{Blank, ObjectReport, Out};
use unpack::Doubt;

/// The most second readings under way at any time. Each takes a share of the processor time, and the windows of what it opens.
const SECOND_READINGS_MAX: u32 = 64;

/// The open objects of an inspection in which one more second reading begins: each takes a window.
const OPEN_OBJECTS_MAX: usize = 256;

/// Bytes that second readings, and what they open, may have taken for each byte fed, and besides, when one more begins: those
/// within others are many, even where few are under way at a time.
const READ_AGAIN_MAX: u64 = 16;
const READ_AGAIN_FREE_BYTES: u64 = 4 << 20;

/// Finding for a spool that refuses.
pub(super) const SPOOL_EXCEEDED: &str = "Heuristics.Limits.Exceeded.Spool";

/// Event of a reader, with its bytes of content; whether after its last byte.
pub(super) struct Told {
    pub event: Event,
    pub bytes: usize,
    pub at_end: bool,
}

impl Inspection {
    /// Acts on what a reader told.
    pub(super) fn heed(&mut self, node: &mut Node, slot: usize, index: usize, batch: &mut Batch, told: Told) {
        let Told { event, bytes, at_end } = told;
        match event {
            Event::Idle => {}
            Event::Verbatim => self.deliver(node, slot, index, bytes),
            Event::Wrote => {
                self.deliver(node, slot, index, bytes);
                self.expand(node, slot, index, bytes);
            }
            Event::Open(object) => self.open(node, slot, index, object),
            Event::Close => {
                let open = node.readers[index].open.pop();
                if self.is_proof(open.as_ref()) {
                    self.trust(node, slot, index, at_end);
                }
                debug_assert!(open.is_some(), "more objects closed than opened");
                if let Some(Open::Field(field)) = &open {
                    let is_of_root = slot == 0 && node.readers[index].open.is_empty();
                    if is_of_root {
                        self.watch_field(field);
                    }
                    self.gather_field(field, is_of_root);
                }
                self.close(open, node.readers[index].second_reading);
            }
            Event::Note(Note::Finding(finding)) => self.said(node, slot, index, finding, at_end),
            Event::Note(Note::Fork(finding)) => self.fork(node, slot, index, batch, finding),
            Event::Keep(range) => {
                let reader = &mut node.readers[index];
                let at = reader.at - reader.began;
                if !reader.spool.ask(range, at) && !reader.is_scan() {
                    self.said(node, slot, index, Finding::new(Class::Limit, SPOOL_EXCEEDED, at), at_end);
                }
            }
            Event::End => self.cut_off(node, index),
        }
    }

    pub(super) fn node(&mut self, slot: usize) -> &mut Node {
        self.awake.insert((self.births[slot], slot));
        self.nodes[slot].as_mut().expect("an open node is in its slot")
    }

    /// An empty window to write to: the target's own, unless something waits in it.
    pub(super) fn lend(&mut self, target: Option<usize>) -> Window {
        if let Some(slot) = target {
            let target = self.node(slot);
            target.trim();
            if target.window.is_empty() {
                return std::mem::replace(&mut target.window, Window::with_capacity(0));
            }
        }
        self.scratch.take().expect("the scratch window is lent once at a time")
    }

    /// Takes back a lent window; returns how many bytes reached the target.
    pub(super) fn settle(&mut self, target: Option<usize>, mut window: Window) -> usize {
        let written = window.len();
        if let Some(slot) = target {
            let target = self.node(slot);
            if target.window.capacity() == 0 {
                target.window = window;
                return written;
            }
            let pushed = target.window.push(window.filled());
            debug_assert_eq!(pushed, written, "what waits in a window leaves room for a scratch window");
        }
        window.clear();
        self.scratch = Some(window);
        written
    }

    fn window(&self) -> Window {
        Window::with_capacity((self.engine.limits.window_bytes as usize).max(2 * unpack::HEAD_BYTES))
    }

    /// Accounts for content that was put into the innermost node's window.
    fn deliver(&mut self, node: &mut Node, slot: usize, index: usize, count: usize) {
        let reader = &node.readers[index];
        let Some(Open::Node(target)) = reader.open.last() else { return };
        let target = self.nodes[*target].as_mut().expect("an open node is in its slot");
        target.bytes += count as u64;
        self.read_again += if target.second_reading { count as u64 } else { 0 };
        let torn = target.torn.take().filter(|_| count > 0);
        if let (Some(start), Some(late)) = (target.raw_start, target.blanked) {
            let blank = Blank { part: start, end: start + target.bytes, coding: target.object.coding, late };
            self.out.push_back(Out::Blank(blank));
        }
        if let Some(name) = torn {
            let finding = Finding { class: Class::Ambiguous, name, offset: reader.at.saturating_sub(reader.began) };
            self.found(node, slot, index, finding, false);
        }
    }

    /// Counts what decompression makes, and stops what makes too much out of too little.
    fn expand(&mut self, node: &mut Node, slot: usize, index: usize, count: usize) {
        if !node.readers[index].expands {
            return;
        }
        let limits = &self.engine.limits;
        self.expanded += count as u64;
        let fed = self.nodes[0].as_ref().map_or(node.bytes, |root| root.bytes).max(1);
        if self.expanded <= limits.ratio_free_bytes || self.expanded / fed <= limits.ratio_max.into() {
            return;
        }
        let at = node.readers[index].at;
        self.found(node, slot, index, Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Ratio", at), false);
        self.cut_off(node, index);
    }

    fn open(&mut self, node: &mut Node, slot: usize, index: usize, mut object: Object) {
        if object.kind == Kind::Field {
            return node.readers[index].open.push(Open::Field(Vec::new()));
        }
        if let Some(name) = self.beyond_limit(node) {
            self.found(node, slot, index, Finding::new(Class::Limit, name, node.readers[index].at), false);
            return node.readers[index].open.push(Open::Unread);
        }
        let ticket = self.enrol(node, slot, index, &object);
        inherit_names(&mut object, &node.object);
        let seed = Seed { ticket, ..self.child(node, slot, &node.readers[index], object) };
        self.forbid_container(&seed);
        self.note_divided(node.readers[index].name, &seed);
        let open = match seed.object.kind {
            Kind::Multipart | Kind::Message => Open::Container {
                id: seed.id,
                parent: self.ledger.parents[seed.id as usize],
                path: seed.path,
                object: Box::new(seed.object),
            },
            _ if seed.object.coding != Coding::Identity => Open::Node(self.plant_coded(seed)),
            _ => Open::Node(self.plant(seed)),
        };
        node.readers[index].open.push(open);
    }

    fn beyond_limit(&mut self, node: &Node) -> Option<&'static str> {
        let limits = &self.engine.limits;
        if node.depth >= limits.depth_max {
            return Some("Heuristics.Limits.Exceeded.Depth");
        }
        let spent = self.are_objects_spent();
        if spent && !std::mem::replace(&mut self.exhausted, true) {
            return Some("Heuristics.Limits.Exceeded.Objects");
        }
        spent.then_some("Heuristics.Limits.Exceeded.Objects")
    }

    /// Makes a node of a reader's new object.
    pub(super) fn child(&mut self, node: &Node, slot: usize, reader: &Reader, object: Object) -> Seed {
        let enclosing = reader.open.iter().rev().find_map(|open| match open {
            Open::Container { id, path, .. } => Some((*id, path.clone())),
            _ => None,
        });
        let (parent, above) = enclosing.unwrap_or_else(|| (node.id, node.path.clone()));
        let path = match &object.name {
            None => above,
            Some(name) => above.iter().chain([name]).cloned().collect(),
        };
        let raw_start = node.raw_start.zip(object.raw_offset).map(|(start, offset)| start + reader.began + offset);
        let id = self.ledger.number(parent);
        let run = node.place.zip(object.raw_offset).map(|((base, at), offset)| (base, at + reader.began + offset));
        let place = if object.raw_offset.is_some() { run } else { Some((id, 0)) };
        Seed {
            id,
            object,
            path,
            source: Some(slot),
            depth: node.depth + 1,
            raw_start,
            place,
            second_reading: reader.second_reading,
            is_doubted: reader.doubt == Doubt::Always,
            ticket: None,
        }
    }

    pub(super) fn plant(&mut self, seed: Seed) -> usize {
        let node = Box::new(seed.grow(self.window()));
        let slot = self.free_slot();
        self.nodes[slot] = Some(node);
        self.born += 1;
        self.births[slot] = self.born;
        self.awake.insert((self.born, slot));
        self.order.push(slot);
        slot
    }

    /// A slot for a new node. The node whose turn it is has left its slot for the time being: that one is not free.
    fn free_slot(&mut self) -> usize {
        let free = (0..self.nodes.len()).find(|slot| self.nodes[*slot].is_none() && !self.order.contains(slot));
        free.unwrap_or_else(|| {
            self.nodes.push(None);
            self.births.push(0);
            self.nodes.len() - 1
        })
    }

    /// Plants the encoded form, read by its decoder, and the decoded form behind it. Returns the slot of the former.
    fn plant_coded(&mut self, seed: Seed) -> usize {
        let mut decoder =
            Reader::new(seed.object.coding.name(), Work::Decode(Box::new(mime::Decoder::new(seed.object.coding))));
        decoder.second_reading = seed.second_reading;
        let mut decoded = seed.clone();
        (decoded.raw_start, decoded.place) = (None, Some((seed.id, 0)));
        let encoded = self.plant(seed);
        decoded.source = Some(encoded);
        let decoded = self.plant(decoded);
        decoder.open.push(Open::Node(decoded));
        let node = self.node(encoded);
        node.form = Some(Form::Encoded);
        node.readers = vec![decoder];
        encoded
    }

    fn close(&mut self, open: Option<Open>, second_reading: bool) {
        match open {
            Some(Open::Node(slot)) => {
                self.node(slot).closing = true;
            }
            Some(Open::Field(field)) => self.take_field(&field),
            Some(Open::Container { id, parent, path, object }) if self.context.wants.objects => {
                let report = ObjectReport {
                    id,
                    parent: Some(parent),
                    path,
                    kind: object.kind,
                    name: object.name,
                    file_type: None,
                    media_type: object.media_type,
                    coding: object.coding,
                    bytes: 0,
                    sha256: None,
                    second_reading,
                    findings: Vec::new(),
                    stages: Vec::new(),
                };
                self.out.push_back(Out::Object(Box::new(report)));
            }
            _ => {}
        }
    }

    /// Ends a reader: what it still has open is complete.
    pub(super) fn cut_off(&mut self, node: &mut Node, index: usize) {
        let reader = &mut node.readers[index];
        reader.end();
        self.spooled -= std::mem::take(&mut reader.spool).len();
        let second_reading = reader.second_reading;
        if std::mem::take(&mut reader.forked) {
            self.second_readings -= 1;
        }
        for open in std::mem::take(&mut node.readers[index].open).into_iter().rev() {
            self.close(Some(open), second_reading);
        }
    }

    /// Starts the second reading of ambiguous content, unless too many are in progress: then the finding is ambiguous.
    fn fork(&mut self, node: &mut Node, slot: usize, index: usize, batch: &mut Batch, finding: Finding) {
        let ambiguous = Finding { class: Class::Ambiguous, ..finding.clone() };
        let alternative = match self.may_read_again(node) {
            true => node.readers[index].work.alternative(),
            false => None,
        };
        let Some(stage) = alternative else { return self.said(node, slot, index, ambiguous, false) };
        self.second_readings += 1;
        if finding.class != Class::TwoReadings {
            self.said(node, slot, index, Finding { class: Class::TwoReadings, ..finding }, false);
        }
        let first = &node.readers[index];
        let mut second = Reader::new(first.name, Work::Stage(stage));
        (second.at, second.began) = (first.at, first.at);
        (second.second_reading, second.forked, second.expands) = (true, true, first.expands);
        second.doubt = first.doubt;
        let silent = first.is_junk(&node.object);
        match first.open.last() {
            // What was told so far belongs to both readings.
            Some(Open::Node(open)) => {
                let twin = self.twin(*open, batch, (!silent).then_some(ambiguous.name));
                second.open.push(Open::Node(twin));
            }
            Some(Open::Unread) => second.open.push(Open::Unread),
            _ => {}
        }
        node.readers.push(second);
    }

    /// Whether one more second reading may begin in `node`.
    fn may_read_again(&self, node: &Node) -> bool {
        let fed = self.nodes[0].as_ref().map_or(node.bytes, |root| root.bytes);
        let bytes_max = READ_AGAIN_FREE_BYTES.saturating_add(fed.saturating_mul(READ_AGAIN_MAX));
        self.second_readings < SECOND_READINGS_MAX && self.order.len() < OPEN_OBJECTS_MAX && self.read_again < bytes_max
    }

    /// A second node with the same content so far, for a second reading that goes on differently. Its scans are carried over,
    /// and its transfer coding; what an opener has in the works stays with the first. `name` is of the finding that says so.
    fn twin(&mut self, slot: usize, batch: &mut Batch, name: Option<Cow<'static, str>>) -> usize {
        let first = self.nodes[slot].as_ref().expect("an open node is in its slot");
        let (source, parent) = (first.source, self.ledger.parents[first.id as usize]);
        let id = self.ledger.number(parent);
        let decoder = first.readers.iter().find_map(Reader::decoder);
        let twin = self.twin_of_content(slot, id, source, batch, name.clone());
        if let Some((mut decoder, decoded)) = decoder {
            let decoded = self.twin_of_content(decoded, id, Some(twin), batch, name);
            decoder.open.push(Open::Node(decoded));
            decoder.second_reading = true;
            self.node(twin).readers.insert(0, decoder);
        }
        twin
    }

    /// The same without its transfer coding.
    fn twin_of_content(
        &mut self,
        slot: usize,
        id: u32,
        source: Option<usize>,
        batch: &mut Batch,
        name: Option<Cow<'static, str>>,
    ) -> usize {
        let first = self.nodes[slot].as_ref().expect("an open node is in its slot");
        let views: Vec<_> = first.readers.iter().filter_map(Reader::view).collect();
        let is_torn = first.readers.iter().any(|reader| !reader.ended && matches!(reader.work, Work::Stage(_)));
        let text_at = first.file_type.filter(|file_type| is_text(*file_type)).map(|_| first.bytes);
        let twin = self.copy(slot, id, source, batch);
        for (mut reader, view) in views {
            reader.open.push(Open::Node(self.copy(view, id, Some(twin), batch)));
            reader.second_reading = true;
            self.node(twin).readers.push(reader);
        }
        match text_at {
            Some(at) => {
                let embedded = Box::new(mime::Embedded::new(&self.engine.limits));
                let mut reader = Reader::new("embedded", Work::Stage(embedded));
                (reader.at, reader.began, reader.second_reading) = (at, at, true);
                self.node(twin).readers.insert(0, reader);
            }
            None => self.node(twin).torn = name.filter(|_| is_torn),
        }
        twin
    }

    /// Another node with the content of this one and its scan.
    fn copy(&mut self, slot: usize, id: u32, source: Option<usize>, batch: &mut Batch) -> usize {
        let first = self.nodes[slot].as_ref().expect("an open node is in its slot");
        let seed = Seed {
            id,
            object: first.object.clone(),
            path: first.path.clone(),
            source,
            depth: first.depth,
            raw_start: None,
            place: None,
            second_reading: true,
            is_doubted: first.is_doubted,
            ticket: None,
        };
        let (file_type, form, bytes, base) = (first.file_type, first.form, first.bytes, first.base);
        let head_bytes = first.head_bytes;
        let filled = first.window.filled().to_vec();
        let room = first.window.capacity();
        let scan = first.readers.iter().find_map(|reader| match &reader.work {
            Work::Scan(scan) => Some((Box::new(scan.copy(batch)), reader.at)),
            _ => None,
        });
        let copy = self.plant(seed);
        let node = self.node(copy);
        if node.window.capacity() < room {
            node.window = Window::with_capacity(room);
        }
        (node.file_type, node.form, node.bytes, node.base, node.head_bytes) =
            (file_type, form, bytes, base, head_bytes);
        node.window.push(&filled);
        if let Some((scan, at)) = scan {
            let mut reader = Reader::new("scan", Work::Scan(scan));
            reader.at = at;
            node.readers.push(reader);
        }
        copy
    }
}

/// Whether nothing but text is looked for in it.
const fn is_text(file_type: FileType) -> bool {
    matches!(file_type, FileType::Text | FileType::Html)
}

/// Keeps what the reader wants kept of what it took; whether something was refused for the first time.
pub(super) fn spool(reader: &mut Reader, taken: &[u8], spooled: &mut u64, bytes_max: u32) -> bool {
    let before = reader.spool.len();
    let allowed = u64::from(bytes_max).saturating_sub(*spooled);
    let refused = reader.spool.pass(reader.at - reader.began, taken, allowed);
    *spooled += reader.spool.len() - before;
    refused
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flow::{Context, In};
    use scan::Database;
    use stream::{Fuel, Limits};

    use super::*;
    use crate::inspection::{Engine, Progress};

    #[test]
    fn an_inspection_that_waits_keeps_no_reader_that_has_ended() {
        let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
        let mut inspection = Inspection::new(Arc::new(engine), Context::default());
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for mut piece in content.chunks(4_000) {
            while !piece.is_empty() {
                piece = &piece[inspection.tell(In::Feed(piece))..];
                while inspection.work(&mut Fuel::new(1 << 20)) == Progress::Tired {}
                let readers = &inspection.node(0).readers;
                assert!(readers.iter().all(|reader| !reader.ended) && readers.capacity() == readers.len());
            }
            while inspection.hear().is_some() {}
            assert_eq!(inspection.out.capacity(), 0);
        }
        assert!(inspection.node(0).readers.len() > 1, "it is still searched");
    }
}
