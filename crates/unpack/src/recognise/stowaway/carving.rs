//! An archive that was found: its stage, and its events with their offsets in the whole file.

use std::collections::VecDeque;

use stream::FileType;
use stream::{Entry, Event, Finding, Fuel, Kind, Note, Nothing, Object, ReadAt, Stage, Window};

use super::FRONT_BYTES;
use crate::frame::doubt::is_accusation;
use crate::frame::reader::{Ended, Outbox, Reader};

/// An archive that was found.
pub(super) struct Carving {
    /// Where it begins.
    pub(super) at: u64,
    pub(super) file_type: Option<FileType>,
    pub(super) stage: Box<dyn Stage>,
    /// Objects that it has open.
    pub(super) open: u32,
    /// Whether it asked for something to be kept: then it is opened at the end.
    pub(super) keeps: bool,
    /// The first of what it asked for: where that stands, and the bytes.
    pub(super) front: (u64, Vec<u8>),
    /// Whether it has an object open, for what follows it, that was not told.
    pub(super) has_rest: bool,
    proof: Proof,
    /// Findings that wait for the proof.
    withheld: VecDeque<Finding>,
}

/// Whether a member with content has shown that there is an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    None,
    /// A member is open, which has no content so far.
    Member,
    /// A member is open, which has content.
    Content,
    /// Such a member was closed.
    Complete,
}

/// Findings that wait for the proof; further ones are dropped.
const WITHHELD_MAX: usize = 16;

/// Archive whose reader needs all that follows it, which is emitted as it stands.
#[derive(Default)]
pub(super) struct ToTheEnd {
    pub(super) in_front: usize,
}

impl Reader for ToTheEnd {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        if !outbox.is_open() {
            let raw_offset = (self.in_front == 0).then_some(0);
            outbox.open(Object { kind: Kind::Member, raw_offset, is_guess: true, ..Object::default() });
        }
        outbox.content(input);
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, _: &mut Outbox) -> Ended {
        Ended::Done
    }
}

impl Carving {
    pub(super) fn new(at: u64, file_type: Option<FileType>, stage: Box<dyn Stage>) -> Carving {
        let (proof, withheld) = (Proof::None, VecDeque::new());
        Carving {
            at,
            file_type,
            stage,
            open: 0,
            keeps: false,
            front: (0, Vec::new()),
            has_rest: false,
            proof,
            withheld,
        }
    }

    /// The next finding that waited for the proof.
    pub(super) fn released(&mut self) -> Option<Event> {
        if self.proof != Proof::Complete {
            return None;
        }
        self.withheld.pop_front().map(Event::finding)
    }

    /// Learns from an event whether there is an archive.
    fn learn(&mut self, event: &Event) {
        self.proof = match (self.proof, event) {
            (Proof::None, Event::Open(object)) if object.kind != Kind::Rest => Proof::Member,
            (Proof::Member, Event::Wrote | Event::Verbatim) => Proof::Content,
            (Proof::Member, Event::Close) => Proof::None,
            (Proof::Content, Event::Close) => Proof::Complete,
            (proof, _) => proof,
        };
    }

    /// Notes that the bytes at `at` were read.
    pub(super) fn pass(&mut self, at: u64, bytes: &[u8]) {
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
    pub(super) fn told(&mut self, event: Event, at: u64) -> Event {
        self.learn(&event);
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
                let finding = Finding { offset: self.at.saturating_add(finding.offset), ..finding };
                if self.proof == Proof::Complete || !is_accusation(finding.class) {
                    return Event::finding(finding);
                }
                if self.withheld.len() < WITHHELD_MAX {
                    self.withheld.push_back(finding);
                }
                Event::Idle
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
    pub(super) fn give_back(mut self, output: &mut Window) -> Vec<u8> {
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
pub(super) struct Behind<'a> {
    pub(super) kept: &'a dyn ReadAt,
    pub(super) at: u64,
    pub(super) front: &'a (u64, Vec<u8>),
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
