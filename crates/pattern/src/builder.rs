//! Collecting parts and compiling them.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::ops::RangeInclusive;

use crate::anchor::{Anchor, Choice, Chooser, Spread};
use crate::entry::{Entry, Start};
use crate::patterns::{Patterns, Pinned};
use crate::piece::{Edge, PartId, Piece, total};
use crate::program::Assembly;
use crate::shape::Shape;
use crate::shapes;
use crate::tier::Tier;

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
/// The most parts, since an entry of a table has 29 bits for one.
const PARTS_MAX: usize = 1 << 28;
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
#[derive(Debug, Clone, Default)]
pub struct Builder {
    programs: Assembly,
    chooser: Chooser,
    /// What each part that is looked for could be found by.
    anchors: Vec<(Vec<Choice>, PartId)>,
    /// What each part is compared with.
    starts: Vec<Start>,
    pinned: Vec<Pinned>,
    /// Parts by their encoding.
    known: HashMap<Box<[u8]>, PartId, BuildHasherDefault<Spread>>,
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
        let choices = self.chooser.choices(pieces);
        let long = choices.first().is_some_and(|choice| choice.anchor.shape.is_cheap());
        let pinned = offsets.filter(|_| !long);
        if let Some(offsets) = &pinned {
            code.push(AT);
            code.extend(offsets.start().to_le_bytes());
            code.extend(offsets.end().to_le_bytes());
            if let Some(&known) = self.known.get(code.as_slice()) {
                return Ok(known);
            }
        }
        if self.count as usize >= PARTS_MAX || self.programs.is_full() {
            return Err(Refusal::Full);
        }
        if pinned.is_none() && choices.is_empty() {
            return Err(Refusal::NoAnchor);
        }
        if let Some(offsets) = pinned {
            let op = self.programs.add_program(pieces, self.count);
            self.pinned.extend(offsets.map(|offset| Pinned::new(offset, op)));
            self.starts.push(Start::Op(op));
        } else {
            shapes::best(&choices, &Shape::ALL).into_iter().for_each(|choice| self.chooser.take(&choice.anchor));
            self.anchors.push((choices, self.count));
            self.starts.push(self.programs.add(pieces, self.count));
        }
        self.digest.update(&code);
        self.known.insert(code.into_boxed_slice(), self.count);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// Compiles what was added.
    pub fn build(mut self) -> Patterns {
        let shapes = shapes::spare(&self.anchors);
        let mut anchors = shapes::choose(std::mem::take(&mut self.anchors), &shapes);
        shapes::thin_out(&mut anchors);
        self.finish(&anchors)
    }

    /// The same with only this shape, but for parts that have no anchor of it.
    pub(crate) fn build_of(mut self, shape: Shape) -> Patterns {
        let anchors = shapes::choose(std::mem::take(&mut self.anchors), &[shape]);
        self.finish(&anchors)
    }

    fn finish(mut self, anchors: &[(Anchor, PartId)]) -> Patterns {
        self.pinned.sort_by_key(|pinned| pinned.offset);
        let mut distances = Vec::new();
        let mut entries = vec![Entry::NONE; self.starts.len()];
        for (anchor, part) in anchors {
            entries[*part as usize] = Entry::new(anchor, self.starts[*part as usize], &mut distances);
        }
        let of_shape = |shape: Shape| {
            let anchors = anchors.iter().filter(|(anchor, _)| anchor.shape == shape);
            let anchors: Vec<_> = anchors.map(|(anchor, part)| (anchor, part << 3)).collect();
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
}

/// A digest of all parts in order, to tell databases apart; no defence against those made to collide.
#[derive(Debug, Clone)]
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
    // Most parts are fixed bytes alone, and bytes after 0 are what these become.
    let mut code = vec![0; 2 * pieces.len()];
    let mut slots = code.as_chunks_mut::<2>().0.iter_mut().zip(pieces);
    let is_fixed = slots.all(|(slot, piece)| {
        slot[1] = if let Piece::Byte { value, .. } = piece { *value } else { 0 };
        matches!(piece, Piece::Byte { mask: 0xff, .. })
    });
    if !is_fixed {
        code.clear();
        encode_into(pieces, &mut code);
    }
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
