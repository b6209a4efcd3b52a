//! The state of one scan: a plain value that can be cloned and kept.

use crate::budget::STORE_MAX;
use crate::found::Match;
use crate::verify::Thread;

/// The most verifications that are parked at the end of a segment, 12 kB; those that began one byte after the other and wait
/// for the same count as one.
pub const PENDING_MAX: usize = 768;

/// How many bytes back the stream can be looked at: the farthest start of a part from its anchor, and an op's stride.
pub(crate) const HISTORY: usize = 256;

/// Where a scan stands: the position, the last bytes seen, and the verifications that wait for more.
///
/// It belongs to the [`Patterns`](crate::Patterns) that it was first used with; with others the matches are
/// meaningless (but nothing breaks).
#[derive(Debug, Clone)]
pub struct State {
    pub(crate) position: u64,
    pub(crate) tail: [u8; 2 * HISTORY],
    pub(crate) kept: usize,
    pub(crate) parked: Vec<Thread>,
    pub(crate) lost: u64,
    /// Work that is paid for and not yet done.
    pub(crate) work_left: u64,
    /// Work done.
    pub(crate) work: u64,
    /// How many times the last byte stands at the end of what has passed.
    pub(crate) same: u64,
    /// Matches after each further byte of that value, if they are known.
    pub(crate) steady: Option<Box<[Match]>>,
    /// How many of the bytes that were passed over the parked verifications do not know of.
    pub(crate) owed: usize,
}

impl State {
    /// The size of a state with nothing parked.
    pub const BYTES_AT_REST: usize = size_of::<State>();

    /// The start of a stream.
    pub fn new() -> State {
        State {
            position: 0,
            tail: [0; 2 * HISTORY],
            kept: 0,
            parked: Vec::new(),
            lost: 0,
            work_left: STORE_MAX,
            work: 0,
            same: 0,
            steady: None,
            owed: 0,
        }
    }

    /// How many bytes have been scanned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many verifications were given up because [`PENDING_MAX`] were parked already, or because the stream had
    /// caused more work than it pays for. If it is not 0, matches may have been missed.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The work that was done beside sweeping, in units of about as long as it takes to sweep ten bytes.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Notes which byte the stream ends with, and how often; `fresh` is what has just passed.
    pub(crate) fn note_same(&mut self, fresh: &[u8], before: Option<u8>) {
        let Some(&last) = fresh.last() else {
            return;
        };
        let count = fresh.iter().rev().take_while(|&&byte| byte == last).count();
        let goes_on = count == fresh.len() && before == Some(last);
        self.same = count as u64 + if goes_on { self.same } else { 0 };
        if !goes_on {
            self.steady = None;
        }
    }

    /// Appends to the tail, forgetting what is older than the history. No more than [`HISTORY`] bytes at once.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= HISTORY);
        if self.kept + bytes.len() > self.tail.len() {
            let from = self.kept.saturating_sub(HISTORY);
            self.tail.copy_within(from..self.kept, 0);
            self.kept -= from;
        }
        self.tail[self.kept..self.kept + bytes.len()].copy_from_slice(bytes);
        self.kept += bytes.len();
    }

    /// Makes the tail the end of `bytes`, which are at least [`HISTORY`] long.
    pub(crate) fn replace(&mut self, bytes: &[u8]) {
        let from = bytes.len().saturating_sub(HISTORY);
        self.kept = bytes.len() - from;
        self.tail[..self.kept].copy_from_slice(&bytes[from..]);
    }

    /// Parks a verification, or counts it as lost. They come in order.
    pub(crate) fn park(&mut self, thread: Thread) {
        if self.parked.last_mut().is_some_and(|last| last.takes(thread)) {
            return;
        }
        if self.parked.len() < PENDING_MAX {
            self.parked.push(thread);
        } else {
            self.lost = self.lost.saturating_add(1);
        }
    }
}

impl Default for State {
    fn default() -> State {
        State::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_small_at_rest_and_bounded_at_worst() {
        const { assert!(State::BYTES_AT_REST < 1024) };
        const { assert!(State::BYTES_AT_REST + PENDING_MAX * size_of::<Thread>() < 16 << 10) };
    }

    #[test]
    fn the_tail_keeps_the_history_however_small_the_segments() {
        let mut state = State::new();
        for number in 0..2000u32 {
            state.append(&[number as u8]);
            let kept = &state.tail[..state.kept];
            assert!(kept.len() >= HISTORY.min(number as usize + 1));
            assert_eq!(kept.last(), Some(&(number as u8)));
        }
    }
}
