//! Hands the bytes of one object to the intrusion rules that look at all objects of an inspection.

use std::sync::{Arc, Mutex, PoisonError};

use rules::ids::Watch;
use stream::Fuel;

/// Fuel that a byte costs: it is looked for in several buffers.
const WATCH_COST: usize = 3;

/// Rules over one object, which all its readers share.
pub(crate) type Shared = Arc<Mutex<Watch>>;

/// A reader that hands bytes of one node to the rules.
pub(crate) struct Watcher {
    pub watch: Shared,
    /// The number of the content; none of what stands for no file.
    pub part: Option<u64>,
    /// It is the body of a message of HTTP, codings undone.
    pub is_body: bool,
    /// It is the object that is fed.
    pub is_root: bool,
}

impl Watcher {
    pub fn feed(&mut self, input: &[u8], fuel: &mut Fuel) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        match self.part {
            Some(part) if self.is_root => watch.raw_content(part, input, self.is_body),
            Some(part) => watch.content(part, input, self.is_body),
            None if self.is_root => watch.raw(input),
            None => {}
        }
        fuel.burn(input.len() * WATCH_COST);
    }

    pub fn end(&mut self) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = self.part {
            watch.close(part);
        }
    }
}
