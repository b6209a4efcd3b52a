//! The memory that head windows come from, shared by all sessions.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use flow::{BLOCK_BYTES, Block, Blocks};

/// Unused blocks that are kept for the next mails: one head window.
const SPARE_MAX: usize = 64;

/// A number of bytes that sessions borrow from. It never refuses a mail: a mail that gets nothing is streamed.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: AtomicUsize,
    spare: Mutex<Vec<Block>>,
}

impl Pool {
    /// A pool of this many bytes.
    pub fn new(bytes: usize) -> Pool {
        Pool(Arc::new(Shared { free: AtomicUsize::new(bytes), spare: Mutex::default() }))
    }

    /// Free bytes of the pool.
    pub fn free_bytes(&self) -> usize {
        self.0.free.load(Relaxed)
    }
}

impl Blocks for Pool {
    fn borrow(&self) -> bool {
        self.0.free.fetch_update(Relaxed, Relaxed, |free| free.checked_sub(BLOCK_BYTES)).is_ok()
    }

    fn give_back(&self) {
        self.0.free.fetch_add(BLOCK_BYTES, Relaxed);
    }

    fn block(&self) -> Block {
        let spare = self.0.spare.lock().expect("no holder panics").pop();
        spare.unwrap_or_else(|| vec![0; BLOCK_BYTES].into_boxed_slice())
    }

    fn keep(&self, block: Block) {
        let mut spare = self.0.spare.lock().expect("no holder panics");
        if spare.len() < SPARE_MAX {
            spare.push(block);
        }
    }
}
