//! The stage of every archive whose members follow their headers: RAR, CAB, LHA, ARJ, cpio, ar.
//!
//! A format's [`Records`] reads them, this stage tells the members: it cuts the packed bytes and the content to their
//! lengths, checks them, and sees to it that nothing is passed over. Where decoding breaks off the remaining packed bytes
//! are told as a member without name; so is everything from where no record can be read any more.
//!
//! Nothing stands still: a record takes bytes by its type ([`Record::Pass`]), every turn burns fuel, and records that come
//! to no further place, like a decoder that neither takes nor writes, end in `Heuristics.Limits.Exceeded.Stall`.
//!
//! Bounds: a header of at most `spool_bytes_max`, what the format holds, and its decoder; [`STANDING_MAX`] records in a row
//! and twice `directory_entries_max` that come to no further place.
//!
//! ```text
//! Record ──▶ Opening ──▶ Raw ─────┬──▶ Record
//!  │  ▲         └──────▶ Packed ──┴──▶ Opening (what could not be decoded)
//!  ▼  │
//! Skip┘
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod check;
mod records;

use std::collections::VecDeque;

use stream::{Class, Event, Finding, Fuel, Kind, Limits, Object, ReadAt, Stage, Step, Window};

pub(crate) use check::{Check, crc16};

use crate::frame::codec::{DECODER_TURNS_MAX, Fault, Progress, STALL, Told};
use crate::frame::stall::Patience;
pub(crate) use records::{Content, Faults, Member, Record, Records};

/// The stage.
pub(crate) struct Archive<F> {
    format: F,
    head_bytes_max: usize,
    /// Bytes read so far, those in the head included, those given back not.
    at: u64,
    state: State,
    notes: VecDeque<Finding>,
    /// Bytes given back, to be read again before the input.
    held: Vec<u8>,
    /// The beginning of a record.
    head: Vec<u8>,
    faults: Vec<Fault>,
    /// Work done in this turn besides what is taken and told.
    work: usize,
    /// Bytes of content told.
    wrote: u64,
    records: Patience,
    decoding: Patience,
}

/// Records in a row that may come to no further place: the folders that a cabinet may have, twice.
const STANDING_MAX: u32 = 1 << 17;

enum State {
    /// Reading a record, which needs so many bytes.
    Record(usize),
    Opening(Box<Member>),
    /// In content that is told as it stands; so many bytes remain.
    Raw(u64, Check),
    /// In what is no record any more; whether it has been opened.
    Rest(bool),
    Packed(Packed),
    /// The open object is complete.
    Closing(Then),
    /// So many bytes are passed.
    Skip(u64),
}

struct Packed {
    packed_left: Option<u64>,
    size_left: Option<u64>,
    check: Check,
    /// Event of the decoder after content that had to be emitted first.
    owing: Told,
}

/// Successor of the end of a member.
enum Then {
    Record,
    /// Nothing: the input is over.
    Over,
    /// So many packed bytes remain.
    Left(u64),
}

/// Packed bytes that remain behind the content without being worth a word: padding, the end of a block.
const SLACK: u64 = 16;

/// Result of a turn: bytes taken, and the event.
type Turn = Option<Step>;

impl<F: Records> Archive<F> {
    pub fn new(format: F, limits: &Limits) -> Archive<F> {
        Archive {
            format,
            head_bytes_max: limits.spool_bytes_max as usize,
            at: 0,
            state: State::Record(0),
            notes: VecDeque::new(),
            held: Vec::new(),
            head: Vec::new(),
            faults: Vec::new(),
            work: 0,
            wrote: 0,
            records: Patience::of(STANDING_MAX.saturating_add(limits.directory_entries_max.saturating_mul(2))),
            decoding: Patience::of(DECODER_TURNS_MAX),
        }
    }

    /// A turn, and the fuel that it costs: at least one unit, whatever it comes to.
    fn paid_turn(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel, last: bool) -> Turn {
        let room = output.room();
        let turn = self.turn(input, output, fuel, last);
        let taken = turn.as_ref().map_or(0, |step| step.taken);
        let wrote = room.saturating_sub(output.room());
        self.wrote = self.wrote.saturating_add(wrote as u64);
        let work = std::mem::take(&mut self.work).saturating_add(self.format.take_work());
        fuel.burn(taken.saturating_add(wrote).saturating_add(work).max(1));
        turn
    }

    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        if let Some(finding) = self.notes.pop_front() {
            return Some(Step::tell(0, Event::finding(finding)));
        }
        if self.held.is_empty() {
            return self.feed(input, output, fuel, last);
        }
        let mut held = std::mem::take(&mut self.held);
        let offered = &held[..held.len().min(output.room())];
        let step = self.feed(offered, output, fuel, false).unwrap_or(Step::idle(0));
        // What was taken is not in the input any more.
        self.work = self.work.saturating_add(step.taken);
        let event = match step.event {
            Event::Verbatim => {
                output.push(&offered[..step.taken]);
                Event::Wrote
            }
            event => event,
        };
        held.drain(..step.taken);
        // What was given back meanwhile had been read before.
        self.held.append(&mut held);
        (event != Event::Idle).then_some(Step::tell(0, event))
    }

    fn feed(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        match std::mem::replace(&mut self.state, State::Rest(false)) {
            State::Record(wanted) => self.record(wanted, input, last),
            State::Opening(member) => Some(self.open(*member)),
            State::Raw(left, check) => self.raw(left, check, input, fuel, last),
            State::Packed(packed) => self.packed(packed, input, output, fuel, last),
            State::Closing(then) => Some(self.close(then)),
            State::Skip(left) => self.skip(left, input, last),
            State::Rest(open) => Some(self.rest(open, input, last)),
        }
    }

    /// Where the record begins that is being read.
    const fn start(&self) -> u64 {
        self.at.saturating_sub(self.head.len() as u64)
    }

    fn note(&mut self, fault: Fault) {
        let at = self.start();
        self.notes.push_back(Finding::new(fault.class, fault.name, at));
        if let Some(cause) = self.format.cause(&fault) {
            self.notes.push_back(Finding::new(cause.class, cause.name, at));
        }
    }

    /// The last bytes read are to be read again.
    fn give_back(&mut self, bytes: &[u8]) {
        self.at = self.at.saturating_sub(bytes.len() as u64);
        self.held.splice(..0, bytes.iter().copied());
    }

    fn record(&mut self, wanted: usize, input: &[u8], last: bool) -> Turn {
        self.state = State::Record(wanted);
        let missing = wanted.saturating_sub(self.head.len());
        if missing > 0 {
            let count = input.len().min(missing);
            if count == 0 && last {
                self.ends_in_record();
                return None;
            }
            self.head.extend_from_slice(&input[..count]);
            self.moved(count);
            return (count > 0).then_some(Step::idle(count));
        }
        let mut faults = std::mem::take(&mut self.faults);
        let record = self.format.record(&self.head, self.start(), &mut faults);
        self.work = self.work.saturating_add(self.head.len()).saturating_add(self.format.take_work());
        if matches!(record, Record::Again) {
            // What it found it will find again.
            faults.clear();
        }
        faults.drain(..).for_each(|fault| self.note(fault));
        self.faults = faults;
        match record {
            // Work that is granted comes to an end by itself.
            Record::Again if self.work > self.head.len() => {}
            Record::Again | Record::Next | Record::Pass(_) | Record::Member(..) if !self.gets_on() => {
                self.note(STALL);
                self.give_up();
            }
            Record::Again => {}
            Record::Next => self.begin(0, State::Record(0)),
            Record::Need(wanted) if wanted <= self.head.len() => self.give_up(),
            Record::Need(wanted) if wanted > self.head_bytes_max => {
                self.note(Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.ArchiveHeader"));
                self.give_up();
            }
            Record::Need(wanted) => self.state = State::Record(wanted),
            Record::Pass(length) => {
                let length = length.get();
                let here = most(Some(length)).min(self.head.len());
                self.begin(here, State::Skip(length.saturating_sub(here as u64)));
            }
            Record::Member(length, member) => {
                self.begin(length.min(self.head.len()), State::Opening(Box::new(member)));
            }
            Record::Rest => self.give_up(),
        }
        None
    }

    /// Whether this record stands further on than any before, or not too many did not.
    fn gets_on(&mut self) -> bool {
        self.records.bears_at(self.start().saturating_add(self.wrote))
    }

    /// So many bytes more are read.
    const fn moved(&mut self, count: usize) {
        self.at = self.at.saturating_add(count as u64);
    }

    /// The first `length` bytes of the head are read; what follows them is not.
    fn begin(&mut self, length: usize, state: State) {
        let head = std::mem::take(&mut self.head);
        self.give_back(&head[length..]);
        self.state = state;
    }

    /// Stops looking for records in the rest.
    fn give_up(&mut self) {
        self.begin(0, State::Rest(false));
    }

    fn rest(&mut self, open: bool, input: &[u8], last: bool) -> Step {
        self.state = State::Rest(!last);
        match (open, last) {
            (false, true) => Step::tell(0, Event::End),
            (true, true) => Step::tell(0, Event::Close),
            (false, false) => {
                Step::tell(0, Event::Open(Object { kind: Kind::Rest, raw_offset: Some(self.at), ..Object::default() }))
            }
            (true, false) => {
                self.moved(input.len());
                Step::tell(input.len(), Event::Verbatim)
            }
        }
    }

    /// The input ends in a record, or in front of one.
    fn ends_in_record(&mut self) {
        if !(self.head.is_empty() && self.format.may_end()) {
            self.note(F::FAULTS.truncated);
        }
        self.give_up();
    }

    fn open(&mut self, member: Member) -> Step {
        let raw = matches!(member.content, Content::Raw(_));
        self.state = match member.content {
            Content::Raw(length) => State::Raw(length, member.check),
            Content::Packed { packed, size } => State::Packed(Packed {
                packed_left: packed,
                size_left: size,
                check: member.check,
                owing: Told::Nothing,
            }),
        };
        let raw_offset = raw.then_some(self.at);
        Step::tell(0, Event::Open(Object { kind: Kind::Member, raw_offset, ..member.object }))
    }

    fn raw(&mut self, left: u64, mut check: Check, input: &[u8], fuel: &Fuel, last: bool) -> Turn {
        let count = fuel.allows(input.len()).min(most(Some(left)));
        if left == 0 || last {
            if left > 0 {
                self.note(F::FAULTS.truncated);
                self.state = State::Closing(Then::Over);
                return None;
            }
            if !check.agrees() {
                self.note(F::FAULTS.check);
            }
            self.state = State::Closing(Then::Record);
            return None;
        }
        check.update(&input[..count]);
        self.moved(count);
        self.state = State::Raw(left.saturating_sub(count as u64), check);
        (count > 0).then_some(Step::tell(count, Event::Verbatim))
    }

    fn packed(&mut self, mut packed: Packed, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        let told = std::mem::replace(&mut packed.owing, Told::Nothing);
        if told != Told::Nothing {
            self.decoder_told(packed, told);
            return None;
        }
        let offered = &input[..fuel.allows(input.len()).min(most(packed.packed_left))];
        if packed.size_left == Some(0) {
            return self.behind(packed, offered);
        }
        let room = fuel.allows(output.room()).min(most(packed.size_left));
        let progress = self.format.decode(offered, &mut output.spare()[..room]);
        packed.check.update(&output.spare()[..progress.wrote]);
        output.wrote(progress.wrote);
        self.moved(progress.taken);
        packed.packed_left = packed.packed_left.map(|left| left.saturating_sub(progress.taken as u64));
        packed.size_left = packed.size_left.map(|left| left.saturating_sub(progress.wrote as u64));
        let bears = self.decoding.bears(progress.taken > 0 || progress.wrote > 0);
        if progress.wrote > 0 {
            packed.owing = progress.told;
            self.state = State::Packed(packed);
            return Some(Step::tell(progress.taken, Event::Wrote));
        }
        let is_over = last || packed.packed_left == Some(0);
        if progress == Progress::took(0) && is_over {
            if packed.packed_left.is_none() {
                self.take_surplus(None);
                self.note(F::FAULTS.truncated);
                self.state = State::Closing(Then::Over);
                return None;
            }
            let cut = packed.packed_left != Some(0);
            let missing = if cut { F::FAULTS.truncated } else { F::FAULTS.size };
            packed.packed_left = Some(0);
            self.decoder_told(packed, Told::Fault(Fault { fatal: true, ..missing }));
            return None;
        }
        if !bears {
            self.decoder_told(packed, Told::Fault(STALL));
            return None;
        }
        self.decoder_told(packed, progress.told);
        (progress.taken > 0).then_some(Step::idle(progress.taken))
    }

    /// The content is complete; what stands behind it may count for the next member.
    fn behind(&mut self, mut packed: Packed, offered: &[u8]) -> Turn {
        if !self.format.reads_on() {
            self.complete(packed);
            return None;
        }
        let taken = self.format.decode(offered, &mut []).taken;
        self.moved(taken);
        packed.packed_left = packed.packed_left.map(|left| left.saturating_sub(taken as u64));
        match self.decoding.bears(taken > 0) {
            true => self.state = State::Packed(packed),
            false => self.complete(packed),
        }
        (taken > 0).then_some(Step::idle(taken))
    }

    fn decoder_told(&mut self, packed: Packed, told: Told) {
        match told {
            Told::Nothing | Told::Begin(_) => self.state = State::Packed(packed),
            Told::Fault(fault) if fault.fatal => {
                let left = self.take_surplus(packed.packed_left);
                self.note(fault);
                self.state = State::Closing(Then::Left(left));
            }
            Told::Fault(fault) => {
                let at = self.at.saturating_sub(self.format.surplus().len() as u64);
                self.notes.push_back(Finding::new(fault.class, fault.name, at));
                self.state = State::Packed(packed);
            }
            Told::Over => {
                if packed.size_left.is_some_and(|left| left > 0) {
                    self.note(F::FAULTS.size);
                }
                self.complete(packed);
            }
        }
    }

    /// Takes back what the decoder has not used; how many packed bytes remain.
    fn take_surplus(&mut self, packed_left: Option<u64>) -> u64 {
        let surplus = self.format.surplus().to_vec();
        self.give_back(&surplus);
        packed_left.map_or(0, |left| left.saturating_add(surplus.len() as u64))
    }

    /// The content is complete.
    fn complete(&mut self, packed: Packed) {
        let left = self.take_surplus(packed.packed_left);
        if !packed.check.agrees() {
            self.note(F::FAULTS.check);
        }
        if left > SLACK {
            self.note(F::FAULTS.size);
        }
        self.state = State::Closing(Then::Left(left));
    }

    fn close(&mut self, then: Then) -> Step {
        self.state = match then {
            Then::Record => State::Record(0),
            Then::Over => State::Rest(false),
            Then::Left(left) if left > SLACK => State::Opening(Box::new(Member::nameless(left))),
            Then::Left(left) => State::Skip(left),
        };
        Step::tell(0, Event::Close)
    }

    fn skip(&mut self, left: u64, input: &[u8], last: bool) -> Turn {
        let count = input.len().min(most(Some(left)));
        self.moved(count);
        self.state = State::Skip(left.saturating_sub(count as u64));
        if left == 0 {
            self.state = State::Record(0);
        } else if last {
            self.note(F::FAULTS.truncated);
            self.state = State::Rest(false);
        }
        (count > 0).then_some(Step::idle(count))
    }
}

/// The remaining length in memory, or as much as there may be.
fn most(left: Option<u64>) -> usize {
    left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX)
}

impl<F: Records> Stage for Archive<F> {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        while !fuel.is_empty() && !input.is_empty() {
            if let Some(step) = self.paid_turn(&input[..fuel.allows(input.len())], output, fuel, false) {
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            match self.paid_turn(b"", output, fuel, true) {
                Some(step) if step.event != Event::Idle => return step.event,
                _ => {}
            }
        }
        Event::Idle
    }
}

#[cfg(test)]
mod tests {
    use stream::law;
    use stream::law::Told as Event;

    use super::{Archive, Content, Fault, Faults, Limits, Member, Progress, Record, Records, STALL};

    /// More bytes than are skipped as slack.
    const BYTES: usize = 100;

    /// A format that comes to the same record again and again.
    struct Standing(fn() -> Record);

    impl Records for Standing {
        const FAULTS: Faults = Faults { truncated: STALL, check: STALL, size: STALL };

        fn record(&mut self, _: &[u8], _: u64, _: &mut Vec<Fault>) -> Record {
            (self.0)()
        }

        fn decode(&mut self, _: &[u8], _: &mut [u8]) -> Progress {
            Progress::took(0)
        }
    }

    fn told(record: fn() -> Record) -> Vec<Event> {
        let limits = Limits { directory_entries_max: 10, ..Limits::default() };
        law::tell(Archive::new(Standing(record), &limits), &[7; BYTES])
    }

    fn is_stall(event: &Event) -> bool {
        matches!(event, Event::Note(stream::Note::Finding(finding)) if finding.name == STALL.name)
    }

    #[test]
    fn a_record_that_comes_to_nothing_ends_in_a_finding() {
        assert!(matches!(Record::pass_bytes(0), Record::Next));
        for record in [|| Record::Next, || Record::Again, || Record::pass(0, 0)] {
            let told = told(record);
            assert!(told.iter().any(is_stall), "{told:?}");
            assert_eq!(law::content(&told), [7; BYTES], "the rest is told as it stands");
        }
        let told = told(|| Record::Member(0, Member::nameless(0)));
        assert!(told.iter().any(is_stall));
    }

    #[test]
    fn a_decoder_that_does_nothing_ends_in_a_finding() {
        let told = told(|| {
            let content = Content::Packed { packed: Some(BYTES as u64), size: None };
            Record::Member(0, Member { content, ..Member::nameless(0) })
        });
        assert!(told.iter().any(is_stall));
        assert_eq!(law::content(&told), [7; BYTES], "what could not be decoded is told as it stands");
    }

    #[test]
    fn a_length_that_would_wrap_passes_what_there_is() {
        let told = told(|| Record::pass(17, u64::MAX - 16));
        assert_eq!(told.last(), Some(&Event::End(BYTES)));
        assert!(matches!(Record::pass(17, u64::MAX - 16), Record::Pass(length) if length.get() == u64::MAX));
    }
}
