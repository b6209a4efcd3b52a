//! Searching the kept beginning of an object for a string.
//!
//! YARA looks for the string's atoms and goes on from each: forwards for one match, and backwards for every start. One match
//! is kept of a start: the last one found where quantifiers are greedy, else the first. The parts of a string that is cut
//! are looked for one by one, and make a match if the jumps between them fit.
//!
//! Bounds: [`Work`], as many matches as asked for, [`WAITING_MAX`].

use std::collections::VecDeque;

use regex_automata::Input;
use regex_automata::meta::Regex;

use super::finder::{Finder, Sought};
use super::walk::{Begin, GivenUp, Walker, Work};

/// The most matches of a part that wait for the next one.
const WAITING_MAX: usize = 65_536;
/// The bytes whose work is counted at once.
const BYTES_AT_ONCE: usize = 1024;

/// The matches of a string.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Start and length, in the order of the starts.
    pub(crate) places: Vec<(u64, u64)>,
    /// The work that was done.
    pub(crate) work: u64,
    /// Whether that was all that there is to see.
    pub(crate) whole: bool,
}

impl Finder {
    /// Looks for the string: for one match, or for so many.
    pub(crate) fn find(&self, content: &[u8], matches_max: usize, work_max: u64) -> Found {
        let mut search = Search {
            finder: self,
            content,
            walker: Walker::default(),
            work: Work { done: 0, max: work_max },
            places: Vec::new(),
            waiting: vec![VecDeque::new(); self.parts.len()],
            matches_max,
            lengths: Vec::new(),
        };
        let outcome = match &self.filter {
            Some(filter) => search.run_filtered(filter),
            None => search.run(),
        };
        let whole = !matches!(outcome, Err(Stop::GivenUp));
        Found { work: search.work.done, places: search.places, whole }
    }
}

/// A match of a part that waits for the next one.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    start: u64,
    length: u64,
    /// The number of parts behind it that fit.
    followed: usize,
}

struct Search<'f> {
    finder: &'f Finder,
    content: &'f [u8],
    walker: Walker,
    work: Work,
    places: Vec<(u64, u64)>,
    waiting: Vec<VecDeque<Waiting>>,
    matches_max: usize,
    /// Room for the lengths that a search backwards tells.
    lengths: Vec<usize>,
}

/// The search ends before the content does: it has enough, or a bound was reached.
#[derive(Debug)]
enum Stop {
    Enough,
    GivenUp,
}

impl From<GivenUp> for Stop {
    fn from(_: GivenUp) -> Stop {
        Stop::GivenUp
    }
}

impl Search<'_> {
    /// Goes from atom to atom, in the order of their ends.
    fn run(&mut self) -> Result<(), Stop> {
        let (finder, content) = (self.finder, self.content);
        let ends = Ends::new(finder);
        let bare: Vec<usize> = (0..finder.parts.len()).filter(|&part| finder.parts[part].bare.is_some()).collect();
        for (chunk, bytes) in content.chunks(BYTES_AT_ONCE).enumerate() {
            self.work.add(bytes.len() as u64)?;
            for (&byte, at) in bytes.iter().zip(chunk * BYTES_AT_ONCE..) {
                for &part in &bare {
                    if let Some((begin, _)) = finder.parts[part].bare.as_ref().filter(|(_, firsts)| firsts.has(byte)) {
                        self.verify(part, at, (*begin, None))?;
                    }
                }
                for &number in ends.of(byte) {
                    let sought = &finder.atoms[usize::from(number)];
                    let Some(start) = (at + 1).checked_sub(sought.atom.len()) else { continue };
                    if finder.is_at(&sought.atom, &content[start..=at]) {
                        self.verify_atom(sought, start)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes from one start of a match of the filter to the next; if there are atoms, from atom to atom, if the filter matches at
    /// all.
    fn run_filtered(&mut self, filter: &Regex) -> Result<(), Stop> {
        let Some((begin, _)) = self.finder.parts.first().and_then(|part| part.bare) else {
            self.work.add(self.content.len() as u64)?;
            return if filter.is_match(self.content) { self.run() } else { Ok(()) };
        };
        let mut from = 0;
        while from < self.content.len() {
            let found = filter.find(Input::new(self.content).range(from..));
            let end = found.map_or(self.content.len(), |found| found.end());
            self.work.add(end as u64 - from as u64 + 1)?;
            let Some(found) = found.filter(|found| found.start() < self.content.len()) else {
                return Ok(());
            };
            self.verify(0, found.start(), (begin, None))?;
            from = found.start() + 1;
        }
        Ok(())
    }

    fn verify_atom(&mut self, sought: &Sought, start: usize) -> Result<(), Stop> {
        let &Sought { part, atom, begin, back } = sought;
        let part = usize::from(part);
        match self.finder.parts[part].fits {
            Some(text) => self.matched(part, (start, atom.len()), atom.len() == 2 * text && self.finder.wide),
            None => self.verify(part, start, (begin, Some(back))),
        }
    }

    /// Goes on from a place, forwards and backwards.
    fn verify(&mut self, part: usize, offset: usize, (at, back): (u32, Option<u32>)) -> Result<(), Stop> {
        let (finder, content) = (self.finder, self.content);
        let one = &finder.parts[part];
        let mut begin = Begin { content, offset, at, mode: finder.mode };
        let mut length = None;
        if finder.ascii {
            length = self.walker.forwards(&one.forwards, begin, &mut self.work)?;
        }
        if length.is_none() && finder.wide {
            begin.mode.wide = true;
            length = self.walker.forwards(&one.forwards, begin, &mut self.work)?;
        }
        let Some(length) = length else { return Ok(()) };
        let Some(at) = back else {
            return if length == 0 { Ok(()) } else { self.matched(part, (offset, length), begin.mode.wide) };
        };
        let mut lengths = std::mem::take(&mut self.lengths);
        lengths.clear();
        self.walker.backwards(&one.backwards, Begin { at, ..begin }, &mut self.work, &mut |more| {
            lengths.push(more);
            Ok(())
        })?;
        for &more in &lengths {
            let start = offset.saturating_sub(more);
            self.matched(part, (start, length + more), begin.mode.wide)?;
        }
        self.lengths = lengths;
        Ok(())
    }

    /// A part matches, if it stands alone where it has to.
    fn matched(&mut self, part: usize, (start, length): (usize, usize), wide: bool) -> Result<(), Stop> {
        self.work.add(1)?;
        if self.finder.fullword && !stands_alone(self.content, start, start + length, wide) {
            return Ok(());
        }
        let (start, length) = (start as u64, length as u64);
        match self.finder.parts.len() {
            1 => self.add(start, length, self.finder.greedy),
            _ => self.chained(part, start, length),
        }
    }

    fn add(&mut self, start: u64, length: u64, replaces: bool) -> Result<(), Stop> {
        let at = match self.places.last() {
            Some((last, _)) if *last >= start => self.places.partition_point(|(known, _)| *known < start),
            _ => self.places.len(),
        };
        match self.places.get_mut(at).filter(|(known, _)| *known == start) {
            Some(known) if replaces => known.1 = length,
            Some(_) => {}
            None => self.places.insert(at, (start, length)),
        }
        if self.places.len() >= self.matches_max { Err(Stop::Enough) } else { Ok(()) }
    }

    /// A part of several matches.
    fn chained(&mut self, part: usize, start: u64, length: u64) -> Result<(), Stop> {
        if !self.follows(part, start)? {
            return Ok(());
        }
        if part + 1 == self.finder.parts.len() {
            self.note(part, start)?;
            return self.complete(part, start + length);
        }
        let waiting = &mut self.waiting[part];
        let at = match waiting.back() {
            Some(last) if last.start >= start => waiting.partition_point(|known| known.start < start),
            _ => waiting.len(),
        };
        if waiting.get(at).is_none_or(|known| known.start != start) {
            waiting.insert(at, Waiting { start, length, followed: 0 });
        }
        if waiting.len() > WAITING_MAX { Err(Stop::GivenUp) } else { Ok(()) }
    }

    /// Whether a match of the part before leads to a part that starts there. Forgets those that are too far away.
    fn follows(&mut self, part: usize, start: u64) -> Result<bool, Stop> {
        let Some(before) = part.checked_sub(1) else { return Ok(true) };
        let gap = self.finder.parts[part].gap;
        let lowest = self.waiting[part].front().map_or(start, |first| first.start);
        let mut index = 0;
        while let Some(one) = self.waiting[before].get(index) {
            self.work.add(1)?;
            if one.end().saturating_add(gap.1) < lowest {
                self.waiting[before].remove(index);
            } else if one.leads_to(start, gap) {
                return Ok(true);
            } else {
                index += 1;
            }
        }
        Ok(false)
    }

    /// The last part matches: what waits and leads there is a match.
    fn complete(&mut self, part: usize, end: u64) -> Result<(), Stop> {
        let mut index = 0;
        while let Some(&one) = self.waiting[0].get(index) {
            self.work.add(1)?;
            if one.followed == part {
                self.waiting[0].remove(index);
                self.add(one.start, end - one.start, false)?;
            } else {
                index += 1;
            }
        }
        Ok(())
    }

    /// Notes of the matches that lead to a part how many parts follow.
    fn note(&mut self, part: usize, start: u64) -> Result<(), Stop> {
        let mut left = vec![(part, start, 1)];
        while let Some((part, start, followed)) = left.pop() {
            let Some(before) = part.checked_sub(1) else { continue };
            let gap = self.finder.parts[part].gap;
            for one in &mut self.waiting[before] {
                self.work.add(1)?;
                if one.leads_to(start, gap) && one.followed != followed {
                    one.followed = followed;
                    left.push((before, one.start, followed + 1));
                }
            }
        }
        Ok(())
    }
}

impl Waiting {
    fn end(&self) -> u64 {
        self.start + self.length
    }

    fn leads_to(&self, start: u64, (min, max): (u64, u64)) -> bool {
        self.end().saturating_add(max) >= start && self.end().saturating_add(min) <= start
    }
}

/// The atoms by the last byte that they have.
struct Ends {
    numbers: Vec<u16>,
    starts: [u32; 257],
}

impl Ends {
    fn new(finder: &Finder) -> Ends {
        let (mut numbers, mut starts) = (Vec::new(), [0; 257]);
        for byte in 0..=u8::MAX {
            let ends = |sought: &Sought| {
                sought.atom.bytes().next_back().is_some_and(|(value, mask)| finder.is_byte(byte, value, mask))
            };
            let all = (0u16..).zip(&finder.atoms).filter(|(_, sought)| ends(sought)).map(|(number, _)| number);
            numbers.extend(all);
            starts[usize::from(byte) + 1] = numbers.len() as u32;
        }
        Ends { numbers, starts }
    }

    fn of(&self, byte: u8) -> &[u16] {
        let (start, end) = (self.starts[usize::from(byte)], self.starts[usize::from(byte) + 1]);
        self.numbers.get(start as usize..end as usize).unwrap_or(&[])
    }
}

/// Whether no letter and no digit stands beside a match.
fn stands_alone(content: &[u8], start: usize, end: usize, wide: bool) -> bool {
    let letter = |at: usize| content.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let zero = |at: usize| content.get(at) == Some(&0);
    let (before, after) = match wide {
        true => (start >= 2 && zero(start - 1) && letter(start - 2), zero(end + 1) && letter(end)),
        false => (start >= 1 && letter(start - 1), letter(end)),
    };
    !(before || after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::body::BodyPart;
    use crate::yara::finder::Kept;
    use crate::yara::hex;

    fn find(parts: &[BodyPart], content: &[u8], work_max: u64) -> Found {
        Kept::of_body(parts).and_then(|kept| kept.finder().ok()).expect("a finder").find(content, 9_999, work_max)
    }

    #[test]
    fn what_is_searched_is_bounded() {
        let body = hex::parse(b"61(62|61)[0-90](61|62??)[0-90]6162").expect("a body");
        let found = find(&body, &vec![b'a'; 4 << 20], 1 << 20);
        assert!(!found.whole && found.work < (1 << 20) + 4096 && found.places.is_empty());
        let chain = hex::parse(b"61[-]6263[300-]6162").expect("a body");
        let found = find(&chain, &vec![b'a'; 4 << 20], 16 << 20);
        assert!(!found.whole && found.places.is_empty());
        assert_eq!(find(&chain, &[&b"abc"[..], &[b'x'; 300], b"ab"].concat(), 1 << 20).places, [(0, 305)]);
    }
}
