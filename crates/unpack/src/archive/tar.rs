//! Tar in all its dialects: v7, ustar, pax, GNU (old and new, long names, sparse), star.
//!
//! Members are emitted raw, sparse ones with their holes, unless their map makes no sense. A hard link is a second name, and
//! told as an empty member; other links and directories only if they carry bytes. Reading goes on behind the end-of-archive blocks and behind broken headers; what is no member there
//! is emitted as a member without name, so that nothing is passed over.
//!
//! Where readers differ, `Heuristics.Ambiguous.Tar.*` says so: members behind the end (`AfterEnd`), a wrong checksum in
//! an otherwise good ustar header (`Checksum`), links with a size and no bytes (`LinkSize`), two sizes (`PaxSize`),
//! regions of a sparse member that begin within a block (`SparseRegion`).
//!
//! Bounds: one block, one name of `name_bytes_max`, one pax key, maps of `directory_entries_max` regions.
//!
//! ```text
//!   ┌─────────▶ Block ──pax, long name──▶ Meta ──▶ Skip ─┐
//!   │            │ │ └──sparse──▶ Sparse                 │
//!   │            │ └──no header──▶ Owed (gap)            │
//!   │            └──member──▶ Data ─────────▶ Skip ──────┤
//!   │   (Listing) └──sparse──▶ Expand ────────▶ Skip ────┤
//!   └────────────────────────────────────────────────────┘
//! ```

mod header;
mod listing;
mod member;
mod meta;
mod pax;
mod sparse;

use std::collections::VecDeque;

use stream::{Class, Event, Finding, Fuel, Limits, ReadAt, Stage, Step, Window};

use crate::frame::codec::{Collected, Fault, STALL};
use crate::frame::format::{Format, Reads};
use crate::frame::stall::{Patience, READER_TURNS_MAX};
use header::Header;
pub(crate) use header::{BLOCK, looks_like_header};
use listing::Listing;
use meta::Meta;
use pax::Pax;
use sparse::{Content, Map, Next};

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "tar",
    methods: "v7, ustar, pax, GNU, star; sparse members with their holes (old GNU, pax 0.0, 0.1, 1.0)",
    not_read: "",
    reads: Reads::Stream,
    memory: "3 KiB; 80 bytes for each region of a sparse member, of which `directory_entries_max`",
    decoder: "own",
    fuzz: "unpack_tar",
    compared_with: "bsdtar, over the public archives",
};

const BLOCK_BYTES: u64 = BLOCK as u64;

/// A reader of tar archives.
pub(crate) struct Tar {
    name_bytes_max: usize,
    /// Regions of a sparse member.
    regions_max: usize,
    /// Bytes of input taken so far.
    at: u64,
    block: Collected<BLOCK>,
    state: State,
    notes: VecDeque<Finding>,
    /// Whether an object is open.
    open: bool,
    /// Whether an end-of-archive block was seen since the last header.
    ended: bool,
    /// Whether a reader that sees the archive end there has missed something already told.
    after_end_told: bool,
    /// Values of pax and GNU headers for the next member, and for all.
    next: Pax,
    global: Pax,
    patience: Patience,
}

enum State {
    /// Collecting a block that should be a header. If a link with a size came before, the block may be its content.
    Block { link: Option<Entry> },
    /// Collecting an extension of a sparse header.
    Sparse { entry: Entry, map: Map, size: Option<u64> },
    /// Reading the map in front of a sparse member.
    Listing { entry: Entry, listing: Listing },
    /// A member is about to be opened.
    Opening { entry: Entry, block_is_content: bool },
    /// The first `end` bytes of the block are content, `told` of them told.
    Owed { told: usize, end: usize, then: Then },
    /// Content that was taken for a map, `told` bytes of it emitted.
    Text { text: Vec<u8>, told: usize, left: u64, padding: u64 },
    /// Content of the open member, which is sparse.
    Expand { content: Content, padding: u64 },
    /// Content of the open member.
    Data { left: u64, padding: u64 },
    /// Bytes of no interest.
    Skip { left: u64 },
    /// The body of a header that speaks of the next one.
    Meta { meta: Meta, left: u64, padding: u64 },
}

#[derive(Clone, Copy)]
enum Then {
    Data { left: u64, padding: u64 },
    Gap,
}

/// A member that is about to begin.
#[derive(Default)]
struct Entry {
    name: Option<Box<str>>,
    /// Names that other readers show.
    other_names: Box<[Box<str>]>,
    /// Bytes in the archive.
    size: u64,
    /// The content, if it is sparse.
    content: Option<Content>,
    /// The first bytes, if they were read as a map and are not one.
    text: Vec<u8>,
}

impl Entry {
    const fn padding(size: u64) -> u64 {
        (BLOCK_BYTES - size % BLOCK_BYTES) % BLOCK_BYTES
    }
}

/// Result of a turn: bytes taken and the event, or only a change of state.
type Turn = Option<Step>;

impl Tar {
    pub fn new(limits: &Limits) -> Tar {
        let regions_max = limits.directory_entries_max as usize;
        Tar {
            name_bytes_max: limits.name_bytes_max as usize,
            regions_max,
            at: 0,
            block: Collected::new(),
            state: State::Block { link: None },
            notes: VecDeque::new(),
            open: false,
            ended: false,
            after_end_told: false,
            next: Pax::new(limits.name_bytes_max as usize, regions_max),
            global: Pax::new(limits.name_bytes_max as usize, 0),
            patience: Patience::of(READER_TURNS_MAX),
        }
    }

    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel) -> Turn {
        if let Some(finding) = self.notes.pop_front() {
            return Some(Step::tell(0, Event::finding(finding)));
        }
        match std::mem::replace(&mut self.state, State::Block { link: None }) {
            State::Block { link } => self.collect(link, input, fuel),
            State::Sparse { entry, map, size } => self.sparse(entry, map, size, input),
            State::Listing { entry, listing } => self.listing(entry, listing, input),
            State::Opening { entry, block_is_content } => Some(self.begin(entry, block_is_content)),
            State::Owed { told, end, then } => Some(self.owed(told, end, then, output)),
            State::Text { text, told, left, padding } => Some(self.text(text, told, left, padding, output)),
            State::Expand { content, padding } => Some(self.expand(content, padding, input, output, fuel)),
            State::Data { left, padding } => self.data(left, padding, input, fuel),
            State::Skip { left } => self.skip(left, input),
            State::Meta { meta, left, padding } => self.meta(meta, left, padding, input),
        }
    }

    fn note(&mut self, class: Class, name: &'static str, offset: u64) {
        self.notes.push_back(Finding::new(class, name, offset));
    }

    /// Counts a turn. After too many without progress the rest is emitted raw.
    fn bear(&mut self, moved: bool) {
        if self.patience.bears(moved) {
            return;
        }
        self.fault(STALL);
        self.state = State::Data { left: u64::MAX, padding: 0 };
        if !self.open {
            self.state =
                State::Opening { entry: Entry { size: u64::MAX, ..Entry::default() }, block_is_content: false };
        }
    }

    fn took(&mut self, count: usize) -> Turn {
        self.at += count as u64;
        (count > 0).then_some(Step::idle(count))
    }

    fn collect(&mut self, link: Option<Entry>, input: &[u8], fuel: &Fuel) -> Turn {
        if self.open && self.block.len() == 0 {
            let run = gap_run(&input[..fuel.allows(input.len())]);
            if run > 0 {
                self.at += run as u64;
                return Some(Step::tell(run, Event::Verbatim));
            }
        }
        let taken = self.block.fill(input, BLOCK);
        let whole = self.block.whole().copied();
        match whole {
            None => self.state = State::Block { link },
            Some(block) => {
                self.at += taken as u64;
                let told = self.judge(&block, link);
                let event = if told { Event::Close } else { Event::Idle };
                return (taken > 0 || told).then_some(Step::tell(taken, event));
            }
        }
        self.took(taken)
    }

    /// Decides the kind of the whole block. Returns whether an open gap ended with it.
    fn judge(&mut self, block: &[u8; BLOCK], link: Option<Entry>) -> bool {
        let is_zero = block.iter().all(|&byte| byte == 0);
        let header = Header::parse(block, self.name_bytes_max);
        let usable = header.checksum_is_right || header.is_ustar && header.size.is_some();
        if !is_zero && !usable {
            self.no_header(link);
            return false;
        }
        self.block.clear();
        self.state = State::Block { link: None };
        if is_zero {
            self.ended = true;
        } else {
            if link.is_some() {
                self.note_here(Class::Ambiguous, "Heuristics.Ambiguous.Tar.LinkSize");
            }
            self.header(header);
        }
        std::mem::take(&mut self.open)
    }

    fn note_here(&mut self, class: Class, name: &'static str) {
        let offset = self.at - BLOCK_BYTES;
        self.note(class, name, offset);
    }

    /// The block is the content of a link after all, or part of a gap.
    fn no_header(&mut self, link: Option<Entry>) {
        if let Some(entry) = link {
            self.state = State::Opening { entry, block_is_content: true };
            return;
        }
        if self.open {
            self.state = State::Owed { told: 0, end: BLOCK, then: Then::Gap };
            return;
        }
        if !self.ended {
            self.note_here(Class::Malformed, "Heuristics.Malformed.Tar.Checksum");
        }
        self.state = State::Opening { entry: Entry::default(), block_is_content: true };
    }

    fn fault(&mut self, fault: Fault) {
        let at = self.at;
        self.note(fault.class, fault.name, at);
    }

    fn owed(&mut self, told: usize, end: usize, then: Then, output: &mut Window) -> Step {
        let end = end.min(self.block.len());
        let told = told + output.push(&self.block.bytes()[told..end]);
        self.state = State::Owed { told, end, then };
        if told == end {
            self.block.clear();
            self.state = match then {
                Then::Data { left, padding } => State::Data { left, padding },
                Then::Gap => State::Block { link: None },
            };
        }
        Step::tell(0, Event::Wrote)
    }

    fn text(&mut self, text: Vec<u8>, told: usize, left: u64, padding: u64, output: &mut Window) -> Step {
        let told = told + output.push(&text[told..]);
        self.state = match told < text.len() {
            true => State::Text { text, told, left, padding },
            false => State::Data { left, padding },
        };
        Step::tell(0, Event::Wrote)
    }

    fn expand(&mut self, mut content: Content, padding: u64, input: &[u8], output: &mut Window, fuel: &Fuel) -> Step {
        let at_most = |bytes: usize, left| fuel.allows(bytes).min(usize::try_from(left).unwrap_or(usize::MAX));
        let (step, told) = match content.next() {
            Next::Hole(left) => {
                let count = at_most(output.room(), left);
                output.spare()[..count].fill(0);
                output.wrote(count);
                (Step::tell(0, Event::Wrote), count)
            }
            Next::Stored(left) => {
                let count = at_most(input.len(), left);
                self.at += count as u64;
                (Step::tell(count, Event::Verbatim), count)
            }
            Next::Over => {
                self.open = false;
                self.state = State::Skip { left: padding };
                return Step::tell(0, Event::Close);
            }
        };
        content.advance(told);
        self.state = State::Expand { content, padding };
        step
    }

    fn data(&mut self, left: u64, padding: u64, input: &[u8], fuel: &Fuel) -> Turn {
        if left == 0 {
            self.open = false;
            self.state = State::Skip { left: padding };
            return Some(Step::tell(0, Event::Close));
        }
        let count = fuel.allows(input.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.state = State::Data { left: left - count as u64, padding };
        self.at += count as u64;
        (count > 0).then_some(Step::tell(count, Event::Verbatim))
    }

    fn skip(&mut self, left: u64, input: &[u8]) -> Turn {
        let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - count as u64;
        if left > 0 {
            self.state = State::Skip { left };
        }
        self.took(count)
    }

    fn meta(&mut self, mut meta: Meta, left: u64, padding: u64, input: &[u8]) -> Turn {
        let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let (bytes, left) = (&input[..count], left - count as u64);
        meta.read(bytes, self.name_bytes_max);
        let turn = self.took(count);
        if left == 0 {
            self.meta_is_read(meta);
            self.state = State::Skip { left: padding };
        } else {
            self.state = State::Meta { meta, left, padding };
        }
        turn
    }

    fn meta_is_read(&mut self, meta: Meta) {
        let pax = match meta {
            Meta::LongName(name) => return self.next.set_long_name(&name),
            Meta::Ignored => return,
            Meta::Pax(pax) => {
                self.next.add(pax);
                &self.next
            }
            Meta::Global(pax) => {
                self.global.add(pax);
                &self.global
            }
        };
        if pax.is_broken() {
            let at = self.at;
            self.note(Class::Malformed, "Heuristics.Malformed.Tar.Pax", at);
        }
    }

    /// The next event when the input is over, in the order in which turns would have emitted them.
    fn end(&mut self, output: &mut Window, fuel: &Fuel) -> Option<Event> {
        if let Some(finding) = self.notes.pop_front() {
            return Some(Event::finding(finding));
        }
        match std::mem::replace(&mut self.state, State::Skip { left: 0 }) {
            State::Opening { entry, block_is_content } => Some(self.begin(entry, block_is_content).event),
            State::Owed { told, end, then } => Some(self.owed(told, end, then, output).event),
            State::Listing { entry, listing } => {
                let entry = Entry { text: listing.into_text(), ..entry };
                Some(self.begin(entry, false).event)
            }
            State::Text { text, told, left, padding } => Some(self.text(text, told, left, padding, output).event),
            State::Expand { content, padding } if !matches!(content.next(), Next::Stored(_)) => {
                Some(self.expand(content, padding, &[], output, fuel).event)
            }
            State::Data { left: 0, .. } => None,
            State::Data { .. } | State::Expand { .. } | State::Meta { .. } | State::Sparse { .. } => {
                self.truncated();
                None
            }
            State::Block { .. } => self.end_of_blocks(),
            State::Skip { .. } if std::mem::take(&mut self.open) => Some(Event::Close),
            State::Skip { .. } => Some(Event::End),
        }
    }

    /// A block that is not whole cannot be a header; it is emitted, unless it is padding.
    fn end_of_blocks(&mut self) -> Option<Event> {
        let rest_is_zero = self.block.bytes().iter().all(|&byte| byte == 0);
        if !rest_is_zero && !self.ended && !self.open {
            self.truncated();
        }
        if rest_is_zero {
            return None;
        }
        self.state = State::Owed { told: 0, end: BLOCK, then: Then::Gap };
        if self.open {
            return None;
        }
        self.state = State::Opening { entry: Entry::default(), block_is_content: true };
        None
    }

    fn truncated(&mut self) {
        let at = self.at;
        self.note(Class::Truncated, "Heuristics.Truncated.Tar", at);
    }
}

/// How many of the first bytes are whole blocks that belong to a gap: neither headers nor empty.
fn gap_run(input: &[u8]) -> usize {
    let blocks = input.chunks_exact(BLOCK);
    let run = blocks.take_while(|block| !looks_like_header(block) && block.iter().any(|&byte| byte != 0));
    run.count() * BLOCK
}

impl Stage for Tar {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        while !fuel.is_empty() && !input.is_empty() {
            let room = output.room();
            let turn = self.turn(input, output, fuel);
            let moved = turn.as_ref().map_or(0, |step| step.taken) + room - output.room();
            fuel.burn(moved.max(1));
            self.bear(moved > 0);
            if let Some(step) = turn {
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            let room = output.room();
            let event = self.end(output, fuel);
            fuel.burn((room - output.room()).max(1));
            self.bear(room > output.room());
            if let Some(event) = event {
                return event;
            }
        }
        Event::Idle
    }
}
