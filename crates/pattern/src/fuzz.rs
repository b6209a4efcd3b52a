//! Fuzz bodies: patterns, stream and cuts from one input, and a filter and what is swept with it.

use std::sync::Arc;

use crate::filter::{Filter, Member};
use crate::flat::{Aligned, Reader, Writer};
use crate::shape::{Shape, folded};
use crate::sweep::{load, sweep, sweep_pairs};
use crate::{Builder, ByteSet, Edge, Match, PartId, Path, Patterns, Piece, State, find_all};

/// Fuzz body: the first bytes describe a few parts and a cut, the rest is the stream. Scanned in pieces it must tell
/// what the naive matcher finds, in order, on every path and from stored states.
///
/// # Panics
/// If it does not.
pub fn fuzz_pattern(data: &[u8]) {
    let mut script = Script(data);
    let mut builder = Builder::new();
    let mut parts: Vec<(PartId, Vec<Piece>)> = Vec::new();
    for _ in 0..script.below(6) + 1 {
        let pieces = script.part();
        if let Ok(part) = builder.add(&pieces) {
            parts.push((part, pieces));
        }
    }
    let piece = usize::from(script.next()) + 1;
    let stream = &script.0[..script.0.len().min(4096)];
    let shape = Shape::ALL[piece % Shape::ALL.len()];
    let of_shape = builder.clone().build_of(shape);
    let patterns = builder.build();
    let told = scan(&patterns, stream, piece);
    assert_eq!(scan(&of_shape, stream, piece), told, "{shape:?}");
    for path in Path::available() {
        assert_eq!(scan(&patterns.clone().on(path), stream, piece), told, "{path:?}");
    }
    assert_eq!(scan_stored(&patterns, stream, piece), told, "from stored states");
    // What is known at the end comes in one order, not as it was found before the end and there.
    let (mut whole, mut sorted) = (Vec::new(), told.clone());
    patterns.scan_whole(stream, &mut |found| whole.push(found));
    whole.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(whole, sorted, "as a whole");
    assert_eq!(scan(&stored(&patterns), stream, piece), told, "from stored patterns");
    assert!(told.windows(2).all(|pair| pair[0].known <= pair[1].known), "out of order");
    for (part, pieces) in parts {
        let of_part = told.iter().filter(|found| found.part == part);
        let mut got: Vec<_> = of_part.map(|found| (found.start, found.end)).collect();
        got.sort_unstable();
        assert_eq!(got, find_all(&pieces, stream), "{pieces:?}");
    }
}

/// Fuzz body: the first bytes describe a filter, the rest is swept. Every path must answer as the filter does, and beyond the last
/// whole gram nothing.
///
/// # Panics
/// If one does not.
pub fn fuzz_sweep(data: &[u8]) {
    let mut script = Script(data);
    let sweeps: [Sweep; 8] = [
        answers_agree::<8, 8>,
        answers_agree::<8, 4>,
        answers_agree::<6, 4>,
        answers_agree::<4, 4>,
        pairs_agree,
        answers_agree::<4, 2>,
        answers_agree::<4, 1>,
        answers_agree::<2, 1>,
    ];
    let shape = usize::from(script.below(8));
    let fold = if script.below(2) == 0 { 0 } else { Shape::ALL[shape].fold() };
    let (salt, others, step) = (script.next(), 1_u64 << script.below(13), usize::from(script.next()) + 1);
    let bytes = &script.0[..script.0.len().min(2048)];
    sweeps[shape](bytes, fold, (salt, others, step));
}

/// A comparison of all paths for a shape.
type Sweep = fn(&[u8], u64, (u8, u64, usize));

/// With a filter of each `step`-th gram of the bytes, and others.
fn answers_agree<const Q: usize, const S: usize>(bytes: &[u8], fold: u64, (salt, others, step): (u8, u64, usize)) {
    let all = bytes.windows(Q).map(|gram| folded(load::<Q>(gram), fold));
    let others = (1..others).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 8 * Q));
    let grams: Vec<Member> = all.clone().step_by(step).chain(others).map(Member::Gram).collect();
    let filter = Filter::salted(&grams, u32::from(salt).wrapping_mul(0x0101_0101));
    let wanted: Vec<bool> = all.step_by(S).map(|gram| filter.passes(gram)).collect();
    for path in Path::available() {
        let mut masks = [0xaa; 2048 / 8];
        let masks = sweep::<Q, S>(path, &filter, fold, bytes, &mut masks);
        let got = (0..masks.len() * 8).map(|number| masks[number / 8] >> (number % 8) & 1 == 1);
        assert!(got.eq(wanted.iter().copied().chain([false; 8]).take(masks.len() * 8)), "{path:?} Q{Q}S{S} {fold:x}");
    }
}

/// The same for pairs.
fn pairs_agree(bytes: &[u8], fold: u64, (salt, others, step): (u8, u64, usize)) {
    let all = bytes.windows(8).map(|gram| folded(load::<8>(gram), fold));
    let others = (1..others).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let grams = all.clone().step_by(step).chain(others);
    let members: Vec<Member> = grams.flat_map(|gram| [Member::Earlier(gram), Member::Later(gram)]).collect();
    let filter = Filter::salted(&members, u32::from(salt).wrapping_mul(0x0101_0101));
    let role = |(number, gram)| if number % 2 == 0 { Member::Earlier(gram) } else { Member::Later(gram) };
    let wanted: Vec<bool> = all.step_by(2).enumerate().map(|place| filter.has(role(place))).collect();
    for path in Path::available() {
        let mut masks = [0xaa; 2048 / 8];
        let masks = sweep_pairs(path, &filter, fold, bytes, &mut masks);
        let got = (0..masks.len() * 8).map(|number| masks[number / 8] >> (number % 8) & 1 == 1);
        assert!(got.eq(wanted.iter().copied().chain([false; 8]).take(masks.len() * 8)), "{path:?} pairs {fold:x}");
    }
}

/// Scans `stream` in pieces of `piece` bytes.
pub(crate) fn scan(patterns: &Patterns, stream: &[u8], piece: usize) -> Vec<Match> {
    let mut state = State::new();
    let mut told = Vec::new();
    for segment in stream.chunks(piece) {
        patterns.scan(&mut state, segment, &mut |found| told.push(found));
    }
    patterns.finish(&mut state, &mut |found| told.push(found));
    assert_eq!(state.lost(), 0, "too much was parked");
    told
}

/// Scans `stream` in pieces, with the state stored and loaded between them.
fn scan_stored(patterns: &Patterns, stream: &[u8], piece: usize) -> Vec<Match> {
    let mut stored = State::new().to_bytes(patterns);
    let mut told = Vec::new();
    let load = |stored: &[u8]| State::from_bytes(stored, patterns).expect("what was stored can be loaded");
    for segment in stream.chunks(piece) {
        let mut state = load(&stored);
        patterns.scan(&mut state, segment, &mut |found| told.push(found));
        stored = state.to_bytes(patterns);
        assert!(stored.len() <= State::STORED_BYTES_MAX);
    }
    patterns.finish(&mut load(&stored), &mut |found| told.push(found));
    told
}

/// The patterns as they come back from a file.
fn stored(patterns: &Patterns) -> Patterns {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("memory takes it");
    patterns.store(&mut writer).and_then(|()| writer.finish()).expect("memory takes it");
    let mut reader = Reader::open(Arc::new(Aligned::new(&bytes))).expect("what was stored is whole");
    Patterns::load(&mut reader).expect("what was stored can be loaded")
}

/// Reads choices from bytes.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.next() % bound
    }

    fn part(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if self.below(4) == 0 {
            pieces.push(Piece::Behind(self.edge()));
        }
        for _ in 0..self.below(4) + 1 {
            self.piece(&mut pieces, 0);
        }
        if self.below(4) == 0 {
            pieces.push(Piece::Ahead(self.edge()));
        }
        pieces
    }

    fn edge(&mut self) -> Edge {
        let set = ByteSet::of(|byte| byte.is_ascii_alphanumeric());
        match self.below(4) {
            0 => Edge::Line,
            1 => Edge::NotWide(set),
            2 => Edge::Byte { set, at_border: false },
            _ => Edge::Byte { set: set.complement(), at_border: true },
        }
    }

    fn piece(&mut self, pieces: &mut Vec<Piece>, depth: u8) {
        match self.below(10) {
            0..=3 => {
                let length = self.below(24) + 1;
                let bytes: Vec<u8> = (0..length).map(|_| self.letter()).collect();
                pieces.extend(Piece::bytes(&bytes));
            }
            4 => {
                let byte = self.letter();
                pieces.push(Piece::caseless(byte));
            }
            5 => {
                let value = self.letter() & 0xf0;
                pieces.push(Piece::Byte { value, mask: 0xf0 });
            }
            6 => pieces.push(Piece::Skip(u16::from(self.below(40)))),
            7 => {
                let min = u16::from(self.below(5));
                let max = min + u16::from(self.below(5));
                pieces.push(Piece::Gap { min, max });
            }
            8 if depth < 2 => {
                let mut all = Vec::new();
                for _ in 0..self.below(3) + 1 {
                    let mut one = Vec::new();
                    self.piece(&mut one, depth + 1);
                    all.push(one);
                }
                pieces.push(Piece::OneOf(all));
            }
            _ => {
                let length = usize::from(self.below(3)) + 1;
                let sequence = (0..length).map(|_| self.letter()).collect();
                pieces.push(Piece::NoneOf(vec![sequence]));
            }
        }
    }

    /// One of few letters, so that streams of the same letters match.
    fn letter(&mut self) -> u8 {
        b"aAb\n"[usize::from(self.below(4))]
    }
}
