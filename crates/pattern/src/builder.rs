//! Collecting parts and compiling them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::RangeInclusive;

use crate::anchor::{Anchor, Choice, Chooser};
use crate::entry::Entry;
use crate::patterns::{Patterns, Pinned};
use crate::piece::{Edge, Piece, total};
use crate::program::Assembly;
use crate::tier::{Shape, Tier};

/// The number of a part, in the order in which parts were added.
pub type PartId = u32;

/// The most bytes that a part may match.
const PART_BYTES_MAX: usize = 1 << 16;
/// The most pieces of a part, those of alternatives counted.
const PIECES_MAX: usize = 1 << 16;
/// The most alternatives at one place, lengths of a gap counted.
const ALTERNATIVES_MAX: usize = 4096;
/// The deepest nesting of alternatives.
const NESTING_MAX: usize = 15;
/// The longest sequence of [`Piece::NoneOf`].
const NONE_OF_BYTES_MAX: usize = 128;
/// The widest range of offsets at which a part is tried instead of being looked for.
const PINNED_RANGE_MAX: u64 = 64;
/// So many parts of 11 bytes or more are worth a filter of their own; fewer share that of the short ones.
const OWN_TIER_MIN: usize = 8192;
/// So many parts of 15 bytes or more are found by 11 of them.
const CROWDED: usize = 1 << 18;
/// So many looks of a sweep cost as much as one candidate.
const LOOKS_PER_CANDIDATE: f32 = 16.0;
/// The most parts, since an entry of a table has 29 bits for one.
const PARTS_MAX: usize = 1 << 28;
/// The most bytes in a pool.
const POOL_BYTES_MAX: usize = 1 << 31;

/// Why a part cannot be scanned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has no two fixed bytes in a row within its first 240 bytes.
    NoAnchor,
    /// It may match nothing, or more than 65,536 bytes.
    Length,
    /// It has too many pieces or alternatives, or they are nested too deep.
    TooComplex,
    /// A look behind or ahead that is not at its border, or a set of sequences of unequal or excessive length.
    Misplaced,
    /// The tables are full.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoAnchor => "no two fixed bytes in a row within its first 240 bytes",
            Refusal::Length => "matches nothing or more than 65536 bytes",
            Refusal::TooComplex => "too many or too deeply nested alternatives",
            Refusal::Misplaced => "a boundary inside, or negated alternatives of unequal or excessive length",
            Refusal::Full => "too many patterns",
        })
    }
}

impl std::error::Error for Refusal {}

/// Collects parts.
#[derive(Debug, Default)]
pub struct Builder {
    programs: Assembly,
    chooser: Chooser,
    anchors: Vec<(Choice, u32)>,
    pinned: Vec<Pinned>,
    /// Parts by their encoding.
    known: HashMap<Box<[u8]>, PartId, BuildHasherDefault<DefaultHasher>>,
    count: u32,
    digest: Digest,
}

impl Builder {
    /// No parts.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds a part and returns its number; an equal part added before keeps its number.
    pub fn add(&mut self, pieces: &[Piece]) -> Result<PartId, Refusal> {
        self.place(pieces, None)
    }

    /// Adds a part that need only be found where it starts at one of `offsets`; it may be told elsewhere too.
    ///
    /// If the offsets are few and the part has no long run of fixed bytes, it is tried there instead of being looked
    /// for, and needs no two fixed bytes in a row.
    pub fn add_at(&mut self, pieces: &[Piece], offsets: RangeInclusive<u64>) -> Result<PartId, Refusal> {
        let few = offsets.end().saturating_sub(*offsets.start()) < PINNED_RANGE_MAX;
        self.place(pieces, few.then_some(offsets))
    }

    fn place(&mut self, pieces: &[Piece], offsets: Option<RangeInclusive<u64>>) -> Result<PartId, Refusal> {
        check(pieces)?;
        let mut code = encode(pieces);
        if let Some(&known) = self.known.get(code.as_slice()) {
            return Ok(known);
        }
        let choice = self.chooser.choose(pieces);
        let long = choice.as_ref().is_some_and(|choice| choice.anchor.shape.is_cheap());
        let pinned = offsets.filter(|_| !long);
        if let Some(offsets) = &pinned {
            code.push(AT);
            code.extend(offsets.start().to_le_bytes());
            code.extend(offsets.end().to_le_bytes());
            if let Some(&known) = self.known.get(code.as_slice()) {
                return Ok(known);
            }
        }
        if self.count as usize >= PARTS_MAX || self.programs.literals.len() >= POOL_BYTES_MAX {
            return Err(Refusal::Full);
        }
        match (pinned, choice) {
            (Some(offsets), _) => {
                let op = self.programs.add(pieces, self.count);
                self.pinned.extend(offsets.map(|offset| Pinned::new(offset, op)));
            }
            (None, Some(choice)) => {
                self.chooser.take(&choice.anchor);
                let op = self.programs.add(pieces, self.count);
                self.anchors.push((choice, op));
            }
            (None, None) => return Err(Refusal::NoAnchor),
        }
        self.digest.update(&code);
        self.known.insert(code.into_boxed_slice(), self.count);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Compiles what was added.
    pub fn build(mut self) -> Patterns {
        self.pinned.sort_by_key(|pinned| pinned.offset);
        Shape::ALL.into_iter().rev().for_each(|shape| self.fold_tier(shape));
        self.thin_out();
        self.fold_middle();
        let mut distances = Vec::new();
        let mut entries = Vec::with_capacity(self.anchors.len());
        for (choice, op) in &self.anchors {
            entries.push(Entry::new(&choice.anchor, *op, &mut distances));
        }
        let of_shape = |shape: Shape| {
            let anchors = self.anchors.iter().map(|(choice, _)| &choice.anchor).zip(0u32..);
            let anchors = anchors.filter(|(anchor, _)| anchor.shape == shape);
            let anchors: Vec<_> = anchors.map(|(anchor, index)| (anchor, index << 3)).collect();
            (!anchors.is_empty()).then(|| Tier::new(shape, &anchors))
        };
        Patterns {
            tiers: Shape::ALL.into_iter().filter_map(of_shape).collect(),
            entries: entries.into(),
            distances: distances.into(),
            programs: self.programs.finish(),
            pinned: self.pinned.into(),
            parts: self.count,
            digest: self.digest.0,
        }
    }

    /// Spares a sweep over the stream where it costs more than the candidates of cheaper shapes for all its parts.
    fn fold_tier(&mut self, shape: Shape) {
        let mut tier: Vec<&mut Choice> = self.anchors_of(shape).collect();
        let instead =
            tier.iter().map(|choice| choice.instead.as_ref().map(|other| other.candidates - choice.candidates));
        // Nothing can be spared if some part cannot do without.
        let Some(more) = instead.sum::<Option<f32>>() else {
            return;
        };
        if more < shape.looks() / LOOKS_PER_CANDIDATE {
            for choice in &mut tier {
                if let Some(other) = choice.instead.take() {
                    **choice = *other;
                }
            }
        }
    }

    /// Halves the grams of a tier that is too large for any cache. It is looked at twice as often then, in half as much memory,
    /// and so no slower.
    fn thin_out(&mut self) {
        if self.anchors_of(Shape::Q8S8).count() >= CROWDED {
            self.anchors_of(Shape::Q8S8).for_each(|choice| choice.anchor = choice.anchor.shorter(Shape::Q8S4).0);
        }
    }

    /// Spares the sweep where a tier would hold few parts: a window of 11 bytes has one of 7 in it.
    fn fold_middle(&mut self) {
        let middle: Vec<&mut Choice> = self.anchors_of(Shape::Q8S4).collect();
        let shorter: Vec<(Anchor, f32)> = middle.iter().map(|choice| choice.anchor.shorter(Shape::Q4S4)).collect();
        let candidates: f32 = shorter.iter().map(|(_, candidates)| candidates).sum();
        if middle.len() < OWN_TIER_MIN && candidates < Shape::Q8S4.looks() / LOOKS_PER_CANDIDATE {
            for (choice, (shorter, _)) in middle.into_iter().zip(shorter) {
                choice.anchor = shorter;
            }
        }
    }

    fn anchors_of(&mut self, shape: Shape) -> impl Iterator<Item = &mut Choice> {
        self.anchors.iter_mut().map(|(choice, _)| choice).filter(move |choice| choice.anchor.shape == shape)
    }
}

/// A digest of all parts in order, to tell databases apart; no defence against those made to collide.
#[derive(Debug)]
struct Digest(u64);

impl Default for Digest {
    /// Programs of another version may be numbered otherwise.
    fn default() -> Digest {
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        digest.update(env!("CARGO_PKG_VERSION").as_bytes());
        digest
    }
}

impl Digest {
    /// FNV-1a over the bytes and their number.
    fn update(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn check(pieces: &[Piece]) -> Result<(), Refusal> {
    let (min, max) = total(pieces);
    if min == 0 || max > PART_BYTES_MAX {
        return Err(Refusal::Length);
    }
    let mut count = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let border = match piece {
            Piece::Behind(_) => index == 0,
            Piece::Ahead(_) => index + 1 == pieces.len(),
            _ => true,
        };
        if !border {
            return Err(Refusal::Misplaced);
        }
        check_piece(piece, 0, &mut count)?;
    }
    Ok(())
}

fn check_piece(piece: &Piece, depth: usize, count: &mut usize) -> Result<(), Refusal> {
    *count += 1;
    if *count > PIECES_MAX || depth > NESTING_MAX {
        return Err(Refusal::TooComplex);
    }
    match piece {
        Piece::Gap { min, max } if max < min => Err(Refusal::Length),
        Piece::Gap { min, max } if usize::from(max - min) >= ALTERNATIVES_MAX => Err(Refusal::TooComplex),
        Piece::OneOf(all) if all.is_empty() || all.len() > ALTERNATIVES_MAX => Err(Refusal::TooComplex),
        Piece::OneOf(all) => all.iter().flatten().try_for_each(|piece| check_piece(piece, depth + 1, count)),
        Piece::NoneOf(all) => {
            let length = all.first().map_or(0, Vec::len);
            let even = all.iter().all(|one| one.len() == length);
            if !even || length == 0 || length > NONE_OF_BYTES_MAX {
                return Err(Refusal::Misplaced);
            }
            if all.len() > ALTERNATIVES_MAX {
                return Err(Refusal::TooComplex);
            }
            Ok(())
        }
        Piece::Behind(_) | Piece::Ahead(_) if depth > 0 => Err(Refusal::Misplaced),
        _ => Ok(()),
    }
}

/// Follows the encoding of a part that is tried at offsets.
const AT: u8 = 255;

/// A part as bytes, so that equal parts have equal ones.
fn encode(pieces: &[Piece]) -> Vec<u8> {
    let mut code = Vec::with_capacity(2 * pieces.len());
    encode_into(pieces, &mut code);
    code
}

fn encode_into(pieces: &[Piece], code: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Byte { value, mask: 0xff } => code.extend([0, *value]),
            Piece::Byte { value, mask } => code.extend([1, value & mask, *mask]),
            Piece::Set(set) => {
                code.push(2);
                code.extend(set.to_bytes());
            }
            Piece::Skip(count) => {
                code.push(3);
                code.extend(count.to_le_bytes());
            }
            Piece::Gap { min, max } => {
                code.push(4);
                code.extend(min.to_le_bytes());
                code.extend(max.to_le_bytes());
            }
            Piece::OneOf(all) => {
                code.push(5);
                for one in all {
                    code.push(6);
                    encode_into(one, code);
                }
                code.push(7);
            }
            Piece::NoneOf(all) => {
                code.push(8);
                code.extend((all.len() as u16).to_le_bytes());
                code.push(all.first().map_or(0, Vec::len) as u8);
                code.extend(all.iter().flatten());
            }
            Piece::Behind(edge) => encode_edge(9, edge, code),
            Piece::Ahead(edge) => encode_edge(10, edge, code),
        }
    }
}

fn encode_edge(tag: u8, edge: &Edge, code: &mut Vec<u8>) {
    code.push(tag);
    match edge {
        Edge::Line => code.push(0),
        Edge::NotWide(set) => {
            code.push(1);
            code.extend(set.to_bytes());
        }
        Edge::Byte { set, at_border } => {
            code.push(2 + u8::from(*at_border));
            code.extend(set.to_bytes());
        }
    }
}
