//! The bytes of an archive as far as they may be read again: from its first member on, for the reading by its directory.
//!
//! Bounds: a number of bytes, and [`RUNS_MAX`] members. When one is reached, members whose header proved true are let go; when
//! that is not enough, or makes so little room that it would have to be done again and again, nothing more is kept.

use std::collections::VecDeque;

/// Maximum number of members with kept bytes.
const RUNS_MAX: usize = 8192;

/// The part of the bytes that letting go has to make room for.
const ROOM: usize = 8;

/// Bytes of a stream in order, in runs; each member begins one.
#[derive(Default)]
pub(super) struct Kept {
    runs: VecDeque<Run>,
    bytes: usize,
    bytes_max: usize,
    /// How many of them belong to members that proved true.
    spare: usize,
    /// Nothing more is kept.
    full: bool,
    /// Where the next byte is expected.
    end: u64,
}

struct Run {
    at: u64,
    bytes: Vec<u8>,
    /// Whether its member was as its header says.
    is_true: bool,
}

impl Kept {
    pub fn new(bytes_max: usize) -> Kept {
        Kept { bytes_max, ..Kept::default() }
    }

    /// A member begins at `at`.
    pub fn begin(&mut self, at: u64) {
        if !self.full && self.runs.len() >= RUNS_MAX {
            self.let_go();
            self.full = self.runs.len() > RUNS_MAX / 2;
        }
        if self.full {
            return;
        }
        if self.runs.is_empty() {
            self.end = at;
        }
        self.runs.push_back(Run { at: at.max(self.end), bytes: Vec::new(), is_true: false });
    }

    /// The member that began last was as its header says.
    pub fn proved_true(&mut self) {
        if let Some(run) = self.runs.back_mut().filter(|run| !run.is_true && !self.full) {
            run.is_true = true;
            self.spare += run.bytes.len();
        }
    }

    /// Adds the bytes at `at`, without those that were added before.
    pub fn pass(&mut self, at: u64, bytes: &[u8]) {
        if self.full || self.runs.is_empty() {
            return;
        }
        let again = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let Some(fresh) = bytes.get(again..).filter(|fresh| !fresh.is_empty()) else { return };
        if self.bytes + fresh.len() > self.bytes_max && self.spare >= self.bytes_max / ROOM {
            self.let_go();
        }
        let start = self.end;
        self.end += fresh.len() as u64;
        // After a hole the kept bytes would no longer be consecutive.
        self.full = self.bytes + fresh.len() > self.bytes_max;
        let Some(run) = self.runs.back_mut().filter(|_| !self.full) else { return };
        if run.bytes.is_empty() {
            run.at = start;
        }
        if run.at + run.bytes.len() as u64 == start {
            run.bytes.extend_from_slice(fresh);
            self.bytes += fresh.len();
            self.spare += if run.is_true { fresh.len() } else { 0 };
        }
    }

    /// Lets go of the members that proved true, but for the last one.
    fn let_go(&mut self) {
        let last = self.runs.pop_back();
        self.runs.retain(|run| !run.is_true);
        self.runs.extend(last);
        self.bytes = self.runs.iter().map(|run| run.bytes.len()).sum();
        self.spare = self.runs.iter().filter(|run| run.is_true).map(|run| run.bytes.len()).sum();
    }

    /// Copies kept bytes from `at` on, up to a hole. Returns their number.
    pub fn read_at(&self, at: u64, buffer: &mut [u8]) -> usize {
        let first = self.runs.partition_point(|run| run.at + run.bytes.len() as u64 <= at);
        let mut copied = 0;
        for run in self.runs.range(first..) {
            let place = at + copied as u64;
            let Some(here) = place.checked_sub(run.at).and_then(|skip| run.bytes.get(usize::try_from(skip).ok()?..))
            else {
                break;
            };
            let count = here.len().min(buffer.len() - copied);
            buffer[copied..copied + count].copy_from_slice(&here[..count]);
            copied += count;
        }
        copied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_number_cost_a_bounded_look_each() {
        let mut kept = Kept::new(1 << 20);
        for member in 0..3_000_000u64 {
            kept.begin(member * 4);
            kept.pass(member * 4, b"PK\x03\x04");
            if member % 3 == 0 {
                kept.proved_true();
            }
        }
        assert!(kept.runs.len() <= RUNS_MAX && kept.full);
    }

    fn read(kept: &Kept, at: u64) -> Vec<u8> {
        let mut buffer = [0; 16];
        let count = kept.read_at(at, &mut buffer);
        buffer[..count].to_vec()
    }

    #[test]
    fn bytes_are_read_over_the_seams_of_members_and_kept_once() {
        let mut kept = Kept::new(100);
        kept.pass(0, b"in front");
        kept.begin(8);
        kept.pass(8, b"abc");
        kept.pass(9, b"bcd");
        kept.begin(12);
        kept.pass(12, b"ef");
        assert_eq!(read(&kept, 8), b"abcdef");
        assert_eq!(read(&kept, 11), b"def");
        assert_eq!(read(&kept, 14), b"");
        assert_eq!(read(&kept, 0), b"");
    }

    #[test]
    fn true_members_make_room_for_later_ones() {
        let mut kept = Kept::new(8);
        kept.begin(0);
        kept.pass(0, b"true");
        kept.proved_true();
        kept.begin(4);
        kept.pass(4, b"lies");
        kept.begin(8);
        kept.pass(8, b"last");
        assert_eq!((read(&kept, 0), read(&kept, 4)), (b"".to_vec(), b"lieslast".to_vec()));
        kept.pass(12, b"!");
        kept.begin(13);
        kept.pass(13, b"x");
        assert_eq!(read(&kept, 4), b"lieslast");
        assert_eq!(read(&kept, 13), b"");
    }
}
