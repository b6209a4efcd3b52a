//! The choice of anchors: by which window of fixed bytes a part could be found in each shape.
//!
//! Of each shape the window is taken whose q-grams are rarest together, and which does not share them with many other
//! parts. Which shape it will be is decided for all parts together ([`shapes`](crate::shapes)).

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::piece::Piece;
use crate::rarity;
use crate::shape::Shape;

/// The farthest that an anchor's end may lie behind the start of its part. The history must reach back that far.
pub(crate) const REACH_MAX: usize = 240;
/// Windows of a part that are compared by how many others share them.
const TRIED_MAX: usize = 16;
/// Parts that may share one q-gram before another window is looked for.
const SHARING_MAX: u32 = 8;
/// Passes in a kilobyte of so few that no other shape is asked for: with 2^17 parts a pass in eight kilobytes.
const RARE_ENOUGH: f32 = 1e-6;
/// Of so many parts all choices are told, so that a small set may do with fewer shapes.
const SMALL_SET: usize = 8192;

/// A chosen window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// Which shape of tier it is for.
    pub(crate) shape: Shape,
    /// The bytes of the window, `q + s - 1` of them; letters in any case are in upper case.
    pub(crate) window: Vec<u8>,
    /// Whether some byte of the window is a letter in either case.
    pub(crate) caseless: bool,
    /// The distances from the start of the part to the start of the window.
    pub(crate) distances: Vec<u16>,
}

impl Anchor {
    /// The anchor of a shorter shape within this one: that whose grams are rarest.
    pub(crate) fn shorter(&self, shape: Shape) -> Choice {
        let shares = rarity::shares(&self.window, shape.q());
        let passes = shares.windows(shape.s()).map(|phases| passes(shape, phases)).enumerate();
        let (at, passes) = passes.min_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or_default();
        let anchor = Anchor {
            shape,
            window: self.window[at..at + shape.window()].to_vec(),
            caseless: self.caseless,
            distances: self.distances.iter().map(|distance| distance + at as u16).collect(),
        };
        Choice { anchor, passes }
    }
}

/// An anchor of one shape that a part could have.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) anchor: Anchor,
    /// How many sampled offsets in a kilobyte of ordinary content its grams will stand at, by the model.
    pub(crate) passes: f32,
}

/// How many sampled offsets in a kilobyte have one of the grams, whose shares these are.
fn passes(shape: Shape, shares: &[f32]) -> f32 {
    shape.looks() * shares.iter().sum::<f32>()
}

/// A run of fixed bytes in a part.
struct Run {
    bytes: Vec<u8>,
    caseless: Vec<bool>,
    /// At which distances from the start of the part it may begin.
    distances: Vec<u16>,
    /// The shares of its grams, by their length over two, once they are asked for.
    shares: [OnceCell<Vec<f32>>; 5],
}

impl Run {
    fn shares(&self, q: usize) -> &[f32] {
        self.shares[q / 2].get_or_init(|| rarity::shares(&self.bytes, q))
    }
}

/// A hash of what nobody chooses to collide: those who write signatures do not.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread(u64);

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

/// Chooses windows and remembers which q-grams are in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chooser {
    used: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    /// How many anchors' q-grams are.
    taken: usize,
}

struct Candidate {
    passes: f32,
    run: usize,
    at: usize,
}

impl Chooser {
    /// The anchors that a part could have, the cheapest shape to look for first; none if it has no two fixed bytes in a row
    /// within reach.
    pub(crate) fn choices(&self, pieces: &[Piece]) -> Vec<Choice> {
        let runs = runs(pieces);
        let mut choices: Vec<Choice> = Vec::new();
        for shape in Shape::ALL {
            choices.extend(self.best_of(&runs, shape));
            let is_rare = shape == Shape::ALL[0] && choices.iter().any(|choice| choice.passes < RARE_ENOUGH);
            if is_rare && self.taken >= SMALL_SET {
                break;
            }
        }
        choices
    }

    /// Notes that the q-grams of an anchor are in use.
    pub(crate) fn take(&mut self, anchor: &Anchor) {
        self.taken += 1;
        for gram in anchor.window.windows(anchor.shape.q()) {
            *self.used.entry(key(gram)).or_default() += 1;
        }
    }

    fn best_of(&self, runs: &[Run], shape: Shape) -> Option<Choice> {
        let rarest_first = |one: &Candidate, other: &Candidate| one.passes.total_cmp(&other.passes);
        let shared = |candidate: &Candidate| self.sharing(&runs[candidate.run], candidate.at, shape);
        let (mut rarest, mut equal): (Option<Candidate>, _) = (None, 0);
        each(runs, shape, |one| match rarest.as_ref().map_or(Ordering::Less, |known| rarest_first(&one, known)) {
            Ordering::Less => (rarest, equal) = (Some(one), 0),
            Ordering::Equal => equal += 1,
            Ordering::Greater => {}
        });
        let rarest = rarest?;
        // If there is but one, and few share it, there is nothing to choose.
        if equal == 0 && shared(&rarest) < SHARING_MAX {
            return Some(choice(runs, shape, &rarest));
        }
        let mut candidates = Vec::new();
        each(runs, shape, |one| candidates.push(one));
        if candidates.len() > TRIED_MAX {
            candidates.select_nth_unstable_by(TRIED_MAX, rarest_first);
            candidates.truncate(TRIED_MAX);
        }
        candidates.sort_by(|one, other| rarest_first(one, other).then((one.run, one.at).cmp(&(other.run, other.at))));
        let chosen = candidates
            .iter()
            .find(|candidate| shared(candidate) < SHARING_MAX)
            .or_else(|| candidates.iter().min_by_key(|candidate| shared(candidate)))?;
        Some(choice(runs, shape, chosen))
    }

    fn sharing(&self, run: &Run, at: usize, shape: Shape) -> u32 {
        let grams = run.bytes[at..at + shape.window()].windows(shape.q());
        grams.map(|gram| self.used.get(&key(gram)).copied().unwrap_or(0)).max().unwrap_or(0)
    }
}

/// Tells every window of a shape in the runs.
fn each(runs: &[Run], shape: Shape, mut tell: impl FnMut(Candidate)) {
    for (index, run) in runs.iter().enumerate() {
        let farthest = usize::from(run.distances.iter().copied().max().unwrap_or(0));
        let places = (REACH_MAX + 1).saturating_sub(farthest + shape.window());
        for (at, shares) in run.shares(shape.q()).windows(shape.s()).take(places).enumerate() {
            tell(Candidate { passes: passes(shape, shares), run: index, at });
        }
    }
}

/// The anchor at a place.
fn choice(runs: &[Run], shape: Shape, chosen: &Candidate) -> Choice {
    let run = &runs[chosen.run];
    let range = chosen.at..chosen.at + shape.window();
    let anchor = Anchor {
        shape,
        window: run.bytes[range.clone()].to_vec(),
        caseless: run.caseless[range].contains(&true),
        distances: run.distances.iter().map(|distance| distance + chosen.at as u16).collect(),
    };
    Choice { anchor, passes: chosen.passes }
}

fn key(gram: &[u8]) -> u64 {
    rarity::number(gram) ^ (gram.len() as u64) << 60
}

/// The runs of fixed bytes at the top level of a part that begin within reach.
fn runs(pieces: &[Piece]) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut distances = vec![0u16];
    let mut open: Option<Run> = None;
    for (place, piece) in pieces.iter().enumerate() {
        if let Some((byte, caseless)) = fixed(piece) {
            let bytes = (pieces.len() - place).min(REACH_MAX + 1);
            let run = open.get_or_insert_with(|| Run {
                bytes: Vec::with_capacity(bytes),
                caseless: Vec::with_capacity(bytes),
                distances: distances.clone(),
                shares: Default::default(),
            });
            run.bytes.push(byte);
            run.caseless.push(caseless);
        } else {
            runs.extend(open.take());
        }
        distances = beyond(distances, piece);
        if distances.is_empty() {
            break;
        }
    }
    runs.extend(open);
    runs
}

/// The byte that a piece asks for, and whether its case does not matter.
fn fixed(piece: &Piece) -> Option<(u8, bool)> {
    match *piece {
        Piece::Byte { value, mask: 0xff } => Some((value, false)),
        Piece::Byte { value, mask: 0xdf } => Some((value, true)),
        _ => None,
    }
}

/// The distances at which what follows `piece` may begin; none if one of them is out of reach, since an anchor must
/// hold for all of them.
fn beyond(mut distances: Vec<u16>, piece: &Piece) -> Vec<u16> {
    let (min, max) = piece.lengths();
    if min == max {
        let more = min.min(REACH_MAX + 1) as u16;
        distances.iter_mut().for_each(|distance| *distance = distance.saturating_add(more));
    } else {
        let lengths = consumed(piece);
        let all = |distance: &u16| lengths.iter().map(|more| distance.saturating_add(*more)).collect::<Vec<_>>();
        distances = distances.iter().flat_map(all).collect();
        distances.sort_unstable();
        distances.dedup();
    }
    if distances.last().is_some_and(|&last| usize::from(last) > REACH_MAX) {
        distances.clear();
    }
    distances
}

/// The numbers of bytes that a piece may consume, each no more than just out of reach.
fn consumed(piece: &Piece) -> Vec<u16> {
    let mut lengths = match piece {
        Piece::OneOf(all) => all.iter().flat_map(|one| sequence(one)).collect(),
        Piece::Gap { min, max } => (*min..=*max).take(REACH_MAX + 2).collect(),
        other => vec![other.lengths().0.min(REACH_MAX + 1) as u16],
    };
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

fn sequence(pieces: &[Piece]) -> Vec<u16> {
    let mut lengths = vec![0u16];
    for piece in pieces {
        let more = consumed(piece);
        lengths = lengths
            .iter()
            .flat_map(|length| more.iter().map(move |more| (length + more).min(REACH_MAX as u16 + 1)))
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zeros_of_a_part_are_not_its_anchor() {
        let mut bytes = vec![0; 20];
        bytes.extend(b"\x91\x3c\xe2\x07\x5d\xb8\x4f\xa6\x11\xcd\x72\xf9\x2e\x83\x50");
        let anchor = Chooser::default().choices(&Piece::bytes(&bytes))[0].anchor.clone();
        assert_eq!(anchor.shape, Shape::Q8S8);
        assert_eq!(anchor.distances, [20]);
    }

    #[test]
    fn a_window_behind_alternatives_knows_every_distance() {
        let alternatives = vec![Piece::bytes(b"a"), Piece::bytes(b"bcd")];
        let mut part = vec![Piece::OneOf(alternatives), Piece::Skip(2)];
        part.extend(Piece::bytes(b"\x91\x3c\xe2\x07"));
        let anchor = Chooser::default().choices(&part)[0].anchor.clone();
        assert_eq!(anchor.distances, [3, 5]);
    }

    #[test]
    fn a_shorter_anchor_is_a_part_of_the_longer_one() {
        let mut bytes = vec![0; 5];
        bytes.extend(b"\x91\x3c\xe2\x07\x5d\xb8\x4f\xa6\x11\xcd");
        let long = Chooser::default().choices(&Piece::bytes(&bytes))[0].anchor.clone();
        assert_eq!((long.shape, long.distances[0]), (Shape::Q8S8, 0));
        for shape in [Shape::Q8S4, Shape::Q4S4] {
            let short = long.shorter(shape).anchor;
            let at = usize::from(short.distances[0]);
            assert_eq!(short.window, bytes[at..at + shape.window()]);
            assert!(at > 3, "the zeros are avoided as far as they can be");
        }
    }

    #[test]
    fn bytes_out_of_reach_are_no_anchor() {
        let mut part = vec![Piece::Skip(300)];
        part.extend(Piece::bytes(b"fixed bytes"));
        assert!(Chooser::default().choices(&part).is_empty());
    }
}
