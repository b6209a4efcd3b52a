//! Collecting parts and compiling them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::RangeInclusive;

use crate::anchor::{Anchor, Chooser, Spread};
use crate::code::STRIDE;
use crate::entry::{Entry, Start};
use crate::patterns::{Patterns, Pinned};
use crate::piece::{Edge, PartId, Piece, total};
use crate::program::Assembly;
use crate::run::{Fixed, Run, runs};
use crate::shape::Shape;
use crate::shapes::{self, Choices};
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

/// Collects parts. Their windows are chosen when all parts are there.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    programs: Assembly,
    parts: Vec<Part>,
    pinned: Vec<Pinned>,
    /// Parts by a hash of their encoding; one whose hash is another's has the next that is free.
    known: HashMap<u64, PartId, BuildHasherDefault<Spread>>,
    /// The bytes of the part at hand, if it has no others.
    fixed: Vec<u8>,
}

/// A part.
#[derive(Debug, Clone)]
struct Part {
    /// Start of the comparison.
    start: Start,
    /// If that is a program: its encoding, and the runs that it may be looked for by; none if it is pinned.
    other: Option<Box<(Vec<u8>, Vec<Run>)>>,
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
        if !self.read_fixed(pieces) {
            return self.place_other(pieces, offsets);
        }
        let hash = match self.find_fixed() {
            Ok(known) => return Ok(known),
            Err(hash) => hash,
        };
        if offsets.is_some() && self.fixed.len() < Shape::SHORTEST_CHEAP {
            return self.place_other(pieces, offsets);
        }
        let is_anchored = Fixed::literal(&self.fixed).windows(Shape::SHORTEST) > 0;
        self.check_room(is_anchored)?;
        let start = self.programs.literal(&self.fixed);
        Ok(self.keep(hash, Part { start, other: None }))
    }

    /// Reads a part into `fixed`, if it is a few bytes and nothing else.
    fn read_fixed(&mut self, pieces: &[Piece]) -> bool {
        self.fixed.clear();
        let bytes = pieces.iter().map_while(|piece| match piece {
            Piece::Byte { value, mask: 0xff } => Some(*value),
            _ => None,
        });
        if (1..=STRIDE).contains(&pieces.len()) {
            self.fixed.extend(bytes);
        }
        !pieces.is_empty() && self.fixed.len() == pieces.len()
    }

    fn place_other(&mut self, pieces: &[Piece], offsets: Option<RangeInclusive<u64>>) -> Result<PartId, Refusal> {
        check(pieces)?;
        let mut code = Vec::new();
        encode_into(pieces, &mut code);
        let mut hash = match self.find_other(&code) {
            Ok(known) => return Ok(known),
            Err(hash) => hash,
        };
        let mut runs = runs(pieces);
        let has = |shape: Shape| runs.iter().any(|run| run.get().windows(shape) > 0);
        let is_anchored = has(Shape::SHORTEST);
        let pinned = offsets.filter(|_| !Shape::ALL.into_iter().any(|shape| shape.is_cheap() && has(shape)));
        if let Some(offsets) = &pinned {
            code.push(AT);
            code.extend(offsets.start().to_le_bytes());
            code.extend(offsets.end().to_le_bytes());
            hash = match self.find_other(&code) {
                Ok(known) => return Ok(known),
                Err(hash) => hash,
            };
            runs.clear();
        }
        let part = self.parts.len() as u32;
        self.check_room(is_anchored || pinned.is_some())?;
        let op = self.programs.add_program(pieces, part);
        self.pinned.extend(pinned.into_iter().flatten().map(|offset| Pinned::new(offset, op)));
        Ok(self.keep(hash, Part { start: Start::Op(op), other: Some(Box::new((code, runs))) }))
    }

    /// Whether a part can be looked for, and there is room for it.
    fn check_room(&self, is_anchored: bool) -> Result<(), Refusal> {
        if self.parts.len() >= PARTS_MAX || self.programs.is_full() {
            return Err(Refusal::Full);
        }
        is_anchored.then_some(()).ok_or(Refusal::NoAnchor)
    }

    fn keep(&mut self, hash: u64, part: Part) -> PartId {
        let number = self.parts.len() as u32;
        self.parts.push(part);
        self.known.insert(hash, number);
        number
    }

    /// The part that is `fixed`, or the hash to keep it by.
    fn find_fixed(&self) -> Result<PartId, u64> {
        self.find(0, &self.fixed, |part| self.literal(part) == Some(&self.fixed))
    }

    /// The part with that encoding, or the hash to keep it by.
    fn find_other(&self, code: &[u8]) -> Result<PartId, u64> {
        self.find(1, code, |part| part.other.as_ref().is_some_and(|other| other.0 == code))
    }

    fn find(&self, kind: u64, bytes: &[u8], is_it: impl Fn(&Part) -> bool) -> Result<PartId, u64> {
        let mut hasher = Spread::default();
        hasher.write_u64((bytes.len() as u64) << 1 | kind);
        hasher.write(bytes);
        let mut hash = hasher.finish();
        while let Some(&number) = self.known.get(&hash) {
            if is_it(&self.parts[number as usize]) {
                return Ok(number);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }

    /// The bytes of a part that is a plain literal.
    fn literal(&self, part: &Part) -> Option<&[u8]> {
        match part.start {
            Start::Literal { at, length } => Some(self.programs.read(at, length)),
            Start::Op(_) => None,
        }
    }

    /// Compiles what was added.
    pub fn build(self) -> Patterns {
        let mut choices = Choices::default();
        let mut chooser = Chooser::new(self.parts.len());
        for number in 0..self.parts.len() as u32 {
            self.with_runs(number, |runs| {
                let all = choices.add(number, |all| chooser.choices(runs, all));
                shapes::best(all, &Shape::ALL).into_iter().for_each(|best| chooser.take(&Anchor::new(best, runs)));
            });
        }
        drop(chooser);
        let mut anchors = self.anchors(&choices, &choices.spare());
        drop(choices);
        shapes::thin_out(&mut anchors);
        self.finish(&anchors)
    }

    /// The same with only this shape, but for parts that have no anchor of it.
    pub(crate) fn build_of(self, shape: Shape) -> Patterns {
        let mut choices = Choices::default();
        let mut chooser = Chooser::new(0);
        for number in 0..self.parts.len() as u32 {
            self.with_runs(number, |runs| _ = choices.add(number, |all| chooser.choices(runs, all)));
        }
        let anchors = self.anchors(&choices, &[shape]);
        self.finish(&anchors)
    }

    /// Tells the runs of a part by which it may be looked for.
    fn with_runs(&self, number: PartId, tell: impl FnOnce(&[Fixed<'_>])) {
        let part = &self.parts[number as usize];
        match (self.literal(part), &part.other) {
            (Some(bytes), _) => tell(&[Fixed::literal(bytes)]),
            (_, Some(other)) => tell(&other.1.iter().map(Run::get).collect::<Vec<_>>()),
            _ => tell(&[]),
        }
    }

    fn anchors(&self, choices: &Choices, shapes: &[Shape]) -> Vec<(Anchor, PartId)> {
        let mut anchors = Vec::with_capacity(self.parts.len());
        for (number, choice) in choices.chosen(shapes) {
            self.with_runs(number, |runs| anchors.push((Anchor::new(choice, runs), number)));
        }
        anchors
    }

    fn finish(mut self, anchors: &[(Anchor, PartId)]) -> Patterns {
        self.pinned.sort_by_key(|pinned| pinned.offset);
        let (mut pool, mut distances) = (Vec::new(), Vec::new());
        let mut entries = vec![Entry::NONE; self.parts.len()];
        for (anchor, part) in anchors {
            self.with_runs(*part, |runs| {
                distances.clear();
                distances.extend(runs[usize::from(anchor.run)].distances.iter().map(|distance| distance + anchor.at));
            });
            entries[*part as usize] = Entry::new(&distances, self.parts[*part as usize].start, &mut pool);
        }
        let of_shape = |shape: Shape| {
            let anchors = anchors.iter().filter(|(anchor, _)| anchor.shape == shape);
            let anchors: Vec<_> = anchors.map(|(anchor, part)| (anchor, part << 3)).collect();
            (!anchors.is_empty()).then(|| Tier::new(shape, &anchors))
        };
        Patterns {
            tiers: Shape::ALL.into_iter().filter_map(of_shape).collect(),
            digest: self.digest(),
            entries: entries.into(),
            distances: pool.into(),
            parts: self.parts.len() as u32,
            programs: self.programs.finish(),
            pinned: self.pinned.into(),
        }
    }

    /// A digest of the encodings of all parts.
    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for part in &self.parts {
            match (self.literal(part), &part.other) {
                (Some(bytes), _) => digest.update_with(2 * bytes.len(), bytes.iter().flat_map(|&byte| [0, byte])),
                (_, Some(other)) => digest.update(&other.0),
                _ => {}
            }
        }
        digest.0
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
        self.update_with(bytes.len(), bytes.iter().copied());
    }

    fn update_with(&mut self, length: usize, bytes: impl Iterator<Item = u8>) {
        let length = (length as u64).to_le_bytes();
        length.into_iter().chain(bytes).for_each(|byte| {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        });
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

/// Appends a part as bytes, so that equal parts have equal ones.
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
