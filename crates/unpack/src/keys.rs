//! The search for the key of something encrypted: one candidate a turn, since each may cost as much as reading megabytes.
//!
//! What one archive or document holds has the same password throughout, and mostly the same key: the one that opened
//! something last is tried first and costs nothing.

use crate::password::Passwords;

/// How a key is made of a password.
pub(crate) trait Derivation: Clone + PartialEq {
    type Key: Clone;

    /// Bytes hashed for a password of so many bytes.
    fn cost(&self, password_bytes: usize) -> u64;

    /// The key, unless the password is known to be wrong.
    fn key(&self, password: &[u8]) -> Option<Self::Key>;
}

/// What the content looks like that comes out with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// It makes no sense.
    Wrong,
    /// Nothing speaks against it.
    Possible,
    Right,
}

/// How a turn went.
pub(crate) enum Tried<K> {
    /// There are more candidates.
    More,
    Found(K),
    /// None is right.
    Closed,
    /// The work that is granted is used up.
    Refused,
}

/// The candidates of one archive or document, and how far the search is.
pub(crate) struct Keys<D: Derivation> {
    passwords: Passwords,
    known: Option<(D, D::Key)>,
    known_tried: bool,
    turn: usize,
    possible: Option<(usize, D::Key)>,
}

impl<D: Derivation> Keys<D> {
    pub fn new(passwords: &Passwords) -> Keys<D> {
        Keys { passwords: passwords.clone(), known: None, known_tried: false, turn: 0, possible: None }
    }

    /// Tries the next candidate; what it cost is added to `work`. After anything but [`Tried::More`] the next search begins.
    pub fn attempt(&mut self, derivation: &D, work: &mut usize, judge: impl Fn(&D::Key) -> Judgement) -> Tried<D::Key> {
        let tried = self.turn(derivation, work, judge);
        if !matches!(tried, Tried::More) {
            (self.known_tried, self.turn, self.possible) = (false, 0, None);
        }
        tried
    }

    fn turn(&mut self, derivation: &D, work: &mut usize, judge: impl Fn(&D::Key) -> Judgement) -> Tried<D::Key> {
        if !std::mem::replace(&mut self.known_tried, true)
            && let Some((known, key)) = &self.known
            && known == derivation
            && judge(key) != Judgement::Wrong
        {
            return Tried::Found(key.clone());
        }
        let Some(password) = self.passwords.get(self.turn) else {
            return match self.possible.take() {
                Some((turn, key)) => self.found(turn, key, derivation),
                None => Tried::Closed,
            };
        };
        let cost = derivation.cost(password.len());
        if !self.passwords.grants(cost) {
            return Tried::Refused;
        }
        *work = work.saturating_add(usize::try_from(cost).unwrap_or(usize::MAX));
        if let Some(key) = derivation.key(password) {
            match judge(&key) {
                Judgement::Right => return self.found(self.turn, key, derivation),
                Judgement::Possible if self.possible.is_none() => self.possible = Some((self.turn, key)),
                Judgement::Possible | Judgement::Wrong => {}
            }
        }
        self.turn += 1;
        Tried::More
    }

    fn found(&mut self, turn: usize, key: D::Key, derivation: &D) -> Tried<D::Key> {
        self.passwords.opened(turn);
        self.known = Some((derivation.clone(), key.clone()));
        Tried::Found(key)
    }
}

#[cfg(test)]
mod tests {
    use stream::Limits;

    use super::*;

    /// The key is the password's length.
    #[derive(Clone, PartialEq)]
    struct Length;

    impl Derivation for Length {
        type Key = usize;

        fn cost(&self, _: usize) -> u64 {
            10
        }

        fn key(&self, password: &[u8]) -> Option<usize> {
            Some(password.len())
        }
    }

    fn search(key_bytes_max: u64, judge: impl Fn(usize) -> Judgement) -> (Option<usize>, usize) {
        let words = ["a", "bb", "ccc"].map(|word| word.as_bytes().into());
        let mut keys = Keys::new(&Passwords::new(words, &Limits { key_bytes_max, ..Limits::default() }));
        let mut work = 0;
        loop {
            match keys.attempt(&Length, &mut work, |key| judge(*key)) {
                Tried::More => {}
                Tried::Found(key) => return (Some(key), work),
                Tried::Closed | Tried::Refused => return (None, work),
            }
        }
    }

    #[test]
    fn the_right_one_is_taken_before_a_possible_one() {
        let judge = |right| move |key| if key == right { Judgement::Right } else { Judgement::Possible };
        assert_eq!(search(100, judge(2)), (Some(2), 20));
        assert_eq!(search(100, judge(9)), (Some(1), 30));
        assert_eq!(search(100, |_| Judgement::Wrong), (None, 30));
        assert_eq!(search(15, judge(2)), (None, 10));
    }
}
