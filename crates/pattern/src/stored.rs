//! A state as bytes: to be kept beside a file or sent to another process, and taken up again.
//!
//! Little endian, in this order: the version, the digest of the patterns, the position, work left, work done, what was
//! lost, the number of parked verifications; the last bytes of the stream, as many as the position says but at most
//! the history; the parked verifications, each its start, its op, its lag and how many follow each other. Loading accepts nothing that a scan
//! could not have stored, so that going on from it can at worst find what is not there.

use std::fmt;

use crate::budget::STORE_MAX;
use crate::code::STRIDE;
use crate::entry::Start;
use crate::patterns::{Patterns, Scratch};
use crate::state::{HISTORY, PENDING_MAX, State};
use crate::verify::Thread;

const VERSION: u32 = 3;
/// The farthest that a stream is taken to go: half of what can be counted.
const POSITION_MAX: u64 = u64::MAX / 2;
/// Bytes before the last bytes of the stream.
const FIXED_BYTES: usize = 4 + 5 * 8 + 8 + 4;
const THREAD_BYTES: usize = 16;

/// Why stored bytes are no state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadState {
    /// The bytes were stored by another version of this crate.
    Version,
    /// The bytes were stored with other patterns.
    OtherPatterns,
    /// The bytes are truncated, too long, or invalid.
    Malformed,
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadState::Version => "stored by another version",
            BadState::OtherPatterns => "stored with other patterns",
            BadState::Malformed => "not a state",
        })
    }
}

impl std::error::Error for BadState {}

impl State {
    /// The most bytes that a stored state has.
    pub const STORED_BYTES_MAX: usize = FIXED_BYTES + HISTORY + PENDING_MAX * THREAD_BYTES;

    /// The state as bytes, at most [`State::STORED_BYTES_MAX`] of them; without parked verifications 312 or fewer.
    /// `patterns` are those that it was used with.
    pub fn to_bytes(&self, patterns: &Patterns) -> Vec<u8> {
        if self.owed > 0 {
            let mut settled = self.clone();
            patterns.settle(&mut settled, &mut Scratch::default());
            return settled.to_bytes(patterns);
        }
        let tail = &self.tail[..self.kept];
        let tail = &tail[tail.len().saturating_sub(HISTORY)..];
        let mut bytes = Vec::with_capacity(FIXED_BYTES + tail.len() + self.parked.len() * THREAD_BYTES);
        bytes.extend(VERSION.to_le_bytes());
        for number in [patterns.digest, self.position, self.work_left, self.work, self.lost] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend((self.parked.len() as u64).to_le_bytes());
        bytes.extend((tail.len() as u32).to_le_bytes());
        bytes.extend(tail);
        for thread in &self.parked {
            bytes.extend(thread.start.to_le_bytes());
            bytes.extend(thread.op.to_le_bytes());
            bytes.extend(thread.lag.to_le_bytes());
            bytes.extend(thread.count.to_le_bytes());
        }
        bytes
    }

    /// The state that was stored as `bytes`, to go on with `patterns`.
    ///
    /// # Errors
    /// If it was not stored with such patterns, or is no state.
    pub fn from_bytes(bytes: &[u8], patterns: &Patterns) -> Result<State, BadState> {
        let mut reader = Reader(bytes);
        if reader.u32()? != VERSION {
            return Err(BadState::Version);
        }
        if reader.u64()? != patterns.digest {
            return Err(BadState::OtherPatterns);
        }
        let mut state = State::new();
        state.position = reader.u64()?;
        state.work_left = reader.u64()?;
        state.work = reader.u64()?;
        state.lost = reader.u64()?;
        let parked = reader.u64()?;
        let kept = reader.u32()? as usize;
        // Where there is nothing to look for nothing is kept.
        let history = if patterns.is_empty() { 0 } else { HISTORY as u64 };
        let fits = kept as u64 == state.position.min(history)
            && parked <= PENDING_MAX as u64
            && state.position <= POSITION_MAX
            && state.work_left <= STORE_MAX;
        if !fits {
            return Err(BadState::Malformed);
        }
        state.append(reader.take(kept)?);
        for _ in 0..parked {
            let (start, op) = (reader.u64()?, reader.u32()?);
            let thread = Thread { op, start, lag: reader.u16()?, count: reader.u16()? };
            state.parked.push(check(thread, &state, patterns)?);
        }
        if reader.0.is_empty() { Ok(state) } else { Err(BadState::Malformed) }
    }
}

fn check(thread: Thread, state: &State, patterns: &Patterns) -> Result<Thread, BadState> {
    let lag = usize::from(thread.lag);
    let is_literal = |part: u32| {
        let entry = patterns.entries.get(part as usize);
        let start = entry.map(|entry| entry.start(&patterns.distances));
        matches!(start, Some(Start::Literal { length, .. }) if lag < length.into())
    };
    let known_op = thread.literal().map_or((thread.op as usize) < patterns.programs.ops.len(), is_literal);
    // The last of them begins no later than its op.
    let counted = thread.count > 0 && thread.count - 1 <= thread.lag;
    let within = counted && lag <= STRIDE && lag <= state.kept && thread.start <= state.position - lag as u64;
    if known_op && within { Ok(thread) } else { Err(BadState::Malformed) }
}

/// Takes values off the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BadState> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BadState::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadState> {
        self.take(N)?.try_into().map_err(|_| BadState::Malformed)
    }

    fn u16(&mut self) -> Result<u16, BadState> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, BadState> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadState> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Piece};

    fn patterns(text: &str) -> Patterns {
        let mut builder = Builder::new();
        builder.add(&Piece::bytes(text.as_bytes())).expect("a part");
        builder.build()
    }

    const TEXT: &str = "a part that is longer than any of its windows";

    fn half_way(patterns: &Patterns) -> State {
        let mut state = State::new();
        patterns.scan(&mut state, &[b'.'; 300], &mut |_| {});
        patterns.scan(&mut state, &TEXT.as_bytes()[..44], &mut |_| {});
        assert_eq!(state.parked.len(), 1);
        state
    }

    #[test]
    fn a_stored_state_goes_on_where_it_was() {
        let patterns = patterns(TEXT);
        let stored = half_way(&patterns).to_bytes(&patterns);
        let mut state = State::from_bytes(&stored, &patterns).expect("a state");
        assert_eq!(state.to_bytes(&patterns), stored);
        let mut told = Vec::new();
        patterns.scan(&mut state, &TEXT.as_bytes()[44..], &mut |found| told.push(found.start));
        patterns.finish(&mut state, &mut |found| told.push(found.start));
        assert_eq!(told, [300]);
    }

    #[test]
    fn a_state_is_of_its_patterns_only() {
        let (one, other) = (patterns(TEXT), patterns("another part than that one"));
        let stored = half_way(&one).to_bytes(&one);
        assert_eq!(State::from_bytes(&stored, &other).err(), Some(BadState::OtherPatterns));
    }

    #[test]
    fn what_is_cut_off_or_changed_is_refused_or_harmless() {
        let patterns = patterns(TEXT);
        let stored = half_way(&patterns).to_bytes(&patterns);
        for length in 0..stored.len() {
            assert!(State::from_bytes(&stored[..length], &patterns).is_err(), "{length}");
        }
        assert_eq!(State::from_bytes(&[stored.as_slice(), &[0]].concat(), &patterns).err(), Some(BadState::Malformed));
        for at in 0..stored.len() * 8 {
            let mut changed = stored.clone();
            changed[at / 8] ^= 1 << (at % 8);
            if let Ok(mut state) = State::from_bytes(&changed, &patterns) {
                patterns.scan(&mut state, &[b'w'; 600], &mut |_| {});
                patterns.finish(&mut state, &mut |_| {});
            }
        }
    }

    #[test]
    fn a_stored_state_is_small() {
        const { assert!(State::STORED_BYTES_MAX < 16 << 10) };
        let patterns = patterns(TEXT);
        assert!(State::new().to_bytes(&patterns).len() < 64);
    }
}
