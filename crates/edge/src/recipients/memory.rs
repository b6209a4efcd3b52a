//! Memory of answers: for a while, and bounded.
//!
//! Those who have a mailbox and those who have none are remembered apart, so that whoever tries out names pushes nobody out whom
//! mail is for. Each half has two generations: when the young one is full it becomes the old one, and what was in that is
//! forgotten; an answer that is asked for again is young again. No look-up costs more than two tables.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::answer::Answer;

/// How long answers hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Until then it is answered from memory.
    pub keep: Duration,
    /// From then on it is asked again meanwhile.
    pub refresh: Duration,
}

/// Answers, by the numbers of addresses.
#[derive(Debug)]
pub struct Memory {
    valid: Half,
    refused: Half,
}

#[derive(Debug)]
struct Half {
    times: Times,
    most: usize,
    young: HashMap<u64, (Instant, Answer)>,
    old: HashMap<u64, (Instant, Answer)>,
}

impl Memory {
    /// So many answers of each kind at most.
    pub fn new(valid: Times, refused: Times, most: usize) -> Memory {
        let half = |times| Half { times, most: (most / 2).max(1), young: HashMap::new(), old: HashMap::new() };
        Memory { valid: half(valid), refused: half(refused) }
    }

    /// Remembered answer, and whether to ask again meanwhile.
    pub fn find(&mut self, number: u64, now: Instant) -> Option<(Answer, bool)> {
        self.valid.find(number, now).or_else(|| self.refused.find(number, now))
    }

    /// Remembers an answer, in place of the one before. What could not be asked is not remembered.
    pub fn learn(&mut self, number: u64, answer: &Answer, now: Instant) {
        let (half, other) = match answer {
            Answer::Valid => (&mut self.valid, &mut self.refused),
            Answer::Unknown(_) | Answer::Refused(_) | Answer::Full(_) => (&mut self.refused, &mut self.valid),
            Answer::Unsure { .. } => return,
        };
        other.young.remove(&number);
        other.old.remove(&number);
        half.put(number, (now, answer.clone()));
    }

    /// How many answers there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        [&self.valid, &self.refused].map(|half| half.young.len() + half.old.len()).iter().sum()
    }
}

impl Half {
    fn find(&mut self, number: u64, now: Instant) -> Option<(Answer, bool)> {
        let (at, answer) = match self.young.get(&number) {
            Some(known) => known.clone(),
            None => {
                let known = self.old.remove(&number)?;
                self.put(number, known.clone());
                known
            }
        };
        let age = now.saturating_duration_since(at);
        (age < self.times.keep).then_some((answer, age >= self.times.refresh))
    }

    fn put(&mut self, number: u64, known: (Instant, Answer)) {
        if self.young.len() >= self.most && !self.young.contains_key(&number) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&number);
        self.young.insert(number, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn memory(most: usize) -> Memory {
        let times = |hours| Times { keep: hours * HOUR, refresh: hours * HOUR / 2 };
        Memory::new(times(10), times(2), most)
    }

    #[test]
    fn answers_hold_for_their_time_and_are_asked_again_before() {
        let (mut memory, now) = (memory(10), Instant::now());
        memory.learn(1, &Answer::Valid, now);
        memory.learn(2, &Answer::unknown(), now);
        memory.learn(3, &Answer::unsure("away"), now);
        let mut known =
            |number, hours| memory.find(number, now + hours * HOUR).map(|(answer, again)| (answer.name(), again));
        assert_eq!(known(1, 4), Some(("valid", false)));
        assert_eq!(known(1, 5), Some(("valid", true)));
        assert_eq!(known(1, 10), None);
        assert_eq!([known(2, 0), known(2, 1), known(2, 2)], [Some(("unknown", false)), Some(("unknown", true)), None]);
        assert_eq!(known(3, 0), None, "what could not be asked is not remembered");
    }

    #[test]
    fn the_last_answer_counts() {
        let (mut memory, now) = (memory(10), Instant::now());
        for answer in [Answer::Valid, Answer::unknown(), Answer::Valid, Answer::unknown()] {
            memory.learn(1, &answer, now);
            assert_eq!(memory.find(1, now).unwrap().0, answer);
        }
        assert_eq!(memory.len(), 1);
    }

    #[test]
    fn strangers_push_out_strangers_alone_and_memory_is_bounded() {
        let (mut memory, now) = (memory(100), Instant::now());
        (0..10).for_each(|number| memory.learn(number, &Answer::Valid, now));
        for number in 1_000..100_000 {
            memory.learn(number, &Answer::unknown(), now);
            assert!(memory.len() <= 110);
        }
        assert!((0..10).all(|number| memory.find(number, now).is_some()));
        assert!(memory.find(99_999, now).is_some() && memory.find(1_000, now).is_none());
    }
}
