//! A set of texts, of which nothing is kept but eight bytes each.
//!
//! What is kept is SipHash under a key of the process' own, so nobody outside can make two addresses look alike. That an
//! address which is not in a set of ten million is taken for one of them has a probability of 5 in 10^13: the next hop is
//! asked then, as it would be without a table.
//!
//! The numbers are sorted, and `starts` says where those begin that share their first bits: a look-up reads two lines of
//! memory. A set of a million takes 8.5 MB, one of ten million 85.

use std::hash::{BuildHasher, RandomState};

/// The key under which texts become numbers.
#[derive(Debug, Clone, Default)]
pub struct Seed(RandomState);

impl Seed {
    /// The number of a text.
    pub fn number(&self, text: &str) -> u64 {
        self.0.hash_one(text)
    }
}

/// A set of numbers that are spread evenly.
#[derive(Debug, Default)]
pub struct Keys {
    /// Sorted, each once.
    numbers: Box<[u64]>,
    /// Where the numbers begin that start with these bits; one more than there are such starts. Empty: there are none.
    starts: Box<[u32]>,
    /// How many bits that are.
    bits: u32,
}

/// A set could not be told where its numbers begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

impl Keys {
    /// The set of these numbers.
    ///
    /// # Errors
    /// When there are more than four billion.
    pub fn new(mut numbers: Vec<u64>) -> Result<Keys, TooMany> {
        numbers.sort_unstable();
        numbers.dedup();
        if u32::try_from(numbers.len()).is_err() {
            return Err(TooMany);
        }
        // Eight numbers on average share their first bits: they are one line of memory.
        let bits = (numbers.len() / 8).max(2).ilog2();
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut next = 0_u64;
        for (index, number) in numbers.iter().enumerate() {
            while next <= number >> (64 - bits) {
                starts.push(index as u32);
                next += 1;
            }
        }
        starts.resize((1 << bits) + 1, numbers.len() as u32);
        Ok(Keys { numbers: numbers.into(), starts: starts.into(), bits })
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there is no key.
    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether a number is one of them.
    pub fn holds(&self, number: u64) -> bool {
        if self.is_empty() {
            return false;
        }
        let bucket = (number >> (64 - self.bits)) as usize;
        let (Some(&from), Some(&to)) = (self.starts.get(bucket), self.starts.get(bucket + 1)) else { return false };
        let alike = self.numbers.get(from as usize..to as usize).unwrap_or_default();
        alike.contains(&number)
    }

    /// The bytes that it takes.
    pub const fn bytes(&self) -> usize {
        size_of_val(&*self.numbers) + size_of_val(&*self.starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_and_nothing_else() {
        let seed = Seed::default();
        for count in [0_u32, 1, 2, 15, 16, 17, 1_000, 100_000] {
            let name = |number: u32| seed.number(&format!("user{number}@example.org"));
            let keys = Keys::new((0..count).chain(0..count).map(name).collect()).unwrap();
            assert_eq!(keys.len(), count as usize);
            assert!((0..count).all(|number| keys.holds(name(number))), "{count}");
            assert!((count..2 * count + 10).all(|number| !keys.holds(name(number))), "{count}");
        }
    }

    #[test]
    fn the_first_and_the_last_number_are_found() {
        for numbers in [vec![0, u64::MAX], vec![0; 100], vec![u64::MAX; 100], (0..100).collect()] {
            let keys = Keys::new(numbers.clone()).unwrap();
            assert!(numbers.iter().all(|&number| keys.holds(number)), "{numbers:?}");
            assert!(!keys.holds(1 << 40));
        }
    }

    #[test]
    fn an_address_takes_less_than_nine_bytes() {
        let seed = Seed::default();
        let keys = Keys::new((0..1_000_000_u32).map(|number| seed.number(&number.to_string())).collect()).unwrap();
        assert!(keys.bytes() < 9_000_000, "{}", keys.bytes());
    }
}
