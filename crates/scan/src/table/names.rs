//! The names of signatures, by number.
//!
//! Names of a file are sorted, so that those that follow each other are much alike; each is told by how much of the one
//! before it stays, and every [`RUN`]th is written out. A number is looked up in a few dozen nanoseconds, and only when something was found.

use std::io;
use std::ops::Range;

use pattern::flat::{Flat, Reader, Unfit, Writer};

use crate::jobs::{Job, longest_first};

/// Appended to the names of signatures that are not the engine's own makers'.
pub(crate) const UNOFFICIAL: &str = ".UNOFFICIAL";

/// So many names are read at most to get at one.
const RUN: usize = 32;

/// Names as they are collected.
#[derive(Debug, Default)]
pub(crate) struct NameList {
    text: String,
    ends: Vec<u64>,
}

impl NameList {
    /// Adds a name and returns its number.
    pub(crate) fn add(&mut self, name: &str, suffix: &str) -> u32 {
        self.text.push_str(name);
        self.text.push_str(suffix);
        self.ends.push(self.text.len() as u64);
        (self.ends.len() - 1) as u32
    }

    /// Takes back the last name.
    pub(crate) fn remove_last(&mut self) {
        self.ends.pop();
        self.text.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// The name with that number.
    pub(crate) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// All numbers, those within each of these ranges, which follow each other, in the order of the names that they have.
    /// `run` runs the jobs.
    pub(crate) fn sorted(&self, ranges: impl Iterator<Item = Range<u32>>, run: &dyn Fn(Vec<Job<'_>>)) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.len()).collect();
        let (mut rest, mut start) = (order.as_mut_slice(), 0);
        let mut jobs: Vec<(usize, Job<'_>)> = Vec::new();
        for range in ranges {
            let (_, from) = rest.split_at_mut((range.start - start) as usize);
            let (numbers, after) = from.split_at_mut(range.len());
            (rest, start) = (after, range.end);
            jobs.push((numbers.len(), Box::new(|| self.sort(numbers))));
        }
        run(longest_first(jobs));
        order
    }

    /// Sorts numbers by the names that they have; those of equal names stay in their order. Names have long beginnings in
    /// common, so that sixteen bytes are compared at once, and only where they are the same those behind them.
    fn sort(&self, numbers: &mut [u32]) {
        const TOGETHER: usize = 16;
        let key = |number: u32, from: usize| {
            let rest = &self.get(number).as_bytes()[from..];
            let mut bytes = [0; TOGETHER];
            let length = rest.len().min(TOGETHER);
            bytes[..length].copy_from_slice(&rest[..length]);
            // A name that ends here comes before those that go on.
            (u128::from_be_bytes(bytes), rest.len().min(TOGETHER + 1), number)
        };
        let mut waiting = vec![(0..numbers.len(), 0)];
        let mut keyed = Vec::with_capacity(numbers.len());
        while let Some((range, from)) = waiting.pop() {
            keyed.clear();
            keyed.extend(numbers[range.clone()].iter().map(|&number| key(number, from)));
            keyed.sort_unstable();
            let mut start = range.start;
            for same in keyed.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
                let end = start + same.len();
                numbers[start..end].iter_mut().zip(same).for_each(|(place, one)| *place = one.2);
                if same.len() > 1 && same[0].1 > TOGETHER {
                    waiting.push((start..end, from + TOGETHER));
                }
                start = end;
            }
        }
    }

    /// The names in a new order, to be looked up.
    pub(crate) fn finish(&self, order: &[u32]) -> Names {
        let (mut text, mut runs) = (Vec::new(), Vec::new());
        let mut before = "";
        for (place, &number) in order.iter().enumerate() {
            if place.is_multiple_of(RUN) {
                runs.push(text.len() as u64);
                before = "";
            }
            let name = self.get(number);
            let (stem, unofficial) = name.strip_suffix(UNOFFICIAL).map_or((name, 0), |stem| (stem, 1));
            let same = before.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b).count();
            put(&mut text, same << 1 | unofficial);
            put(&mut text, stem.len() - same);
            text.extend_from_slice(&stem.as_bytes()[same..]);
            before = stem;
        }
        Names { text: text.into(), runs: runs.into(), count: self.len() }
    }
}

/// Names, one told by the one before it: twice the bytes that stay the same, and 1 more if `.UNOFFICIAL` follows; how
/// many bytes are new; those.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    text: Flat<u8>,
    /// Where each run begins.
    runs: Flat<u64>,
    count: u32,
}

impl Names {
    /// The name with that number; without one nothing.
    pub(crate) fn get(&self, number: u32) -> String {
        self.find(number).unwrap_or_default()
    }

    fn find(&self, number: u32) -> Option<String> {
        let start = usize::try_from(*self.runs.get(number as usize / RUN)?).ok()?;
        let mut rest = self.text.get(start..)?;
        let (mut name, mut unofficial) = (Vec::new(), false);
        for _ in 0..=number as usize % RUN {
            let same = take(&mut rest)?;
            unofficial = same & 1 == 1;
            name.truncate(same >> 1);
            let new = take(&mut rest)?;
            let (new, after) = rest.split_at_checked(new)?;
            name.extend_from_slice(new);
            rest = after;
        }
        if unofficial {
            name.extend_from_slice(UNOFFICIAL.as_bytes());
        }
        String::from_utf8(name).ok()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        writer.array(&[self.count])?;
        writer.array(&self.runs)?;
        writer.array(&self.text)
    }

    pub(crate) fn load(reader: &mut Reader) -> Result<Names, Unfit> {
        let ([count], runs, text) = (reader.values()?, reader.array()?, reader.array()?);
        Ok(Names { text, runs, count })
    }
}

/// Appends a number, seven bits a byte, the lowest first.
fn put(text: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        text.push(number as u8 | 0x80);
        number >>= 7;
    }
    text.push(number as u8);
}

/// Takes a number.
fn take(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::in_turn;

    #[test]
    fn numbers_are_sorted_by_name_and_those_of_equal_names_stay_in_order() {
        let mut list = NameList::default();
        let parts = ["", "Win", "Win.", "Win.Trojan.", "Agent", "Agent-7", "\0", "\0\0", "eightbyt", "é"];
        for number in 0..3000usize {
            let at = |by: usize| parts[number / by % parts.len()];
            list.add(&format!("{}{}{}", at(1), at(7), at(49)), if number % 2 == 0 { UNOFFICIAL } else { "" });
        }
        let mut expected: Vec<u32> = (0..list.len()).collect();
        expected[100..2900].sort_by_key(|&number| list.get(number));
        assert_eq!(list.sorted(std::iter::once(100..2900), &in_turn), expected);
        let long = "x".repeat(1 << 20);
        let mut list = NameList::default();
        for end in ["b", "a", "a"] {
            list.add(&long, end);
        }
        assert_eq!(list.sorted(std::iter::once(0..3), &in_turn), [1, 2, 0]);
    }

    #[test]
    fn names_come_back_as_they_were() {
        let mut list = NameList::default();
        let name = |number: u32| match number % 3 {
            0 => format!("Win.Trojan.Agent-{}", number * 7919),
            1 => "é".repeat(number as usize),
            _ => String::new(),
        };
        for number in 0..100 {
            list.add(&name(number), if number % 2 == 0 { UNOFFICIAL } else { "" });
        }
        list.add("taken back", "");
        list.remove_last();
        let all: Vec<String> = (0..list.len()).map(|number| list.get(number).to_owned()).collect();
        let order: Vec<u32> = (0..list.len()).collect();
        let names = list.finish(&order);
        let back: Vec<String> = (0..names.len()).map(|number| names.get(number)).collect();
        assert_eq!(back, all);
        assert_eq!(names.get(100), "");
    }
}
