//! Content that has come in and not gone on, in blocks of one size that go from mail to mail: nothing grows by copying, and
//! nothing is left in holes that fit nobody.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The size of a block.
pub const BLOCK_BYTES: usize = 4 << 10;

/// [`BLOCK_BYTES`] of memory.
pub type Block = Box<[u8]>;

/// Where blocks come from: shared by all that hold content back. It bounds how much is held; nothing is ever refused for it,
/// since what gets nothing streams.
pub trait Blocks {
    /// Sets one block apart; whether there was one left.
    fn borrow(&self) -> bool;

    /// Gives back what was set apart.
    fn give_back(&self);

    /// The memory of a block, with whatever is in it.
    fn block(&self) -> Block;

    /// A block that is not used any more.
    fn keep(&self, block: Block);
}

/// A queue of bytes.
pub(crate) struct Queue<P: Blocks> {
    pool: P,
    blocks: VecDeque<Block>,
    /// Blocks that are borrowed from the pool.
    borrowed: usize,
    /// Where in the first block the content begins.
    start: usize,
    len: usize,
}

impl<P: Blocks> Queue<P> {
    /// Nothing in it yet.
    pub fn new(pool: P) -> Queue<P> {
        Queue { pool, blocks: VecDeque::new(), borrowed: 0, start: 0, len: 0 }
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether `count` more bytes may come, where `own` blocks need no borrowing; borrows what is needed.
    pub fn grow(&mut self, count: usize, own: usize) -> bool {
        let blocks = (self.start + self.len + count).div_ceil(BLOCK_BYTES);
        while self.borrowed < blocks && self.pool.borrow() {
            self.borrowed += 1;
        }
        blocks <= self.borrowed.max(own)
    }

    /// The blocks that `count` more bytes make.
    pub fn blocks_with(&self, count: usize) -> usize {
        (self.start + self.len + count).div_ceil(BLOCK_BYTES)
    }

    /// Puts `bytes` behind the others.
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

    /// The first bytes, at most `count` and as many as lie together.
    pub fn front(&self, count: usize) -> &[u8] {
        let end = self.start + self.together(count);
        self.blocks.front().map_or(&[], |block| &block[self.start..end])
    }

    /// The same, to be changed.
    pub fn front_mut(&mut self, count: usize) -> &mut [u8] {
        let end = self.start + self.together(count);
        self.blocks.front_mut().map_or(&mut [], |block| &mut block[self.start..end])
    }

    fn together(&self, count: usize) -> usize {
        count.min(self.len).min(BLOCK_BYTES - self.start)
    }

    /// Drops the first `count` bytes, which lie together.
    pub fn forget(&mut self, count: usize) {
        self.start += count;
        self.len -= count;
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

    /// All of it, in pieces.
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

impl<P: Blocks> Drop for Queue<P> {
    fn drop(&mut self) {
        self.blocks.drain(..).for_each(|block| self.pool.keep(block));
        (0..self.borrowed).for_each(|_| self.pool.give_back());
    }
}
