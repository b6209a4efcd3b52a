//! A queue of frames in memory that two processes share: one writes, one reads.
//!
//! ```text
//!   head (reader) ──┐                ┌── tail (writer)
//!   [   free        |  frame | frame |     free      ]        both count for ever; a place is a count modulo the size
//! ```
//!
//! A frame is a header of [`HEADER_BYTES`] (length, stream, kind) and its payload; it may lie across the end. The reader copies
//! a frame before it looks at it, and believes nothing of it: the writer may be hostile, and may write while it is read. What
//! cannot be is [`Broken`], and then nothing more is read. A reader that trusts the writer, as a jail its host, may look at a
//! payload [where it lies](Reader::payload).
//!
//! Waking up: a reader that waits for something says that it sleeps, looks once more, and waits for its bell; a writer writes to
//! that only where the reader sleeps. So a busy pair makes no system calls, and neither does one of which nobody wants anything.
//! Several may read by turns, and each sleeps for himself: the writer says [`Whom`] it has something for.
//!
//! Bounds: [`TO_JAIL_BYTES`] and [`FROM_JAIL_BYTES`] of memory; a payload of [`PAYLOAD_BYTES_MAX`]; [`BELLS_MAX`].
#![allow(unsafe_code, reason = "memory that another process writes to is reached by pointers")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use memmap2::{MmapOptions, MmapRaw, UncheckedAdvice};
use rustix::event::EventfdFlags;
use rustix::fs::{MemfdFlags, SealFlags};

/// Bytes before a payload.
pub const HEADER_BYTES: usize = 12;

/// The largest payload.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// The memory of a side: what goes to the jail, and what comes from it. What is written is read again from a cache: with twice as much
/// of it a mail with 1 MiB cost 2 to 4 % more, with half of it the jail was woken twice as often.
pub const TO_JAIL_BYTES: usize = 512 << 10;
/// See [`TO_JAIL_BYTES`].
pub const FROM_JAIL_BYTES: usize = 256 << 10;

/// The bells of one side.
pub const BELLS_MAX: usize = 64;

/// The bell that a reader has from the beginning: the first.
pub const OWN_BELL: u8 = 0;

/// The page in front of each side, with its counters.
const CONTROL_BYTES: usize = 4096;

const _: () = assert!(TO_JAIL_BYTES.is_power_of_two() && FROM_JAIL_BYTES.is_power_of_two());

/// The memory of both sides.
pub struct Shared {
    map: MmapRaw,
}

/// The counters of one side, each in a cache line of its own.
#[repr(C)]
struct Control {
    head: Line<AtomicU64>,
    tail: Line<AtomicU64>,
    /// Whether somebody sleeps, by his bell.
    sleeps: Line<[AtomicU32; BELLS_MAX]>,
    /// Values that the writer tells besides: see [`Side::tell`].
    told: [Line<AtomicU64>; 5],
}

#[repr(C, align(64))]
struct Line<T>(T);

const _: () = assert!(size_of::<Control>() <= CONTROL_BYTES);

impl Shared {
    /// New memory, and the file that stands for it.
    ///
    /// # Errors
    /// When there is none.
    pub fn new() -> std::io::Result<(Shared, OwnedFd)> {
        let file = rustix::fs::memfd_create("inspections", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, Shared::BYTES as u64)?;
        // Whoever else has it cannot make it shorter, so that our accesses would fault.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Shared::open(&file)?, file))
    }

    /// The memory that a file stands for.
    ///
    /// # Errors
    /// When it is not of that size, or cannot be mapped.
    pub fn open(file: &OwnedFd) -> std::io::Result<Shared> {
        if rustix::fs::fstat(file)?.st_size != Shared::BYTES as i64 {
            return Err(std::io::ErrorKind::InvalidInput.into());
        }
        Ok(Shared { map: MmapOptions::new().len(Shared::BYTES).map_raw(file)? })
    }

    const BYTES: usize = 2 * CONTROL_BYTES + TO_JAIL_BYTES + FROM_JAIL_BYTES;

    /// Both sides: what goes to the jail, and what comes from it.
    pub fn sides(self) -> [Side; 2] {
        let map = Arc::new(self.map);
        let to_jail = Side { map: map.clone(), at: 0, bytes: TO_JAIL_BYTES };
        let from_jail = Side { map, at: CONTROL_BYTES + TO_JAIL_BYTES, bytes: FROM_JAIL_BYTES };
        [to_jail, from_jail]
    }
}

/// One side of it.
#[derive(Debug, Clone)]
pub struct Side {
    map: Arc<MmapRaw>,
    at: usize,
    bytes: usize,
}

// SAFETY: the map is plain memory that is reached by atomics and by copies of bytes that one writer and one reader take turns
// with; nothing in it belongs to a thread.
unsafe impl Send for Side {}

impl Side {
    fn control(&self) -> &Control {
        // SAFETY: the map is as long as `at` and all of the side (see `Shared::sides`), page-aligned, lives as long as `self`,
        // and holds nothing but atomics here, for which any bits are valid and which others may change.
        unsafe { &*self.map.as_mut_ptr().add(self.at).cast::<Control>() }
    }

    /// Tells a value besides frames, for every reader: see [`Told`].
    pub fn tell(&self, what: Told, value: u64) {
        self.control().told[what as usize].0.store(value, Ordering::Relaxed);
    }

    /// The last that was told.
    pub fn told(&self, what: Told) -> u64 {
        self.control().told[what as usize].0.load(Ordering::Relaxed)
    }

    /// Copies bytes in, from a count on.
    fn copy_in(&self, count: u64, bytes: &[u8]) {
        let start = (count % self.bytes as u64) as usize;
        let first = bytes.len().min(self.bytes - start);
        let data = self.at + CONTROL_BYTES;
        // SAFETY: both runs lie within the data of this side; the reader does not look at them before the tail has passed
        // them, and a reader that does so all the same only reads bytes.
        unsafe {
            let data = self.map.as_mut_ptr().add(data);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.add(start), first);
            std::ptr::copy_nonoverlapping(bytes.as_ptr().add(first), data, bytes.len() - first);
        }
    }

    /// Gives the memory of the data back: it reads as zeroes until it is written again. Called by the writer, when all is read.
    fn forget(&self) {
        // SAFETY: no reference to the data outlives a read, nobody reads what was not written since, and the one writer is here.
        // Where the system cannot do it, the memory stays.
        let _ =
            unsafe { self.map.unchecked_advise_range(UncheckedAdvice::Remove, self.at + CONTROL_BYTES, self.bytes) };
    }

    /// Copies bytes out, from a count on.
    fn copy_out(&self, count: u64, bytes: &mut [u8]) {
        // SAFETY: `bytes` is as long as it is.
        unsafe { self.copy_to(count, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Copies bytes out behind what `onto` has, whose new space is not cleared before.
    fn append(&self, count: u64, len: usize, onto: &mut Vec<u8>) {
        onto.reserve(len);
        let start = onto.len();
        // SAFETY: there is space for so many bytes behind the first `start`, and all of them are written.
        unsafe {
            self.copy_to(count, onto.as_mut_ptr().add(start), len);
            onto.set_len(start + len);
        }
    }

    /// Where bytes begin in the data, and how many there are of them before the end cuts them in two.
    fn place(&self, count: u64, len: usize) -> (usize, usize) {
        assert!(len <= self.bytes, "no more than there is");
        let start = (count % self.bytes as u64) as usize;
        (start, len.min(self.bytes - start))
    }

    /// Bytes where they lie, from a count on: the end may cut them in two.
    ///
    /// # Safety
    /// The writer leaves them alone as long as they are borrowed.
    unsafe fn borrow(&self, count: u64, len: usize) -> [&[u8]; 2] {
        let (start, first) = self.place(count, len);
        // SAFETY: both runs lie within the data of this side, which lives as long as `self`, and nobody writes there meanwhile: the
        // caller says so of the writer, and there is no other.
        unsafe {
            let data = self.map.as_ptr().add(self.at + CONTROL_BYTES);
            [std::slice::from_raw_parts(data.add(start), first), std::slice::from_raw_parts(data, len - first)]
        }
    }

    /// Copies bytes out to a place.
    ///
    /// # Safety
    /// There is space for `len` bytes at `onto`, which is no memory of the map.
    unsafe fn copy_to(&self, count: u64, onto: *mut u8, len: usize) {
        let (start, first) = self.place(count, len);
        // SAFETY: both runs lie within the data of this side, and the caller has space for them. A hostile writer may change them
        // meanwhile: then the copy holds some mixture of bytes, and any bytes are valid.
        unsafe {
            let data = self.map.as_ptr().add(self.at + CONTROL_BYTES);
            std::ptr::copy_nonoverlapping(data.add(start), onto, first);
            std::ptr::copy_nonoverlapping(data, onto.add(first), len - first);
        }
    }
}

/// Values that a writer tells besides frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Grows as long as it makes progress.
    Progress,
    /// Number of the stream in work plus one; 0: no stream.
    Working,
    /// Bytes of memory that it has, and no inspection holds.
    FreeBytes,
    /// Bytes that it has from the account.
    BorrowedBytes,
    /// Its memory that is in RAM, as of a second or so ago.
    ResidentBytes,
}

/// Makes frames.
pub struct Writer {
    side: Side,
    tail: u64,
    /// Where the tail was when the reader was woken last.
    rung: u64,
    /// Where it was when memory was given back last.
    trimmed: u64,
    /// Bells that wake its readers.
    bells: Vec<OwnedFd>,
}

/// Takes frames.
pub struct Reader {
    side: Side,
    head: u64,
    payload: Vec<u8>,
    bell: OwnedFd,
}

/// Set of bells to ring, for readers that sleep.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Whom(u64);

const _: () = assert!(BELLS_MAX <= u64::BITS as usize, "a bit for each bell");

impl Whom {
    /// Everybody.
    pub const ALL: Whom = Whom(u64::MAX);

    /// The set of this bell.
    pub fn of(bell: u8) -> Whom {
        Whom(1_u64.checked_shl(bell.into()).unwrap_or(0))
    }

    /// Both.
    pub fn add(&mut self, others: Whom) {
        self.0 |= others.0;
    }
}

/// A frame that was taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Stream of the frame.
    pub stream: u32,
    /// Kind of the frame.
    pub kind: u8,
    /// Content of the frame.
    pub payload: &'a [u8],
}

/// Header of a frame that waits.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Stream of the frame.
    pub stream: u32,
    /// Kind of the frame.
    pub kind: u8,
    /// Bytes of its payload, at most [`PAYLOAD_BYTES_MAX`].
    len: usize,
}

impl Head {
    /// Bytes of the frame.
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + self.len
    }
}

/// The other side has written something impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// A new eventfd, that wakes a reader.
///
/// # Errors
/// When there are no more descriptors.
pub fn bell() -> std::io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

impl Writer {
    /// Writes to a side, whose reader this bell wakes.
    pub fn new(side: Side, bell: OwnedFd) -> Writer {
        Writer { tail: 0, rung: 0, trimmed: 0, side, bells: vec![bell] }
    }

    /// The same with bells of others who read there, the first of which is number 1.
    pub fn with_bells(mut self, others: impl IntoIterator<Item = OwnedFd>) -> Writer {
        self.bells.extend(others.into_iter().take(BELLS_MAX - 1));
        self
    }

    /// Free bytes: not written yet, or read already.
    pub fn free_bytes(&self) -> usize {
        let head = self.side.control().head.0.load(Ordering::Acquire);
        // A head that cannot be is that of a full queue.
        let used = usize::try_from(self.tail.wrapping_sub(head)).unwrap_or(usize::MAX);
        self.side.bytes.saturating_sub(used)
    }

    /// The payload that fits now, at most [`PAYLOAD_BYTES_MAX`]; none where not even a header does.
    pub fn room(&self) -> Option<usize> {
        self.free_bytes().checked_sub(HEADER_BYTES).map(|room| room.min(PAYLOAD_BYTES_MAX))
    }

    /// Writes a frame; whether it fitted.
    pub fn write(&mut self, stream: u32, kind: u8, payload: &[u8]) -> bool {
        if self.room().is_none_or(|room| payload.len() > room) {
            return false;
        }
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&stream.to_le_bytes());
        header[8] = kind;
        self.side.copy_in(self.tail, &header);
        self.side.copy_in(self.tail + HEADER_BYTES as u64, payload);
        self.tail += (HEADER_BYTES + payload.len()) as u64;
        self.side.control().tail.0.store(self.tail, Ordering::Release);
        true
    }

    /// Gives the memory of an empty queue back to the system.
    pub fn trim(&mut self) {
        if self.tail != self.trimmed && self.free_bytes() == self.side.bytes {
            self.trimmed = self.tail;
            self.side.forget();
        }
    }

    /// The side that it writes to.
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// Bytes that were written since the reader was woken last.
    pub fn unrung_bytes(&self) -> u64 {
        self.tail - self.rung
    }

    /// Whether the reader was woken for something, and has taken none of it: it would sleep if it had not heard that.
    pub fn is_unheard(&self) -> bool {
        let control = self.side.control();
        control.head.0.load(Ordering::Acquire) < self.rung
            && control.sleeps.0[usize::from(OWN_BELL)].load(Ordering::Relaxed) == 0
    }

    /// Wakes those of its readers, as far as they sleep. To be called after the last frame of a batch.
    pub fn ring(&mut self, whom: Whom) {
        self.rung = self.tail;
        // Either this sees that one sleeps, or he sees the tail when he looks once more.
        fence(Ordering::SeqCst);
        for (number, bell) in self.bells.iter().enumerate().filter(|(number, _)| whom.0 >> number & 1 != 0) {
            let sleeps = &self.side.control().sleeps.0[number];
            if sleeps.load(Ordering::Relaxed) != 0 && sleeps.swap(0, Ordering::Relaxed) != 0 {
                let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
            }
        }
    }
}

impl Reader {
    /// Reads from a side, woken by this bell.
    pub fn new(side: Side, bell: OwnedFd) -> Reader {
        Reader { head: 0, side, payload: Vec::with_capacity(PAYLOAD_BYTES_MAX), bell }
    }

    /// The next frame, if there is one.
    ///
    /// # Errors
    /// When what is there cannot be a frame.
    pub fn read(&mut self) -> Result<Option<Frame<'_>>, Broken> {
        let Some(head) = self.head()? else { return Ok(None) };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        self.take(&head, &mut payload);
        self.payload = payload;
        Ok(Some(Frame { stream: head.stream, kind: head.kind, payload: &self.payload }))
    }

    /// Header of the next frame, if there is one: [`Reader::take`] takes it.
    ///
    /// # Errors
    /// When what is there cannot be a frame.
    pub fn head(&self) -> Result<Option<Head>, Broken> {
        let used = self.used()?;
        if used == 0 {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        if used < HEADER_BYTES {
            return Err(Broken);
        }
        self.side.copy_out(self.head, &mut header);
        let [a, b, c, d, e, f, g, h, kind, ..] = header;
        let len = u32::from_le_bytes([a, b, c, d]) as usize;
        if len > PAYLOAD_BYTES_MAX || used - HEADER_BYTES < len {
            return Err(Broken);
        }
        Ok(Some(Head { stream: u32::from_le_bytes([e, f, g, h]), kind, len }))
    }

    /// Takes the frame that [`Reader::head`] has shown: its payload is copied once, behind what `onto` has.
    pub fn take(&mut self, head: &Head, onto: &mut Vec<u8>) {
        self.side.append(self.head + HEADER_BYTES as u64, head.len, onto);
        self.pass(head);
    }

    /// The payload of the frame that [`Reader::head`] has shown, where it lies: the end of the queue may cut it in two.
    ///
    /// # Safety
    /// The writer is trusted: it leaves a frame alone until that is taken. Of a hostile one a copy is [taken](Reader::take).
    pub unsafe fn payload(&self, head: &Head) -> [&[u8]; 2] {
        // SAFETY: the frame is not taken as long as it is borrowed: that changes the reader.
        unsafe { self.side.borrow(self.head + HEADER_BYTES as u64, head.len) }
    }

    /// Takes the frame that [`Reader::head`] has shown, of which no more is wanted: there is room for others.
    pub fn pass(&mut self, head: &Head) {
        self.head += (HEADER_BYTES + head.len) as u64;
        self.side.control().head.0.store(self.head, Ordering::Release);
    }

    /// Whether the writer may have found no room for a frame, before the last one was taken or since.
    pub fn is_about_full(&self) -> bool {
        // Behind the head that was taken last: either this sees what the writer has written, or the writer sees that there is room.
        fence(Ordering::SeqCst);
        self.used().is_ok_and(|used| self.side.bytes - used < 2 * (HEADER_BYTES + PAYLOAD_BYTES_MAX))
    }

    fn used(&self) -> Result<usize, Broken> {
        let tail = self.side.control().tail.0.load(Ordering::Acquire);
        let used = usize::try_from(tail.wrapping_sub(self.head)).map_err(|_| Broken)?;
        if used > self.side.bytes { Err(Broken) } else { Ok(used) }
    }

    /// Says that whoever has this bell sleeps; whether he may, since there is nothing to read. Then he waits for it: for
    /// [`Reader::bell`], if it is [`OWN_BELL`].
    pub fn may_sleep(&self, bell: u8) -> bool {
        let Some(sleeps) = self.side.control().sleeps.0.get(usize::from(bell)) else { return false };
        sleeps.store(1, Ordering::Relaxed);
        // See `Writer::ring`.
        fence(Ordering::SeqCst);
        let is_empty = self.used() == Ok(0);
        if !is_empty {
            sleeps.store(0, Ordering::Relaxed);
        }
        is_empty
    }

    /// It is awake: what has rung is forgotten.
    pub fn awake(&self) {
        self.side.control().sleeps.0[usize::from(OWN_BELL)].store(0, Ordering::Relaxed);
        let _ = rustix::io::read(&self.bell, &mut [0; 8][..]);
    }

    /// Wakes itself, wherever it sleeps.
    pub fn rouse(&self) {
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Descriptor that becomes readable when it is woken.
    pub fn bell(&self) -> impl AsFd + '_ {
        &self.bell
    }

    /// The side that it reads.
    pub fn side(&self) -> &Side {
        &self.side
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Writer, Reader, Side) {
        let (shared, _file) = Shared::new().unwrap();
        let [side, _] = shared.sides();
        let bell = bell().unwrap();
        let writer = Writer::new(side.clone(), bell.try_clone().unwrap());
        (writer, Reader::new(side.clone(), bell), side)
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_often_the_end_is_passed() {
        let (mut writer, mut reader, side) = pair();
        assert_eq!(reader.read(), Ok(None));
        let payload: Vec<u8> = (0..PAYLOAD_BYTES_MAX).map(|at| (at * 7) as u8).collect();
        for round in 0..5 * side.bytes / PAYLOAD_BYTES_MAX {
            let len = PAYLOAD_BYTES_MAX - round * 13;
            assert!(writer.write(round as u32, 3, &payload[..len]));
            assert!(writer.write(7, 4, b""));
            let frame = reader.read().unwrap().unwrap();
            assert_eq!((frame.stream, frame.kind, frame.payload == &payload[..len]), (round as u32, 3, true));
            assert_eq!(reader.read(), Ok(Some(Frame { stream: 7, kind: 4, payload: b"" })));
        }
        assert_eq!(reader.read(), Ok(None));
    }

    #[test]
    fn an_empty_queue_gives_its_memory_back_and_goes_on() {
        let (shared, file) = Shared::new().unwrap();
        let held = || rustix::fs::fstat(&file).unwrap().st_blocks * 512;
        let [side, _] = shared.sides();
        let bell = bell().unwrap();
        let mut writer = Writer::new(side.clone(), bell.try_clone().unwrap());
        let mut reader = Reader::new(side, bell);
        let payload = vec![7; PAYLOAD_BYTES_MAX];
        for _ in 0..3 {
            assert!(writer.write(1, 2, &payload));
            let before = held();
            writer.trim();
            assert_eq!(held(), before, "something is on the way");
            assert_eq!(reader.read(), Ok(Some(Frame { stream: 1, kind: 2, payload: &payload })));
            assert_eq!(reader.read(), Ok(None));
            writer.trim();
            assert!(held() < PAYLOAD_BYTES_MAX as i64, "{} of {before}", held());
        }
    }

    #[test]
    fn a_payload_is_read_where_it_lies_until_it_is_passed() {
        let (mut writer, mut reader, side) = pair();
        let payload: Vec<u8> = (0..PAYLOAD_BYTES_MAX).map(|at| (at * 7) as u8).collect();
        let mut cut = 0;
        for round in 0..5 * side.bytes / PAYLOAD_BYTES_MAX {
            assert!(writer.write(9, 3, &payload[round..]));
            let head = reader.head().unwrap().unwrap();
            // SAFETY: the writer is at rest.
            let [first, second] = unsafe { reader.payload(&head) };
            assert!([first, second].concat() == payload[round..], "round {round}");
            cut += usize::from(!second.is_empty());
            let free = writer.free_bytes();
            reader.pass(&head);
            assert_eq!(writer.free_bytes() - free, head.bytes());
        }
        assert!(cut > 1);
        assert_eq!(reader.read(), Ok(None));
    }

    #[test]
    fn a_full_queue_refuses_and_takes_more_when_something_was_read() {
        let (mut writer, mut reader, side) = pair();
        let payload = vec![1; PAYLOAD_BYTES_MAX];
        let mut count = 0;
        while writer.write(0, 0, &payload) {
            count += 1;
        }
        assert_eq!(count, side.bytes / (PAYLOAD_BYTES_MAX + HEADER_BYTES));
        let room = writer.room().unwrap();
        assert!(room < PAYLOAD_BYTES_MAX && writer.write(0, 0, &payload[..room]));
        assert_eq!(writer.room(), None);
        reader.read().unwrap().unwrap();
        assert!(writer.write(0, 0, &payload));
    }

    #[test]
    fn what_cannot_be_is_broken() {
        for tail in [5, u64::MAX, (TO_JAIL_BYTES + 1) as u64] {
            let (_, mut reader, side) = pair();
            side.control().tail.0.store(tail, Ordering::Relaxed);
            assert_eq!(reader.read(), Err(Broken), "a tail of {tail}");
        }
        for len in [100_u32, u32::MAX] {
            let (mut writer, mut reader, side) = pair();
            assert!(writer.write(0, 0, b"short"));
            side.copy_in(0, &len.to_le_bytes());
            assert_eq!(reader.read(), Err(Broken), "a length of {len}");
        }
        let (mut writer, _, side) = pair();
        side.control().head.0.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(writer.room(), None);
        assert!(!writer.write(0, 0, b""));
    }

    #[test]
    fn a_sleeper_is_woken_once() {
        let (mut writer, mut reader, _) = pair();
        writer.ring(Whom::of(OWN_BELL));
        let rung = |reader: &Reader| rustix::io::read(&reader.bell, &mut [0; 8][..]).is_ok();
        assert!(!rung(&reader), "nobody slept");
        assert!(reader.may_sleep(OWN_BELL));
        assert!(writer.write(0, 0, b""));
        writer.ring(Whom::of(OWN_BELL));
        writer.ring(Whom::of(OWN_BELL));
        assert!(rung(&reader) && !rung(&reader));
        assert!(!reader.may_sleep(OWN_BELL), "there is something");
        reader.read().unwrap().unwrap();
        assert!(reader.may_sleep(OWN_BELL));
    }

    #[test]
    fn each_sleeper_is_woken_by_his_own_bell() {
        let (writer, reader, _) = pair();
        let others = [bell().unwrap(), bell().unwrap()];
        let mut writer = writer.with_bells(others.iter().map(|bell| bell.try_clone().unwrap()));
        let bells = [&reader.bell, &others[0], &others[1]];
        let rung = || bells.map(|bell| rustix::io::read(bell, &mut [0; 8][..]).is_ok());
        let sleep = |sleepers: &[u8]| sleepers.iter().for_each(|&bell| assert!(reader.may_sleep(bell)));
        sleep(&[0, 1]);
        writer.ring(Whom::of(2));
        assert_eq!(rung(), [false; 3], "he does not sleep");
        writer.ring(Whom::of(1));
        assert_eq!(rung(), [false, true, false]);
        sleep(&[1, 2]);
        writer.ring(Whom::ALL);
        assert_eq!(rung(), [true; 3]);
        writer.ring(Whom::ALL);
        assert_eq!(rung(), [false; 3], "once");
        assert!(writer.write(0, 0, b"") && !reader.may_sleep(2) && !reader.may_sleep(BELLS_MAX as u8));
        writer.ring(Whom::of(BELLS_MAX as u8));
        assert_eq!(rung(), [false; 3]);
    }

    #[test]
    fn frames_cross_threads_whole() {
        let (mut writer, mut reader, _) = pair();
        let writing = std::thread::spawn(move || {
            for number in 0..20_000_u32 {
                let payload = vec![number as u8; (number % 3_000) as usize];
                while !writer.write(number, 1, &payload) {
                    std::thread::yield_now();
                }
                writer.ring(Whom::of(OWN_BELL));
            }
        });
        let mut next = 0;
        while next < 20_000 {
            if let Some(frame) = reader.read().unwrap() {
                assert_eq!((frame.stream, frame.payload.len()), (next, (next % 3_000) as usize));
                assert!(frame.payload.iter().all(|&byte| byte == next as u8));
                next += 1;
                continue;
            }
            if reader.may_sleep(OWN_BELL) {
                let mut polled = [rustix::event::PollFd::new(&reader.bell, rustix::event::PollFlags::IN)];
                let second = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
                assert_eq!(rustix::event::poll(&mut polled, Some(&second)), Ok(1), "never woken");
                reader.awake();
            }
        }
        writing.join().unwrap();
    }
}
