//! Streams that wait to be hashed side by side.
//!
//! ```text
//!  open ──► Ticket ── update ──► bytes wait in the room ──┬── run: of as many streams as there are lanes, side by side
//!                                                        └── no room: hashed at once, alone
//!           close: no more will come, it is urgent       finish: what is left, alone, and the digests
//! ```
//!
//! [`update`](Batch::update) and [`finish`](Batch::finish) hash nothing but the stream's own bytes; those of all others are
//! hashed in [`run`](Batch::run), which whoever owns the batch calls between the turns of those who feed it, whenever it
//! [is due](Batch::is_due). A batch that is never run comes to the same digests, a stream at a time. What comes slowly is hashed
//! when the batch is [tidied](Batch::tidy).
//!
//! Whatever waits longer has more company, and may turn out not to be wanted: what is known of a stream at its end often
//! says that its digests are those of nothing. So nothing is hashed as long as there is room.
//!
//! # Bounds
//! A batch has room for so many bytes, which streams share, and so many of one stream. A stream for which there is no room is
//! hashed as it comes. Beside that a stream is a slot of about 300 bytes.
//!
//! # Whoever goes
//! A [`Ticket`] that is dropped leaves a slot that nobody can reach any more: it is free for others from the next
//! [`run`](Batch::run) on. So a stream can end anywhere, in a panic, too, and the others go on.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::lanes::{BLOCK_BYTES, Block, LANES};
use crate::waiting::{PIECE_BYTES, Room, Waiting};
use crate::{md5, sha1, sha256};

/// A stream is full when less than this is left of what may wait of it.
const SPARE_BYTES: usize = 8 << 10;

/// The room is short when no more than a quarter is free; then some is made until it is half.
const SHORT: usize = 4;
const ENOUGH: usize = 2;

/// Hashed of a stream at a time, where nobody waits for it: others have their turn, and what is left may have company soon.
const HASHED_BYTES: usize = 256 << 10;

/// Bytes that may wait of a stream whose digests are wanted wherever it ends: enough for company, and it is still in
/// the caches.
const CERTAIN_BYTES: usize = 128 << 10;

/// Set of wanted digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted {
    /// MD5.
    pub md5: bool,
    /// SHA-1.
    pub sha1: bool,
    /// SHA-256.
    pub sha256: bool,
}

/// The finished digests of a stream, those that were wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sums {
    /// How many bytes came.
    pub size: u64,
    /// MD5.
    pub md5: Option<[u8; 16]>,
    /// SHA-1.
    pub sha1: Option<[u8; 20]>,
    /// SHA-256.
    pub sha256: Option<[u8; 32]>,
}

/// A stream's place in the batch that it was opened in. Another batch does not know it.
#[derive(Debug)]
pub struct Ticket {
    slot: usize,
    /// Shared with the slot and with nothing else: that makes it this slot's, and tells the slot that it is still there.
    life: Arc<()>,
}

/// Streams that wait to be hashed side by side, with what waits.
#[derive(Debug)]
pub struct Batch {
    slots: Vec<Slot>,
    room: Room,
    /// How much of one stream may wait.
    stream_bytes_max: usize,
    due: bool,
}

/// A stream.
#[derive(Debug, Default)]
struct Slot {
    /// `None` if the slot is free.
    life: Option<Arc<()>>,
    states: States,
    /// Bytes that came, those that wait among them.
    size: u64,
    /// Bytes that are too few to wait in the room.
    rest: Rest,
    waiting: Waiting,
    /// Its digests are wanted wherever it ends.
    is_certain: bool,
    /// Some of it waited when the batch was tidied last.
    is_old: bool,
    /// No more will come.
    closed: bool,
}

/// The digests up to where what waits begins.
#[derive(Debug, Clone, Default)]
struct States {
    md5: Option<md5::State>,
    sha1: Option<sha1::State>,
    sha256: Option<sha256::State>,
}

/// Less than a block.
#[derive(Debug, Clone)]
struct Rest {
    bytes: [u8; BLOCK_BYTES],
    len: usize,
}

impl Wanted {
    /// Whether any is.
    pub const fn is_any(self) -> bool {
        self.md5 || self.sha1 || self.sha256
    }
}

impl Default for Batch {
    /// One for the streams of few objects, which are read by turns: 64 KiB of each of eight.
    fn default() -> Batch {
        Batch::new(512 << 10, 64 << 10)
    }
}

impl Batch {
    /// One in which at most so many bytes wait, and so many of each stream, which should be more than what comes of one stream
    /// before others have their turn. Room is allocated when it is needed.
    pub const fn new(room_bytes: usize, stream_bytes_max: usize) -> Batch {
        Batch { slots: Vec::new(), room: Room::new(room_bytes), stream_bytes_max, due: false }
    }

    /// A new stream, of which these digests are wanted.
    pub fn open(&mut self, wanted: Wanted) -> Ticket {
        let states = States {
            md5: wanted.md5.then_some(md5::INITIAL),
            sha1: wanted.sha1.then_some(sha1::INITIAL),
            sha256: wanted.sha256.then_some(sha256::INITIAL),
        };
        self.enter(Slot { states, ..Slot::default() })
    }

    /// The digests of a stream are wanted whatever its size: nothing is gained if more of it waits than company takes.
    pub fn be_certain(&mut self, ticket: &Ticket) {
        if let Some(slot) = self.slot(ticket) {
            slot.is_certain = true;
        }
    }

    /// Another stream that has begun as this one, if that one is here.
    pub fn copy(&mut self, ticket: &Ticket) -> Option<Ticket> {
        self.slot(ticket)?;
        let slot = &mut self.slots[ticket.slot];
        slot.hash_alone(&mut self.room);
        let (size, is_certain) = (slot.size, slot.is_certain);
        let copy = Slot { states: slot.states.clone(), size, rest: slot.rest.clone(), is_certain, ..Slot::default() };
        Some(self.enter(copy))
    }

    /// Takes in the next bytes of a stream. It is hashed now if there is no room for it to wait.
    pub fn update(&mut self, ticket: &Ticket, bytes: &[u8]) {
        let Some(slot) = self.slot(ticket) else { return };
        slot.size = slot.size.wrapping_add(bytes.len() as u64);
        let before = slot.rest.len + slot.waiting.len();
        if before + bytes.len() < BLOCK_BYTES {
            return slot.rest.push(bytes);
        }
        let may_wait = before + bytes.len() <= self.bytes_max(ticket.slot) && self.makes_room(ticket.slot, bytes.len());
        let slot = &mut self.slots[ticket.slot];
        if !may_wait {
            slot.hash_alone(&mut self.room);
            return slot.take(bytes);
        }
        self.room.push(&mut slot.waiting, slot.rest.bytes());
        self.room.push(&mut slot.waiting, bytes);
        slot.rest.len = 0;
        self.due |= self.is_full(ticket.slot) || self.room.is_short(SHORT);
    }

    /// Digests of a stream that are wanted no more are not computed further.
    pub fn keep(&mut self, ticket: &Ticket, wanted: Wanted) {
        let Some(slot) = self.slots.get_mut(ticket.slot).filter(|slot| slot.is_of(ticket)) else { return };
        slot.states.md5.take_if(|_| !wanted.md5);
        slot.states.sha1.take_if(|_| !wanted.sha1);
        slot.states.sha256.take_if(|_| !wanted.sha256);
        if !slot.states.is_any() {
            self.room.clear(&mut slot.waiting);
        }
    }

    /// No more will come of a stream: somebody waits for its digests.
    pub fn close(&mut self, ticket: &Ticket) {
        let Some(slot) = self.slot(ticket) else { return };
        slot.closed = true;
        self.due |= slot.waiting.len() >= BLOCK_BYTES;
    }

    /// Whether [`finish`](Batch::finish) has nothing to hash any more but the last bytes.
    pub fn is_hashed(&self, ticket: &Ticket) -> bool {
        self.slots.get(ticket.slot).is_none_or(|slot| !slot.is_of(ticket) || slot.waiting.len() < BLOCK_BYTES)
    }

    /// The digests of a stream, which has ended; none if it is not one of this batch.
    pub fn finish(&mut self, ticket: Ticket) -> Option<Sums> {
        self.slot(&ticket)?;
        let mut slot = core::mem::take(&mut self.slots[ticket.slot]);
        slot.hash_alone(&mut self.room);
        let Slot { size, states, rest, .. } = slot;
        let sums = Sums {
            size,
            md5: states.md5.map(|state| md5::finish(state, rest.bytes(), size)),
            sha1: states.sha1.map(|state| sha1::finish(state, rest.bytes(), size)),
            sha256: states.sha256.map(|state| sha256::finish(state, rest.bytes(), size)),
        };
        Some(sums)
    }

    /// Whether [`run`](Batch::run) should be called: the room is short, or no more of a stream may wait, or somebody waits
    /// for it.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Hashes what waits, of as many streams side by side as there are lanes, until it is no longer due. Returns how many bytes
    /// that were.
    pub fn run(&mut self) -> u64 {
        self.sweep();
        let (mut hashed, is_short) = (0, self.room.is_short(SHORT));
        while let Some(urgent) = self.most_urgent(is_short) {
            hashed += self.hash_beside(urgent, |_| true);
        }
        self.due = false;
        hashed
    }

    /// Hashes what waited when this was called last, too, and frees room that was not used since. Called once in a while, it bounds
    /// the memory of streams that come slowly; those that come fast are hashed as before.
    pub fn tidy(&mut self) -> u64 {
        self.sweep();
        let mut hashed = 0;
        let is_old = |slot: &Slot| slot.is_old && slot.waiting.len() >= BLOCK_BYTES;
        while let Some(old) = self.slots.iter().position(is_old) {
            hashed += self.hash_beside(old, |slot| slot.is_old);
        }
        self.slots.iter_mut().for_each(|slot| slot.is_old = slot.waiting.len() > 0);
        self.room.trim();
        hashed
    }

    /// Bytes of its room, allocated as they are needed.
    pub const fn room_bytes(&self) -> usize {
        self.room.held_bytes()
    }

    /// Bytes of its room and slots, at most.
    pub fn held_bytes(&self) -> usize {
        self.room.held_bytes() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Streams that are here.
    pub fn streams(&self) -> usize {
        self.slots.iter().filter(|slot| slot.life.is_some()).count()
    }

    fn slot(&mut self, ticket: &Ticket) -> Option<&mut Slot> {
        self.slots.get_mut(ticket.slot).filter(|slot| slot.is_of(ticket))
    }

    fn enter(&mut self, slot: Slot) -> Ticket {
        if self.slots.len() == self.slots.capacity() {
            self.sweep();
        }
        let life = Arc::new(());
        let slot = Slot { life: Some(life.clone()), ..slot };
        let free = self.slots.iter().position(|slot| slot.life.is_none());
        let place = free.unwrap_or(self.slots.len());
        match self.slots.get_mut(place) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        Ticket { slot: place, life }
    }

    /// Whether so much more of a stream can wait, if need be in the room of those who have gone.
    fn makes_room(&mut self, place: usize, bytes: usize) -> bool {
        let has_room = |batch: &Batch| {
            let Slot { rest, waiting, .. } = &batch.slots[place];
            batch.room.has_room(waiting, rest.len + bytes)
        };
        has_room(self) || {
            self.sweep();
            has_room(self)
        }
    }

    /// Frees the slots whose streams have gone.
    fn sweep(&mut self) {
        for place in 0..self.slots.len() {
            if self.slots[place].is_left() {
                let mut slot = core::mem::take(&mut self.slots[place]);
                self.room.clear(&mut slot.waiting);
            }
        }
        while self.slots.pop_if(|slot| slot.life.is_none()).is_some() {}
    }

    /// How much of a stream may wait.
    fn bytes_max(&self, place: usize) -> usize {
        if self.slots[place].is_certain { CERTAIN_BYTES.min(self.stream_bytes_max) } else { self.stream_bytes_max }
    }

    fn is_full(&self, place: usize) -> bool {
        self.slots[place].waiting.len().saturating_add(SPARE_BYTES) >= self.bytes_max(place)
    }

    /// The stream because of which something has to be done now. Where room was short it is not enough to free one piece.
    fn most_urgent(&self, is_short: bool) -> Option<usize> {
        let waiting = |&place: &usize| self.slots[place].waiting.len();
        let all = || (0..self.slots.len()).filter(move |place| waiting(place) >= BLOCK_BYTES);
        all().find(|&place| self.slots[place].closed).or_else(|| {
            let is_short = is_short && self.room.is_short(ENOUGH);
            let due = all().filter(|&place| is_short || self.is_full(place));
            due.max_by_key(|place| (self.is_full(*place), waiting(place)))
        })
    }

    /// Hashes as much of a stream as of those beside it, which are those of which most waits.
    fn hash_beside(&mut self, urgent: usize, may_join: impl Fn(&Slot) -> bool) -> u64 {
        let Slot { waiting, closed, .. } = &self.slots[urgent];
        let own = if *closed { waiting.len() } else { waiting.len().min(HASHED_BYTES) };
        // With much less to say they would only cut the others short.
        let enough = (own / 4).max(BLOCK_BYTES);
        let others = self.slots.iter().enumerate().filter(|(_, slot)| may_join(slot));
        let mut beside: Vec<(usize, usize)> = others.map(|(place, slot)| (slot.waiting.len(), place)).collect();
        beside.retain(|&(waiting, place)| waiting >= enough && place != urgent);
        beside.sort_unstable_by(|one, other| other.cmp(one));
        beside.truncate(LANES - 1);
        let least = beside.last().map_or(own, |&(waiting, _)| waiting.min(own));
        // Whole pieces, if there is one: then all streams go on at the front of another, and have long ways together.
        let unit = if least >= PIECE_BYTES { PIECE_BYTES } else { BLOCK_BYTES };
        let count = least / unit * unit;
        let mut places: Vec<usize> = beside.into_iter().map(|(_, place)| place).chain([urgent]).collect();
        places.sort_unstable();
        self.hash_together(&places, count);
        (count * places.len()) as u64
    }

    /// Hashes the first `count` waiting bytes, whole blocks, of the slots at these places, which are in ascending order.
    fn hash_together(&mut self, places: &[usize], mut count: usize) {
        while count > 0 {
            let together = |&place: &usize| self.room.front(&self.slots[place].waiting).len();
            let now = places.iter().map(together).min().unwrap_or(count).min(count) / BLOCK_BYTES * BLOCK_BYTES;
            let (mut md5s, mut sha1s, mut sha256s) = (Vec::new(), Vec::new(), Vec::new());
            for Slot { states, waiting, .. } in at(&mut self.slots, places) {
                let (blocks, _) = self.room.front(waiting)[..now].as_chunks();
                md5s.extend(states.md5.as_mut().map(|state| (state, blocks)));
                sha1s.extend(states.sha1.as_mut().map(|state| (state, blocks)));
                sha256s.extend(states.sha256.as_mut().map(|state| (state, blocks)));
            }
            md5::compress(&mut md5s);
            sha1::compress(&mut sha1s);
            sha256::compress(&mut sha256s);
            at(&mut self.slots, places).for_each(|slot| self.room.take(&mut slot.waiting, now));
            count -= now;
        }
        at(&mut self.slots, places).for_each(|slot| slot.settle(&mut self.room));
    }
}

/// The slots at these places, which are in ascending order.
fn at<'s>(slots: &'s mut [Slot], places: &[usize]) -> impl Iterator<Item = &'s mut Slot> {
    let mut slots = slots.iter_mut().enumerate();
    places.iter().filter_map(move |&place| slots.find(|(index, _)| *index == place)).map(|(_, slot)| slot)
}

impl Slot {
    fn is_of(&self, ticket: &Ticket) -> bool {
        self.life.as_ref().is_some_and(|life| Arc::ptr_eq(life, &ticket.life))
    }

    /// Whether its ticket is no more.
    fn is_left(&self) -> bool {
        self.life.as_ref().is_some_and(|life| Arc::strong_count(life) == 1)
    }

    /// Hashes what waits but for a rest, which begins what comes next.
    fn hash_alone(&mut self, room: &mut Room) {
        while self.waiting.len() >= BLOCK_BYTES {
            let (blocks, _) = room.front(&self.waiting).as_chunks();
            self.states.compress(blocks);
            room.take(&mut self.waiting, blocks.len() * BLOCK_BYTES);
        }
        self.settle(room);
    }

    /// Keeps bytes that are too few to wait in the room.
    fn settle(&mut self, room: &mut Room) {
        if self.waiting.len() < BLOCK_BYTES {
            self.rest.push(room.front(&self.waiting));
            room.clear(&mut self.waiting);
        }
    }

    /// Hashes bytes as they come, behind the rest.
    fn take(&mut self, mut bytes: &[u8]) {
        if self.rest.len > 0 {
            let (more, after) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.rest.len));
            self.rest.push(more);
            bytes = after;
            if self.rest.len < BLOCK_BYTES {
                return;
            }
            self.states.compress(&[self.rest.bytes]);
            self.rest.len = 0;
        }
        let (blocks, rest) = bytes.as_chunks();
        self.states.compress(blocks);
        self.rest.push(rest);
    }
}

impl States {
    const fn is_any(&self) -> bool {
        self.md5.is_some() || self.sha1.is_some() || self.sha256.is_some()
    }

    fn compress(&mut self, blocks: &[Block]) {
        self.md5.iter_mut().for_each(|state| md5::compress(&mut [(state, blocks)]));
        self.sha1.iter_mut().for_each(|state| sha1::compress(&mut [(state, blocks)]));
        self.sha256.iter_mut().for_each(|state| sha256::compress(&mut [(state, blocks)]));
    }
}

impl Default for Rest {
    fn default() -> Rest {
        Rest { bytes: [0; BLOCK_BYTES], len: 0 }
    }
}

impl Rest {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// No more than a block in all.
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}
