//! The search for the key of something encrypted: one candidate at a time, in slices, since each may cost as much as reading
//! megabytes.
//!
//! What one archive or document holds has the same password throughout, and mostly the same key: the one that opened
//! something last is tried first and costs nothing.
//!
//! Bounds: a turn hashes [`SLICE_BYTES`] at most, which takes a few milliseconds at the slowest; what a candidate costs is
//! asked for before it is tried, at least [`COST_MIN`].

use crate::frame::password::Passwords;

/// Bytes hashed in one turn.
pub(crate) const SLICE_BYTES: u64 = 512 << 10;

/// Least cost of a candidate: its output is judged, too.
pub(crate) const COST_MIN: u64 = 1024;

/// How a key is made of a password.
pub(crate) trait Derivation: Clone + PartialEq {
    type Key: Clone;
    /// A derivation on its way.
    type Work: Send;

    /// Bytes hashed for a password of so many bytes.
    fn cost(&self, password_bytes: usize) -> u64;

    /// Begins to make the key of a password.
    fn begin(&self, password: &[u8]) -> Self::Work;

    /// Hashes about so many bytes more, and at least one round.
    fn go_on(&self, work: &mut Self::Work, bytes: u64) -> Derived<Self::Key>;
}

/// How far a derivation is.
#[derive(Debug, PartialEq)]
pub(crate) enum Derived<K> {
    More,
    /// The key, unless the password is known to be wrong.
    Done(Option<K>),
}

/// Judgement of the content that a key decrypts.
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
    /// Further candidates remain, or more work for this one.
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
    /// Subject of the current search.
    searched: Option<D>,
    turn: usize,
    /// The current candidate, and the part of its cost that is still due.
    under_way: Option<(D::Work, u64)>,
    possible: Option<(usize, D::Key)>,
}

impl<D: Derivation> Keys<D> {
    pub fn new(passwords: &Passwords) -> Keys<D> {
        let passwords = passwords.clone();
        Keys { passwords, known: None, searched: None, turn: 0, under_way: None, possible: None }
    }

    /// Works on the next candidate; what that cost is added to `work`. After anything but [`Tried::More`] the next search
    /// begins. Asked for what is known meanwhile, it goes on with the search afterwards.
    pub fn attempt(&mut self, derivation: &D, work: &mut usize, judge: impl Fn(&D::Key) -> Judgement) -> Tried<D::Key> {
        if let Some((known, key)) = &self.known
            && known == derivation
            && judge(key) != Judgement::Wrong
        {
            return Tried::Found(key.clone());
        }
        if self.searched.as_ref() != Some(derivation) {
            (self.searched, self.turn, self.under_way, self.possible) = (Some(derivation.clone()), 0, None, None);
        }
        let tried = self.turn(derivation, work, judge);
        if !matches!(tried, Tried::More) {
            self.searched = None;
        }
        tried
    }

    fn turn(&mut self, derivation: &D, work: &mut usize, judge: impl Fn(&D::Key) -> Judgement) -> Tried<D::Key> {
        let (mut way, left) = match self.under_way.take() {
            Some(under_way) => under_way,
            None => {
                let Some(password) = self.passwords.get(self.turn) else {
                    return match self.possible.take() {
                        Some((turn, key)) => self.found(turn, key, derivation),
                        None => Tried::Closed,
                    };
                };
                let cost = derivation.cost(password.len()).max(COST_MIN);
                if !self.passwords.grants(cost) {
                    return Tried::Refused;
                }
                (derivation.begin(password), cost)
            }
        };
        let slice = left.min(SLICE_BYTES);
        // Work beyond the estimated cost counts too.
        *work = work.saturating_add(slice.max(COST_MIN) as usize);
        match derivation.go_on(&mut way, SLICE_BYTES) {
            Derived::More => {
                self.under_way = Some((way, left.saturating_sub(slice)));
                return Tried::More;
            }
            Derived::Done(None) => {}
            Derived::Done(Some(key)) => match judge(&key) {
                Judgement::Right => return self.found(self.turn, key, derivation),
                Judgement::Possible if self.possible.is_none() => self.possible = Some((self.turn, key)),
                Judgement::Possible | Judgement::Wrong => {}
            },
        }
        self.turn = self.turn.saturating_add(1);
        Tried::More
    }

    fn found(&mut self, turn: usize, key: D::Key, derivation: &D) -> Tried<D::Key> {
        self.passwords.opened(turn);
        self.known = Some((derivation.clone(), key.clone()));
        Tried::Found(key)
    }
}

/// Makes a key in one go.
#[cfg(test)]
pub(crate) fn derive<D: Derivation>(derivation: &D, password: &[u8]) -> Option<D::Key> {
    let mut work = derivation.begin(password);
    loop {
        if let Derived::Done(key) = derivation.go_on(&mut work, SLICE_BYTES) {
            return key;
        }
    }
}

#[cfg(test)]
mod tests {
    use stream::Limits;

    use super::*;

    /// The key is the password's length; it takes so many slices.
    #[derive(Clone, PartialEq)]
    struct Length {
        slices: u64,
    }

    impl Derivation for Length {
        type Key = usize;
        type Work = (usize, u64);

        fn cost(&self, _: usize) -> u64 {
            self.slices * SLICE_BYTES
        }

        fn begin(&self, password: &[u8]) -> (usize, u64) {
            (password.len(), self.slices)
        }

        fn go_on(&self, work: &mut (usize, u64), _: u64) -> Derived<usize> {
            work.1 = work.1.saturating_sub(1);
            if work.1 > 0 { Derived::More } else { Derived::Done(Some(work.0)) }
        }
    }

    fn search(slices: u64, key_bytes_max: u64, judge: impl Fn(usize) -> Judgement) -> (Option<usize>, usize) {
        let words = ["a", "bb", "ccc"].map(|word| word.as_bytes().into());
        let mut keys = Keys::new(&Passwords::new(words, &Limits { key_bytes_max, ..Limits::default() }));
        let mut work = 0;
        loop {
            let before = work;
            let tried = keys.attempt(&Length { slices }, &mut work, |key| judge(*key));
            assert!(work - before <= SLICE_BYTES as usize, "more than a slice in a turn");
            match tried {
                Tried::More => assert!(work > before, "a turn costs"),
                Tried::Found(key) => return (Some(key), work),
                Tried::Closed | Tried::Refused => return (None, work),
            }
        }
    }

    const COST: usize = COST_MIN as usize;

    #[test]
    fn the_right_one_is_taken_before_a_possible_one() {
        let judge = |right| move |key| if key == right { Judgement::Right } else { Judgement::Possible };
        assert_eq!(search(0, 10 * COST_MIN, judge(2)), (Some(2), 2 * COST));
        assert_eq!(search(0, 10 * COST_MIN, judge(9)), (Some(1), 3 * COST));
        assert_eq!(search(0, 10 * COST_MIN, |_| Judgement::Wrong), (None, 3 * COST));
    }

    #[test]
    fn what_costs_nothing_is_paid_for_all_the_same() {
        assert_eq!(search(0, COST_MIN + 1, |_| Judgement::Wrong), (None, COST));
    }

    #[test]
    fn what_is_costly_is_done_in_slices() {
        let slice = SLICE_BYTES as usize;
        let judge = |key| if key == 2 { Judgement::Right } else { Judgement::Wrong };
        assert_eq!(search(5, u64::MAX, judge), (Some(2), 10 * slice));
        assert_eq!(search(5, 9 * SLICE_BYTES, judge), (None, 5 * slice));
    }
}
