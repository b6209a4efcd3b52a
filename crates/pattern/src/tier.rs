//! A tier: one filter and one table for all parts whose anchors are of one shape.
//!
//! A stretch of the stream is swept first ([`sweep`]); only then are the few grams that passed sifted by what stands beside them
//! ([`wider`](crate::wider)), those that are left looked up, and only then what is registered for them, each in a loop of its own
//! whose cache misses overlap.

use std::io;

use crate::alphabet;
use crate::anchor::Anchor;
use crate::bucket::{Buckets, Registered};
use crate::budget::Budget;
use crate::few::{FEW_MAX, Few};
use crate::filter::{Filter, Member};
use crate::flat::{Reader, Unfit, Writer};
use crate::rarity;
use crate::shape::{FOLD, Shape, WINDOW_BYTES_MAX, folded};
use crate::state::HISTORY;
use crate::sweep::{self, Path, sweep, sweep_pairs};
use crate::wider::{Side, Wider};

/// The longest piece that is swept at once: it stays in the first-level cache from filter to verification.
pub(crate) const CHUNK: usize = 8192;
/// Up to so many windows are searched for themselves in a stretch of Base64.
const BASE64_MAX: usize = 64;
/// Grams that passed are looked up in lots of at most this many.
const TOGETHER: usize = 128;

/// One filter and its table.
#[derive(Debug, Clone)]
pub(crate) struct Tier {
    shape: Shape,
    fold: u64,
    filter: Filter,
    in_base64: InBase64,
    wider: Wider,
    buckets: Buckets,
    /// Searched for instead, if there are so few.
    few: Option<Few>,
    pub(crate) path: Path,
}

/// A [`Tier::sift`] of a shape.
type Sift = fn(&Tier, &[u8], &mut [u32]) -> usize;

/// How a stretch is searched whose bytes are all of the [alphabet] of Base64.
#[derive(Debug, Clone)]
enum InBase64 {
    /// For windows that can stand in it, of which there are few or none.
    Few(Option<Few>),
    /// As any other: the windows are few, but this machine cannot search for them.
    Any,
    /// For grams that can.
    Many(Filter),
}

/// Working memory of probes.
#[derive(Debug)]
pub(crate) struct Probes {
    /// The answers of the filter, a bit each.
    masks: [u8; (CHUNK + HISTORY) / 8],
    /// The places of grams that passed.
    passed: [u32; TOGETHER],
    /// The places of grams, and the values registered for them.
    registered: Vec<(u32, u32)>,
}

impl Default for Probes {
    fn default() -> Probes {
        Probes { masks: [0; (CHUNK + HISTORY) / 8], passed: [0; TOGETHER], registered: Vec::new() }
    }
}

impl Tier {
    /// A tier of anchors, each with a value whose low three bits are free for the phase.
    pub(crate) fn new(shape: Shape, anchors: &[(&Anchor, u32)]) -> Tier {
        let caseless = anchors.iter().any(|(anchor, _)| anchor.caseless);
        let is_few = matches!(shape, Shape::Q4S2 | Shape::Q4S1) && anchors.len() <= FEW_MAX && !caseless;
        let windows = anchors.iter().map(|(anchor, value)| (anchor.window().to_vec(), *value));
        let few = Few::new(if is_few { windows.collect() } else { Vec::new() });
        let fold = if caseless { shape.fold() } else { 0 };
        let mut grams = Vec::with_capacity(anchors.len() * shape.s());
        let mut entries = Vec::with_capacity(anchors.len() * shape.s());
        for (anchor, value) in anchors {
            let check = check(shape, fold, anchor.wide_window());
            for (phase, gram) in anchor.window().windows(shape.q()).enumerate() {
                let gram = folded(load(gram), fold);
                grams.push(gram);
                entries.push((hash(gram), Registered { value: value | phase as u32, check }));
            }
        }
        let rows: Vec<u64> = (0..=255).map(|byte| folded(load(&[byte; 8][..shape.q()]), fold)).collect();
        let grams = members(shape, &grams);
        let beside_rows: Vec<_> = (0..=255_u8)
            .zip(&rows)
            .map(|(byte, row)| {
                let beside = u64::from(u32::from_le_bytes([byte; 4]));
                (hash(*row), folded(beside, if fold == 0 { 0 } else { FOLD }) as u32)
            })
            .collect();
        Tier {
            shape,
            fold,
            filter: Filter::new(&grams, &members(shape, &rows)),
            in_base64: InBase64::new(shape, anchors, &grams, caseless),
            wider: Wider::new(
                if shape.beside() > 0 { entries.len() } else { 0 },
                sides(shape, fold, anchors),
                &beside_rows,
            ),
            buckets: Buckets::new(entries),
            few,
            path: Path::best(),
        }
    }

    pub(crate) fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        let shape = Shape::ALL.iter().position(|shape| *shape == self.shape).unwrap_or_default();
        writer.array(&[shape as u64, self.fold])?;
        Few::store(self.few.as_ref(), writer)?;
        self.filter.store(writer)?;
        self.in_base64.store(writer)?;
        self.wider.store(writer)?;
        self.buckets.store(writer)
    }

    /// A stored tier, whose anchors are numbered below `anchors`.
    pub(crate) fn load(reader: &mut Reader, anchors: usize) -> Result<Tier, Unfit> {
        let [shape, fold] = reader.values::<u64, 2>()?;
        let all = (anchors as u64) << 3;
        let shape = *Shape::ALL.get(usize::try_from(shape).unwrap_or(usize::MAX)).ok_or(Unfit::Malformed)?;
        if fold & !shape.fold() != 0 {
            return Err(Unfit::Malformed);
        }
        Ok(Tier {
            shape,
            fold,
            few: Few::load(reader, shape.window(), FEW_MAX, all)?,
            filter: Filter::load(reader)?,
            in_base64: InBase64::load(reader, shape, all)?,
            wider: Wider::load(reader)?,
            buckets: Buckets::load(reader, all)?,
            path: Path::best(),
        })
    }

    /// The shape and the size of the tables.
    pub(crate) fn describe(&self) -> String {
        let Tier { shape, filter, wider, buckets, .. } = self;
        format!("{shape:?}: filters {} B and {} B, table {} B", filter.bytes(), wider.bytes(), buckets.bytes())
    }

    /// The bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.filter.bytes() + self.in_base64.bytes() + self.wider.bytes() + self.buckets.bytes()
    }

    /// Calls `hit` with the place in `bytes` and the value of each anchor whose q-gram stands at a sampled offset and
    /// ends behind `fresh`. `base` is the stream offset of `bytes`; `fresh` is a place in `bytes`. `coming` is called
    /// with a value some time before. The budget pays for each anchor that is registered with a gram. `is_base64` says that all
    /// bytes are of the [alphabet] of Base64.
    pub(crate) fn probe(
        &self,
        (bytes, base, fresh): (&[u8], u64, usize),
        is_base64: bool,
        probes: &mut Probes,
        budget: &Budget,
        coming: impl Fn(u32),
        hit: &mut impl FnMut(usize, u32),
    ) {
        let (q, s, window) = (self.shape.q(), self.shape.s(), self.shape.window());
        let (mut filter, mut earliest) = (&self.filter, (fresh + 1).saturating_sub(q));
        match (&self.in_base64, &self.few) {
            (InBase64::Few(few), _) if is_base64 => {
                few.iter().for_each(|few| few.search(bytes, (fresh + 1).saturating_sub(window), hit));
                // A window that is not all here is found by its gram, since it may end with other bytes.
                earliest = earliest.max((bytes.len() + 1).saturating_sub(window));
            }
            (_, Some(few)) => return few.search(bytes, (fresh + 1).saturating_sub(window), hit),
            (InBase64::Many(others), None) if is_base64 => filter = others,
            _ => {}
        }
        let phase = (base.wrapping_add(earliest as u64) % s as u64) as usize;
        let first = earliest + if phase == 0 { 0 } else { s - phase };
        let Some(sampled) = bytes.get(first..) else {
            return;
        };
        let masks = self.sweep(filter, sampled, &mut probes.masks);
        let (passed, mut count) = (&mut probes.passed, 0);
        for (block, eights) in masks.chunks(8).enumerate() {
            let mut answers = word(eights);
            while answers != 0 {
                let at = first + (block * 64 + answers.trailing_zeros() as usize) * s;
                answers &= answers - 1;
                self.wider.prefetch(self.hash(bytes, at));
                passed[count] = at as u32;
                count += 1;
            }
            if count > TOGETHER - 64 {
                self.look_up(bytes, &mut passed[..count], &mut probes.registered, budget, &coming, hit);
                count = 0;
            }
        }
        self.look_up(bytes, &mut passed[..count], &mut probes.registered, budget, &coming, hit);
    }

    /// The [`Tier::sift`] of this tier.
    fn sifter(&self) -> Sift {
        match (self.shape, self.fold) {
            (Shape::Q8S8, 0) => Tier::sift::<8, 8, false>,
            (Shape::Q8S8, _) => Tier::sift::<8, 8, true>,
            (Shape::Q8S4, 0) => Tier::sift::<8, 4, false>,
            (Shape::Q8S4, _) => Tier::sift::<8, 4, true>,
            (Shape::Q6S4, 0) => Tier::sift::<6, 4, false>,
            (Shape::Q6S4, _) => Tier::sift::<6, 4, true>,
            (Shape::Q4S4, 0) => Tier::sift::<4, 4, false>,
            (Shape::Q4S4, _) => Tier::sift::<4, 4, true>,
            (Shape::Q8S2, 0) => Tier::sift::<8, 2, false>,
            (Shape::Q8S2, _) => Tier::sift::<8, 2, true>,
            (Shape::Q4S2, 0) => Tier::sift::<4, 2, false>,
            (Shape::Q4S2, _) => Tier::sift::<4, 2, true>,
            (Shape::Q4S1, _) => Tier::sift::<4, 1, true>,
            (Shape::Q2S1, _) => Tier::sift::<2, 1, true>,
        }
    }

    /// Moves the places to the front whose grams may stand with what is beside them; how many they are. Moving is no branch, so
    /// that what many need from memory comes at once.
    fn sift<const Q: usize, const S: usize, const FOLDS: bool>(&self, bytes: &[u8], passed: &mut [u32]) -> usize {
        let mut kept = 0;
        for number in 0..passed.len() {
            let at = passed[number];
            let around = bytes.get((at as usize).wrapping_sub(4)..).and_then(|bytes| bytes.first_chunk::<16>());
            let may_stand = S == 1 || around.is_none_or(|around| self.may_stand_beside::<Q, S, FOLDS>(around));
            passed[kept] = at;
            kept += usize::from(may_stand);
        }
        kept
    }

    /// Whether the gram behind the first four of these bytes is one of ours with the bytes before or behind it.
    #[inline(always)]
    fn may_stand_beside<const Q: usize, const S: usize, const FOLDS: bool>(&self, around: &[u8; 16]) -> bool {
        let all = u128::from_le_bytes(*around);
        let (before, behind) = (all as u32, (all >> (32 + 8 * Q)) as u32);
        let gram = (all >> 32) as u64 & (u64::MAX >> (64 - 8 * Q));
        if FOLDS {
            let [before, behind] = [before, behind].map(|bytes| folded(bytes.into(), FOLD) as u32);
            return self.wider.has::<S>(hash(folded(gram, self.fold)), before, behind);
        }
        self.wider.has::<S>(hash(gram), before, behind)
    }

    /// The hash of the gram at `at`.
    #[inline]
    fn hash(&self, bytes: &[u8], at: usize) -> u64 {
        let bytes = &bytes[at..];
        let gram = match self.shape.q() {
            8 => sweep::load::<8>(bytes),
            6 => sweep::load::<6>(bytes),
            4 => sweep::load::<4>(bytes),
            _ => sweep::load::<2>(bytes),
        };
        hash(folded(gram, self.fold))
    }

    fn sweep<'a>(&self, filter: &Filter, bytes: &[u8], masks: &'a mut [u8]) -> &'a [u8] {
        let sweep = match self.shape {
            Shape::Q8S8 => sweep::<8, 8>,
            Shape::Q8S4 => sweep::<8, 4>,
            Shape::Q6S4 => sweep::<6, 4>,
            Shape::Q4S4 => sweep::<4, 4>,
            Shape::Q8S2 => return sweep_pairs(self.path, filter, self.fold, bytes, masks),
            Shape::Q4S2 => sweep::<4, 2>,
            Shape::Q4S1 => sweep::<4, 1>,
            Shape::Q2S1 => sweep::<2, 1>,
        };
        sweep(self.path, filter, self.fold, bytes, masks)
    }

    /// Looks up those of the grams that passed which may stand with what is beside them.
    fn look_up(
        &self,
        bytes: &[u8],
        passed: &mut [u32],
        registered: &mut Vec<(u32, u32)>,
        budget: &Budget,
        coming: &impl Fn(u32),
        hit: &mut impl FnMut(usize, u32),
    ) {
        let kept = self.sifter()(self, bytes, passed);
        let passed = &passed[..kept];
        for &at in passed {
            self.buckets.prefetch(self.hash(bytes, at as usize));
        }
        for &at in passed {
            self.buckets.prefetch_slots(self.hash(bytes, at as usize));
        }
        for &at in passed {
            for one in self.buckets.look_up(self.hash(bytes, at as usize)) {
                if !budget.spend(1) {
                    break;
                }
                if self.may_stand(one, bytes, at as usize) {
                    coming(one.value);
                    registered.push((at, one.value));
                }
            }
        }
        for (at, value) in registered.drain(..) {
            hit(at as usize, value);
        }
    }

    /// Whether the window of an anchor may be around its gram at `at`. Parts are compared later, so that where less has
    /// arrived than a check looks at it may.
    #[inline]
    fn may_stand(&self, one: Registered, bytes: &[u8], at: usize) -> bool {
        let start = at.checked_sub((one.value & 7) as usize);
        let window = start.and_then(|start| bytes.get(start..)?.first_chunk());
        window.is_none_or(|window| check(self.shape, self.fold, window) == one.check)
    }
}

impl InBase64 {
    fn new(shape: Shape, anchors: &[(&Anchor, u32)], grams: &[Member], caseless: bool) -> InBase64 {
        let has = if caseless { alphabet::has_folded } else { alphabet::has };
        let can_stand = |bytes: &[u8]| bytes.iter().all(|&byte| has(byte));
        let windows = anchors.iter().filter(|(anchor, _)| can_stand(anchor.window()));
        let windows: Vec<_> =
            windows.map(|(anchor, value)| (anchor.window().to_vec(), *value)).take(BASE64_MAX + 1).collect();
        if windows.is_empty() {
            return InBase64::Few(None);
        }
        match Few::new(windows).filter(|few| !caseless && few.anchors().len() <= BASE64_MAX) {
            Some(few) => InBase64::Few(Some(few)),
            None => {
                let grams = grams.iter().copied().filter(|member| can_stand(&member.gram().to_le_bytes()[..shape.q()]));
                InBase64::Many(Filter::salted(&grams.collect::<Vec<_>>(), 0))
            }
        }
    }

    fn store(&self, writer: &mut Writer<'_>) -> io::Result<()> {
        match self {
            InBase64::Few(None) => writer.array(&[0_u64]),
            InBase64::Few(few) => {
                writer.array(&[1_u64])?;
                Few::store(few.as_ref(), writer)
            }
            InBase64::Many(filter) => {
                writer.array(&[2_u64])?;
                filter.store(writer)
            }
            InBase64::Any => writer.array(&[3_u64]),
        }
    }

    fn load(reader: &mut Reader, shape: Shape, all: u64) -> Result<InBase64, Unfit> {
        match reader.values::<u64, 1>()? {
            [0] => Ok(InBase64::Few(None)),
            [1] => {
                let few = Few::load(reader, shape.window(), BASE64_MAX, all)?;
                Ok(few.map_or(InBase64::Any, |few| InBase64::Few(Some(few))))
            }
            [2] => Ok(InBase64::Many(Filter::load(reader)?)),
            [3] => Ok(InBase64::Any),
            _ => Err(Unfit::Malformed),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            InBase64::Few(_) | InBase64::Any => 0,
            InBase64::Many(filter) => filter.bytes(),
        }
    }
}

/// The hashes of the grams of all windows, with what is beside each; nothing for a shape without.
fn sides(shape: Shape, fold: u64, anchors: &[(&Anchor, u32)]) -> impl Iterator<Item = (u64, Side)> + Clone {
    anchors.iter().filter(move |_| shape.beside() > 0).flat_map(move |(anchor, _)| {
        let grams = anchor.window().windows(shape.q()).enumerate();
        grams.map(move |(phase, gram)| (hash(folded(load(gram), fold)), side(fold, anchor, phase)))
    })
}

/// How a gram is looked at in a shape.
fn members(shape: Shape, grams: &[u64]) -> Vec<Member> {
    match shape {
        Shape::Q8S2 => grams.iter().flat_map(|&gram| [Member::Earlier(gram), Member::Later(gram)]).collect(),
        _ => grams.iter().copied().map(Member::Gram).collect(),
    }
}

/// What an anchor has beside its gram of a phase: the rarer of what the part has there, or some of the window.
fn side(fold: u64, anchor: &Anchor, phase: usize) -> Side {
    let (shape, window) = (anchor.shape, anchor.window());
    let (beside, fold) = (shape.beside(), if fold == 0 { 0 } else { FOLD });
    let number = |bytes: &[u8]| folded(load(bytes), fold) as u32;
    let [before, behind] = anchor.beside(phase);
    let end = phase + shape.q();
    let close = match phase.checked_sub(beside) {
        Some(start) => (&window[start..phase], Side::CloseBefore as fn(u32) -> Side),
        None => (&window[end..end + beside], Side::CloseBehind as fn(u32) -> Side),
    };
    let far = [(before, Side::Before as fn(u32) -> Side), (behind, Side::Behind)];
    let far = far.into_iter().filter_map(|(bytes, side)| Some((&bytes?[..], side)));
    // In the longest windows there are always four bytes beside a gram, and only those are asked for.
    let all = far.chain((shape != Shape::Q8S8).then_some(close));
    let cost = |bytes: &[u8]| rarity::cost(bytes);
    let (bytes, side) = all.max_by_key(|(bytes, _)| cost(bytes)).unwrap_or(close);
    side(number(bytes))
}

/// Stands for the window of a shape at the start of these bytes.
#[inline]
fn check(shape: Shape, fold: u64, bytes: &[u8; WINDOW_BYTES_MAX]) -> u8 {
    let fold = if fold == 0 { 0 } else { FOLD };
    let window = u128::from_le_bytes(*bytes) & (u128::MAX >> (128 - 8 * shape.window()));
    let (low, high) = (folded(window as u64, fold), folded((window >> 64) as u64, fold));
    let mixed = low.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(high.wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
    (mixed >> 56) as u8
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or_else(|| load(bytes), |eight| u64::from_le_bytes(*eight))
}

fn load(gram: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes[..gram.len()].copy_from_slice(gram);
    u64::from_le_bytes(bytes)
}

/// A multiplication whose halves are folded: each bit of the result depends on all bits of the gram.
#[inline]
fn hash(gram: u64) -> u64 {
    let product = u128::from(gram ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{Builder, Piece, State};

    #[test]
    fn grams_beside_other_bytes_are_not_looked_up() {
        for (shape, text) in
            [(Shape::Q8S8, &b"fifteen-bytes-x"[..]), (Shape::Q6S4, b"nine-here"), (Shape::Q8S2, b"nine-here")]
        {
            let mut builder = Builder::new();
            builder.add(&Piece::bytes(text)).expect("it has an anchor");
            let patterns = builder.build_of(shape);
            // The gram that is registered with what is before it, and other bytes there.
            let at = shape.beside();
            let gram = &text[at..at + shape.q()];
            let mut stream = Vec::new();
            for _ in 0..500 {
                stream.extend_from_slice(gram);
                stream.resize(stream.len().next_multiple_of(8), b'.');
            }
            let mut state = State::new();
            patterns.scan(&mut state, &stream, &mut |found| panic!("{found:?}"));
            assert!(state.work() < 10, "{shape:?}: {} lookups", state.work());
        }
    }

    #[test]
    fn a_window_beside_other_bytes_than_those_of_its_part_is_not_looked_up() {
        for shape in [Shape::Q8S4, Shape::Q6S4, Shape::Q8S2] {
            let text = b"more bytes than a window has";
            let mut builder = Builder::new();
            builder.add(&Piece::bytes(text)).expect("it has an anchor");
            let patterns = builder.build_of(shape);
            let mut stream = Vec::new();
            for window in text.windows(shape.window()).cycle().take(2000) {
                stream.extend_from_slice(window);
                stream.resize(stream.len().next_multiple_of(8) + 8, b'.');
            }
            let mut state = State::new();
            patterns.scan(&mut state, &stream, &mut |found| panic!("{found:?}"));
            assert!(state.work() < 10, "{shape:?}: {} lookups", state.work());
            patterns.scan(&mut state, text, &mut |_| ());
            assert!(state.work() > 0, "{shape:?}: the part itself is");
        }
    }

    #[test]
    fn a_window_is_told_from_its_neighbours() {
        for (caseless, other_case) in [(false, false), (true, true)] {
            let anchor = Anchor { caseless, ..Anchor::of(Shape::Q4S4, b"SEVEN-B") };
            let tier = Tier::new(Shape::Q4S4, &[(&anchor, 0)]);
            let stands = |bytes: &[u8]| {
                let gram = hash(folded(load(b"VEN-"), tier.fold));
                let one = tier.buckets.look_up(gram).next().expect("it is registered in each phase");
                one.value == 2 && tier.may_stand(one, bytes, 2)
            };
            assert!(stands(b"SEVEN-B and so on"));
            assert_eq!(stands(b"sEvEN-b and so on"), other_case);
            assert!(!stands(b"SEVEN-C and so on"));
            assert!(!stands(b"sEWEN-B and so on"));
            assert!(stands(b"too short"));
        }
    }
}
