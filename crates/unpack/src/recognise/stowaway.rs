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

mod carving;
mod signature;

use std::collections::VecDeque;

use stream::FileType::{self, Bzip2, Gzip, Xz, Zstd};
use stream::{Class, Event, Fuel, Kind, Limits, Object, ReadAt, Stage, Step, Window};

use crate::frame::codec::Fault;
use crate::frame::cuts;
use crate::frame::password::Passwords;
use crate::frame::reader::Reading;
use crate::recognise::carried::Carried;
use carving::{Behind, Carving, ToTheEnd};
use signature::{ALL, NOT_SELF_EXTRACTING, OTHERS, RAR_AND_ARJ, SELF_EXTRACTING, SIGNATURES, Set, Signature};

/// Bytes that are looked at together, and held that long.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes that a header is judged by.
const LOOK: usize = 512;
/// Bytes in front of a signature that belong to a header.
const BEHIND_MAX: usize = 320;

/// Common bytes of all descriptors of a disc image, and the place of the first of them.
const CD: &[u8] = b"CD001";
const DESCRIPTORS_AT: usize = 32 << 10;
const SECTOR_BYTES: u64 = 2048;

/// How far the readers of archives look for them.
const REACH: u64 = 8 << 20;

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
    waiting: VecDeque<Carving>,
    archives: u32,
    streams: u32,
    again: u64,
}

enum State {
    Searching,
    Reading(Carving),
    /// The file is over, and this one is opened.
    Opening(Carving),
    /// Enough was read: the rest is passed.
    Passing,
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

    /// Whether embedded archives of this type are read.
    pub fn reads(file_type: FileType) -> bool {
        SIGNATURES.iter().any(|signature| signature.read_as == Some(file_type))
    }

    /// A turn; `None` when only the state changed. `kept` is there when no more input follows.
    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel, kept: Option<&dyn ReadAt>) -> Option<Step> {
        match std::mem::replace(&mut self.state, State::Searching) {
            State::Searching => self.look(input, fuel, kept.is_some()),
            State::Reading(mut carving) => match carving.released() {
                Some(event) => {
                    self.state = State::Reading(carving);
                    Some(Step::tell(0, event))
                }
                None => self.read(carving, input, output, fuel, kept),
            },
            State::Opening(mut carving) => match carving.released() {
                Some(event) => {
                    self.state = State::Opening(carving);
                    Some(Step::tell(0, event))
                }
                None => self.open(carving, output, fuel, kept?),
            },
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
        self.held.reserve_exact(piece.len());
        self.held.extend_from_slice(piece);
        // An archive that is found here is found again in the next turn; without one a short end is held until more comes.
        self.is_fresh = self.search(false).is_some();
        if !self.is_fresh {
            self.held.shrink_to_fit();
        }
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
        self.state = State::Reading(Carving::new(self.at, found.read_as, stage));
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
        mut carving: Carving,
        input: &[u8],
        output: &mut Window,
        fuel: &mut Fuel,
        kept: Option<&dyn ReadAt>,
    ) -> Option<Step> {
        let held = self.held.len();
        let offered = if held > 0 { &self.held[..held.min(output.room())] } else { input };
        let mut step = match kept.filter(|_| offered.is_empty()) {
            Some(kept) => {
                let kept = Behind { kept, at: carving.at, front: &carving.front };
                Step::tell(0, carving.stage.finish(&kept, output, fuel))
            }
            None => carving.stage.step(offered, output, fuel),
        };
        carving.pass(self.at, &offered[..step.taken]);
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
            Event::Open(Object { kind: Kind::Rest, .. }) if carving.open == 0 => self.rest(carving, output, fuel),
            event => {
                let event = carving.told(event, self.at);
                self.state = State::Reading(carving);
                return (taken > 0 || event != Event::Idle).then_some(Step::tell(taken, event));
            }
        }
        (taken > 0).then_some(Step::idle(taken))
    }

    /// The archive is over, and what follows it is searched.
    fn rest(&mut self, mut carving: Carving, output: &mut Window, fuel: &mut Fuel) {
        if carving.keeps {
            carving.has_rest = true;
            self.waiting.push_back(carving);
            return self.leave();
        }
        let given_back = carving.give_back(output);
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
        let Some(carving) = self.waiting.pop_front() else { return Some(Step::tell(0, Event::End)) };
        self.state = State::Opening(carving);
        None
    }

    fn open(&mut self, mut carving: Carving, output: &mut Window, fuel: &mut Fuel, kept: &dyn ReadAt) -> Option<Step> {
        let event = carving.stage.finish(&Behind { kept, at: carving.at, front: &carving.front }, output, fuel);
        match event {
            Event::End => None,
            Event::Close if carving.open == 0 && std::mem::take(&mut carving.has_rest) => {
                self.state = State::Opening(carving);
                None
            }
            event => {
                let event = carving.told(event, self.at);
                self.state = State::Opening(carving);
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

/// Fuzz body: looks for archives, and for executables.
pub(crate) fn fuzz_stowaway(data: &[u8], reader: ReaderOf) {
    cuts::compare(data, |_| Box::new(Reading::new(Carried::default())));
    for new in [Stowaway::new, Stowaway::anywhere, Stowaway::others, Stowaway::behind_picture, Stowaway::in_a_row] {
        cuts::compare(data, |limits| Box::new(new(reader, limits, &cuts::passwords(limits))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_waits_for_more_holds_a_short_end() {
        let (limits, passwords) = (Limits::default(), Passwords::default());
        let content: Vec<u8> = (0..40_000_u32).map(|at| (at * 7 % 251) as u8).collect();
        for mut search in
            [Stowaway::anywhere, Stowaway::others].map(|search| search(crate::reader, &limits, &passwords))
        {
            for mut piece in content.chunks(3_000) {
                while !piece.is_empty() {
                    let step = search.step(piece, &mut Window::with_capacity(4_096), &mut Fuel::new(1 << 20));
                    assert_eq!(step.event, Event::Idle);
                    piece = &piece[step.taken..];
                }
                assert!(search.held.capacity() <= BEHIND_MAX + LOOK, "{} bytes", search.held.capacity());
            }
        }
    }
}
