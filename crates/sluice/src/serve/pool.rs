//! The memory that head windows come from, shared by all sessions, and the content that one mail holds back.
//!
//! Content is held in blocks of one size, which go from mail to mail: nothing grows by copying, and nothing is left in
//! holes that fit nobody.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use inspect::{Blank, Filler};

/// The size of a block.
const BLOCK_BYTES: usize = 4 << 10;

/// Unused blocks that are kept for the next mail.
const SPARE_MAX: usize = 32;

type Block = Box<[u8]>;

/// A number of bytes that sessions borrow from. It never refuses a mail: a mail that gets nothing is streamed.
#[derive(Debug)]
pub struct Pool {
    free: AtomicUsize,
    spare: Mutex<Vec<Block>>,
}

impl Pool {
    /// A pool of this many bytes.
    pub fn new(bytes: usize) -> Pool {
        Pool { free: AtomicUsize::new(bytes), spare: Mutex::default() }
    }

    /// Bytes that nobody has borrowed.
    pub fn free_bytes(&self) -> usize {
        self.free.load(Relaxed)
    }

    fn borrow(&self) -> bool {
        self.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(BLOCK_BYTES)).is_ok()
    }

    fn give_back(&self) {
        self.free.fetch_add(BLOCK_BYTES, Relaxed);
    }

    fn block(&self) -> Block {
        let spare = self.spare.lock().expect("no holder panics").pop();
        spare.unwrap_or_else(|| vec![0; BLOCK_BYTES].into_boxed_slice())
    }

    fn keep(&self, block: Block) {
        let mut spare = self.spare.lock().expect("no holder panics");
        if spare.len() < SPARE_MAX {
            spare.push(block);
        }
    }
}

/// The content of one mail that has come in and not been sent on.
///
/// Bounded: by the head window while the mail is held whole, and by [`Held::TAIL_BYTES`] and what is taken at a time,
/// at most 64 KiB, afterwards.
#[derive(Debug)]
pub struct Held {
    pool: Arc<Pool>,
    blocks: VecDeque<Block>,
    /// Blocks that are borrowed from the pool.
    borrowed: usize,
    /// Where in the first block the content begins that has not been sent.
    start: usize,
    len: usize,
    /// The offset of that place in the mail.
    sent: u64,
    /// The last two bytes that were sent, before they were overwritten.
    before: [u8; 2],
    blanks: Vec<Blank>,
    fillers: Vec<(u64, Filler)>,
    /// Whether what is overwritten from its start says so.
    announces: bool,
}

impl Held {
    /// The end of a mail that is never sent before the verdict.
    pub const TAIL_BYTES: usize = 16 << 10;
    /// What can always be taken at a time.
    pub const PIECE_BYTES: usize = 4 << 10;
    /// What may be taken at a time, where the pool has it, when the mail streams: small steps cost more than they save.
    const STREAMED_BYTES: usize = 64 << 10;
    /// What of a mail that streams is held at most.
    pub const STREAMING_BYTES: usize = Held::TAIL_BYTES + Held::STREAMED_BYTES;
    /// The blocks that every mail may have when there is nothing left to borrow: for the tail, one piece, and the block
    /// in front that is partly sent.
    const OWN_BLOCKS: usize = (Held::TAIL_BYTES + Held::PIECE_BYTES).div_ceil(BLOCK_BYTES) + 1;

    /// Nothing held yet.
    pub fn new(pool: Arc<Pool>) -> Held {
        Held {
            pool,
            blocks: VecDeque::new(),
            borrowed: 0,
            start: 0,
            len: 0,
            sent: 0,
            before: *b"\r\n",
            blanks: Vec::new(),
            fillers: Vec::new(),
            announces: false,
        }
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The offset in the mail of the first byte held.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether `count` more bytes may be held, of `window_bytes` in all and enough to stream once something was sent;
    /// borrows what is needed.
    pub fn grow(&mut self, count: usize, window_bytes: usize) -> bool {
        let window_bytes = match self.sent {
            0 => window_bytes,
            _ => window_bytes.max(Held::STREAMING_BYTES),
        };
        let blocks = (self.start + self.len + count).div_ceil(BLOCK_BYTES);
        if blocks > Held::OWN_BLOCKS && self.len + count > window_bytes {
            return false;
        }
        while self.borrowed < blocks && self.pool.borrow() {
            self.borrowed += 1;
        }
        blocks <= self.borrowed.max(Held::OWN_BLOCKS)
    }

    /// Holds `bytes` too.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = self.start + self.len;
            if end == self.blocks.len() * BLOCK_BYTES {
                self.blocks.push_back(self.pool.block());
            }
            let last = &mut self.blocks[end / BLOCK_BYTES][end % BLOCK_BYTES..];
            let count = last.len().min(bytes.len());
            last[..count].copy_from_slice(&bytes[..count]);
            self.len += count;
            bytes = &bytes[count..];
        }
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

    /// What is overwritten from its start says so there: nobody else tells the reader.
    pub fn announce(&mut self) {
        self.announces = true;
    }

    /// Nothing is to be overwritten after all.
    pub fn spare(&mut self) {
        self.blanks.clear();
    }

    /// The first bytes held, at most `count` and as many as lie together.
    pub fn front(&self, count: usize) -> &[u8] {
        let count = count.min(self.len).min(BLOCK_BYTES - self.start);
        self.blocks.front().map_or(&[], |block| &block[self.start..self.start + count])
    }

    /// The same, with what was marked overwritten. To be called once for the bytes that are sent next.
    pub fn redacted(&mut self, count: usize) -> &[u8] {
        let count = self.front(count).len();
        let Some(block) = self.blocks.front_mut() else { return &[] };
        let front = &mut block[self.start..self.start + count];
        let original_end = [byte_before(front, self.before, 2), byte_before(front, self.before, 1)];
        let (from, to) = (self.sent, self.sent + count as u64);
        for blank in &self.blanks {
            let (start, end) = (blank.part.max(from), blank.end.min(to));
            if start >= end {
                continue;
            }
            let (at, end) = ((start - from) as usize, (end - from) as usize);
            let known = self.fillers.iter().position(|(part, _)| *part == blank.part);
            let index = known.unwrap_or_else(|| {
                let before = [byte_before(&front[..at], self.before, 2), byte_before(&front[..at], self.before, 1)];
                let filler = match start == blank.part {
                    true if self.announces => Filler::with_notice(blank.coding),
                    true => Filler::new(blank.coding, *b"\r\n"),
                    false => Filler::new(blank.coding, before),
                };
                self.fillers.push((blank.part, filler));
                self.fillers.len() - 1
            });
            self.fillers[index].1.fill(&mut front[at..end]);
        }
        self.before = original_end;
        front
    }

    /// The first `count` bytes, which lie together, have been sent.
    pub fn forget(&mut self, count: usize) {
        self.start += count;
        self.len -= count;
        self.sent += count as u64;
        if (self.start == BLOCK_BYTES || self.len == 0)
            && let Some(block) = self.blocks.pop_front()
        {
            self.start = 0;
            self.pool.keep(block);
            while self.borrowed > self.blocks.len() {
                self.borrowed -= 1;
                self.pool.give_back();
            }
        }
    }

    /// All that is held, in pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let mut left = self.len;
        self.blocks.iter().enumerate().map(move |(index, block)| {
            let block = if index == 0 { &block[self.start..] } else { block };
            let piece = &block[..left.min(block.len())];
            left -= piece.len();
            piece
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.blocks.drain(..).for_each(|block| self.pool.keep(block));
        (0..self.borrowed).for_each(|_| self.pool.give_back());
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
    fn an_empty_pool_leaves_a_mail_its_own_blocks() {
        let mut held = Held::new(Arc::new(Pool::new(0)));
        let own = Held::OWN_BLOCKS * BLOCK_BYTES;
        assert!(held.grow(own, 256 << 10));
        held.push(&vec![0; own]);
        assert!(!held.grow(1, 256 << 10));
        held.forget(BLOCK_BYTES);
        assert!(held.grow(Held::PIECE_BYTES, 256 << 10));
    }

    #[test]
    fn what_is_borrowed_is_given_back() {
        let pool = Arc::new(Pool::new(1 << 20));
        let mut held = Held::new(pool.clone());
        assert!(held.grow(100_000, 256 << 10));
        held.push(&vec![0; 100_000]);
        assert!(pool.free_bytes() < 1 << 20);
        assert!(!held.grow(200_000, 256 << 10), "beyond the window");
        while held.len() > 0 {
            held.forget(held.front(usize::MAX).len());
        }
        assert_eq!(pool.free_bytes(), 1 << 20);
        assert_eq!(held.sent(), 100_000);
        assert!(held.grow(100_000, 256 << 10));
        drop(held);
        assert_eq!(pool.free_bytes(), 1 << 20);
    }

    #[test]
    fn a_mail_that_streams_is_taken_in_larger_pieces() {
        let mut held = Held::new(Arc::new(Pool::new(1 << 20)));
        assert!(!held.grow(Held::STREAMED_BYTES, 0));
        held.push(&[0; 20 << 10]);
        held.forget(BLOCK_BYTES);
        assert!(held.grow(Held::STREAMED_BYTES, 0));
        assert!(!held.grow(Held::STREAMED_BYTES + BLOCK_BYTES, 0));
    }

    #[test]
    fn what_is_pushed_comes_out_in_order() {
        let content: Vec<u8> = (0..60_000u32).map(|n| (n / 7) as u8).collect();
        let mut held = Held::new(Arc::new(Pool::new(1 << 20)));
        let mut out = Vec::new();
        for piece in content.chunks(5_000) {
            held.push(piece);
            let front = held.front(3_000).to_vec();
            held.forget(front.len());
            out.extend(front);
        }
        held.pieces().for_each(|piece| out.extend_from_slice(piece));
        assert!(out == content);
    }

    #[test]
    fn a_marked_part_is_overwritten_in_pieces_as_it_is_sent() {
        let mut held = Held::new(Arc::new(Pool::new(0)));
        held.push(b"head\r\nQUJD\r\nREVG\r\ntail");
        assert!(held.blank(Blank { part: 6, end: 16, coding: Coding::Base64, late: true }));
        assert_eq!(held.redacted(8), b"head\r\nAA");
        held.forget(8);
        assert_eq!(held.redacted(usize::MAX), b"AA\r\nAAAA\r\ntail");
        assert!(!held.blank(Blank { part: 6, end: 16, coding: Coding::Base64, late: true }));
    }
}
