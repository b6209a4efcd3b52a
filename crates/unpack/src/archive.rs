//! The stage of every archive whose members follow their headers: RAR, CAB, LHA, ARJ, cpio, ar.
//!
//! A format's [`Records`] reads them, this stage tells the members: it cuts the packed bytes and the content to their
//! lengths, checks them, and sees to it that nothing is passed over. Where decoding breaks off the remaining packed bytes
//! are told as a member without name; so is everything from where no record can be read any more.
//!
//! Bounds: a header of at most `spool_bytes_max`, what the format holds, and its decoder.
//!
//! ```text
//! Record ──▶ Opening ──▶ Raw ─────┬──▶ Record
//!  │  ▲         └──────▶ Packed ──┴──▶ Opening (what could not be decoded)
//!  ▼  │
//! Skip┘
//! ```

mod check;

use std::collections::VecDeque;

use stream::{Class, Event, Finding, Fuel, Kind, Limits, Object, ReadAt, Stage, Step, Window};

pub(crate) use check::{Check, crc16};

use crate::codec::{Fault, Progress, Told};

/// What an archive format adds to the stage: its records and its decoder.
pub(crate) trait Records: Send {
    /// What is said of content that fails.
    const FAULTS: Faults;

    /// Reads the record at the front of `head`, which stands at `at` in the stream.
    fn record(&mut self, head: &[u8], at: u64, faults: &mut Vec<Fault>) -> Record;

    /// Decodes content of the member that was told last; as [`Decoder::decode`](crate::codec::Decoder::decode).
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress;

    /// Bytes that were taken and not used.
    fn surplus(&self) -> &[u8] {
        &[]
    }

    /// Work done since this was asked last, besides what is taken and told.
    fn take_work(&mut self) -> usize {
        0
    }

    /// Whether the input may end where a record should begin.
    fn may_end(&self) -> bool {
        true
    }
}

/// The findings of a format.
pub(crate) struct Faults {
    pub truncated: Fault,
    pub check: Fault,
    pub size: Fault,
}

/// What stands at the front.
pub(crate) enum Record {
    /// So many bytes are needed to say.
    Need(usize),
    /// Much work has been done, and there is more: to be asked again.
    Again,
    /// A record of so many bytes, all or most of them in the head, that holds no member.
    Pass(u64),
    /// A header of so many bytes, and a member behind it.
    Member(usize, Member),
    /// No record: the rest is told as it stands.
    Rest,
}

/// A member, as its header tells it.
pub(crate) struct Member {
    pub object: Object,
    pub content: Content,
    pub check: Check,
}

/// How a member's content is stored.
pub(crate) enum Content {
    /// As it stands, so many bytes.
    Raw(u64),
    /// Packed.
    Packed {
        /// Bytes of packed data; `None` where the decoder knows, which then serves several members.
        packed: Option<u64>,
        /// Bytes of content, if that is known.
        size: Option<u64>,
    },
}

impl Member {
    /// Content as it stands that belongs to nothing.
    pub fn nameless(length: u64) -> Member {
        Member { object: Object::default(), content: Content::Raw(length), check: Check::None }
    }
}

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
}

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
    /// What the decoder told behind content that had to be told first.
    owing: Told,
}

/// What follows the end of a member.
enum Then {
    Record,
    /// Nothing: the input is over.
    Over,
    /// So many packed bytes remain.
    Left(u64),
}

/// Packed bytes that remain behind the content without being worth a word: padding, the end of a block.
const SLACK: u64 = 16;

/// What a turn came to: bytes taken, and what is told.
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
        }
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

    fn note(&mut self, fault: Fault) {
        let at = self.at - self.head.len() as u64;
        self.notes.push_back(Finding::new(fault.class, fault.name, at));
    }

    /// The last bytes read are to be read again.
    fn give_back(&mut self, bytes: &[u8]) {
        self.at -= bytes.len() as u64;
        self.held.splice(..0, bytes.iter().copied());
    }

    fn record(&mut self, wanted: usize, input: &[u8], last: bool) -> Turn {
        self.state = State::Record(wanted);
        if self.head.len() < wanted {
            let count = input.len().min(wanted - self.head.len());
            if count == 0 && last {
                self.ends_in_record();
                return None;
            }
            self.head.extend_from_slice(&input[..count]);
            self.at += count as u64;
            return (count > 0).then_some(Step::idle(count));
        }
        let mut faults = std::mem::take(&mut self.faults);
        let record = self.format.record(&self.head, self.at - self.head.len() as u64, &mut faults);
        if matches!(record, Record::Again) {
            // What it found it will find again.
            faults.clear();
        }
        faults.drain(..).for_each(|fault| self.note(fault));
        self.faults = faults;
        match record {
            Record::Again => {}
            Record::Need(wanted) if wanted <= self.head.len() => self.give_up(),
            Record::Need(wanted) if wanted > self.head_bytes_max => {
                self.note(Fault::fatal(Class::Limit, "Heuristics.Limits.Exceeded.ArchiveHeader"));
                self.give_up();
            }
            Record::Need(wanted) => self.state = State::Record(wanted),
            Record::Pass(length) => {
                let here = usize::try_from(length).map_or(self.head.len(), |length| length.min(self.head.len()));
                self.begin(here, State::Skip(length - here as u64));
            }
            Record::Member(length, member) => {
                self.begin(length.min(self.head.len()), State::Opening(Box::new(member)));
            }
            Record::Rest => self.give_up(),
        }
        None
    }

    /// The first `length` bytes of the head are read; what follows them is not.
    fn begin(&mut self, length: usize, state: State) {
        let head = std::mem::take(&mut self.head);
        self.give_back(&head[length..]);
        self.state = state;
    }

    /// What follows is no record.
    fn give_up(&mut self) {
        self.begin(0, State::Rest(false));
    }

    fn rest(&mut self, open: bool, input: &[u8], last: bool) -> Step {
        self.state = State::Rest(!last);
        match (open, last) {
            (false, true) => Step::tell(0, Event::End),
            (true, true) => Step::tell(0, Event::Close),
            (false, false) => Step::tell(
                0,
                Event::Open(Object { kind: Kind::Member, raw_offset: Some(self.at), ..Object::default() }),
            ),
            (true, false) => {
                self.at += input.len() as u64;
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
        let count = fuel.allows(input.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
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
        self.at += count as u64;
        self.state = State::Raw(left - count as u64, check);
        (count > 0).then_some(Step::tell(count, Event::Verbatim))
    }

    fn packed(&mut self, mut packed: Packed, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Turn {
        let told = std::mem::replace(&mut packed.owing, Told::Nothing);
        if told != Told::Nothing {
            self.decoder_told(packed, told);
            return None;
        }
        if packed.size_left == Some(0) {
            self.complete(packed);
            return None;
        }
        let most = |left: Option<u64>| left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX);
        let offered = &input[..fuel.allows(input.len()).min(most(packed.packed_left))];
        let room = fuel.allows(output.room()).min(most(packed.size_left));
        let progress = self.format.decode(offered, &mut output.spare()[..room]);
        packed.check.update(&output.spare()[..progress.wrote]);
        output.wrote(progress.wrote);
        self.at += progress.taken as u64;
        packed.packed_left = packed.packed_left.map(|left| left - progress.taken as u64);
        packed.size_left = packed.size_left.map(|left| left - progress.wrote as u64);
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
        self.decoder_told(packed, progress.told);
        (progress.taken > 0).then_some(Step::idle(progress.taken))
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
                let at = self.at - self.format.surplus().len() as u64;
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
        packed_left.map_or(0, |left| left + surplus.len() as u64)
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
        let count = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.at += count as u64;
        self.state = State::Skip(left - count as u64);
        if left == 0 {
            self.state = State::Record(0);
        } else if last {
            self.note(F::FAULTS.truncated);
            self.state = State::Rest(false);
        }
        (count > 0).then_some(Step::idle(count))
    }
}

impl<F: Records> Stage for Archive<F> {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        let room = output.room();
        while !fuel.is_empty() && !input.is_empty() {
            let turn = self.turn(&input[..fuel.allows(input.len())], output, fuel, false);
            fuel.burn(self.format.take_work());
            let Some(step) = turn else {
                continue;
            };
            fuel.burn((step.taken + room - output.room()).max(1));
            return step;
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        let room = output.room();
        while !fuel.is_empty() {
            let turn = self.turn(b"", output, fuel, true);
            fuel.burn(self.format.take_work());
            match turn {
                Some(step) if step.event != Event::Idle => {
                    fuel.burn((room - output.room()).max(1));
                    return step.event;
                }
                _ => {}
            }
        }
        Event::Idle
    }
}
