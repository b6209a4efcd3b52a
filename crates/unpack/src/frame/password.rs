//! Candidate passwords for encrypted content, and the budget of work for trying them.
//!
//! The driver collects the candidates: configured ones, and words of the mail. They are the same for all readers of an
//! inspection, and so is the budget for deriving keys, which formats make costly on purpose. Content that no candidate
//! opens is emitted raw, with a finding of class `encrypted`.
//!
//! A candidate is bytes, mostly UTF-8. Formats that need UTF-16 read other bytes as Latin-1.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stream::{Class, Limits};
use text::utf16::{Endian, encode};

use crate::frame::codec::Fault;

/// Told beside that something is encrypted, where candidates remained that might have opened it.
pub(crate) const TOO_COSTLY: Fault = Fault::passing(Class::Encrypted, "Heuristics.Encrypted.Tries");

/// Candidates in the order in which they are tried, and the work that is left.
#[derive(Debug, Clone)]
pub struct Passwords {
    candidates: Arc<[Box<[u8]>]>,
    /// The one that opened something last: it is tried first.
    opened: usize,
    /// Bytes that may still be hashed for keys, shared by all that were cloned from one.
    work_left: Arc<AtomicU64>,
}

/// No candidates; formats may try passwords of their own.
impl Default for Passwords {
    fn default() -> Passwords {
        Passwords::new([], &Limits::default())
    }
}

impl Passwords {
    /// Starts with these candidates and a budget of `key_bytes_max`.
    pub fn new(candidates: impl IntoIterator<Item = Box<[u8]>>, limits: &Limits) -> Passwords {
        Passwords {
            candidates: candidates.into_iter().collect(),
            opened: 0,
            work_left: Arc::new(AtomicU64::new(limits.key_bytes_max)),
        }
    }

    /// Other candidates, and the work that is left of these.
    pub fn with(&self, candidates: impl IntoIterator<Item = Box<[u8]>>) -> Passwords {
        Passwords { candidates: candidates.into_iter().collect(), opened: 0, work_left: self.work_left.clone() }
    }

    /// The same candidates after another one.
    pub(crate) fn behind(&self, first: &[u8]) -> Passwords {
        self.with(std::iter::once(first.into()).chain(self.candidates.iter().cloned()))
    }

    /// Returns whether there are no candidates.
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }

    /// The candidate of this turn.
    pub(crate) fn get(&self, turn: usize) -> Option<&[u8]> {
        self.candidates.get(self.index(turn)).map(|candidate| &**candidate)
    }

    /// The candidate of this turn opened something.
    pub(crate) fn opened(&mut self, turn: usize) {
        self.opened = self.index(turn);
    }

    fn index(&self, turn: usize) -> usize {
        match turn {
            0 => self.opened,
            turn if turn <= self.opened => turn - 1,
            turn => turn,
        }
    }

    /// Asks for `bytes` of hashing; whether they may be spent.
    pub(crate) fn grants(&self, bytes: u64) -> bool {
        let spend = |left: u64| left.checked_sub(bytes);
        self.work_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }
}

/// A password as those formats want it that have it in UTF-16, little-endian.
pub(crate) fn utf16(password: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(password) {
        Ok(text) => encode(text, Endian::Little),
        Err(_) => password.iter().flat_map(|&byte| [byte, 0]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(words: &[&str], key_bytes_max: u64) -> Passwords {
        let words = words.iter().map(|word| word.as_bytes().into());
        Passwords::new(words, &Limits { key_bytes_max, ..Limits::default() })
    }

    #[test]
    fn what_opened_something_is_tried_first_and_each_once() {
        let mut passwords = candidates(&["a", "b", "c", "d"], 0);
        let order = |passwords: &Passwords| (0..5).map_while(|turn| passwords.get(turn)).collect::<Vec<_>>().concat();
        assert_eq!(order(&passwords), b"abcd");
        passwords.opened(2);
        assert_eq!(order(&passwords), b"cabd");
        passwords.opened(3);
        assert_eq!(order(&passwords), b"dabc");
    }

    #[test]
    fn work_is_shared_by_clones_and_ends() {
        let passwords = candidates(&[], 100);
        assert!(passwords.clone().grants(60));
        assert!(!passwords.with([]).grants(60));
        assert!(passwords.grants(40));
    }

    #[test]
    fn a_password_that_is_no_utf8_is_latin1() {
        assert_eq!(utf16("ä".as_bytes()), [0xe4, 0]);
        assert_eq!(utf16(b"\xe4"), [0xe4, 0]);
    }
}
