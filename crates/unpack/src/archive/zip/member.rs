//! The content of one member: raw or decoded, of known or unknown length, and what to say of it at its end.

use stream::{Class, Event, Fuel, Kind, Object, Step, Window};
use zlib_rs::crc32::crc32;

use super::cipher::Scheme;
use super::descriptor::{self, AHEAD, Descriptor, Truth};
use super::entry::{Entry, Size};
use super::lock::{Lock, Tried};
use super::methods;
use super::place::Place;
use super::record::{Header, Kind as Record};
use super::tail::Tail;
use super::unsized_raw::UnsizedRaw;
use crate::frame::codec::{Collected, Decoder, Told};
use crate::frame::password::TOO_COSTLY;

/// A member on its way in.
pub(super) struct Member {
    header: Header,
    name: Option<Box<str>>,
    other_name: Option<Box<str>>,
    /// Records of folders before it.
    folders_before: u32,
    entry: Entry,
    state: State,
    /// Bytes of the member's content taken and emitted.
    taken: u64,
    wrote: u64,
    crc: u32,
    descriptor: Option<Descriptor>,
    /// Whether the content is understood, so that its length and checksum mean something.
    understood: bool,
    /// Whether the header tells a checksum.
    has_crc: bool,
    /// Whether decoding broke off.
    broken: bool,
    /// Whether length and checksum were known, and right.
    is_true: bool,
}

enum State {
    /// Passwords are tried.
    Locked(Box<Lock>),
    Opening(Option<Box<dyn Decoder>>),
    /// As it stands; so many bytes remain.
    Raw {
        left: u64,
    },
    UnsizedRaw(UnsizedRaw),
    Decoding(Decoding),
    Descriptor(Collected<AHEAD>),
    Settling,
    Closed,
}

struct Decoding {
    decoder: Box<dyn Decoder>,
    /// The length that the header tells; `None` where it is unknown or has proved wrong.
    limit: Option<u64>,
    /// Bytes looked at behind that length.
    ahead: Collected<4>,
    /// Event of the decoder after content that had to be emitted first.
    owing: Told,
}

/// Result of a turn of a member.
pub(super) enum Turn {
    /// Only the state changed.
    Again,
    Step(Step),
    /// The member is closed.
    Done,
}

impl Turn {
    /// So many bytes were taken, if any, and nothing is emitted.
    pub const fn step_or_again(taken: usize) -> Turn {
        if taken == 0 { Turn::Again } else { Turn::Step(Step::idle(taken)) }
    }
}

impl Member {
    /// A member whose header has passed, behind so many records of folders.
    pub fn new(tail: &Tail, content_at: u64, folders_before: u32) -> Member {
        let header = tail.header;
        let name = tail.name();
        let aes = tail.aes().filter(|_| header.method == Header::METHOD_AES);
        let scheme = Scheme::of(&header, aes).filter(|_| header.is_encrypted());
        let method = aes.map_or(header.method, |aes| aes.method);
        let lock = scheme.and_then(|scheme| Lock::new(header, scheme, method));
        Member {
            header,
            name: (!name.is_empty()).then_some(name),
            other_name: tail.other_name(),
            folders_before,
            entry: Entry {
                offset: tail.at,
                end: content_at,
                name: tail.name_digest(),
                compressed: Size::UNKNOWN,
                uncompressed: Size::UNKNOWN,
                crc: 0,
                method: header.method,
                encrypted: header.is_encrypted(),
                listed: false,
            },
            state: match lock {
                Some(lock) => State::Locked(Box::new(lock)),
                None => State::Opening(None),
            },
            taken: 0,
            wrote: 0,
            crc: 0,
            descriptor: None,
            understood: !header.is_encrypted(),
            has_crc: aes.is_none_or(|aes| aes.version == 1),
            broken: false,
            is_true: false,
        }
    }

    /// Whether the member ended as it should, so that a record is to be expected at once.
    pub const fn ended_well(&self) -> bool {
        !self.broken
    }

    /// Whether it was packed, and its content agrees with all that its header says.
    pub const fn is_true(&self) -> bool {
        self.is_true && self.header.method != 0
    }

    /// Entry for the comparison with the directory; the member ends at `end`.
    pub fn into_entry(mut self, end: u64) -> Entry {
        self.entry.end = end;
        self.entry
    }

    /// Whether the member has been emitted and not closed.
    pub const fn is_open(&self) -> bool {
        !matches!(self.state, State::Locked(_) | State::Opening(_))
    }

    pub fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, place: &mut Place) -> Turn {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Locked(lock) => self.unlock(lock, input, place),
            State::Opening(unlocked) => self.open(unlocked, place),
            State::Raw { left } => self.raw(left, input, fuel, place),
            State::UnsizedRaw(raw) => self.unsized_raw(raw, input, output, place),
            State::Decoding(decoding) => self.decode(decoding, input, output, fuel, place),
            State::Descriptor(bytes) => self.collect_descriptor(bytes, input, place),
            State::Settling => self.settle(place),
            State::Closed => Turn::Done,
        }
    }

    /// Tries a password. The content is read afresh, whether one opens it or not.
    fn unlock(&mut self, mut lock: Box<Lock>, input: &[u8], place: &mut Place) -> Turn {
        if input.is_empty() && !place.last {
            self.state = State::Locked(lock);
            return Turn::Again;
        }
        let taken = if place.passwords.is_empty() { 0 } else { lock.take(input, place.passwords) };
        place.at += taken as u64;
        if taken > 0 {
            self.state = State::Locked(lock);
            return Turn::Step(Step::idle(taken));
        }
        match lock.attempt(place.passwords, place.limits, place.work) {
            Tried::More => {
                self.state = State::Locked(lock);
                return Turn::Again;
            }
            Tried::Refused => place.note(TOO_COSTLY.class, TOO_COSTLY.name),
            Tried::Done => {}
        }
        place.give_back(lock.sample());
        if let Some(Descriptor { crc, compressed, uncompressed }) = lock.descriptor() {
            self.header = Header { crc, compressed, uncompressed, ..self.header };
        }
        let unlocked = lock.open(place.passwords, place.limits);
        self.understood = unlocked.is_some();
        self.state = State::Opening(unlocked.map(|unlocked| Box::new(unlocked) as Box<dyn Decoder>));
        Turn::Again
    }

    fn open(&mut self, unlocked: Option<Box<dyn Decoder>>, place: &mut Place) -> Turn {
        let length_is_known = !self.header.has_descriptor() || self.header.compressed != 0;
        let is_closed = self.header.is_encrypted() && unlocked.is_none();
        let raw = self.header.is_encrypted() || self.header.method == 0;
        let decoder = if raw { unlocked } else { methods::decoder(&self.header, place.limits) };
        if is_closed {
            place.note(Class::Encrypted, "Heuristics.Encrypted.Zip");
        } else if decoder.is_none() && !raw {
            self.understood = false;
            place.note(Class::Limit, "Heuristics.Limits.Exceeded.ZipMethod");
        }
        let is_raw = decoder.is_none();
        let length = length_is_known.then_some(self.header.compressed);
        self.state = match (decoder, length) {
            (Some(decoder), limit) => {
                State::Decoding(Decoding { decoder, limit, ahead: Collected::new(), owing: Told::Nothing })
            }
            (None, Some(left)) => State::Raw { left },
            (None, None) => State::UnsizedRaw(UnsizedRaw::new(self.understood)),
        };
        let told = if self.understood { self.header.uncompressed } else { self.header.compressed };
        Turn::Step(Step::tell(
            0,
            Event::Open(Object {
                kind: Kind::Member,
                name: self.name.take(),
                other_names: self.other_name.take().into_iter().collect(),
                size: length_is_known.then_some(told),
                raw_offset: is_raw.then_some(place.at),
                entry: Some(Box::new(stream::Entry {
                    packed: length,
                    size: length_is_known.then_some(self.header.uncompressed),
                    encrypted: self.header.is_encrypted(),
                    crc32: length_is_known.then_some(self.header.crc),
                    record_bytes: u16::try_from(place.at.saturating_sub(self.entry.offset)).unwrap_or(u16::MAX),
                    empty_before: self.folders_before,
                    archive: None,
                })),
                ..Object::default()
            }),
        ))
    }

    fn raw(&mut self, left: u64, input: &[u8], fuel: &Fuel, place: &mut Place) -> Turn {
        if left == 0 {
            self.content_is_over();
            return Turn::Again;
        }
        if place.last {
            place.note(Class::Truncated, "Heuristics.Truncated.Zip");
            self.broken = true;
            self.state = State::Settling;
            return Turn::Again;
        }
        let count = fuel.allows(input.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        if self.understood {
            self.crc = crc32(self.crc, &input[..count]);
        }
        self.taken += count as u64;
        self.wrote += count as u64;
        place.at += count as u64;
        self.state = State::Raw { left: left - count as u64 };
        Turn::Step(Step::tell(count, Event::Verbatim))
    }

    fn unsized_raw(&mut self, mut raw: UnsizedRaw, input: &[u8], output: &mut Window, place: &mut Place) -> Turn {
        if !raw.ready().is_empty() {
            let count = output.push(raw.ready());
            raw.tell(count);
            self.state = State::UnsizedRaw(raw);
            return Turn::Step(Step::tell(0, Event::Wrote));
        }
        if let Some((descriptor, ahead)) = raw.end() {
            (self.taken, self.wrote, self.crc) = (raw.told, raw.told, raw.crc);
            self.descriptor = Some(descriptor);
            place.give_back(&ahead);
            self.state = State::Settling;
            return Turn::Again;
        }
        let taken = raw.take(input);
        place.at += taken as u64;
        if taken == 0 && !raw.finish() {
            (self.taken, self.wrote) = (raw.told, raw.told);
            self.broken = true;
            place.note(Class::Truncated, "Heuristics.Truncated.Zip");
            self.state = State::Settling;
            return Turn::Again;
        }
        self.state = State::UnsizedRaw(raw);
        Turn::step_or_again(taken)
    }

    fn decode(
        &mut self,
        mut decoding: Decoding,
        input: &[u8],
        output: &mut Window,
        fuel: &Fuel,
        place: &mut Place,
    ) -> Turn {
        let told = std::mem::replace(&mut decoding.owing, Told::Nothing);
        if told != Told::Nothing {
            return self.decoder_told(decoding, told, 0, place);
        }
        let left = decoding.limit.map_or(u64::MAX, |limit| limit - self.taken);
        let count = fuel.allows(input.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        let room = fuel.allows(output.room());
        let progress = decoding.decoder.decode(&input[..count], &mut output.spare()[..room]);
        let spare = output.spare();
        if self.understood && self.has_crc {
            self.crc = crc32(self.crc, &spare[..progress.wrote]);
        }
        output.wrote(progress.wrote);
        self.taken += progress.taken as u64;
        self.wrote += progress.wrote as u64;
        place.at += progress.taken as u64;
        if progress.wrote > 0 {
            decoding.owing = progress.told;
            self.state = State::Decoding(decoding);
            return Turn::Step(Step::tell(progress.taken, Event::Wrote));
        }
        let idle = progress.taken == 0 && progress.told == Told::Nothing;
        if idle && decoding.limit == Some(self.taken) {
            return self.look_beyond(decoding, input, place);
        }
        if idle && place.last {
            let missing = decoding.decoder.missing().map_or(Told::Over, Told::Fault);
            return self.decoder_told(decoding, missing, 0, place);
        }
        self.decoder_told(decoding, progress.told, progress.taken, place)
    }

    fn decoder_told(&mut self, decoding: Decoding, told: Told, taken: usize, place: &mut Place) -> Turn {
        match told {
            Told::Nothing | Told::Begin(_) => self.state = State::Decoding(decoding),
            Told::Fault(fault) => {
                let surplus = decoding.decoder.surplus();
                place.note_before(fault.class, fault.name, surplus.len());
                if fault.fatal {
                    self.broken = true;
                    place.give_back(surplus);
                    self.state = State::Settling;
                } else {
                    self.state = State::Decoding(decoding);
                }
            }
            Told::Over => {
                let surplus = decoding.decoder.surplus();
                self.taken -= surplus.len() as u64;
                place.give_back(surplus);
                if decoding.limit.is_some_and(|limit| limit != self.taken) {
                    place.note(Class::Malformed, "Heuristics.Malformed.Zip.Size");
                }
                self.content_is_over();
            }
        }
        Turn::step_or_again(taken)
    }

    /// The decoder needs more than the header promised. If no record follows, the header is wrong, and the bytes belong
    /// to the decoder.
    fn look_beyond(&mut self, mut decoding: Decoding, input: &[u8], place: &mut Place) -> Turn {
        let taken = decoding.ahead.fill(input, 4);
        place.at += taken as u64;
        let ahead = std::mem::replace(&mut decoding.ahead, Collected::new());
        let is_record = ahead.whole().is_some_and(|bytes| Record::of(bytes).is_some());
        if !is_record && !place.last && Record::is_possible(ahead.bytes()) {
            decoding.ahead = ahead;
            self.state = State::Decoding(decoding);
            return Turn::step_or_again(taken);
        }
        place.give_back(ahead.bytes());
        place.note(Class::Malformed, "Heuristics.Malformed.Zip.Size");
        if is_record || ahead.len() == 0 {
            self.broken = !is_record;
            self.state = State::Settling;
        } else {
            decoding.limit = None;
            self.state = State::Decoding(decoding);
        }
        Turn::step_or_again(taken)
    }

    fn content_is_over(&mut self) {
        self.state = if self.header.has_descriptor() { State::Descriptor(Collected::new()) } else { State::Settling };
    }

    fn collect_descriptor(&mut self, mut bytes: Collected<AHEAD>, input: &[u8], place: &mut Place) -> Turn {
        let taken = bytes.fill(input, AHEAD);
        place.at += taken as u64;
        if bytes.whole().is_none() && !place.last {
            self.state = State::Descriptor(bytes);
            return Turn::Step(Step::idle(taken));
        }
        let bytes = bytes.bytes();
        let found = descriptor::find(bytes, self.truth());
        let length = found.map_or(0, |(length, _)| length);
        self.descriptor = found.map(|(_, descriptor)| descriptor);
        if found.is_none() {
            let class = if place.last { Class::Truncated } else { Class::Malformed };
            let name = match class {
                Class::Truncated => "Heuristics.Truncated.Zip",
                _ => "Heuristics.Malformed.Zip.Descriptor",
            };
            place.note(class, name);
        }
        place.give_back(&bytes[length..]);
        self.state = State::Settling;
        Turn::step_or_again(taken)
    }

    /// Values of a truthful descriptor.
    const fn truth(&self) -> Truth {
        Truth { crc: self.crc, compressed: self.taken, uncompressed: self.wrote, understood: self.understood }
    }

    /// Compares the promised values with the real ones, and closes the member.
    fn settle(&mut self, place: &mut Place) -> Turn {
        let promised = self.descriptor.unwrap_or(Descriptor {
            crc: self.header.crc,
            compressed: self.header.compressed,
            uncompressed: self.header.uncompressed,
        });
        let known = self.descriptor.is_some() || !self.header.has_descriptor();
        if !self.broken {
            if known && self.understood && self.has_crc && promised.crc != self.crc {
                place.note(Class::Malformed, "Heuristics.Malformed.Zip.Crc");
            }
            if known && self.understood && promised.uncompressed != self.wrote
                || self.descriptor.is_some() && promised.compressed != self.taken
            {
                place.note(Class::Malformed, "Heuristics.Malformed.Zip.Size");
            }
        }
        self.is_true = !self.broken
            && known
            && self.understood
            && (!self.has_crc || promised.crc == self.crc)
            && (promised.compressed, promised.uncompressed) == (self.taken, self.wrote);
        self.remember(promised, known);
        self.state = State::Closed;
        Turn::Again
    }

    /// Keeps the values for the comparison with the directory: measured ones, or else promised ones.
    fn remember(&mut self, promised: Descriptor, known: bool) {
        let entry = &mut self.entry;
        if known {
            entry.compressed = Size::of(promised.compressed);
            entry.uncompressed = Size::of(promised.uncompressed);
            entry.crc = promised.crc;
        }
        if !self.broken && (known || self.understood) {
            entry.compressed = Size::of(self.taken);
        }
        if !self.broken && self.understood {
            entry.uncompressed = Size::of(self.wrote);
            entry.crc = if known { promised.crc } else { self.crc };
        }
    }
}
