//! The memory that head windows come from, shared by all sessions, and the content that one mail holds back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use inspect::{Blank, Filler};

/// A number of bytes that sessions borrow from. It never refuses a mail: a mail that gets nothing is streamed.
#[derive(Debug)]
pub struct Pool {
    free: AtomicUsize,
}

impl Pool {
    /// A pool of this many bytes.
    pub fn new(bytes: usize) -> Pool {
        Pool { free: AtomicUsize::new(bytes) }
    }

    /// Bytes that nobody has borrowed.
    pub fn free_bytes(&self) -> usize {
        self.free.load(Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(bytes)).is_ok()
    }

    fn give(&self, bytes: usize) {
        self.free.fetch_add(bytes, Relaxed);
    }
}

/// The content of one mail that has come in and not been sent on.
///
/// Bounded: by the head window while the mail is held whole, and by [`Held::TAIL_BYTES`] and one segment afterwards.
#[derive(Debug)]
pub struct Held {
    pool: Arc<Pool>,
    borrowed: usize,
    bytes: Vec<u8>,
    /// Where in `bytes` the content that has not been sent begins.
    start: usize,
    /// The offset of that place in the mail.
    sent: u64,
    /// The last two bytes that were sent.
    before: [u8; 2],
    blanks: Vec<Blank>,
    fillers: Vec<(u64, Filler)>,
}

impl Held {
    /// The end of a mail that is never sent before the verdict.
    pub const TAIL_BYTES: usize = 16 << 10;
    /// What a mail may hold without borrowing: the tail and one segment.
    const OWN_BYTES: usize = Held::TAIL_BYTES + (8 << 10);

    /// Nothing held yet.
    pub fn new(pool: Arc<Pool>) -> Held {
        Held {
            pool,
            borrowed: 0,
            bytes: Vec::new(),
            start: 0,
            sent: 0,
            before: *b"\r\n",
            blanks: Vec::new(),
            fillers: Vec::new(),
        }
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The offset in the mail of the first byte held.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether `count` more bytes may be held, of `window_bytes` in all; borrows what is needed.
    pub fn grow(&mut self, count: usize, window_bytes: usize) -> bool {
        let wanted = self.len() + count;
        if wanted <= self.bytes.capacity() {
            return true;
        }
        if wanted > window_bytes.max(Held::OWN_BYTES) {
            return false;
        }
        let capacity = wanted.next_power_of_two().max(8 << 10).min(window_bytes.max(Held::OWN_BYTES)).max(wanted);
        let borrow = capacity.saturating_sub(Held::OWN_BYTES).saturating_sub(self.borrowed);
        if !self.pool.take(borrow) {
            return false;
        }
        self.borrowed += borrow;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        true
    }

    /// Holds `bytes` too.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Remembers a part that is to be overwritten when it is sent; whether that still helps.
    pub fn blank(&mut self, blank: Blank) -> bool {
        if blank.late && blank.part < self.sent {
            return false;
        }
        match self.blanks.iter_mut().find(|known| known.part == blank.part) {
            Some(known) => known.end = known.end.max(blank.end),
            None => self.blanks.push(blank),
        }
        true
    }

    /// Overwrites what was marked, in the next `count` bytes.
    pub fn redact(&mut self, count: usize) {
        let (from, to) = (self.sent, self.sent + count as u64);
        for blank in &self.blanks {
            let (start, end) = (blank.part.max(from), blank.end.min(to));
            if start >= end {
                continue;
            }
            let filler = match self.fillers.iter_mut().find(|(part, _)| *part == blank.part) {
                Some((_, filler)) => filler,
                None => {
                    let at = self.start + (start - from) as usize;
                    let before = [
                        byte_before(&self.bytes[self.start..at], self.before, 2),
                        byte_before(&self.bytes[self.start..at], self.before, 1),
                    ];
                    let before = if start == blank.part { *b"\r\n" } else { before };
                    self.fillers.push((blank.part, Filler::new(blank.coding, before)));
                    &mut self.fillers.last_mut().expect("just pushed").1
                }
            };
            filler.fill(&mut self.bytes[self.start + (start - from) as usize..self.start + (end - from) as usize]);
        }
    }

    /// The first `count` bytes held.
    pub fn front(&self, count: usize) -> &[u8] {
        &self.bytes[self.start..self.start + count]
    }

    /// The first `count` bytes have been sent.
    pub fn forget(&mut self, count: usize) {
        let gone = &self.bytes[self.start..self.start + count];
        self.before = [byte_before(gone, self.before, 2), byte_before(gone, self.before, 1)];
        self.start += count;
        self.sent += count as u64;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Gives back what was borrowed, as far as it is not needed any more.
    pub fn shrink(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.shrink_to(Held::OWN_BYTES);
        let needed = self.bytes.capacity().saturating_sub(Held::OWN_BYTES);
        let surplus = self.borrowed.saturating_sub(needed);
        self.borrowed -= surplus;
        self.pool.give(surplus);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pool.give(self.borrowed);
    }
}

/// The byte that stands `back` bytes before the end of `bytes`, which follow `before`.
fn byte_before(bytes: &[u8], before: [u8; 2], back: usize) -> u8 {
    match bytes.len().checked_sub(back) {
        Some(at) => bytes[at],
        None => before[2 - (back - bytes.len())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stream::Coding;

    #[test]
    fn an_empty_pool_leaves_a_mail_its_own_bytes() {
        let mut held = Held::new(Arc::new(Pool::new(0)));
        assert!(held.grow(Held::OWN_BYTES, 256 << 10));
        held.push(&vec![0; Held::OWN_BYTES]);
        assert!(!held.grow(1, 256 << 10));
    }

    #[test]
    fn what_is_borrowed_is_given_back() {
        let pool = Arc::new(Pool::new(1 << 20));
        let mut held = Held::new(pool.clone());
        assert!(held.grow(100 << 10, 256 << 10));
        held.push(&vec![0; 100 << 10]);
        assert!(pool.free_bytes() < 1 << 20);
        held.forget(100 << 10);
        held.shrink();
        assert_eq!(pool.free_bytes(), 1 << 20);
        assert_eq!(held.sent(), 100 << 10);
    }

    #[test]
    fn a_marked_part_is_overwritten_in_pieces_as_it_is_sent() {
        let mut held = Held::new(Arc::new(Pool::new(0)));
        held.push(b"head\r\nQUJD\r\nREVG\r\ntail");
        assert!(held.blank(Blank { part: 6, end: 16, coding: Coding::Base64, late: true }));
        held.redact(8);
        assert_eq!(held.front(8), b"head\r\nAA");
        held.forget(8);
        held.redact(held.len());
        assert_eq!(held.front(held.len()), b"AA\r\nAAAA\r\ntail");
        assert!(!held.blank(Blank { part: 6, end: 16, coding: Coding::Base64, late: true }));
    }
}
