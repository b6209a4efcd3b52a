//! Which words are forgotten: those that decided nothing for longest, so that about three quarters of the bound are left.
//!
//! As SpamAssassin does it: words are counted by their age in steps that double from half a day on, and the step is taken that
//! leaves not less than is wanted. Where no step does any good, nothing is forgotten.

/// So many words are kept at least, whatever the bound.
const WORDS_MIN: u64 = 100_000;

/// The first step of an age, in seconds.
const PERIOD: i64 = 43_200;

/// Steps.
pub const STEPS: usize = 10;

/// Below so many words to forget it is not worth it.
const WORTH_MIN: u64 = 1_000;

/// How many words are left of a bound: three quarters of it.
pub fn wanted(words_max: u64) -> u64 {
    (words_max / 4).saturating_mul(3).max(WORDS_MIN)
}

/// Ages in seconds, shortest first: words that are older are forgotten.
pub fn ages() -> [i64; STEPS] {
    core::array::from_fn(|step| PERIOD.saturating_mul(1 << step.min(62)))
}

/// The age beyond which words are forgotten; none where that is not worth it. `words`: how many there are; `older`: how many
/// are older than each of [`ages`].
pub fn age(words: u64, words_max: u64, older: [u64; STEPS]) -> Option<i64> {
    let surplus = words.checked_sub(wanted(words_max)).filter(|surplus| *surplus >= WORTH_MIN)?;
    let steps = ages().into_iter().zip(older);
    let mut fitting = steps.filter(|(_, older)| (WORTH_MIN..=surplus).contains(older));
    fitting.next().map(|(age, _)| age)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_age_is_taken_that_leaves_enough() {
        let older = [190_000, 120_000, 90_000, 60_000, 900, 0, 0, 0, 0, 0];
        assert_eq!(age(200_000, 150_000, older), Some(ages()[3]), "87,500 are too many");
        assert_eq!(age(200_000, 260_000, older), None, "nothing is too much");
        assert_eq!(age(200_000, 150_000, [200_000, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None, "no step fits");
        assert_eq!(age(113_000, 150_000, [600, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None, "it is not worth it");
        assert_eq!(ages()[9], 43_200 * 512);
    }
}
