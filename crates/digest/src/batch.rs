//! Streams that wait to be hashed side by side.
//!
//! ```text
//!  open ──► Ticket ── update ──► bytes wait in a seat ──┬── run: of as many streams as there are lanes, side by side
//!                                                      └── no room: hashed at once, alone
//!           close: no more will come, it is urgent       finish: what is left, alone, and the digests
//! ```
//!
//! [`update`](Batch::update) and [`finish`](Batch::finish) hash nothing but the stream's own bytes; those of all others are
//! hashed in [`run`](Batch::run), which whoever owns the batch calls between the turns of those who feed it, whenever it
//! [is due](Batch::is_due). A batch that is never run comes to the same digests, a stream at a time.
//!
//! # Bounds
//! A batch has so many seats of so many bytes; a stream takes one when it has something that waits and gives it back when
//! that is hashed. A stream without a seat is hashed as it comes. Beside that a stream is a slot of about 300 bytes.
//!
//! # Whoever goes
//! A [`Ticket`] that is dropped leaves a slot that nobody can reach any more: it is free for others from the next
//! [`run`](Batch::run) on. So a stream can end anywhere, in a panic, too, and the others go on.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::lanes::{BLOCK_BYTES, Block, LANES};
use crate::waiting::Waiting;
use crate::{md5, sha1, sha256};

/// A stream is full when its seat has room for less than this.
const SPARE_BYTES: usize = 8 << 10;

/// A stream of which so much waits is company for others: hashing so much at a time costs no more than hashing all at once.
const COMPANY_BYTES: usize = 16 << 10;

/// Which digests are wanted.
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
    /// Seats that nobody has.
    spare: Vec<Waiting>,
    /// Seats that there are.
    seats: usize,
    seats_max: usize,
    seat_bytes: usize,
    /// Streams that have become company for others since the last run, those that were left in it among them.
    company: usize,
    due: bool,
}

/// A stream.
#[derive(Debug, Default)]
struct Slot {
    /// None if nobody has it.
    life: Option<Arc<()>>,
    states: States,
    /// Bytes that came, those that wait among them.
    size: u64,
    /// What has come, if it is too little for a seat.
    rest: Rest,
    seat: Option<Waiting>,
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
    /// One for the streams of few objects, which are read by turns: eight seats of 64 KiB.
    fn default() -> Batch {
        Batch::new(8, 64 << 10)
    }
}

impl Batch {
    /// One that has at most so many seats, each of so many bytes. They are made when they are needed, and grow to what is
    /// needed. Seats should be larger than what comes of one stream before others have their turn.
    pub const fn new(seats_max: usize, seat_bytes: usize) -> Batch {
        Batch { slots: Vec::new(), spare: Vec::new(), seats: 0, seats_max, seat_bytes, company: 0, due: false }
    }

    /// Makes all seats now. Memory that is never used does not become resident.
    #[must_use]
    pub fn stocked(mut self) -> Batch {
        let seat_bytes = self.seat_bytes;
        self.spare.resize_with(self.seats_max - self.seats + self.spare.len(), || Waiting::with_room(seat_bytes));
        self.seats = self.seats_max;
        self
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

    /// Another stream that has begun as this one, if that one is here.
    pub fn copy(&mut self, ticket: &Ticket) -> Option<Ticket> {
        let slot = self.slot(ticket)?;
        slot.hash_alone();
        let copy = Slot { states: slot.states.clone(), size: slot.size, rest: slot.rest.clone(), ..Slot::default() };
        self.vacate(ticket.slot);
        Some(self.enter(copy))
    }

    /// Takes in the next bytes of a stream. It is hashed now if there is no room for it to wait.
    pub fn update(&mut self, ticket: &Ticket, bytes: &[u8]) {
        let Some(slot) = self.slot(ticket) else { return };
        slot.size = slot.size.wrapping_add(bytes.len() as u64);
        if slot.seat.is_none() {
            if slot.rest.len + bytes.len() < BLOCK_BYTES {
                return slot.rest.push(bytes);
            }
            let seat = self.take_seat();
            let slot = &mut self.slots[ticket.slot];
            let Some(mut seat) = seat else { return slot.take(bytes) };
            seat.push(slot.rest.bytes());
            slot.rest.len = 0;
            slot.seat = Some(seat);
        }
        let slot = &mut self.slots[ticket.slot];
        let Some(seat) = &mut slot.seat else { return };
        let before = seat.len();
        if before + bytes.len() > self.seat_bytes {
            slot.hash_alone();
            slot.take(bytes);
            return self.vacate(ticket.slot);
        }
        seat.push(bytes);
        let now = before + bytes.len();
        self.company += usize::from(before < COMPANY_BYTES && now >= COMPANY_BYTES);
        self.due |= self.company >= LANES || self.is_full(now);
    }

    /// Digests of a stream that are wanted no more are not computed further.
    pub fn keep(&mut self, ticket: &Ticket, wanted: Wanted) {
        let Some(slot) = self.slot(ticket) else { return };
        slot.states.md5.take_if(|_| !wanted.md5);
        slot.states.sha1.take_if(|_| !wanted.sha1);
        slot.states.sha256.take_if(|_| !wanted.sha256);
        if !slot.states.is_any() {
            if let Some(seat) = &mut slot.seat {
                seat.take(seat.len());
            }
            self.vacate(ticket.slot);
        }
    }

    /// No more will come of a stream: somebody waits for its digests.
    pub fn close(&mut self, ticket: &Ticket) {
        let Some(slot) = self.slot(ticket) else { return };
        slot.closed = true;
        self.due |= slot.waiting() >= BLOCK_BYTES;
    }

    /// Whether [`finish`](Batch::finish) has nothing to hash any more but the last bytes.
    pub fn is_hashed(&self, ticket: &Ticket) -> bool {
        self.slots.get(ticket.slot).is_none_or(|slot| !slot.is_of(ticket) || slot.waiting() < BLOCK_BYTES)
    }

    /// The digests of a stream, which has ended; none if it is not one of this batch.
    pub fn finish(&mut self, ticket: Ticket) -> Option<Sums> {
        let slot = self.slot(&ticket)?;
        slot.hash_alone();
        let Slot { size, states, rest, .. } = slot;
        let sums = Sums {
            size: *size,
            md5: states.md5.map(|state| md5::finish(state, rest.bytes(), *size)),
            sha1: states.sha1.map(|state| sha1::finish(state, rest.bytes(), *size)),
            sha256: states.sha256.map(|state| sha256::finish(state, rest.bytes(), *size)),
        };
        self.vacate(ticket.slot);
        self.slots[ticket.slot] = Slot::default();
        Some(sums)
    }

    /// Whether [`run`](Batch::run) should be called: there are streams for all lanes, or a stream has no more room, or somebody
    /// waits for it, or no seat is left.
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Hashes what waits, of as many streams side by side as there are lanes, until it is no longer due. Returns how many bytes
    /// that were.
    pub fn run(&mut self) -> u64 {
        self.sweep();
        let (mut hashed, crowded) = (0, self.is_crowded());
        while let Some(urgent) = self.most_urgent(crowded) {
            hashed += self.hash_beside(urgent);
        }
        self.due = false;
        self.company = self.slots.iter().filter(|slot| slot.waiting() >= COMPANY_BYTES).count();
        hashed
    }

    /// Bytes of its seats and slots, at most.
    pub fn held_bytes(&self) -> usize {
        self.seats * self.seat_bytes + self.slots.capacity() * size_of::<Slot>()
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

    /// Frees the slots whose streams have gone.
    fn sweep(&mut self) {
        for place in 0..self.slots.len() {
            if self.slots[place].is_left() {
                let Slot { seat, .. } = core::mem::take(&mut self.slots[place]);
                self.spare.extend(seat.map(Waiting::cleared));
            }
        }
        while self.slots.pop_if(|slot| slot.life.is_none()).is_some() {}
    }

    /// A seat, if there is one. That the last is taken is a reason to run.
    fn take_seat(&mut self) -> Option<Waiting> {
        if self.spare.is_empty() && self.seats == self.seats_max {
            self.sweep();
        }
        let seat = match self.spare.pop() {
            None if self.seats == self.seats_max => return None,
            None => {
                self.seats += 1;
                Waiting::with_room(0)
            }
            Some(seat) => seat,
        };
        self.due |= self.is_crowded();
        Some(seat)
    }

    fn is_crowded(&self) -> bool {
        self.spare.is_empty() && self.seats == self.seats_max
    }

    fn is_full(&self, waiting: usize) -> bool {
        waiting.saturating_add(SPARE_BYTES) >= self.seat_bytes
    }

    /// Gives a slot's seat back if too little waits there.
    fn vacate(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        if let Some(seat) = slot.seat.take_if(|seat| seat.len() < BLOCK_BYTES) {
            slot.rest.push(seat.bytes());
            self.spare.push(seat.cleared());
        }
    }

    /// The stream because of which something has to be done now. Where it was crowded it is not enough to free one seat.
    fn most_urgent(&self, crowded: bool) -> Option<usize> {
        let waiting =
            |(place, slot): (usize, &Slot)| (slot.waiting() >= BLOCK_BYTES).then_some((place, slot.waiting()));
        let closed = self.slots.iter().enumerate().filter(|(_, slot)| slot.closed).find_map(waiting);
        let closed = closed.map(|(place, _)| place);
        let fullest = || self.slots.iter().enumerate().filter_map(waiting).max_by_key(|(_, waiting)| *waiting);
        closed.or_else(|| {
            let (place, waiting) = fullest()?;
            let together = self.slots.iter().filter(|slot| slot.waiting() >= COMPANY_BYTES).count() >= LANES;
            (together || self.is_full(waiting) || crowded && self.spare.len() <= self.seats_max / 4).then_some(place)
        })
    }

    /// Hashes as much of a stream as of those beside it, which are those of which most waits.
    fn hash_beside(&mut self, urgent: usize) -> u64 {
        let own = self.slots[urgent].waiting();
        // With much less to say they would only cut the others short.
        let enough = (own / 4).max(BLOCK_BYTES);
        let mut beside: Vec<(usize, usize)> =
            self.slots.iter().enumerate().map(|(place, slot)| (slot.waiting(), place)).collect();
        beside.retain(|&(waiting, place)| waiting >= enough && place != urgent);
        beside.sort_unstable_by(|one, other| other.cmp(one));
        beside.truncate(LANES - 1);
        let least = beside.last().map_or(own, |&(waiting, _)| waiting.min(own));
        let count = least / BLOCK_BYTES * BLOCK_BYTES;
        let mut places: Vec<usize> = beside.into_iter().map(|(_, place)| place).chain([urgent]).collect();
        places.sort_unstable();
        self.hash_together(&places, count);
        places.iter().for_each(|&place| self.vacate(place));
        (count * places.len()) as u64
    }

    /// Hashes the first `count` waiting bytes, whole blocks, of the slots at these places, which are in ascending order.
    fn hash_together(&mut self, places: &[usize], count: usize) {
        let (mut md5s, mut sha1s, mut sha256s) = (Vec::new(), Vec::new(), Vec::new());
        let mut slots = self.slots.iter_mut().enumerate();
        for &place in places {
            let Some((_, Slot { states, seat: Some(seat), .. })) = slots.find(|(index, _)| *index == place) else {
                continue;
            };
            let (blocks, _) = seat.take(count).as_chunks();
            md5s.extend(states.md5.as_mut().map(|state| (state, blocks)));
            sha1s.extend(states.sha1.as_mut().map(|state| (state, blocks)));
            sha256s.extend(states.sha256.as_mut().map(|state| (state, blocks)));
        }
        md5::compress(&mut md5s);
        sha1::compress(&mut sha1s);
        sha256::compress(&mut sha256s);
    }
}

impl Slot {
    fn is_of(&self, ticket: &Ticket) -> bool {
        self.life.as_ref().is_some_and(|life| Arc::ptr_eq(life, &ticket.life))
    }

    /// Whether its ticket is no more.
    fn is_left(&self) -> bool {
        self.life.as_ref().is_some_and(|life| Arc::strong_count(life) == 1)
    }

    fn waiting(&self) -> usize {
        self.seat.as_ref().map_or(0, Waiting::len)
    }

    /// Hashes what waits but for a rest, which begins what comes next.
    fn hash_alone(&mut self) {
        let Some(seat) = &mut self.seat else { return };
        let whole = seat.len() / BLOCK_BYTES * BLOCK_BYTES;
        self.states.compress(seat.take(whole).as_chunks().0);
        self.rest.push(seat.take(seat.len()));
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
