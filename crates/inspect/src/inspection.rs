//! The driver: a bounded tree of objects, one turn at a time.
//!
//! Each turn lets the deepest node that can do something do one thing: recognise its content, let a reader take a step
//! or finish, or retire. So whatever a reader tells is read to the last byte by those below it before the reader goes
//! on, a window never overflows, and the inspection can stop between any two turns.
//!
//! Bounds: `Limits`. Depth and number of objects, expansion, and windows are enforced here; the rest by the stages.

use std::collections::VecDeque;
use std::sync::Arc;

use scan::{Database, Scan};
use sha2::{Digest, Sha256};
use stream::{Class, Coding, Event, FileType, Finding, Fuel, Kind, Limits, Note, Object, Step, Window};

use crate::node::{Node, Open, Reader, Task, Work};
use crate::opener::{self, Opener};
use crate::{Action, Blank, Context, In, ObjectReport, Out, Spotted, StageTime, Verdict};

/// What all inspections share: the signatures and the bounds.
#[derive(Debug, Clone)]
pub struct Engine {
    /// The signatures.
    pub database: Arc<Database>,
    /// The bounds of each inspection.
    pub limits: Limits,
}

/// How far [`Inspection::work`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All that was fed is inspected; it waits for more.
    Hungry,
    /// The fuel ran out; call again.
    Tired,
    /// The verdict has been given.
    Done,
}

/// One inspection of one object, in this process.
///
/// # Calling order
/// [`tell`](Inspection::tell) bytes, [`work`](Inspection::work) until it is no longer [`Progress::Tired`],
/// [`hear`](Inspection::hear) what it says; at the end tell [`In::Finish`] and work until [`Progress::Done`].
///
/// It allocates a window for each object that it opens, and what the stages declare; [`Inspection::window_bytes`]
/// says how much the windows are.
pub struct Inspection {
    engine: Arc<Engine>,
    context: Context,
    clock: Option<fn() -> u64>,
    /// The nodes, by slot; the root is in slot 0.
    nodes: Vec<Option<Box<Node>>>,
    /// The slots in use, in the order in which their objects began: parents before children.
    order: Vec<usize>,
    /// Written to where the target's window is not empty: while it waits to be recognised.
    scratch: Option<Window>,
    out: VecDeque<Out>,
    cleared: u64,
    second_readings: u32,
    expanded: u64,
    /// Bytes in the spools of all readers.
    spooled: u64,
    exhausted: bool,
    ledger: Ledger,
    units: VecDeque<Unit>,
    done: bool,
}

/// What has been found, and what the verdict needs to know of the objects.
#[derive(Default)]
struct Ledger {
    /// The parent of each object.
    parents: Vec<u32>,
    findings: Vec<Spotted>,
    more_findings: u32,
    more_action: Action,
    /// Objects that an allow list vouches for.
    allowed: Vec<u32>,
    unblankable: bool,
    bytes: u64,
}

/// A part of the object that is fed, which can be overwritten; remembered after its end, since a match in the raw mail
/// may be told later.
#[derive(Clone, Copy)]
struct Unit {
    start: u64,
    end: u64,
    coding: Coding,
}

/// What each decompressor is granted whatever others have: enough for bzip2.
const CODEC_BYTES_MIN: u32 = 4 << 20;

/// What is told when the spool refuses.
const SPOOL_EXCEEDED: &str = "Heuristics.Limits.Exceeded.Spool";

/// How many parts are remembered after their end: as many as fit one window, all but empty.
const UNITS_MAX: usize = 64;

impl Inspection {
    /// An inspection of the object that `context` announces.
    pub fn new(engine: Arc<Engine>, context: Context) -> Inspection {
        let mut inspection = Inspection {
            engine,
            context,
            clock: None,
            nodes: Vec::new(),
            order: Vec::new(),
            scratch: Some(Window::with_capacity(unpack::HEAD_BYTES)),
            out: VecDeque::new(),
            cleared: 0,
            second_readings: 0,
            expanded: 0,
            spooled: 0,
            exhausted: false,
            ledger: Ledger::default(),
            units: VecDeque::new(),
            done: false,
        };
        let object = inspection.context.object.clone();
        let path = object.name.iter().cloned().collect();
        let id = inspection.ledger.number(0);
        inspection.plant(Seed { id, object, path, source: None, depth: 0, raw_start: Some(0), second_reading: false });
        inspection
    }

    /// Measures the time spent in each stage by `clock`, which counts nanoseconds.
    pub fn with_clock(mut self, clock: fn() -> u64) -> Inspection {
        self.clock = Some(clock);
        self
    }

    /// Takes what the door tells, and returns how many bytes of it were taken: less than all when the window is full
    /// and [`Inspection::work`] has to be called first.
    pub fn tell(&mut self, message: In<'_>) -> usize {
        let Some(root) = self.nodes[0].as_mut() else { return 0 };
        match message {
            In::Feed(bytes) => {
                root.trim();
                let count = root.window.push(bytes);
                root.bytes += count as u64;
                count
            }
            In::Finish => {
                root.closing = true;
                0
            }
        }
    }

    /// The next thing that the inspection says.
    pub fn hear(&mut self) -> Option<Out> {
        self.out.pop_front()
    }

    /// Inspects until there is nothing left to do or the fuel is used up.
    pub fn work(&mut self, fuel: &mut Fuel) -> Progress {
        loop {
            if self.done {
                return Progress::Done;
            }
            let Some((slot, task)) = self.next_task() else { break };
            if fuel.is_empty() {
                return Progress::Tired;
            }
            self.turn(slot, task, fuel);
        }
        self.clear();
        Progress::Hungry
    }

    /// Bytes of the windows that are allocated now.
    pub fn window_bytes(&self) -> usize {
        let used = self.nodes.iter().flatten().map(|node| node.window.capacity());
        used.chain(self.scratch.iter().map(Window::capacity)).sum()
    }

    /// The heaviest action that the findings so far ask for.
    pub fn action(&self) -> Action {
        let policy = &self.context.policy;
        let asked = self.ledger.findings.iter().map(|spotted| policy.action(spotted.finding.class));
        asked.max().unwrap_or_default().max(self.ledger.more_action)
    }

    fn next_task(&self) -> Option<(usize, Task)> {
        let deepest_first = self.order.iter().rev();
        deepest_first.copied().find_map(|slot| Some((slot, self.nodes[slot].as_ref()?.task()?)))
    }

    fn turn(&mut self, slot: usize, task: Task, fuel: &mut Fuel) {
        let mut node = self.nodes[slot].take().expect("a node in order is in its slot");
        match task {
            Task::Recognise => self.recognise(&mut node, slot),
            Task::Step(index) => self.step(&mut node, slot, index, fuel),
            Task::Finish(index) => self.finish(&mut node, slot, index, fuel),
            Task::Retire => return self.retire(*node, slot),
        }
        node.trim();
        self.nodes[slot] = Some(node);
    }

    /// Says that everything fed so far has been inspected.
    fn clear(&mut self) {
        let fed = self.nodes[0].as_ref().map_or(self.cleared, |root| root.bytes);
        if fed > self.cleared {
            self.cleared = fed;
            self.out.push_back(Out::Cleared(fed));
        }
    }
}

/// Turns: what a node does.
impl Inspection {
    fn recognise(&mut self, node: &mut Node, slot: usize) {
        fn stage(opener: Opener) -> (Reader, bool) {
            let mut reader = Reader::new(opener.name, Work::Stage(opener.stage));
            reader.expands = opener.expands;
            (reader, opener.unnamed)
        }
        let head = node.window.filled();
        let head = &head[..head.len().min(unpack::HEAD_BYTES)];
        let file_type = opener::recognise(&node.object, head, node.source.is_none());
        node.file_type = Some(file_type);
        let limits = self.remaining_limits();
        for opener in opener::openers(&node.object, file_type, head, &limits) {
            let (mut reader, unnamed) = stage(opener);
            reader.second_reading = node.second_reading;
            if unnamed {
                // What it converts to is read afresh: nothing that was said of the original holds.
                let seed = self.child(node, slot, &reader, Object::default());
                let child = self.plant(seed);
                reader.open.push(Open::Node(child));
            }
            node.readers.push(reader);
        }
        let census = self.engine.database.census();
        if census.exact + census.at_end + census.bounded > 0 {
            let mut scan = Scan::new(self.engine.database.clone(), file_type, None);
            if let Some(container) = self.container(node) {
                scan = scan.within(container);
            }
            node.readers.push(Reader::new("scan", Work::Scan(Box::new(scan))));
        }
        if self.context.explain {
            node.readers.push(Reader::new("sha-256", Work::Sha256(Box::new(Sha256::new()))));
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

    /// What the node's container is.
    fn container(&self, node: &Node) -> Option<FileType> {
        let mut source = node.source;
        while let Some(above) = source.and_then(|slot| self.nodes[slot].as_ref()) {
            if above.file_type.is_some() {
                return above.file_type;
            }
            source = above.source;
        }
        None
    }

    fn step(&mut self, node: &mut Node, slot: usize, index: usize, fuel: &mut Fuel) {
        let started = self.clock.map(|clock| clock());
        let reader = &mut node.readers[index];
        let target = reader.target();
        // What is told verbatim has to fit the target's window.
        let input_max = target.map_or(usize::MAX, |target| self.node(target).window.room());
        let skip = usize::try_from(reader.at - node.base).expect("a window's length fits usize");
        let input = &node.window.filled()[skip..];
        let input = &input[..input.len().min(input_max)];

        let mut window = self.lend(target);
        let Step { taken, event } = reader.work.step(input, &mut window, fuel);
        let at = reader.at - reader.began;
        let stalled = event == Event::Idle && taken == 0 && !fuel.is_empty();
        let mut told = self.settle(target, window);
        if let (Event::Verbatim, Some(target)) = (&event, target) {
            told = self.node(target).window.push(&input[..taken]);
            debug_assert_eq!(told, taken, "verbatim content is lost");
        }
        let overfull = spool(reader, &input[..taken], &mut self.spooled, self.engine.limits.spool_bytes_max);
        reader.at += taken as u64;
        if let (Some(clock), Some(started)) = (self.clock, started) {
            reader.nanos += clock().saturating_sub(started);
        }
        if stalled {
            self.found(node, slot, index, Finding::new(Class::Limit, "Heuristics.Limits.Exceeded.Stall", 0), false);
            return self.cut_off(node, index);
        }
        if overfull {
            self.found(node, slot, index, Finding::new(Class::Limit, SPOOL_EXCEEDED, at), false);
        }
        self.heed(node, slot, index, event, told, false);
    }

    fn finish(&mut self, node: &mut Node, slot: usize, index: usize, fuel: &mut Fuel) {
        let started = self.clock.map(|clock| clock());
        let reader = &mut node.readers[index];
        let target = reader.target();
        let mut window = self.lend(target);
        let event = reader.work.finish(&reader.spool, &mut window, fuel);
        let told = self.settle(target, window);
        if let (Some(clock), Some(started)) = (self.clock, started) {
            reader.nanos += clock().saturating_sub(started);
        }
        self.heed(node, slot, index, event, told, true);
    }

    /// Acts on what a reader told.
    fn heed(&mut self, node: &mut Node, slot: usize, index: usize, event: Event, told: usize, at_end: bool) {
        match event {
            Event::Idle => {}
            Event::Verbatim => self.deliver(node, index, told),
            Event::Wrote => {
                self.deliver(node, index, told);
                self.expand(node, slot, index, told);
            }
            Event::Open(object) => self.open(node, slot, index, object),
            Event::Close => {
                let open = node.readers[index].open.pop();
                debug_assert!(open.is_some(), "more objects closed than opened");
                self.close(open, node.readers[index].second_reading);
            }
            Event::Note(Note::Finding(finding)) => self.found(node, slot, index, finding, at_end),
            Event::Note(Note::Fork(finding)) => self.fork(node, slot, index, finding),
            Event::Keep(range) => {
                let reader = &mut node.readers[index];
                let at = reader.at - reader.began;
                if !reader.spool.ask(range, at) {
                    self.found(node, slot, index, Finding::new(Class::Limit, SPOOL_EXCEEDED, at), at_end);
                }
            }
            Event::End => self.cut_off(node, index),
        }
    }

    /// Forgets a node whose readers are done.
    fn retire(&mut self, node: Node, slot: usize) {
        self.order.retain(|&other| other != slot);
        if node.scan().is_some_and(Scan::allowed) {
            self.ledger.allowed.push(node.id);
        }
        if let (Some(start), true) = (node.raw_start, node.source.is_some()) {
            if self.units.len() == UNITS_MAX {
                self.units.pop_front();
            }
            self.units.push_back(Unit { start, end: start + node.bytes, coding: node.object.coding });
        }
        if !node.encoded {
            self.ledger.bytes += node.bytes;
            self.report(&node);
        }
        if node.source.is_none() {
            self.conclude(node.bytes);
        }
    }

    fn report(&mut self, node: &Node) {
        if !self.context.explain {
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
        let source = node.source.and_then(|slot| self.nodes[slot].as_deref()).filter(|source| source.encoded);
        source.into_iter().chain([node]).flat_map(Node::stage_times).collect()
    }

    fn conclude(&mut self, fed: u64) {
        self.done = true;
        if fed > self.cleared {
            self.out.push_back(Out::Cleared(fed));
        }
        let verdict = std::mem::take(&mut self.ledger).verdict(&self.context);
        self.out.push_back(Out::Verdict(verdict));
    }
}

/// Keeps what the reader wants kept of what it took; whether something was refused for the first time.
fn spool(reader: &mut Reader, taken: &[u8], spooled: &mut u64, bytes_max: u32) -> bool {
    let before = reader.spool.len();
    let allowed = u64::from(bytes_max).saturating_sub(*spooled);
    let refused = reader.spool.pass(reader.at - reader.began, taken, allowed);
    *spooled += reader.spool.len() - before;
    refused
}

/// Events: what a reader's words do to the tree.
impl Inspection {
    fn node(&mut self, slot: usize) -> &mut Node {
        self.nodes[slot].as_mut().expect("an open node is in its slot")
    }

    /// An empty window to write to: the target's own, unless something waits in it.
    fn lend(&mut self, target: Option<usize>) -> Window {
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
    fn settle(&mut self, target: Option<usize>, mut window: Window) -> usize {
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
    fn deliver(&mut self, node: &Node, index: usize, count: usize) {
        let reader = &node.readers[index];
        let Some(Open::Node(target)) = reader.open.last() else { return };
        let target = self.nodes[*target].as_mut().expect("an open node is in its slot");
        target.bytes += count as u64;
        if let (Some(start), Some(late)) = (target.raw_start, target.blanked) {
            let blank = Blank { part: start, end: start + target.bytes, coding: target.object.coding, late };
            self.out.push_back(Out::Blank(blank));
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

    fn open(&mut self, node: &mut Node, slot: usize, index: usize, object: Object) {
        if object.kind == Kind::Field {
            return node.readers[index].open.push(Open::Unread);
        }
        if let Some(name) = self.beyond_limit(node) {
            self.found(node, slot, index, Finding::new(Class::Limit, name, node.readers[index].at), false);
            return node.readers[index].open.push(Open::Unread);
        }
        let seed = self.child(node, slot, &node.readers[index], object);
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
        let spent = self.ledger.parents.len() > limits.objects_max as usize;
        if spent && !std::mem::replace(&mut self.exhausted, true) {
            return Some("Heuristics.Limits.Exceeded.Objects");
        }
        spent.then_some("Heuristics.Limits.Exceeded.Objects")
    }

    /// What a reader's new object becomes.
    fn child(&mut self, node: &Node, slot: usize, reader: &Reader, object: Object) -> Seed {
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
        Seed {
            id: self.ledger.number(parent),
            object,
            path,
            source: Some(slot),
            depth: node.depth + 1,
            raw_start,
            second_reading: reader.second_reading,
        }
    }

    fn plant(&mut self, seed: Seed) -> usize {
        let node = Box::new(seed.grow(self.window()));
        let slot = self.free_slot();
        self.nodes[slot] = Some(node);
        self.order.push(slot);
        slot
    }

    /// A slot for a new node. The node whose turn it is has left its slot for the time being: that one is not free.
    fn free_slot(&mut self) -> usize {
        let free = (0..self.nodes.len()).find(|slot| self.nodes[*slot].is_none() && !self.order.contains(slot));
        free.unwrap_or_else(|| {
            self.nodes.push(None);
            self.nodes.len() - 1
        })
    }

    /// Plants the encoded form, read by its decoder, and the decoded form behind it. Returns the slot of the former.
    fn plant_coded(&mut self, seed: Seed) -> usize {
        let mut decoder =
            Reader::new(seed.object.coding.name(), Work::Stage(Box::new(mime::Decoder::new(seed.object.coding))));
        decoder.second_reading = seed.second_reading;
        let mut decoded = seed.clone();
        decoded.raw_start = None;
        let encoded = self.plant(seed);
        decoded.source = Some(encoded);
        let decoded = self.plant(decoded);
        decoder.open.push(Open::Node(decoded));
        let node = self.nodes[encoded].as_mut().expect("just planted");
        node.encoded = true;
        node.readers.push(decoder);
        encoded
    }

    fn close(&mut self, open: Option<Open>, second_reading: bool) {
        match open {
            Some(Open::Node(slot)) => {
                self.nodes[slot].as_mut().expect("an open node is in its slot").closing = true;
            }
            Some(Open::Container { id, parent, path, object }) if self.context.explain => {
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
    fn cut_off(&mut self, node: &mut Node, index: usize) {
        let reader = &mut node.readers[index];
        reader.ended = true;
        self.spooled -= std::mem::take(&mut reader.spool).len();
        let second_reading = reader.second_reading;
        if std::mem::take(&mut reader.forked) {
            self.second_readings -= 1;
        }
        for open in std::mem::take(&mut node.readers[index].open).into_iter().rev() {
            self.close(Some(open), second_reading);
        }
    }

    /// Starts the second reading of ambiguous content, if none is under way.
    fn fork(&mut self, node: &mut Node, slot: usize, index: usize, finding: Finding) {
        let alternative = match &mut node.readers[index].work {
            Work::Stage(stage) if self.second_readings == 0 => stage.alternative(),
            _ => None,
        };
        let Some(stage) = alternative else { return self.found(node, slot, index, finding, false) };
        self.second_readings += 1;
        self.found(node, slot, index, Finding { class: Class::TwoReadings, ..finding }, false);
        let first = &node.readers[index];
        let mut second = Reader::new(first.name, Work::Stage(stage));
        (second.at, second.began) = (first.at, first.at);
        (second.second_reading, second.forked, second.expands) = (true, true, first.expands);
        if let Some(Open::Node(open)) = first.open.last() {
            // What was told so far belongs to both readings.
            let twin = self.twin(*open);
            second.open.push(Open::Node(twin));
        }
        node.readers.push(second);
    }

    /// A second node with the same content so far, for a second reading that goes on differently. Only its scan is
    /// carried over: what an opener has in the works stays with the first.
    fn twin(&mut self, slot: usize) -> usize {
        let first = self.nodes[slot].as_ref().expect("an open node is in its slot");
        let seed = Seed {
            id: self.ledger.number(self.ledger.parents[first.id as usize]),
            object: first.object.clone(),
            path: first.path.clone(),
            source: first.source,
            depth: first.depth,
            raw_start: None,
            second_reading: true,
        };
        let (file_type, bytes, base) = (first.file_type, first.bytes, first.base);
        let filled = first.window.filled().to_vec();
        let scan = first.readers.iter().find_map(|reader| match &reader.work {
            Work::Scan(scan) => Some((scan.clone(), reader.at)),
            _ => None,
        });
        let twin = self.plant(seed);
        let node = self.nodes[twin].as_mut().expect("just planted");
        (node.file_type, node.bytes, node.base) = (file_type, bytes, base);
        node.window.push(&filled);
        if let Some((scan, at)) = scan {
            let mut reader = Reader::new("scan", Work::Scan(scan));
            reader.at = at;
            node.readers.push(reader);
        }
        twin
    }
}

/// Findings, and what follows from them.
impl Inspection {
    fn found(&mut self, node: &mut Node, slot: usize, index: usize, mut finding: Finding, at_end: bool) {
        finding.offset += node.readers[index].began;
        let action = self.context.policy.action(finding.class);
        if action == Action::Blank && !self.blank(node, slot, finding.offset, at_end) {
            self.ledger.unblankable = true;
        }
        let spotted = Spotted { finding, path: node.path.clone(), object: node.id };
        if self.ledger.note(&spotted, action) {
            self.out.push_back(Out::Finding(spotted));
        }
    }

    /// Asks the door to overwrite the part that `node` comes from; whether there is one.
    fn blank(&mut self, node: &mut Node, slot: usize, offset: u64, late: bool) -> bool {
        if let Some(unit) = self.unit_at(node, slot, offset) {
            return self.blank_unit(unit, late);
        }
        let mut above = node.source;
        if node.raw_start.is_some() && above.is_some() {
            self.blank_node(node, late);
            return true;
        }
        while let Some(slot) = above {
            let Some(mut ancestor) = self.nodes[slot].take() else { return false };
            above = ancestor.source;
            let found = ancestor.raw_start.is_some() && above.is_some();
            if found {
                self.blank_node(&mut ancestor, late);
            }
            self.nodes[slot] = Some(ancestor);
            if found {
                return true;
            }
        }
        false
    }

    fn blank_node(&mut self, node: &mut Node, late: bool) {
        let start = node.raw_start.expect("only raw parts are overwritten");
        let late = late || node.blanked == Some(true);
        node.blanked = Some(late);
        let blank = Blank { part: start, end: start + node.bytes, coding: node.object.coding, late };
        self.out.push_back(Out::Blank(blank));
    }

    /// For a match in the raw bytes of a mail: the part that it lies in.
    fn unit_at(&self, node: &Node, slot: usize, offset: u64) -> Option<UnitAt> {
        let raw = node.raw_start? + offset;
        if node.file_type != Some(FileType::Mail) {
            return None;
        }
        let live = self.order.iter().rev().filter(|&&other| other != slot).find_map(|&other| {
            let node = self.nodes[other].as_ref()?;
            let start = node.raw_start?;
            (node.source.is_some() && (start..start + node.bytes).contains(&raw)).then_some(UnitAt::Live(other))
        });
        let past = || self.units.iter().rev().find(|unit| (unit.start..unit.end).contains(&raw)).copied();
        live.or_else(|| past().map(UnitAt::Past))
    }

    fn blank_unit(&mut self, unit: UnitAt, late: bool) -> bool {
        match unit {
            UnitAt::Past(Unit { start, end, coding }) => {
                self.out.push_back(Out::Blank(Blank { part: start, end, coding, late: true }));
            }
            UnitAt::Live(slot) => {
                let mut node = self.nodes[slot].take().expect("just seen");
                self.blank_node(&mut node, late);
                self.nodes[slot] = Some(node);
            }
        }
        true
    }
}

enum UnitAt {
    Live(usize),
    Past(Unit),
}

impl Ledger {
    /// The number of a new object in `parent`.
    fn number(&mut self, parent: u32) -> u32 {
        self.parents.push(parent);
        u32::try_from(self.parents.len() - 1).expect("objects are limited")
    }

    /// Writes a finding down; whether it is new.
    fn note(&mut self, spotted: &Spotted, action: Action) -> bool {
        let known = |other: &Spotted| other.object == spotted.object && other.finding.name == spotted.finding.name;
        if self.findings.iter().any(known) {
            return false;
        }
        if self.findings.len() < Verdict::FINDINGS_MAX {
            self.findings.push(spotted.clone());
        } else {
            self.more_findings += 1;
            self.more_action = self.more_action.max(action);
        }
        true
    }

    fn verdict(mut self, context: &Context) -> Verdict {
        let findings = std::mem::take(&mut self.findings);
        let kept = |spotted: &&Spotted| !self.is_allowed(spotted) && !self.is_echo(spotted, &findings);
        let findings: Vec<Spotted> = findings.iter().filter(kept).cloned().collect();
        let actions = findings.iter().map(|spotted| context.policy.action(spotted.finding.class));
        Verdict {
            action: actions.max().unwrap_or_default().max(self.more_action),
            blankable: !self.unblankable,
            findings,
            more_findings: self.more_findings,
            objects: self.parents.len() as u32,
            bytes: self.bytes,
        }
    }

    /// Whether a match lies in an object that an allow list vouches for.
    fn is_allowed(&self, spotted: &Spotted) -> bool {
        spotted.finding.class == Class::Match && self.allowed.iter().any(|&id| self.lies_in(spotted.object, id))
    }

    /// Whether the same signature matched in an object within this one: the inner one is told.
    fn is_echo(&self, spotted: &Spotted, all: &[Spotted]) -> bool {
        let same = |other: &&Spotted| other.finding.name == spotted.finding.name && other.object != spotted.object;
        spotted.finding.class == Class::Match
            && all.iter().filter(same).any(|other| self.lies_in(other.object, spotted.object))
    }

    fn lies_in(&self, mut object: u32, ancestor: u32) -> bool {
        while object > ancestor {
            object = self.parents[object as usize];
        }
        object == ancestor
    }
}

/// A node before it has a window.
#[derive(Clone)]
struct Seed {
    id: u32,
    object: Object,
    path: Arc<[Box<str>]>,
    source: Option<usize>,
    depth: u32,
    raw_start: Option<u64>,
    second_reading: bool,
}

impl Seed {
    fn grow(self, window: Window) -> Node {
        Node {
            id: self.id,
            object: self.object,
            path: self.path,
            source: self.source,
            depth: self.depth,
            raw_start: self.raw_start,
            file_type: None,
            bytes: 0,
            base: 0,
            window,
            closing: false,
            readers: Vec::new(),
            encoded: false,
            second_reading: self.second_reading,
            blanked: None,
        }
    }
}
