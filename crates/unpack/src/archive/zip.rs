//! Zip (APPNOTE 6.3.10), forward as it streams.
//!
//! Local headers are walked as they come; compressed content finds its own end, stored content of unknown length ends
//! where a descriptor says so. The central directory is compared at its end with what was seen. Bytes between
//! records are told as a member without name, so that nothing is passed over, and searched for further records. So is
//! all of a directory or end record but its signature, comments included, where only records count: what looks like
//! such a record cannot swallow a member. Reading goes on behind the end record.
//!
//! What a header or a member swallows is watched: an end record in it that no end record follows is reported.
//!
//! Whoever reads too far gives the bytes back, and they are fed again before the input is: see `held`.
//!
//! The searching reader looks for archives inside of other files. It tells members only, and no malformedness, for what
//! it finds may not be an archive at all.
//!
//! Members of which the directory says something else than their local headers are told in both readings: the second behind
//! the end record, from what was kept (`listed`).
//!
//! Bounds: a thirty-second part of `spool_bytes_max` that is kept, a name, what is held, 56 bytes for each of `directory_entries_max` members, one decoder; for the trial of
//! passwords a kilobyte and another decoder.
//!
//! Not read: members of split archives that lie in other files, a few methods (told raw, with
//! `Heuristics.Limits.Exceeded.ZipMethod`; `methods` names them), encrypted members that no candidate opens (told raw, with
//! `Heuristics.Encrypted.Zip`).
//!
//! ```text
//! Between ──local header──▶ Header ──▶ Member ─┐
//!    ▲ └──other records──┐       │             │
//!    └───────────────────┴───────┴─────────────┘
//! ```

mod cipher;
mod descriptor;
mod directory;
mod entry;
mod held;
mod kept;
mod listed;
mod lock;
mod member;
mod methods;
mod order;
mod place;
mod proof;
mod record;
mod tail;
mod unlocked;
mod unsized_raw;
mod watch;

use std::collections::VecDeque;

use memchr::memmem;
use stream::{Class, Event, Finding, Fuel, Limits, Object, ReadAt, Stage, Step, Window};

use crate::frame::codec::{Collected, STALL};
use crate::frame::format::{Format, Reads};
use crate::frame::password::Passwords;
use crate::frame::stall::{Patience, READER_TURNS_MAX};
use directory::Directory;
use entry::{Entry, Size};
use held::Held;
use kept::Kept;
use listed::{ByDirectory, Whole};
use member::{Member, Turn};
use place::Place;
use record::Kind;
use tail::Tail;
use watch::Watch;

/// Row in the table of formats.
pub(crate) const FORMAT: Format = Format {
    name: "zip",
    methods: "stored, shrink (1), reduce (2-5), implode (6), deflate (8), deflate64 (9), bzip2 (12), lzma (14), zstd (93), xz (95), ppmd (98); zip64, descriptors, prefix, several archives; AES (AE-1, AE-2) and the traditional cipher with password candidates",
    not_read: "other encryption, members of split archives in other files",
    reads: Reads::Stream,
    memory: "a thirty-second part of `spool_bytes_max` kept for the reading by the directory, 56 bytes for each of `directory_entries_max` members, one decoder (two while passwords are tried)",
    decoder: "own; methods as their streams; aes, hmac, pbkdf2, sha1",
    fuzz: "unpack_zip",
    compared_with: "bsdtar, over the public archives",
};

/// The longest fixed part of a record.
const HEAD: usize = Kind::Zip64End.fixed_bytes();

/// A place in the stream that is never reached.
const NOWHERE: u64 = u64::MAX;

/// A reader of zip archives.
pub(crate) struct Zip {
    limits: Limits,
    passwords: Passwords,
    /// Work done that has not been burned.
    work: usize,
    searching: bool,
    /// Bytes read so far, those in the head included, those given back not.
    at: u64,
    state: State,
    notes: VecDeque<Finding>,
    /// Ambiguities that a search has found, each sort once, until the end of the file.
    postponed: Vec<Finding>,
    held: Held,
    /// The beginning of a possible record.
    head: Collected<HEAD>,
    /// Where something that began like a record turned out to be none.
    refused_at: u64,
    /// Where a record is expected, so that its signature is proof enough.
    expected_at: u64,
    /// Whether a gap between records is open.
    gap: bool,
    /// Up to here bytes belong to a record and are not told. Records may hide there.
    quiet_until: u64,
    /// The central header that is quietly passed.
    listing: Option<Box<Tail>>,
    directory: Directory,
    /// Records of folders since the last member.
    folders: u32,
    /// Bytes from the first member on, for the reading by the directory.
    kept: Kept,
    /// Sees what the members swallow, until an end record speaks of them.
    watch: Watch,
    /// Whether an end record has been seen, so that what follows is a second archive.
    ended: bool,
    /// Whether a second archive has been reported.
    second_told: bool,
    finder: memmem::Finder<'static>,
    /// Bytes of content written.
    wrote: u64,
    patience: Patience,
    stalled: bool,
    stall_told: bool,
}

enum State {
    Between,
    Header(Box<Tail>),
    Member(Box<Member>),
    ByDirectory(Box<ByDirectory>),
}

/// Bytes of one archive that are kept.
fn kept_bytes_max(limits: &Limits) -> usize {
    limits.spool_bytes_max as usize / 32
}

impl Zip {
    /// A reader of a stream that is a zip archive.
    pub fn new(limits: &Limits, passwords: &Passwords) -> Zip {
        Zip {
            limits: limits.clone(),
            passwords: passwords.clone(),
            work: 0,
            searching: false,
            at: 0,
            state: State::Between,
            notes: VecDeque::new(),
            postponed: Vec::new(),
            held: Held::default(),
            head: Collected::new(),
            refused_at: NOWHERE,
            expected_at: 0,
            gap: false,
            quiet_until: 0,
            listing: None,
            directory: Directory::new(limits.directory_entries_max as usize),
            folders: 0,
            kept: Kept::new(kept_bytes_max(limits)),
            watch: Watch::default(),
            ended: false,
            second_told: false,
            finder: memmem::Finder::new(b"PK"),
            wrote: 0,
            patience: Patience::of(READER_TURNS_MAX),
            stalled: false,
            stall_told: false,
        }
    }

    /// A reader that looks for zip archives in a stream that is something else.
    pub fn searching(limits: &Limits, passwords: &Passwords) -> Zip {
        Zip { searching: true, expected_at: NOWHERE, ..Zip::new(limits, passwords) }
    }

    /// A turn, and the fuel that it costs: at least one unit, whatever it comes to.
    fn paid_turn(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel, last: bool) -> Turn {
        if self.stalled {
            return self.cut_off(fuel);
        }
        let room = output.room();
        let turn = self.turn(input, output, fuel, last);
        let taken = if let Turn::Step(step) = &turn { step.taken } else { 0 };
        let wrote = room.saturating_sub(output.room());
        self.wrote = self.wrote.saturating_add(wrote as u64);
        let work = std::mem::take(&mut self.work);
        fuel.burn(taken.saturating_add(wrote).saturating_add(work).max(1));
        self.stalled = !self.patience.bears_at(self.at.saturating_add(self.wrote));
        turn
    }

    /// Stops after no progress: open members are closed, and the rest is ignored.
    fn cut_off(&mut self, fuel: &mut Fuel) -> Turn {
        fuel.burn(1);
        if !std::mem::replace(&mut self.stall_told, true) {
            return Turn::Step(Step::tell(0, STALL.event(self.at)));
        }
        self.note_postponed();
        if let Some(finding) = self.notes.pop_front() {
            return Turn::Step(Step::tell(0, Event::finding(finding)));
        }
        let is_open = std::mem::take(&mut self.gap) | matches!(&self.state, State::Member(member) if member.is_open());
        self.state = State::Between;
        Turn::Step(Step::tell(0, if is_open { Event::Close } else { Event::End }))
    }

    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        if let Some(finding) = self.notes.pop_front() {
            return Turn::Step(Step::tell(0, Event::finding(finding)));
        }
        if self.held.is_empty() {
            return self.feed(input, output, fuel, last);
        }
        let held = std::mem::take(&mut self.held);
        let offered = &held.bytes()[..held.bytes().len().min(output.room())];
        let step = match self.feed(offered, output, fuel, false) {
            Turn::Step(step) => step,
            turn => {
                self.held.join(held, 0);
                return turn;
            }
        };
        // What was taken is not in the input any more.
        self.work = self.work.saturating_add(step.taken);
        let event = match step.event {
            Event::Verbatim => {
                output.push(&offered[..step.taken]);
                Event::Wrote
            }
            event => event,
        };
        self.held.join(held, step.taken);
        if event == Event::Idle { Turn::Again } else { Turn::Step(Step::tell(0, event)) }
    }

    /// Reads a piece of the stream, be it held or new.
    fn feed(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        let at = self.at;
        let turn = match std::mem::replace(&mut self.state, State::Between) {
            State::Between => self.between(input, fuel, last),
            State::Header(tail) => self.header(tail, input, last),
            State::Member(member) => self.member(member, input, output, fuel, last),
            State::ByDirectory(listed) => self.by_directory(listed, output, fuel),
        };
        if let Turn::Step(Step { taken, .. }) = &turn {
            self.kept.pass(at, &input[..*taken]);
        }
        turn
    }

    /// Tells the members that the directory has otherwise.
    fn by_directory(&mut self, mut listed: Box<ByDirectory>, output: &mut Window, fuel: &Fuel) -> Turn {
        let mut whole = Whole {
            kept: &self.kept,
            limits: &self.limits,
            passwords: &mut self.passwords,
            work: &mut self.work,
            notes: &mut self.notes,
        };
        let turn = listed.turn(output, fuel, &mut whole);
        if matches!(turn, Turn::Done) {
            return Turn::Again;
        }
        self.state = State::ByDirectory(listed);
        turn
    }

    /// The last bytes read are to be read again, by whoever comes next.
    fn give_back(&mut self, bytes: &[u8]) {
        self.at -= bytes.len() as u64;
        self.held.give_back(bytes);
        self.watch.back(self.at);
    }

    /// The last bytes read are no record: they are read again, and nothing is looked for at the first of them.
    fn refuse(&mut self, bytes: &[u8]) -> Turn {
        self.give_back(bytes);
        self.refused_at = self.at;
        Turn::Again
    }

    fn note(&mut self, class: Class, name: &'static str) {
        let at = self.at - self.head.len() as u64;
        if !(self.searching && matches!(class, Class::Malformed | Class::Truncated)) {
            self.notes.push_back(Finding::new(class, name, at));
        }
    }

    fn member(&mut self, mut member: Box<Member>, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        let mut place = Place {
            at: self.at,
            last,
            limits: &self.limits,
            passwords: &mut self.passwords,
            work: &mut self.work,
            notes: &mut self.notes,
            held: &mut self.held,
            searching: self.searching,
        };
        let turn = member.turn(input, output, fuel, &mut place);
        let at = std::mem::replace(&mut self.at, place.at);
        if let Turn::Step(Step { taken, .. }) = &turn {
            self.watch.pass(at, &input[..*taken]);
        }
        self.watch.back(self.at);
        if !matches!(turn, Turn::Done) {
            self.state = State::Member(member);
            return turn;
        }
        self.expected_at = if member.ended_well() { self.at } else { NOWHERE };
        if member.is_true() {
            self.kept.proved_true();
        }
        self.directory.member(member.into_entry(self.at));
        Turn::Step(Step::tell(0, Event::Close))
    }

    /// Looks for the next record.
    fn between(&mut self, input: &[u8], fuel: &Fuel, last: bool) -> Turn {
        if self.head.len() == 0 {
            if last {
                return self.end();
            }
            let run = self.run_without_record(&input[..fuel.allows(input.len())]);
            if run > 0 {
                return self.pass(&input[..run]);
            }
        }
        let bytes = self.head.bytes();
        let kind = Kind::of(&bytes[..bytes.len().min(4)]);
        let wanted = kind.filter(|kind| self.welcomes(*kind)).map_or(4, Kind::fixed_bytes);
        if bytes.len() < wanted && Kind::is_possible(bytes) && !last {
            let taken = self.head.fill(input, wanted);
            self.at += taken as u64;
            return Turn::Step(Step::idle(taken));
        }
        if let Some(kind) = kind.filter(|kind| bytes.len() >= kind.fixed_bytes() && self.accepts(*kind)) {
            return self.accept(kind);
        }
        let start = self.start();
        let head = std::mem::replace(&mut self.head, Collected::new());
        if kind == Some(Kind::Local) {
            // A search does not believe it. The directory may.
            self.kept.begin(start);
            self.kept.pass(start, head.bytes());
        }
        self.refuse(head.bytes())
    }

    /// How many of the first bytes cannot begin a record.
    fn run_without_record(&self, input: &[u8]) -> usize {
        let is_record = |at: &usize| self.at + *at as u64 != self.refused_at && Kind::is_possible(&input[*at..]);
        let found = self.finder.find_iter(input).find(is_record);
        found.unwrap_or_else(|| input.len() - usize::from(input.ends_with(b"P") && is_record(&(input.len() - 1))))
    }

    /// Bytes that are no record: told as a gap, unless they belong to a record or to another format.
    fn pass(&mut self, bytes: &[u8]) -> Turn {
        let quiet = usize::try_from(self.quiet_until.saturating_sub(self.at)).unwrap_or(usize::MAX);
        if quiet > 0 || self.searching {
            let count = if quiet > 0 { bytes.len().min(quiet) } else { bytes.len() };
            self.list(&bytes[..count]);
            self.at += count as u64;
            return Turn::Step(Step::idle(count));
        }
        if let Some(step) = self.open_gap() {
            return Turn::Step(step);
        }
        self.at += bytes.len() as u64;
        Turn::Step(Step::tell(bytes.len(), Event::Verbatim))
    }

    /// Bytes that are passed quietly are those of the central header, if there is one.
    fn list(&mut self, bytes: &[u8]) {
        if self.listing.is_some() {
            self.watch.pass(self.at, bytes);
        }
        let taken = self.listing.as_mut().map_or(0, |tail| tail.read(bytes));
        if let Some(tail) = self.listing.take_if(|tail| tail.is_complete()) {
            let end = self.at + taken as u64;
            self.directory.central(tail, end);
        }
    }

    fn open_gap(&mut self) -> Option<Step> {
        if std::mem::replace(&mut self.gap, true) {
            return None;
        }
        Some(Step::tell(
            0,
            Event::Open(Object { kind: stream::Kind::Rest, raw_offset: Some(self.at), ..Object::default() }),
        ))
    }

    /// Reads the variable part of a local header.
    fn header(&mut self, mut tail: Box<Tail>, input: &[u8], last: bool) -> Turn {
        if let Some(kept) = tail.refuse(input) {
            return self.refuse(&kept);
        }
        let taken = tail.read(input);
        self.watch.pass(self.at, &input[..taken]);
        self.at += taken as u64;
        if !tail.is_complete() && !last {
            self.state = State::Header(tail);
            return Turn::Step(Step::idle(taken));
        }
        if !tail.is_complete() {
            self.no_end_record();
        } else if tail.is_directory() {
            let member = Member::new(&tail, self.at, 0);
            self.folders = self.folders.saturating_add(1);
            self.directory.member(Entry { compressed: Size::of(0), ..member.into_entry(self.at) });
            self.expected_at = self.at;
        } else {
            self.state = State::Member(Box::new(Member::new(&tail, self.at, std::mem::take(&mut self.folders))));
        }
        Turn::step_or_again(taken)
    }

    /// The next event when the input is over and no member is open.
    fn end(&mut self) -> Turn {
        if std::mem::take(&mut self.gap) {
            return Turn::Step(Step::tell(0, Event::Close));
        }
        if self.listing.take().is_some() || !self.directory.is_empty() {
            self.directory = Directory::new(0);
            self.no_end_record();
            return Turn::Again;
        }
        if !self.postponed.is_empty() {
            self.note_postponed();
            return Turn::Again;
        }
        Turn::Step(Step::tell(0, Event::End))
    }
}

impl Stage for Zip {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        while !fuel.is_empty() && !input.is_empty() {
            if let Turn::Step(step) = self.paid_turn(input, output, fuel, false) {
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            match self.paid_turn(b"", output, fuel, true) {
                Turn::Step(step) if step.event != Event::Idle => return step.event,
                _ => {}
            }
        }
        Event::Idle
    }
}
