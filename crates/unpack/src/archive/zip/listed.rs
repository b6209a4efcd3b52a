//! Members as the directory lists them, where it differs from the local headers.
//!
//! Most readers go by the directory: its methods, flags, sizes and names, at its offsets. The local headers are read
//! while the archive streams; after the end record, members with a differing directory entry are emitted again, from
//! the kept bytes. The difference itself is a finding of [`directory`](super::directory).
//!
//! Bounds: [`LISTED_MAX`] members, the bytes in [`Kept`], one decoder. Left out: members whose local header has no
//! signature; malformedness, which is to be expected in one of two readings.

use std::collections::VecDeque;

use stream::{Event, Fuel, Limits, Object, Step, Window};

use super::held::Held;
use super::kept::Kept;
use super::member::{Member, Turn};
use super::place::Place;
use super::record::{End, Header, Kind};
use super::tail::Tail;
use crate::frame::codec::le16;
use crate::frame::password::Passwords;

/// Members of one archive that are read again.
pub(super) const LISTED_MAX: usize = 256;

/// Bytes read at once.
const PIECE_BYTES: usize = 4096;

/// A member as its central header tells it.
pub(super) struct Listed {
    pub tail: Box<Tail>,
    /// Where its local header may begin, the likeliest place first.
    pub places: [u64; 3],
}

/// The reading by the directory.
pub(super) struct ByDirectory {
    listed: VecDeque<Listed>,
    member: Option<Reading>,
}

struct Reading {
    member: Box<Member>,
    at: u64,
    end: u64,
}

/// Inputs that a member needs from the archive.
pub(super) struct Whole<'a> {
    pub kept: &'a Kept,
    pub limits: &'a Limits,
    pub passwords: &'a mut Passwords,
    pub work: &'a mut usize,
    pub notes: &'a mut VecDeque<stream::Finding>,
}

impl ByDirectory {
    pub fn new(listed: Vec<Listed>) -> ByDirectory {
        ByDirectory { listed: listed.into(), member: None }
    }

    /// Does one thing: [`Turn::Done`] when all is emitted.
    pub fn turn(&mut self, output: &mut Window, fuel: &Fuel, whole: &mut Whole) -> Turn {
        *whole.work += 1;
        match self.member.take() {
            Some(reading) => self.read(reading, output, fuel, whole),
            None => match self.listed.pop_front() {
                Some(listed) => {
                    self.member = find(listed, whole.kept);
                    Turn::Again
                }
                None => Turn::Done,
            },
        }
    }

    fn read(&mut self, mut reading: Reading, output: &mut Window, fuel: &Fuel, whole: &mut Whole) -> Turn {
        let mut piece = [0; PIECE_BYTES];
        let left = usize::try_from(reading.end.saturating_sub(reading.at)).unwrap_or(usize::MAX);
        let is_over = whole.kept.read_at(reading.at, &mut piece[..1]) == 0 || left == 0;
        let wanted = left.min(output.room()).min(PIECE_BYTES);
        let count = whole.kept.read_at(reading.at, &mut piece[..wanted]);
        let mut held = Held::default();
        let mut place = Place {
            at: reading.at,
            last: is_over,
            limits: whole.limits,
            passwords: whole.passwords,
            work: whole.work,
            notes: whole.notes,
            held: &mut held,
            searching: true,
        };
        let turn = reading.member.turn(&piece[..count], output, fuel, &mut place);
        // Bytes that were given back are read again at their place.
        reading.at = place.at;
        let turn = match turn {
            Turn::Done => return Turn::Step(Step::tell(0, Event::Close)),
            Turn::Again => Turn::Again,
            Turn::Step(Step { taken, event }) => {
                *whole.work += taken;
                match event {
                    Event::Idle => Turn::Again,
                    Event::Verbatim => {
                        output.push(&piece[..taken]);
                        Turn::Step(Step::tell(0, Event::Wrote))
                    }
                    // It is not a run of the input.
                    Event::Open(object) => {
                        Turn::Step(Step::tell(0, Event::Open(Object { raw_offset: None, ..object })))
                    }
                    event => Turn::Step(Step::tell(0, event)),
                }
            }
        };
        self.member = Some(reading);
        turn
    }
}

/// The member at the first of its places where a local header stands.
fn find(listed: Listed, kept: &Kept) -> Option<Reading> {
    let Listed { mut tail, places } = listed;
    let (start, local) = places.into_iter().find_map(|place| Some((place, local(place, kept)?)))?;
    let content_at = start.checked_add(Kind::Local.fixed_bytes() as u64)?
        + u64::from(local.name_length)
        + u64::from(local.extra_length);
    // The directory has the sizes, whatever follows the content.
    tail.header.flags &= !Header::DESCRIPTOR;
    let end = content_at.saturating_add(tail.header.compressed);
    let member = Box::new(Member::new(&tail, content_at, 0));
    Some(Reading { member, at: content_at, end })
}

fn local(at: u64, kept: &Kept) -> Option<Header> {
    let mut bytes = [0; Kind::Local.fixed_bytes()];
    let is_whole = kept.read_at(at, &mut bytes) == bytes.len();
    (is_whole && Kind::of(&bytes[..4]) == Some(Kind::Local)).then(|| Header::local(&bytes))
}

/// The members of the directory that is said to begin at `at`, as far as it is kept; the place says how short their offsets are.
pub(super) fn directory(kept: &Kept, at: u64, end: &End, name_bytes_max: usize) -> Vec<Listed> {
    let mut listed = Vec::new();
    let shift = at.wrapping_sub(end.directory_offset);
    let (mut at, over) = (at, at.saturating_add(end.directory_bytes));
    while at < over && listed.len() < LISTED_MAX {
        let mut fixed = [0; Kind::Central.fixed_bytes()];
        let is_whole = kept.read_at(at, &mut fixed) == fixed.len();
        if !is_whole || Kind::of(&fixed[..4]) != Some(Kind::Central) {
            break;
        }
        let header = Header::central(&fixed);
        let length = usize::from(le16(&fixed, 28)) + usize::from(le16(&fixed, 30)) + usize::from(le16(&fixed, 32));
        let mut variable = vec![0; length];
        let behind = at + fixed.len() as u64;
        if kept.read_at(behind, &mut variable) < length {
            break;
        }
        let mut tail = Tail::local(header, at, name_bytes_max);
        tail.read(&variable);
        let offset = tail.header.offset;
        listed.push(Listed { tail: Box::new(tail), places: [offset.wrapping_add(shift), offset, offset] });
        at = behind.saturating_add(length as u64);
    }
    listed
}
