//! Zip (APPNOTE 6.3.10), forward as it streams.
//!
//! Local headers are walked as they come; deflate, bzip2 and xz find their own end, stored content of unknown length
//! ends where a descriptor says so. The central directory is compared at its end with what was seen. Bytes between
//! records are told as a member without name, so that nothing is passed over, and searched for further records; so are
//! comments, where only records count. Reading goes on behind the end record.
//!
//! The searching reader looks for archives inside of other files. It tells members only, and no malformedness, for what
//! it finds may not be an archive at all.
//!
//! Bounds: a name, 56 bytes for each of `directory_entries_max` members, one decoder.
//!
//! Not read: members of split archives that lie in other files, methods other than stored, deflate, bzip2 and xz (told
//! raw, with `Heuristics.Limits.Exceeded.ZipMethod`), encrypted members (told raw, with `Heuristics.Encrypted.Zip`).
//!
//! ```text
//! Between ──local header──▶ Header ──▶ Member ─┐
//!    ▲ │ └──central header──▶ Header ──────────┤
//!    │ └──other records──┐                     │
//!    └───────────────────┴─────────────────────┘
//! ```

mod descriptor;
mod directory;
mod member;
mod place;
mod record;
mod tail;
mod unsized_raw;

use std::collections::VecDeque;

use memchr::memmem;
use stream::{Class, Event, Finding, Fuel, Limits, Object, ReadAt, Stage, Step, Window};

use crate::codec::{Collected, le16, le32, le64};
use directory::{Directory, Entry, Size};
use member::{Member, Turn};
use place::Place;
use record::{End, Header, Kind};
use tail::Tail;

/// The longest fixed part of a record behind what a member leaves over.
const HEAD: usize = 128;

/// A reader of zip archives.
pub(crate) struct Zip {
    limits: Limits,
    searching: bool,
    /// Bytes of input taken so far, those in the head included.
    at: u64,
    state: State,
    notes: VecDeque<Finding>,
    /// The beginning of what may be a record.
    head: Collected<HEAD>,
    /// Whether a record is expected right here, so that its signature is proof enough.
    expected: bool,
    /// Whether a gap between records is open.
    gap: bool,
    /// Bytes that belong to a record and are not told: comments and the like. Records may hide there.
    quiet: u64,
    directory: Directory,
    /// Whether an end record has been seen, so that what follows is a second archive.
    ended: bool,
    /// Whether a second archive has been reported.
    second_told: bool,
    local_finder: memmem::Finder<'static>,
    record_finder: memmem::Finder<'static>,
}

enum State {
    Between,
    Header(Box<Tail>),
    Member(Box<Member>),
}

impl Zip {
    /// A reader of a stream that is a zip archive.
    pub fn new(limits: &Limits) -> Zip {
        Zip {
            limits: limits.clone(),
            searching: false,
            at: 0,
            state: State::Between,
            notes: VecDeque::new(),
            head: Collected::new(),
            expected: true,
            gap: false,
            quiet: 0,
            directory: Directory::new(limits.directory_entries_max as usize),
            ended: false,
            second_told: false,
            local_finder: memmem::Finder::new(b"PK\x03\x04"),
            record_finder: memmem::Finder::new(b"PK"),
        }
    }

    /// A reader that looks for zip archives in a stream that is something else.
    pub fn searching(limits: &Limits) -> Zip {
        Zip { searching: true, expected: false, ..Zip::new(limits) }
    }

    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        if let Some(finding) = self.notes.pop_front() {
            return Turn::Step(Step::tell(0, Event::finding(finding)));
        }
        if self.head.len() > 0 && !matches!(self.state, State::Between) {
            return self.replay(output, fuel);
        }
        match std::mem::replace(&mut self.state, State::Between) {
            State::Between if last => self.end(output),
            State::Between => self.between(input, output, fuel),
            State::Header(tail) => self.header(tail, input, last),
            State::Member(member) => self.member(member, input, output, fuel, last),
        }
    }

    fn note(&mut self, class: Class, name: &'static str) {
        let at = self.at - self.head.len() as u64;
        if !(self.searching && matches!(class, Class::Malformed | Class::Truncated)) {
            self.notes.push_back(Finding::new(class, name, at));
        }
    }

    fn member(&mut self, mut member: Box<Member>, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        let mut place =
            Place { at: self.at, last, limits: &self.limits, notes: &mut self.notes, searching: self.searching };
        let turn = member.turn(input, output, fuel, &mut place);
        self.at = place.at;
        if !matches!(turn, Turn::Done) {
            self.state = State::Member(member);
            return turn;
        }
        self.head.fill(&member.surplus, HEAD);
        self.expected = member.ended_well();
        let end = self.at - self.head.len() as u64;
        self.directory.member(member.into_entry(end));
        Turn::Step(Step::tell(0, Event::Close))
    }

    /// Lets a header or a member read what was held for a record that was none: it stands in front of the input.
    fn replay(&mut self, output: &mut Window, fuel: &Fuel) -> Turn {
        let held = std::mem::replace(&mut self.head, Collected::new());
        let offered = &held.bytes()[..held.len().min(output.room())];
        self.at -= held.len() as u64;
        let turn = match std::mem::replace(&mut self.state, State::Between) {
            State::Header(tail) => self.header(tail, offered, false),
            State::Member(member) => self.member(member, offered, output, fuel, false),
            State::Between => Turn::Again,
        };
        let (taken, turn) = match turn {
            Turn::Step(Step { taken, event: Event::Verbatim }) => {
                output.push(&offered[..taken]);
                (taken, Turn::Step(Step::tell(0, Event::Wrote)))
            }
            Turn::Step(Step { taken: taken @ 1.., event: Event::Idle }) => (taken, Turn::Again),
            Turn::Step(Step { taken, event }) => (taken, Turn::Step(Step::tell(0, event))),
            turn => (0, turn),
        };
        // What a member leaves over comes first.
        let rest = &held.bytes()[taken..];
        self.at += rest.len() as u64;
        self.head.fill(rest, HEAD);
        turn
    }

    /// Looks for the next record.
    fn between(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel) -> Turn {
        if self.head.len() == 0 {
            let run = self.run_without_record(&input[..fuel.allows(input.len())]);
            if run > 0 {
                return self.pass(run);
            }
        }
        let bytes = self.head.bytes();
        if !Kind::is_possible(bytes) {
            return self.reject(output);
        }
        let kind = Kind::of(&bytes[..bytes.len().min(4)]);
        let stray = self.searching && self.directory.is_empty();
        if stray && kind.is_some_and(|kind| kind != Kind::Local) {
            return self.reject(output);
        }
        let wanted = kind.map_or(4, Kind::fixed_bytes);
        if bytes.len() < wanted {
            let taken = self.head.fill(input, wanted);
            self.at += taken as u64;
            return Turn::Step(Step::idle(taken));
        }
        match kind {
            Some(kind) if self.accepts(kind) => self.accept(kind),
            _ => self.reject(output),
        }
    }

    /// How many of the first bytes cannot begin a record.
    fn run_without_record(&self, input: &[u8]) -> usize {
        let (finder, needle) = match self.searching && self.directory.is_empty() {
            true => (&self.local_finder, &b"PK\x03\x04"[..]),
            false => (&self.record_finder, &b"PK"[..]),
        };
        let found = finder.find_iter(input).find(|&at| Kind::is_possible(&input[at..]));
        found.unwrap_or_else(|| {
            let tails = (1..needle.len()).rev();
            let tail = tails.into_iter().find(|&length| input.ends_with(&needle[..length]));
            input.len() - tail.unwrap_or(0)
        })
    }

    /// Bytes of the input that are no record: told as a gap, unless they belong to a record or to another format.
    fn pass(&mut self, count: usize) -> Turn {
        if let Some(count) = self.pass_quietly(count) {
            self.at += count as u64;
            return Turn::Step(Step::idle(count));
        }
        if let Some(step) = self.open_gap() {
            return Turn::Step(step);
        }
        self.at += count as u64;
        Turn::Step(Step::tell(count, Event::Verbatim))
    }

    /// How many of `count` bytes are not to be told, if any.
    fn pass_quietly(&mut self, count: usize) -> Option<usize> {
        if self.quiet > 0 {
            let quiet = count.min(usize::try_from(self.quiet).unwrap_or(usize::MAX));
            self.quiet -= quiet as u64;
            return Some(quiet);
        }
        self.expected = false;
        self.searching.then_some(count)
    }

    fn open_gap(&mut self) -> Option<Step> {
        if std::mem::replace(&mut self.gap, true) {
            return None;
        }
        Some(Step::tell(
            0,
            Event::Open(Object {
                kind: stream::Kind::Member,
                raw_offset: Some(self.at - self.head.len() as u64),
                ..Object::default()
            }),
        ))
    }

    /// The head is no record: its bytes up to the next possible one are passed.
    fn reject(&mut self, output: &mut Window) -> Turn {
        let bytes = self.head.bytes();
        let next = (1..bytes.len()).find(|&at| Kind::is_possible(&bytes[at..]));
        let count = next.unwrap_or(bytes.len());
        if let Some(count) = self.pass_quietly(count) {
            self.head.drop_front(count);
            return Turn::Again;
        }
        if let Some(step) = self.open_gap() {
            return Turn::Step(step);
        }
        let count = output.push(&self.head.bytes()[..count]);
        self.head.drop_front(count);
        Turn::Step(Step::tell(0, Event::Wrote))
    }

    /// Whether the head is a record of this kind, here.
    fn accepts(&self, kind: Kind) -> bool {
        let bytes = self.head.bytes();
        let stray = self.searching && self.directory.is_empty();
        let at = self.at - bytes.len() as u64;
        match kind {
            Kind::Local => self.expected || record::local_is_plausible(bytes),
            Kind::Central => !stray && (self.expected || record::central_is_plausible(bytes)),
            Kind::End => !stray && (self.expected || End::parse(bytes).is_plausible(at)),
            Kind::Zip64End | Kind::Zip64Locator => !stray,
            Kind::DirectorySignature | Kind::ArchiveExtra => !stray && self.expected,
            Kind::Marker => self.expected && self.directory.is_empty() && !self.ended,
        }
    }

    fn accept(&mut self, kind: Kind) -> Turn {
        if std::mem::take(&mut self.gap) {
            return Turn::Step(Step::tell(0, Event::Close));
        }
        let bytes = self.head.bytes();
        let start = self.at - bytes.len() as u64;
        let name_bytes_max = self.limits.name_bytes_max as usize;
        match kind {
            Kind::Local => {
                let header = Header::local(bytes);
                if self.ended {
                    self.second_archive();
                }
                let tail = Tail::new(header, false, start, name_bytes_max);
                self.state = State::Header(Box::new(tail));
            }
            Kind::Central => {
                let tail = Tail::new(Header::central(bytes), true, start, name_bytes_max);
                self.state = State::Header(Box::new(tail));
            }
            Kind::End => self.end_record(End::parse(bytes)),
            Kind::Zip64End => {
                const FIXED_BEHIND_SIZE: u64 = 44;
                self.quiet = le64(bytes, 4).saturating_sub(FIXED_BEHIND_SIZE);
                let end = End::parse_zip64(bytes);
                self.directory.zip64(end);
            }
            Kind::DirectorySignature => self.quiet = u64::from(le16(bytes, 4)),
            Kind::ArchiveExtra => {
                self.quiet = u64::from(le32(bytes, 4));
                self.note(Class::Encrypted, "Heuristics.Encrypted.Zip");
            }
            Kind::Zip64Locator | Kind::Marker => {}
        }
        self.expected = true;
        self.head.drop_front(kind.fixed_bytes());
        Turn::Again
    }

    fn end_record(&mut self, end: End) {
        let fresh = Directory::new(self.limits.directory_entries_max as usize);
        let nothing_new = self.directory.is_empty();
        let directory = std::mem::replace(&mut self.directory, fresh);
        self.quiet = u64::from(end.comment_length);
        if std::mem::replace(&mut self.ended, true) {
            self.second_archive();
            if nothing_new {
                return;
            }
        }
        if end.disk > 0 && end.disk != 0xffff {
            return self.note(Class::Truncated, "Heuristics.Truncated.ZipSplit");
        }
        for (class, name) in directory.end(end) {
            self.note(class, name);
        }
    }

    /// Readers that look from the end see only the last archive, streaming readers only the first.
    fn second_archive(&mut self) {
        if !self.searching && !std::mem::replace(&mut self.second_told, true) {
            self.note(Class::Ambiguous, "Heuristics.Ambiguous.Zip.TwoArchives");
        }
    }

    /// Reads the variable part of a header.
    fn header(&mut self, mut tail: Box<Tail>, input: &[u8], last: bool) -> Turn {
        let taken = tail.read(input);
        self.at += taken as u64;
        if !tail.is_complete() && !last {
            self.state = State::Header(tail);
            return Turn::Step(Step::idle(taken));
        }
        if !tail.is_complete() {
            self.note(Class::Truncated, "Heuristics.Truncated.Zip");
        } else if tail.is_central {
            self.directory.central(&tail.header, tail.name_digest(), tail.at, self.at);
        } else if tail.is_directory() {
            let member = Member::new(&tail, self.at);
            self.directory.member(Entry { compressed: Size::of(0), ..member.into_entry(self.at) });
        } else if !self.searching || tail.name_is_plausible() {
            self.state = State::Member(Box::new(Member::new(&tail, self.at)));
        } else {
            self.expected = false;
        }
        if taken == 0 { Turn::Again } else { Turn::Step(Step::idle(taken)) }
    }

    /// What to tell when the input is over and no member is open.
    fn end(&mut self, output: &mut Window) -> Turn {
        if self.head.len() > 0 {
            return match Kind::of(self.head.bytes().get(..4).unwrap_or_default()) {
                Some(kind) if self.head.len() >= kind.fixed_bytes() && self.accepts(kind) => self.accept(kind),
                _ => self.reject(output),
            };
        }
        if std::mem::take(&mut self.gap) {
            return Turn::Step(Step::tell(0, Event::Close));
        }
        if !self.directory.is_empty() {
            self.directory = Directory::new(0);
            self.note(Class::Truncated, "Heuristics.Truncated.Zip");
            return Turn::Again;
        }
        Turn::Step(Step::tell(0, Event::End))
    }
}

impl Stage for Zip {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        let room = output.room();
        while !fuel.is_empty() && !input.is_empty() {
            if let Turn::Step(step) = self.turn(input, output, fuel, false) {
                fuel.burn((step.taken + room - output.room()).max(1));
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        let room = output.room();
        while !fuel.is_empty() {
            match self.turn(b"", output, fuel, true) {
                Turn::Step(step) if step.event == Event::Idle => {}
                Turn::Step(step) => {
                    fuel.burn((room - output.room()).max(1));
                    return step.event;
                }
                _ => {}
            }
        }
        Event::Idle
    }
}
