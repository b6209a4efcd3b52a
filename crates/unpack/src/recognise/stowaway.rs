//! Archives and compressed streams that stand in a file of another type: self-extracting ones behind their executable, those
//! behind pictures, and those behind anything that the common archivers open all the same.
//!
//! They are found by their signature and by what follows it, which has to make sense as a header: its checksum has to be right
//! where there is one. An archive's own reader is fed with it from there, and its members are members of the file. Where the
//! archive is over, or broken, the search goes on: each byte is read by one of them, however many archives stand behind each
//! other. Zip archives have a search of their own, which follows them from record to record.
//!
//! In files that are no executables and no pictures they are looked for in the first [`REACH`] bytes, as far as 7-Zip does, and
//! directly behind one that was found. 7-Zip takes `.Z`, `.lzma`, ar and compound files for such at the very beginning only; so
//! they are not looked for.
//!
//! Images of discs and of file systems, and help files, may need all that follows them: that is told as it stands, for
//! their readers to read, and to search for more. The
//! descriptors of a disc image stand behind 32 KiB that nobody reads, which are told as NULs, not as they were.
//!
//! Bounds: a header of [`LOOK`] bytes, and [`BEHIND_MAX`] in front of it; one archive's reader, and [`WAITING_MAX`] of 7z, which
//! are opened at the end of the file, with [`FRONT_BYTES`] each; [`ARCHIVES_MAX`] archives, and [`AGAIN_MAX`] bytes that their readers give back, beyond
//! which it says so; [`STREAMS_MAX`] compressed streams, of which programs open the first.
//!
//! ```text
//! Searching ──header──▶ Reading ──over, broken──▶ Searching ··end of the file··▶ Opening (each 7z in turn)
//! ```

use std::collections::VecDeque;
use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use stream::FileType::{self, Bzip2, Gzip, Xz, Zstd};
use stream::{Class, Entry, Event, Finding, Fuel, Kind, Limits, Note, Nothing, Object, ReadAt, Stage, Step, Window};
use zlib_rs::crc32::crc32;

use crate::disk::{squashfs, wim};
use crate::frame::codec::{Fault, le16, le32};
use crate::frame::cuts;
use crate::frame::password::Passwords;
use crate::frame::reader::{Ended, Outbox, Reader, Reading};
use crate::program::nsis;
use crate::recognise::carried::Carried;

/// Bytes that are looked at together, and held that long.
const PIECE_BYTES: usize = 4096;
/// Bytes that a header is judged by.
const LOOK: usize = 512;
/// Bytes in front of a signature that belong to a header.
const BEHIND_MAX: usize = 320;

/// Whether a header makes sense.
type Makes = fn(&[u8]) -> bool;

/// Signature to search for.
struct Signature {
    bytes: &'static [u8],
    /// How far behind the archive's beginning it stands.
    behind: usize,
    makes: Makes,
    /// Type of the reader; `None` if that needs all that follows.
    read_as: Option<FileType>,
}

const fn sig(bytes: &'static [u8], behind: usize, makes: Makes, read_as: FileType) -> Signature {
    Signature { bytes, behind, makes, read_as: Some(read_as) }
}

static SIGNATURES: [Signature; 18] = [
    sig(b"7z\xbc\xaf\x27\x1c", 0, is_7z, FileType::SevenZip),
    sig(b"Rar!\x1a\x07", 0, is_rar, FileType::Rar),
    sig(b"MSCF\0\0\0\0", 0, is_cab, FileType::Cab),
    sig(b"-lh", 2, is_lha, FileType::Lha),
    sig(b"\x60\xea", 0, is_arj, FileType::Arj),
    sig(nsis::MAGIC, 4, is_nsis, FileType::Nsis),
    Signature { read_as: None, ..sig(b"hsqs", 0, squashfs::is_plausible, FileType::Squashfs) },
    sig(b"\x1f\x8b\x08", 0, is_gzip, FileType::Gzip),
    sig(b"1AY&SY", 4, is_bzip2, FileType::Bzip2),
    sig(b"\xfd7zXZ\0", 0, is_xz, FileType::Xz),
    sig(b"\x28\xb5\x2f\xfd", 0, is_zstd, FileType::Zstd),
    sig(b"\x2a\x4d\x18", 1, is_zstd_skippable, FileType::Zstd),
    sig(b"xar!\0\x1c\0\x01", 0, is_xar, FileType::Xar),
    sig(b"ustar", USTAR_AT, is_tar, FileType::Tar),
    sig(b"07070", 0, is_cpio, FileType::Cpio),
    Signature { read_as: None, ..sig(b"ITSF\x03\0\0\0", 0, is_chm, FileType::Chm) },
    Signature { read_as: None, ..sig(CD, 1, is_disc, FileType::Iso) },
    Signature { read_as: None, ..sig(wim::MAGIC, 0, wim::is_plausible, FileType::Wim) },
];

/// Where tar has its signature.
const USTAR_AT: usize = 257;

/// Common bytes of all descriptors of a disc image, and the place of the first of them.
const CD: &[u8] = b"CD001";
const DESCRIPTORS_AT: usize = 32 << 10;
const SECTOR_BYTES: u64 = 2048;

/// How far the readers of archives look for them.
const REACH: u64 = 8 << 20;

/// Signatures that are looked for at once, by their places among all.
struct Set {
    places: Vec<usize>,
    searcher: Searcher,
}

impl Set {
    fn of(belongs: impl Fn(usize) -> bool) -> Set {
        let places: Vec<usize> = (0..SIGNATURES.len()).filter(|&place| belongs(place)).collect();
        let signatures = places.iter().map(|&place| SIGNATURES[place].bytes);
        Set { searcher: Searcher::new(signatures).expect("a few patterns, none of them empty"), places }
    }
}

/// RAR and ARJ: their own programs look for them, whatever else stands in front.
const OF_PROGRAMS: [usize; 2] = [1, 4];

/// How many extract themselves; they come first.
const SELF_EXTRACTING_COUNT: usize = 7;

static ALL: LazyLock<Set> = LazyLock::new(|| Set::of(|_| true));
static SELF_EXTRACTING: LazyLock<Set> = LazyLock::new(|| Set::of(|place| place < SELF_EXTRACTING_COUNT));
static NOT_SELF_EXTRACTING: LazyLock<Set> = LazyLock::new(|| Set::of(|place| place >= SELF_EXTRACTING_COUNT));
static RAR_AND_ARJ: LazyLock<Set> = LazyLock::new(|| Set::of(|place| OF_PROGRAMS.contains(&place)));
static OTHERS: LazyLock<Set> = LazyLock::new(|| Set::of(|place| !OF_PROGRAMS.contains(&place)));

/// How far behind an archive the next one may begin, wherever that is.
const NEAR: u64 = 64 << 10;
/// Archives in a file.
const ARCHIVES_MAX: u32 = 1000;
/// Compressed streams in a file.
const STREAMS_MAX: u32 = 64;
/// Bytes that are read a second time, all archives together: what a reader took and gave back.
const AGAIN_MAX: u64 = 64 << 20;
/// Archives that wait for the end of the file.
const WAITING_MAX: usize = 128;
/// The first bytes that such a one asks for, which are kept here; the rest is kept by the driver.
const FRONT_BYTES: u64 = 32 << 10;
/// Cost of setting up a reader, in bytes worked on.
const SET_UP: usize = 16 << 10;

/// The reader of a type.
type ReaderOf = fn(FileType, &Limits, &Passwords) -> Option<Box<dyn Stage>>;

const TOO_MANY: Fault = Fault::passing(Class::Limit, "Heuristics.Limits.Exceeded.Stowaways");

/// A reader that looks for archives, and reads them.
pub(crate) struct Stowaway {
    reader: ReaderOf,
    limits: Limits,
    passwords: Passwords,
    /// Where the bytes held stand.
    at: u64,
    /// Bytes that are looked at, and those that a reader gave back.
    held: Vec<u8>,
    /// Whether some of them have not been looked at.
    is_fresh: bool,
    /// In front of it no archive begins that has not been read.
    from: u64,
    set: &'static Set,
    /// Whether it looks no further than `REACH`.
    is_bounded: bool,
    /// Where the last archive was over.
    over_at: u64,
    /// Where the first descriptor of a disc image was seen.
    descriptors_at: Option<u64>,
    state: State,
    /// Archives that are over, and are opened when the file is.
    waiting: VecDeque<Carved>,
    archives: u32,
    streams: u32,
    again: u64,
}

enum State {
    Searching,
    Reading(Carved),
    /// The file is over, and this one is opened.
    Opening(Carved),
    /// Enough was read: the rest is passed.
    Passing,
}

/// An archive that was found.
struct Carved {
    /// Where it begins.
    at: u64,
    file_type: Option<FileType>,
    stage: Box<dyn Stage>,
    /// Objects that it has open.
    open: u32,
    /// Whether it asked for something to be kept: then it is opened at the end.
    keeps: bool,
    /// The first of what it asked for: where that stands, and the bytes.
    front: (u64, Vec<u8>),
    /// Whether it has an object open, for what follows it, that was not told.
    has_rest: bool,
}

/// Archive whose reader needs all that follows it, which is emitted as it stands.
#[derive(Default)]
struct ToTheEnd {
    in_front: usize,
}

impl Reader for ToTheEnd {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !outbox.is_open() {
            let raw_offset = (self.in_front == 0).then_some(0);
            outbox.open(Object { kind: Kind::Member, raw_offset, ..Object::default() });
        }
        outbox.content(input);
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
        Ended::Done
    }
}

impl Stowaway {
    /// A reader that looks for archives that extract themselves, and for those behind pictures.
    pub fn new(reader: ReaderOf, limits: &Limits, passwords: &Passwords) -> Stowaway {
        Stowaway {
            reader,
            limits: limits.clone(),
            passwords: passwords.clone(),
            at: 0,
            held: Vec::new(),
            is_fresh: false,
            from: 1,
            set: &SELF_EXTRACTING,
            is_bounded: false,
            over_at: 0,
            descriptors_at: None,
            state: State::Searching,
            waiting: VecDeque::new(),
            archives: 0,
            streams: 0,
            again: 0,
        }
    }

    /// A reader that looks for RAR and ARJ archives in anything, as far as their readers look.
    pub fn anywhere(reader: ReaderOf, limits: &Limits, passwords: &Passwords) -> Stowaway {
        Stowaway { set: &RAR_AND_ARJ, is_bounded: true, ..Stowaway::new(reader, limits, passwords) }
    }

    /// A reader that looks for all others that 7-Zip opens behind anything.
    pub fn others(reader: ReaderOf, limits: &Limits, passwords: &Passwords) -> Stowaway {
        Stowaway { set: &OTHERS, is_bounded: true, ..Stowaway::new(reader, limits, passwords) }
    }

    /// A reader that looks behind a picture for those that [`Stowaway::new`] does not look for.
    pub fn behind_picture(reader: ReaderOf, limits: &Limits, passwords: &Passwords) -> Stowaway {
        Stowaway { set: &NOT_SELF_EXTRACTING, is_bounded: true, ..Stowaway::new(reader, limits, passwords) }
    }

    /// A reader of archives that stand behind each other, from the first byte on.
    pub fn in_a_row(reader: ReaderOf, limits: &Limits, passwords: &Passwords) -> Stowaway {
        Stowaway { set: &ALL, from: 0, is_bounded: true, ..Stowaway::new(reader, limits, passwords) }
    }

    /// Whether archives of this type are read by it.
    pub fn reads(file_type: FileType) -> bool {
        SIGNATURES.iter().any(|signature| signature.read_as == Some(file_type))
    }

    /// A turn; `None` when only the state changed. `kept` is there when no more input follows.
    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel, kept: Option<&dyn ReadAt>) -> Option<Step> {
        match std::mem::replace(&mut self.state, State::Searching) {
            State::Searching => self.look(input, fuel, kept.is_some()),
            State::Reading(carved) => self.read(carved, input, output, fuel, kept),
            State::Opening(carved) => self.open(carved, output, fuel, kept?),
            State::Passing => self.pass(input, fuel, kept.is_some()),
        }
    }

    /// Looks at what is held, or takes more of the input.
    fn look(&mut self, input: &[u8], fuel: &mut Fuel, last: bool) -> Option<Step> {
        fuel.burn(1);
        if std::mem::take(&mut self.is_fresh) || last && !self.held.is_empty() {
            match self.search(last) {
                Some((start, found)) => return self.carve(start, found, fuel),
                None if last => self.held.clear(),
                None => {}
            }
            return None;
        }
        if last {
            return self.open_next();
        }
        if self.at >= self.reach() {
            self.state = State::Passing;
            return None;
        }
        let room = PIECE_BYTES.saturating_sub(self.held.len());
        debug_assert!(room > 0, "a search leaves less than a piece");
        let piece = &input[..input.len().min(room)];
        fuel.burn(if self.is_bounded { piece.len() } else { piece.len() + piece.len() / 2 });
        self.held.reserve_exact(room);
        self.held.extend_from_slice(piece);
        self.is_fresh = true;
        Some(Step::idle(piece.len()))
    }

    /// Where no archive begins any more that is looked for.
    fn reach(&self) -> u64 {
        if self.is_bounded { REACH.max(self.over_at.saturating_add(NEAR)) } else { u64::MAX }
    }

    /// Looks for an archive in what is held: where it begins there, and which signature it has. `last` says that no more
    /// will come.
    fn search(&mut self, last: bool) -> Option<(usize, &'static Signature)> {
        let mut from = 0;
        while let Some(found) = self.set.searcher.find_in(&self.held, (from..self.held.len()).into()) {
            let signature = &SIGNATURES[self.set.places[found.pattern().as_usize()]];
            from = found.start() + 1;
            let Some(start) = found.start().checked_sub(signature.behind) else { continue };
            let head = &self.held[start..];
            if head.len() < LOOK && !last {
                self.drop_held(start.saturating_sub(BEHIND_MAX));
                return None;
            }
            if !(signature.makes)(&head[..head.len().min(LOOK)]) {
                continue;
            }
            let at = self.at + start as u64;
            if signature.bytes == CD && self.is_further_descriptor(at) {
                continue;
            }
            let in_front = if signature.bytes == CD { DESCRIPTORS_AT as u64 } else { 0 };
            // What the file itself is, its own reader opens.
            if at >= self.from.saturating_add(in_front) && at < self.reach() {
                return Some((start, signature));
            }
        }
        self.drop_held(self.held.len().saturating_sub(BEHIND_MAX));
        None
    }

    /// Whether a descriptor is not the first one of its disc image.
    fn is_further_descriptor(&mut self, at: u64) -> bool {
        const DESCRIPTORS_MAX: u64 = 64;
        let first = *self.descriptors_at.get_or_insert(at);
        let behind = at.saturating_sub(first);
        let is_further = behind > 0 && behind.is_multiple_of(SECTOR_BYTES) && behind < DESCRIPTORS_MAX * SECTOR_BYTES;
        if !is_further {
            self.descriptors_at = Some(at);
        }
        is_further
    }

    /// The first bytes are looked at no more.
    fn drop_held(&mut self, count: usize) {
        self.at += count as u64;
        self.held.drain(..count);
    }

    /// An archive begins at `start` of what is held.
    fn carve(&mut self, start: usize, found: &Signature, fuel: &mut Fuel) -> Option<Step> {
        self.drop_held(start);
        self.from = self.at + 1;
        self.is_fresh = true;
        let is_stream = matches!(found.read_as, Some(Gzip | Bzip2 | Xz | Zstd));
        *(if is_stream { &mut self.streams } else { &mut self.archives }) += 1;
        if self.streams > STREAMS_MAX && is_stream {
            return None;
        }
        if self.archives > ARCHIVES_MAX || self.again > AGAIN_MAX || self.waiting.len() == WAITING_MAX {
            self.state = State::Passing;
            return Some(Step::tell(0, TOO_MANY.event(self.at)));
        }
        let stage = match found.read_as {
            Some(file_type) => (self.reader)(file_type, &self.limits, &self.passwords)?,
            None => self.all_that_follows(found),
        };
        fuel.burn(SET_UP);
        self.state = State::Reading(Carved::new(self.at, found.read_as, stage));
        None
    }

    /// A disc image begins in front of what is held.
    fn all_that_follows(&mut self, found: &Signature) -> Box<dyn Stage> {
        let in_front = if found.bytes == CD { DESCRIPTORS_AT } else { 0 };
        self.at -= in_front as u64;
        self.held.splice(..0, std::iter::repeat_n(0, in_front));
        Box::new(Reading::new(ToTheEnd { in_front }))
    }

    /// Feeds the archive: what is held, then the input.
    fn read(
        &mut self,
        mut carved: Carved,
        input: &[u8],
        output: &mut Window,
        fuel: &mut Fuel,
        kept: Option<&dyn ReadAt>,
    ) -> Option<Step> {
        let held = self.held.len();
        let offered = if held > 0 { &self.held[..held.min(output.room())] } else { input };
        let mut step = match kept.filter(|_| offered.is_empty()) {
            Some(kept) => {
                let kept = Behind { kept, at: carved.at, front: &carved.front };
                Step::tell(0, carved.stage.finish(&kept, output, fuel))
            }
            None => carved.stage.step(offered, output, fuel),
        };
        carved.pass(self.at, &offered[..step.taken]);
        self.at += step.taken as u64;
        if held > 0 {
            if step.event == Event::Verbatim {
                output.push(&offered[..step.taken]);
                step.event = Event::Wrote;
            }
            self.held.drain(..step.taken);
            step.taken = 0;
        }
        let Step { taken, event } = step;
        match event {
            Event::End => self.leave(),
            Event::Open(Object { kind: Kind::Rest, .. }) if carved.open == 0 => self.rest(carved, output, fuel),
            event => {
                let event = carved.told(event, self.at);
                self.state = State::Reading(carved);
                return (taken > 0 || event != Event::Idle).then_some(Step::tell(taken, event));
            }
        }
        (taken > 0).then_some(Step::idle(taken))
    }

    /// The archive is over, and what follows it is searched.
    fn rest(&mut self, mut carved: Carved, output: &mut Window, fuel: &mut Fuel) {
        if carved.keeps {
            carved.has_rest = true;
            self.waiting.push_back(carved);
            return self.leave();
        }
        let given_back = carved.give_back(output);
        fuel.burn(given_back.len());
        self.at -= given_back.len() as u64;
        self.again = self.again.saturating_add(given_back.len() as u64);
        self.held.splice(..0, given_back);
        self.leave();
    }

    fn leave(&mut self) {
        self.over_at = self.at;
        self.is_fresh = !self.held.is_empty();
    }

    /// The file is over: the next archive that waited is opened.
    fn open_next(&mut self) -> Option<Step> {
        let Some(carved) = self.waiting.pop_front() else { return Some(Step::tell(0, Event::End)) };
        self.state = State::Opening(carved);
        None
    }

    fn open(&mut self, mut carved: Carved, output: &mut Window, fuel: &mut Fuel, kept: &dyn ReadAt) -> Option<Step> {
        let event = carved.stage.finish(&Behind { kept, at: carved.at, front: &carved.front }, output, fuel);
        match event {
            Event::End => None,
            Event::Close if carved.open == 0 && std::mem::take(&mut carved.has_rest) => {
                self.state = State::Opening(carved);
                None
            }
            event => {
                let event = carved.told(event, self.at);
                self.state = State::Opening(carved);
                (event != Event::Idle).then_some(Step::tell(0, event))
            }
        }
    }

    /// Enough was looked for.
    fn pass(&mut self, input: &[u8], fuel: &mut Fuel, last: bool) -> Option<Step> {
        fuel.burn(input.len().max(1));
        self.held.clear();
        if last {
            return self.open_next();
        }
        self.state = State::Passing;
        Some(if self.waiting.is_empty() { Step::tell(0, Event::End) } else { Step::idle(input.len()) })
    }
}

impl Carved {
    const fn new(at: u64, file_type: Option<FileType>, stage: Box<dyn Stage>) -> Carved {
        Carved { at, file_type, stage, open: 0, keeps: false, front: (0, Vec::new()), has_rest: false }
    }

    /// Notes that the bytes at `at` were read.
    fn pass(&mut self, at: u64, bytes: &[u8]) {
        if self.keeps && at < self.front_end() {
            let room = self.front_end().saturating_sub(at) as usize;
            self.front.1.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// Up to where what it asks for is kept here. What was held when it was found was taken from the driver before.
    const fn front_end(&self) -> u64 {
        self.at.saturating_add(FRONT_BYTES)
    }

    /// Its event, with places counted from the file's beginning; the next byte that it reads stands at `at`.
    fn told(&mut self, event: Event, at: u64) -> Event {
        match event {
            Event::Open(object) => {
                self.open += 1;
                let raw_offset = object.raw_offset.map(|offset| self.at.saturating_add(offset));
                let archive = self.file_type.map(|file_type| (file_type, self.at));
                let entry = object.entry.map(|entry| Box::new(Entry { archive: entry.archive.or(archive), ..*entry }));
                Event::Open(Object { raw_offset, entry, ..object })
            }
            Event::Close => {
                self.open -= 1;
                Event::Close
            }
            Event::Note(Note::Finding(finding)) => {
                Event::finding(Finding { offset: self.at.saturating_add(finding.offset), ..finding })
            }
            Event::Keep(range) => {
                if !std::mem::replace(&mut self.keeps, true) {
                    self.front.0 = at;
                }
                let by_driver = |place: u64| self.at.saturating_add(place).max(self.front_end());
                let range = by_driver(range.start)..by_driver(range.end);
                if range.is_empty() { Event::Idle } else { Event::Keep(range) }
            }
            event => event,
        }
    }

    /// Bytes that it took and did not use.
    fn give_back(mut self, output: &mut Window) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let event = self.stage.finish(&Nothing, output, &mut Fuel::unlimited());
            if event != Event::Wrote {
                return bytes;
            }
            bytes.extend_from_slice(output.filled());
            output.clear();
        }
    }
}

/// Kept bytes of a file, with places as an archive in it counts.
struct Behind<'a> {
    kept: &'a dyn ReadAt,
    at: u64,
    front: &'a (u64, Vec<u8>),
}

impl ReadAt for Behind<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let at = self.at.saturating_add(offset);
        let (front_at, front) = self.front;
        let skip = at.checked_sub(*front_at).and_then(|skip| usize::try_from(skip).ok());
        let held = skip.and_then(|skip| front.get(skip..)).unwrap_or_default();
        let count = held.len().min(buffer.len());
        buffer[..count].copy_from_slice(&held[..count]);
        count + self.kept.read_at(at.saturating_add(count as u64), &mut buffer[count..])
    }
}

impl Stage for Stowaway {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        while !fuel.is_empty() && !input.is_empty() {
            if let Some(step) = self.turn(&input[..fuel.allows(input.len())], output, fuel, None) {
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            match self.turn(b"", output, fuel, Some(kept)) {
                Some(step) if step.event != Event::Idle => return step.event,
                _ => {}
            }
        }
        Event::Idle
    }
}

/// The checksum of the start header.
fn is_7z(head: &[u8]) -> bool {
    head.get(12..32).is_some_and(|start| crc32(0, start) == le32(head, 8))
}

/// The checksum of the first header, and its type: main, or encryption.
fn is_rar(head: &[u8]) -> bool {
    const OLD: u8 = 0;
    const MAIN_BYTES: usize = 13;
    if head.get(6) == Some(&OLD) {
        let main = head.get(7..7 + MAIN_BYTES);
        return main.is_some_and(|main| main[2] == 0x73 && crc32(0, &main[2..]) as u16 == le16(main, 0));
    }
    let Some((&length, _)) = head.get(12..).and_then(<[u8]>::split_first) else { return false };
    let header = head.get(12..13 + usize::from(length));
    header.is_some_and(|header| matches!(header.get(1), Some(1 | 4)) && crc32(0, header) == le32(head, 8))
}

/// Reserved fields, the version, and counts that are not nothing.
fn is_cab(head: &[u8]) -> bool {
    const HEADER: u32 = 36;
    let is_whole = head.len() >= HEADER as usize;
    let reserved = le32(head, 12) == 0 && le32(head, 20) == 0;
    let version = le16(head, 24) == 0x0103;
    is_whole && reserved && version && le32(head, 8) > HEADER && le32(head, 16) >= HEADER && le16(head, 26) > 0
}

/// The sum of a header of level 0 or 1; of level 2, fields that make sense.
fn is_lha(head: &[u8]) -> bool {
    let method = head.get(5).is_some_and(|method| matches!(method, b'0'..=b'7' | b'd'));
    if !method || head.get(6) != Some(&b'-') {
        return false;
    }
    match head.get(20) {
        Some(0 | 1) => {
            let header = head.get(2..2 + usize::from(head[0]));
            header.is_some_and(|header| {
                header.len() > 20 && header.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)) == head[1]
            })
        }
        Some(2) => (26..4096).contains(&le16(head, 0)) && le32(head, 7) > 0,
        _ => false,
    }
}

/// The checksum of the main header.
fn is_arj(head: &[u8]) -> bool {
    const HEADER_MIN: usize = 30;
    let length = usize::from(le16(head, 2));
    let header = head.get(4..4 + length).filter(|_| length >= HEADER_MIN);
    header.is_some_and(|header| head.len() >= 8 + length && crc32(0, header) == le32(head, 4 + length))
}

/// Lengths of the header and of all that can be.
fn is_nsis(head: &[u8]) -> bool {
    const FIRST: u32 = 28;
    (1..1 << 26).contains(&le32(head, 20)) && le32(head, 24) > FIRST
}

/// The method, no reserved flags, and extra flags that some compressor writes.
fn is_gzip(head: &[u8]) -> bool {
    const FLAGS_MAX: u8 = 0x1f;
    head.get(3).is_some_and(|&flags| flags <= FLAGS_MAX) && matches!(head.get(8), Some(0 | 2 | 4))
}

/// The mark of the stream and its level in front of the first block.
fn is_bzip2(head: &[u8]) -> bool {
    head.starts_with(b"BZh") && matches!(head.get(3), Some(b'1'..=b'9'))
}

/// The checksum of the flags.
fn is_xz(head: &[u8]) -> bool {
    head.get(6..8).is_some_and(|flags| flags[0] == 0 && crc32(0, flags) == le32(head, 8))
}

/// The reserved bit.
fn is_zstd(head: &[u8]) -> bool {
    const RESERVED: u8 = 8;
    head.get(4).is_some_and(|descriptor| descriptor & RESERVED == 0)
}

/// A frame that is skipped, and a length that leads to another frame within what is looked at, or not far beyond.
fn is_zstd_skippable(head: &[u8]) -> bool {
    const FAR: usize = 1 << 20;
    let next = 8 + le32(head, 4) as usize;
    let follows = match head.get(next..) {
        Some(next) if next.len() >= 4 => {
            next.starts_with(b"\x28\xb5\x2f\xfd") || next[1..].starts_with(b"\x2a\x4d\x18")
        }
        _ => head.len() == LOOK && next < FAR,
    };
    head.first().is_some_and(|first| first & 0xf0 == 0x50) && follows
}

/// The length of the header.
fn is_chm(head: &[u8]) -> bool {
    matches!(le32(head, 8), 0x58 | 0x60)
}

/// A table that is not empty.
fn is_xar(head: &[u8]) -> bool {
    head.get(8..24).is_some_and(|lengths| lengths[..8] != [0; 8] && lengths[8..] != [0; 8])
}

/// The checksum of the header, its own field counted as blanks.
fn is_tar(head: &[u8]) -> bool {
    const HEADER_BYTES: usize = 512;
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(header) = head.get(..HEADER_BYTES) else { return false };
    let digits = header[SUM].trim_ascii_start();
    let digits = digits.split(|byte| matches!(byte, 0 | b' ')).next().unwrap_or_default();
    let Some(told) = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 8).ok()) else {
        return false;
    };
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    sum(header) - sum(&header[SUM]) + 8 * u32::from(b' ') == told
}

/// The kind of header, and its numbers.
fn is_cpio(head: &[u8]) -> bool {
    let (length, radix) = match head.get(5) {
        Some(b'1' | b'2') => (110, 16),
        Some(b'7') => (76, 8),
        _ => return false,
    };
    head.get(6..length).is_some_and(|numbers| numbers.iter().all(|&byte| char::from(byte).is_digit(radix)))
}

/// The type of a descriptor, and its version.
fn is_disc(head: &[u8]) -> bool {
    matches!(head.first(), Some(0..=3 | 255)) && matches!(head.get(6), Some(1 | 2))
}

/// Fuzz body: looks for archives, and for executables.
pub(crate) fn fuzz_stowaway(data: &[u8], reader: ReaderOf) {
    cuts::compare(data, |_| Box::new(Reading::new(Carried::default())));
    for new in [Stowaway::new, Stowaway::anywhere, Stowaway::others, Stowaway::behind_picture, Stowaway::in_a_row] {
        cuts::compare(data, |limits| Box::new(new(reader, limits, &cuts::passwords(limits))));
    }
}
