//! Chooses the words to forget: those that decided nothing for longest, so that about three quarters of the bound are
//! left.
//!
//! SpamAssassin counts words by their age in steps that double, and takes the step that leaves not less than that: it may leave more
//! than the bound, or find no step that does any good. Here so many are forgotten that as many are left as are wanted, but for those
//! of one age: they stay together.

/// Minimum number of words that are kept, whatever the bound.
const WORDS_MIN: u64 = 100_000;

/// Below so many words to forget it is not worth it.
const WORTH_MIN: u64 = 1_000;

/// Words that decided something within so many seconds before the newest are never forgotten for their age.
pub const AGE_MIN: i64 = 43_200;

/// How many words may be forgotten of so many; none where that is not worth it.
pub fn surplus(words: u64, words_max: u64) -> Option<u64> {
    let wanted = (words_max / 4).saturating_mul(3).max(WORDS_MIN);
    words.checked_sub(wanted).filter(|surplus| *surplus >= WORTH_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_of_the_bound_are_left() {
        assert_eq!(surplus(200_000, 150_000), Some(87_500));
        assert_eq!(surplus(200_000, 120_000), Some(100_000), "and never less than so many");
        assert_eq!(surplus(200_000, 260_000), Some(5_000));
        assert_eq!(surplus(113_000, 150_000), None, "it is not worth it");
        assert_eq!(surplus(5, 150_000), None);
    }
}
