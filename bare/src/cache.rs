//! Pages of the disk that were read or written lately: a list of mails is made of many small records. What is written goes to the disk at
//! once.

use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 16 << 10;
/// Of the memory so much is used, at most [`PAGES_MAX`].
const PART: usize = 32;
const PAGES_MAX: usize = 1_024;

/// Each page of the disk has one place, which it shares with others.
#[derive(Default)]
pub struct Cache {
    /// By place: the page that is there.
    pages: Vec<Option<u64>>,
    bytes: Vec<u8>,
}

impl Cache {
    /// A cache for a machine with so much memory.
    pub fn of(memory_bytes: usize) -> Cache {
        let pages = (memory_bytes / PART / PAGE_BYTES).clamp(1, PAGES_MAX);
        Cache { pages: vec![None; pages], bytes: vec![0; pages * PAGE_BYTES] }
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// A page, which `read` reads if it is not there.
    pub fn page(&mut self, page: u64, read: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<&[u8]> {
        let (known, bytes) = self.place(page)?;
        if *known != Some(page) {
            *known = None;
            read(bytes)?;
            *known = Some(page);
        }
        Some(bytes)
    }

    /// What was written, or nothing if it is not known what stands there now.
    pub fn wrote(&mut self, at: u64, bytes: Option<&[u8]>, length: usize) {
        let mut done = 0;
        while done < length {
            let place = at.saturating_add(done as u64);
            let (page, skip) = (place / PAGE_BYTES as u64, (place % PAGE_BYTES as u64) as usize);
            let count = (PAGE_BYTES - skip).min(length - done);
            if let Some((known, content)) = self.place(page)
                && *known == Some(page)
            {
                let new = bytes.and_then(|bytes| bytes.get(done..done + count));
                match (new, content.get_mut(skip..skip + count)) {
                    (Some(new), Some(old)) => old.copy_from_slice(new),
                    _ => *known = None,
                }
            }
            done += count;
        }
    }

    fn place(&mut self, page: u64) -> Option<(&mut Option<u64>, &mut [u8])> {
        let place = usize::try_from(page.checked_rem(self.pages.len() as u64)?).ok()?;
        let from = place.checked_mul(PAGE_BYTES)?;
        Some((self.pages.get_mut(place)?, self.bytes.get_mut(from..from.checked_add(PAGE_BYTES)?)?))
    }
}
