//! Runs of fixed bytes in a part, with the range of their offsets from its start. Windows of them find the part.

use std::ops::Range;

use crate::piece::Piece;
use crate::shape::Shape;

/// The farthest that an anchor's end may lie behind the start of its part. The history must reach back that far.
pub(crate) const REACH_MAX: usize = 240;

/// A run of fixed bytes.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    bytes: Vec<u8>,
    caseless: Vec<bool>,
    /// At which distances from the start of the part it may begin.
    distances: Vec<u16>,
}

impl Run {
    pub(crate) fn get(&self) -> Fixed<'_> {
        Fixed { bytes: &self.bytes, caseless: &self.caseless, distances: &self.distances }
    }
}

/// A run where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed<'r> {
    pub(crate) bytes: &'r [u8],
    /// Whether the case of each does not matter; nothing where all matter.
    caseless: &'r [bool],
    pub(crate) distances: &'r [u16],
}

impl<'r> Fixed<'r> {
    /// A part that is nothing but these bytes.
    pub(crate) fn literal(bytes: &'r [u8]) -> Fixed<'r> {
        Fixed { bytes, caseless: &[], distances: &[0] }
    }

    /// How many windows of a shape it has within reach; the first of them begins where it does.
    pub(crate) fn windows(&self, shape: Shape) -> usize {
        let farthest = usize::from(self.distances.iter().copied().max().unwrap_or(0));
        let places = (REACH_MAX + 1).saturating_sub(farthest + shape.window());
        (self.bytes.len() + 1).saturating_sub(shape.window()).min(places)
    }

    /// Whether the case of some byte of a place does not matter.
    pub(crate) fn is_caseless(&self, place: Range<usize>) -> bool {
        self.caseless.get(place).is_some_and(|bytes| bytes.contains(&true))
    }
}

/// The runs of fixed bytes at the top level of a part that begin within reach.
pub(crate) fn runs(pieces: &[Piece]) -> Vec<Run> {
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
