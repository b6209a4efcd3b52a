//! Content that a jail has died of.
//!
//! A sample of an object is the digest of what was fed first of it, at most [`SAMPLE_BYTES`]. A second jail that dies of the same
//! sample bans it for [`BANNED_FOR`]. Bounds: [`SUSPECTS_MAX`] samples, the oldest go first.

use std::collections::VecDeque;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of an object that are looked at.
const SAMPLE_BYTES: usize = 4096;

/// How long content is banned, and remembered.
const BANNED_FOR: Duration = Duration::from_secs(3600);

/// Samples remembered.
const SUSPECTS_MAX: usize = 1024;

/// Keys of this run: nobody makes content with the digest of another.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The digest of the first of an object, which does not depend on how it is cut.
#[derive(Debug, Clone)]
pub struct Sample {
    hasher: DefaultHasher,
    taken: usize,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { hasher: KEYS.build_hasher(), taken: 0 }
    }
}

impl Sample {
    /// Takes more of it.
    pub fn take(&mut self, bytes: &[u8]) -> &Sample {
        let count = bytes.len().min(SAMPLE_BYTES - self.taken);
        self.hasher.write(&bytes[..count]);
        self.taken += count;
        self
    }

    fn digest(&self) -> u64 {
        self.hasher.finish()
    }
}

/// Known suspects.
#[derive(Debug, Default)]
pub struct Suspects {
    known: Mutex<VecDeque<Suspect>>,
}

#[derive(Debug)]
struct Suspect {
    digest: u64,
    deaths: u32,
    last: Instant,
}

impl Suspects {
    /// A jail died while it worked on this.
    pub fn killed(&self, sample: &Sample) {
        let digest = sample.digest();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.retain(|suspect| now.saturating_duration_since(suspect.last) < BANNED_FOR);
        if let Some(suspect) = known.iter_mut().find(|suspect| suspect.digest == digest) {
            (suspect.deaths, suspect.last) = (suspect.deaths + 1, now);
            return;
        }
        if known.len() == SUSPECTS_MAX {
            known.pop_front();
        }
        known.push_back(Suspect { digest, deaths: 1, last: now });
    }

    /// Whether it is not to be inspected for now.
    pub fn is_banned(&self, sample: &Sample) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return false;
        }
        let digest = sample.digest();
        let is_it = |suspect: &Suspect| suspect.digest == digest && suspect.deaths > 1;
        known.iter().any(|suspect| is_it(suspect) && suspect.last.elapsed() < BANNED_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_died_of_is_banned() {
        let suspects = Suspects::default();
        let mut sample = Sample::default();
        sample.take(b"dead");
        assert!(!suspects.is_banned(sample.take(b"ly")));
        suspects.killed(&sample);
        assert!(!suspects.is_banned(&sample));
        suspects.killed(&sample);
        assert!(suspects.is_banned(&sample));
        assert!(!suspects.is_banned(sample.take(b", and more")), "another");
    }

    #[test]
    fn a_sample_is_the_same_however_its_object_is_cut() {
        let content: Vec<u8> = (0..2 * SAMPLE_BYTES).map(|at| at as u8).collect();
        let whole = Sample::default().take(&content).digest();
        for piece_bytes in [1, 3, 7, 8, 100, SAMPLE_BYTES - 1, SAMPLE_BYTES + 1] {
            let mut sample = Sample::default();
            content.chunks(piece_bytes).for_each(|piece| _ = sample.take(piece));
            assert_eq!(sample.digest(), whole, "{piece_bytes}");
        }
        assert_ne!(Sample::default().take(&content[1..]).digest(), whole);
    }

    #[test]
    fn no_more_are_remembered_than_the_bound() {
        let suspects = Suspects::default();
        for number in 0..2 * SUSPECTS_MAX as u32 {
            suspects.killed(Sample::default().take(&number.to_le_bytes()));
        }
        assert_eq!(suspects.known.lock().unwrap().len(), SUSPECTS_MAX);
    }
}
