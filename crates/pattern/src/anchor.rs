//! The choice of anchors: by which window of fixed bytes a part could be found in each shape.
//!
//! Of each shape the window is taken whose q-grams are rarest together, and which does not share them with many other
//! parts. Which shape it will be is decided for all parts together ([`shapes`](crate::shapes)).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::rarity;
use crate::run::Fixed;
use crate::shape::{BESIDE, Shape, WINDOW_BYTES_MAX};

/// Windows of a part that are compared by how many others share them.
const TRIED_MAX: usize = 16;
/// Parts that may share one q-gram before another window is looked for.
const SHARING_MAX: u32 = 8;
/// Passes in a kilobyte of so few that no other shape is asked for: with 2^17 parts a pass in eight kilobytes.
const RARE_ENOUGH: f32 = 1e-6;
/// How likely six bytes pass for other grams in which they are, whose bits are in the same word.
const SHARED_PASS: f32 = 1.0 / 64.0;
/// Number of parts up to which all choices are given, so that a small set may do with fewer shapes.
const SMALL_SET: usize = 8192;
/// The shapes by which more are found if they can be, and then the others.
const MANY: [Shape; 8] =
    [Shape::Q8S8, Shape::Q8S2, Shape::Q8S4, Shape::Q6S4, Shape::Q4S4, Shape::Q4S2, Shape::Q4S1, Shape::Q2S1];

/// A window of one shape that a part could be found by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) shape: Shape,
    /// Run of the part, and the offset in the run.
    run: u16,
    at: u16,
    /// How many sampled offsets in a kilobyte of ordinary content its grams will stand at, by the model.
    pub(crate) passes: f32,
}

#[cfg(test)]
impl Choice {
    /// That of the first window of a part.
    pub(crate) fn of(shape: Shape, passes: f32) -> Choice {
        Choice { shape, run: 0, at: 0, passes }
    }
}

/// A chosen window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Shape of its tier.
    pub(crate) shape: Shape,
    /// Whether some byte of the window is a letter in either case.
    pub(crate) caseless: bool,
    /// Run of the part, and the offset in the run.
    pub(crate) run: u16,
    pub(crate) at: u16,
    /// Bytes before the window, its `q + s - 1`, and bytes behind it; letters in any case are in upper case.
    pub(crate) bytes: [u8; 2 * BESIDE + WINDOW_BYTES_MAX],
    /// Whether the part has those before the window, and those behind it.
    pub(crate) has: [bool; 2],
}

impl Anchor {
    /// The anchor at a place of one of the runs of a part.
    pub(crate) fn new(choice: &Choice, runs: &[Fixed<'_>]) -> Anchor {
        let Choice { shape, run, at, .. } = *choice;
        let fixed = runs[usize::from(run)];
        let (start, end) = (usize::from(at), usize::from(at) + shape.window());
        let caseless = fixed.is_caseless(start..end);
        // What is folded only where the window is may not stand beside one that is not.
        let is_there =
            |place: &Range<usize>| place.end <= fixed.bytes.len() && (caseless || !fixed.is_caseless(place.clone()));
        let before = start.checked_sub(BESIDE).map(|before| before..start).filter(is_there);
        let behind = Some(end..end + BESIDE).filter(is_there);
        let mut bytes = [0; 2 * BESIDE + WINDOW_BYTES_MAX];
        for place in [before.clone(), Some(start..end), behind.clone()].into_iter().flatten() {
            bytes[place.start + BESIDE - start..][..place.len()].copy_from_slice(&fixed.bytes[place]);
        }
        Anchor { shape, caseless, run, at, bytes, has: [before.is_some(), behind.is_some()] }
    }

    /// That with this window, which is the first of its part.
    #[cfg(test)]
    pub(crate) fn of(shape: Shape, window: &[u8]) -> Anchor {
        Anchor::new(&Choice::of(shape, 0.0), &[Fixed::literal(window)])
    }

    /// The bytes of the window.
    pub(crate) fn window(&self) -> &[u8] {
        &self.bytes[BESIDE..][..self.shape.window()]
    }

    /// As many bytes as hold a window of any shape, those of the window first.
    pub(crate) fn wide_window(&self) -> &[u8; WINDOW_BYTES_MAX] {
        self.bytes[BESIDE..].first_chunk().expect("there are more")
    }

    /// The bytes before a gram of the window and those behind it, as far as the part has them.
    pub(crate) fn beside(&self, phase: usize) -> [Option<&[u8; BESIDE]>; 2] {
        let ([before, behind], end) = (self.has, phase + self.shape.q());
        let has = [before || phase >= BESIDE, behind || end + BESIDE <= self.shape.window()];
        [
            self.bytes[phase..].first_chunk().filter(|_| has[0]),
            self.bytes[BESIDE + end..].first_chunk().filter(|_| has[1]),
        ]
    }

    /// The anchor of a shorter shape within this one whose grams are rarest, and how many sampled offsets in a kilobyte
    /// they will stand at.
    pub(crate) fn shorter(&self, shape: Shape) -> (Anchor, f32) {
        let mut shares = Vec::new();
        rarity::shares(self.window(), shape.q(), &mut shares);
        let passes = shares.windows(shape.s()).map(|phases| shape.looks() * phases.iter().sum::<f32>()).enumerate();
        let (at, passes) = passes.min_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or_default();
        let end = at + shape.window();
        let has = [self.has[0] || at >= BESIDE, self.has[1] || end + BESIDE <= self.shape.window()];
        let mut bytes = [0; 2 * BESIDE + WINDOW_BYTES_MAX];
        bytes[..end - at + 2 * BESIDE].copy_from_slice(&self.bytes[at..end + 2 * BESIDE]);
        (Anchor { shape, at: self.at + at as u16, bytes, has, ..*self }, passes)
    }
}

/// A hash of what nobody chooses to collide: those who write signatures do not.
#[derive(Debug, Clone, Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.chunks(8).for_each(|eight| self.write_u64(rarity::number(eight)));
    }

    fn write_u64(&mut self, number: u64) {
        let spread = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Chooses windows of one part after the other, and remembers which q-grams are in use.
#[derive(Debug)]
pub(crate) struct Chooser {
    used: Used,
    /// How many anchors' q-grams are.
    taken: usize,
    /// The shares of the grams of the part, by their length over two: those of one run behind those of the one before.
    shares: [Vec<f32>; 5],
    /// Sums of the windows of a shape.
    sums: Vec<f32>,
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    share: f32,
    run: usize,
    at: usize,
}

impl Chooser {
    /// One that will choose for so many parts.
    pub(crate) fn new(parts: usize) -> Chooser {
        Chooser {
            used: Used::new(parts),
            taken: 0,
            shares: Default::default(),
            sums: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Tells the windows by which a part with these runs could be found, that of the cheapest shape to look for first;
    /// none if it has no two fixed bytes in a row within reach.
    pub(crate) fn choices(&mut self, runs: &[Fixed<'_>], choices: &mut Vec<Choice>) {
        self.shares.iter_mut().for_each(Vec::clear);
        let is_many = self.taken >= SMALL_SET;
        for shape in if is_many { MANY } else { Shape::ALL } {
            let choice = self.best_of(runs, shape);
            choices.extend(choice);
            if is_many && shape == Shape::Q8S2 && choice.is_some_and(|choice| choice.passes < RARE_ENOUGH) {
                break;
            }
        }
    }

    /// Notes that the q-grams of an anchor are in use.
    pub(crate) fn take(&mut self, anchor: &Anchor) {
        self.taken += 1;
        anchor.window().windows(anchor.shape.q()).for_each(|gram| self.used.add(key(gram)));
    }

    fn best_of(&mut self, runs: &[Fixed<'_>], shape: Shape) -> Option<Choice> {
        self.sum_up(runs, shape);
        // What passes for others that share a word decides between windows, not between shapes.
        let own_share = |one: &Candidate| match shape {
            Shape::Q8S2 => {
                let mut shares = Vec::with_capacity(shape.s());
                rarity::shares(&runs[one.run].bytes[one.at..][..shape.window()], shape.q(), &mut shares);
                shares.iter().sum()
            }
            _ => one.share,
        };
        let choice = |one: Candidate| Choice {
            shape,
            run: one.run as u16,
            at: one.at as u16,
            passes: shape.looks() * own_share(&one),
        };
        let (mut rarest, mut equal) = ((0, *self.sums.first()?), 0);
        for (place, &share) in self.sums.iter().enumerate().skip(1) {
            if share < rarest.1 {
                (rarest, equal) = ((place, share), 0);
            } else if share == rarest.1 {
                equal += 1;
            }
        }
        let mut places =
            runs.iter().enumerate().flat_map(|(run, fixed)| (0..fixed.windows(shape)).map(move |at| (run, at)));
        let (run, at) = places.clone().nth(rarest.0)?;
        let shared = |one: &Candidate| self.used.most(&runs[one.run].bytes[one.at..][..shape.window()], shape.q());
        let first = Candidate { share: rarest.1, run, at };
        // It is among those that are tried, and the first of them.
        if equal < TRIED_MAX && shared(&first) < SHARING_MAX {
            return Some(choice(first));
        }
        let candidates = &mut self.candidates;
        candidates.clear();
        candidates.extend(self.sums.iter().zip(&mut places).map(|(&share, (run, at))| Candidate { share, run, at }));
        let rarest_first = |one: &Candidate, other: &Candidate| one.share.total_cmp(&other.share);
        if candidates.len() > TRIED_MAX {
            candidates.select_nth_unstable_by(TRIED_MAX, rarest_first);
            candidates.truncate(TRIED_MAX);
        }
        candidates.sort_by(|one, other| rarest_first(one, other).then((one.run, one.at).cmp(&(other.run, other.at))));
        let few = candidates.iter().find(|candidate| shared(candidate) < SHARING_MAX);
        few.or_else(|| candidates.iter().min_by_key(|candidate| shared(candidate))).copied().map(choice)
    }

    /// Sums up the shares of the grams of each window of a shape.
    fn sum_up(&mut self, runs: &[Fixed<'_>], shape: Shape) {
        self.sums.clear();
        self.add_up(runs, shape, (shape.q(), shape.s()), 1.0);
        if shape == Shape::Q8S2 {
            self.add_up(runs, shape, (6, 4), SHARED_PASS);
        }
    }

    /// Adds to the sums of all windows the shares of the first `count` grams of `q` bytes, multiplied.
    fn add_up(&mut self, runs: &[Fixed<'_>], shape: Shape, (q, count): (usize, usize), times: f32) {
        let shares = &mut self.shares[q / 2];
        if shares.is_empty() {
            runs.iter().for_each(|run| rarity::shares(run.bytes, q, shares));
        }
        let windows = runs.iter().map(|run| run.windows(shape));
        self.sums.resize(windows.clone().sum(), 0.0);
        let (mut sums, mut rest) = (self.sums.as_mut_slice(), shares.as_slice());
        for (run, windows) in runs.iter().zip(windows) {
            let (here, others) = sums.split_at_mut(windows);
            for phase in 0..if windows > 0 { count } else { 0 } {
                here.iter_mut().zip(&rest[phase..]).for_each(|(sum, share)| *sum += share * times);
            }
            sums = others;
            rest = &rest[(run.bytes.len() + 1).saturating_sub(q)..];
        }
    }
}

/// How many anchors have a q-gram.
#[derive(Debug)]
struct Used {
    counts: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    /// A bit for each that is there: most that are asked for are not, and this is nearer than the counts.
    seen: Vec<u64>,
}

impl Used {
    /// For the grams of so many anchors.
    fn new(anchors: usize) -> Used {
        let grams = 8 * anchors;
        let words = (grams / 8).next_power_of_two().clamp(1 << 8, 1 << 18);
        Used { counts: HashMap::with_capacity_and_hasher(grams, BuildHasherDefault::default()), seen: vec![0; words] }
    }

    fn add(&mut self, key: u64) {
        *self.counts.entry(key).or_default() += 1;
        let (word, bit) = self.place(key);
        self.seen[word] |= bit;
    }

    /// Count of the most used gram of a window.
    fn most(&self, window: &[u8], q: usize) -> u32 {
        window.windows(q).map(|gram| self.count(key(gram))).max().unwrap_or(0)
    }

    fn count(&self, key: u64) -> u32 {
        let (word, bit) = self.place(key);
        if self.seen[word] & bit == 0 { 0 } else { self.counts.get(&key).copied().unwrap_or(0) }
    }

    fn place(&self, key: u64) -> (usize, u64) {
        let spread = key.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) >> 32;
        ((spread >> 6) as usize & (self.seen.len() - 1), 1 << (spread & 63))
    }
}

fn key(gram: &[u8]) -> u64 {
    rarity::number(gram) ^ (gram.len() as u64) << 60
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::piece::Piece;
    use crate::run::{Run, runs};

    /// The first choice for a part, and the distances of its window.
    fn chosen(part: &[Piece]) -> Option<(Anchor, Vec<u16>)> {
        let runs = runs(part);
        let fixed: Vec<Fixed<'_>> = runs.iter().map(Run::get).collect();
        let mut choices = Vec::new();
        Chooser::new(1).choices(&fixed, &mut choices);
        let anchor = Anchor::new(choices.first()?, &fixed);
        let distances = fixed[usize::from(anchor.run)].distances.iter().map(|distance| distance + anchor.at);
        Some((anchor, distances.collect()))
    }

    #[test]
    fn the_zeros_of_a_part_are_not_its_anchor() {
        let mut bytes = vec![0; 20];
        bytes.extend(b"\x91\x3c\xe2\x07\x5d\xb8\x4f\xa6\x11\xcd\x72\xf9\x2e\x83\x50");
        let (anchor, distances) = chosen(&Piece::bytes(&bytes)).expect("an anchor");
        assert_eq!(anchor.shape, Shape::Q8S8);
        assert_eq!(distances, [20]);
    }

    #[test]
    fn a_window_behind_alternatives_knows_every_distance() {
        let alternatives = vec![Piece::bytes(b"a"), Piece::bytes(b"bcd")];
        let mut part = vec![Piece::OneOf(alternatives), Piece::Skip(2)];
        part.extend(Piece::bytes(b"\x91\x3c\xe2\x07"));
        assert_eq!(chosen(&part).expect("an anchor").1, [3, 5]);
    }

    #[test]
    fn a_shorter_anchor_is_a_part_of_the_longer_one() {
        let mut bytes = vec![0; 5];
        bytes.extend(b"\x91\x3c\xe2\x07\x5d\xb8\x4f\xa6\x11\xcd");
        let (long, _) = chosen(&Piece::bytes(&bytes)).expect("an anchor");
        assert_eq!((long.shape, long.at), (Shape::Q8S8, 0));
        for shape in [Shape::Q8S4, Shape::Q4S4] {
            let (short, _) = long.shorter(shape);
            let at = usize::from(short.at);
            assert_eq!(short.window(), &bytes[at..at + shape.window()]);
            assert!(at > 3, "the zeros are avoided as far as they can be");
        }
    }

    #[test]
    fn bytes_out_of_reach_are_no_anchor() {
        let mut part = vec![Piece::Skip(300)];
        part.extend(Piece::bytes(b"fixed bytes"));
        assert_eq!(chosen(&part), None);
    }

    #[test]
    fn what_many_share_is_avoided_where_there_is_something_else() {
        let bytes: [u8; 60] = std::array::from_fn(|at| ((at as u32 + 1).wrapping_mul(0x9e37_79b1) >> 24) as u8);
        let fixed = [Fixed::literal(&bytes)];
        let mut chooser = Chooser::new(2 * SHARING_MAX as usize);
        let mut seen = Vec::new();
        for _ in 0..2 * SHARING_MAX {
            let mut choices = Vec::new();
            chooser.choices(&fixed, &mut choices);
            let anchor = Anchor::new(&choices[0], &fixed);
            chooser.take(&anchor);
            seen.push(anchor.at);
        }
        seen.dedup();
        assert!(seen.len() > 1, "{seen:?}");
    }
}
