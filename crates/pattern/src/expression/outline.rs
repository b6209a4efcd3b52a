//! Outlines: the sets of bytes that every match goes through, in order, and many of them looked for in one pass.
//!
//! An outline is a sequence of strokes: a byte of a set, then any number of bytes of another set. Each match of an expression has
//! its outline in it, so that a haystack without the outline has no match. What is optional becomes a gap, alternatives are laid
//! one on the other, assertions and looks around are left out; of the whole line the shortest window is taken that is rare.
//!
//! [`Outlines`] are run as bits: a bit for each stroke, four words of them at a time, with a shift and two tables by byte
//! (Baeza-Yates and Gonnet's Shift-And, with the gaps of Navarro and Raffinot). Time is linear in the haystack, whatever it is.

use std::array::from_fn;
use std::sync::LazyLock;

use super::facts::Facts;
use super::line::{Line, STROKES_MAX, Stroke};
use super::literals::FRAMES;
use super::syntax::{Node, Repeat, has_case};
use crate::ByteSet;
use crate::{rarity, vector};

/// Strokes that stand in every match in this order, one behind the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    strokes: Vec<Stroke>,
    /// The share of places of ordinary content where it ends, by a model of single bytes.
    pub share: f64,
}

/// The most strokes of an outline.
const LENGTH_MAX: usize = 60;

/// Rarity, in bits, from which on the shortest outline is taken.
const RARE: f64 = 22.0;

/// Cost of a stroke, in bits: a longer outline has to be rarer.
const COST_OF_EACH: f64 = 0.15;

impl Outline {
    /// The outline of an expression, if it has one.
    pub(super) fn of(node: &Node, facts: &Facts) -> Option<Outline> {
        let line = line(node, facts);
        let strokes = &line.strokes;
        let mut rare: Vec<f64> = strokes.iter().map(|stroke| surprise(&stroke.set)).collect();
        for start in 0..strokes.len() {
            let frame = FRAMES.iter().find(|frame| spells(&strokes[start..], frame));
            frame.into_iter().for_each(|frame| rare[start..start + frame.len()].fill(0.0));
        }
        let lost: Vec<f64> = strokes.iter().map(|stroke| surprise_lost(&stroke.gap)).collect();
        let mut best: Option<(f64, &[Stroke])> = None;
        for start in 0..strokes.len() {
            let mut bits = 0.0;
            for end in start..strokes.len().min(start + LENGTH_MAX) {
                bits += rare[end];
                let window = &strokes[start..=end];
                let worth = f64::min(bits, RARE) - COST_OF_EACH * window.len() as f64;
                if best.is_none_or(|(known, _)| worth > known) {
                    best = Some((worth, window));
                }
                if bits >= RARE {
                    break;
                }
                bits = f64::max(bits - lost[end], 0.0);
            }
        }
        let (worth, window) = best?;
        let bits = worth + COST_OF_EACH * window.len() as f64;
        Some(Outline { strokes: window.to_vec(), share: (-bits).exp2() })
    }

    /// How many strokes it has.
    pub fn strokes(&self) -> usize {
        self.strokes.len()
    }
}

/// Whether strokes begin with the bytes of a text, in either case, one behind the other.
fn spells(strokes: &[Stroke], text: &[u8]) -> bool {
    let is_one = |(stroke, byte): (&Stroke, &u8)| stroke.set.has(*byte) && stroke.set.len() <= 2;
    let Some(strokes) = strokes.get(..text.len()) else { return false };
    strokes.iter().zip(text).all(is_one) && strokes[..text.len() - 1].iter().all(|stroke| stroke.gap.is_empty())
}

impl Line {
    /// Puts a node behind what there is.
    fn append_node(&mut self, node: &Node, facts: &Facts) {
        match node {
            Node::Empty | Node::Assert(_) | Node::Look(_) => {}
            Node::Literal { bytes, fold } => bytes.iter().for_each(|&byte| self.stroke(letter(byte, *fold))),
            Node::Set(set) => self.stroke(*set),
            Node::Alternate(nodes) => match facts.of(nodes) {
                Some(fact) => self.append(fact.line.get_or_init(|| alternatives(nodes, facts))),
                None => self.append(&alternatives(nodes, facts)),
            },
            node => self.append(&line(node, facts)),
        }
    }
}

fn line(node: &Node, facts: &Facts) -> Line {
    let mut line = Line::EMPTY;
    match node {
        Node::Empty | Node::Assert(_) | Node::Look(_) => {}
        Node::Never => line.stroke(ByteSet::EMPTY),
        Node::Literal { bytes, fold } => bytes.iter().for_each(|&byte| line.stroke(letter(byte, *fold))),
        Node::Set(set) => line.stroke(*set),
        Node::Concat(nodes) => nodes.iter().for_each(|node| line.append_node(node, facts)),
        Node::Group(node, _) | Node::Atomic(node) => return self::line(node, facts),
        Node::Alternate(nodes) => match facts.of(nodes) {
            Some(fact) => return fact.line.get_or_init(|| alternatives(nodes, facts)).clone(),
            None => return alternatives(nodes, facts),
        },
        Node::Repeat(repeat) => return turns(repeat, facts),
        Node::Backreference { .. } => line.widen(&ByteSet::EMPTY.complement()),
    }
    line
}

fn alternatives(nodes: &[Node], facts: &Facts) -> Line {
    let mut all = nodes.iter().map(|node| line(node, facts));
    let mut line = all.next().unwrap_or(Line::EMPTY);
    all.for_each(|other| line.overlay(&other));
    line
}

fn turns(repeat: &Repeat, facts: &Facts) -> Line {
    let turn = line(&repeat.node, facts);
    if repeat.max == 0 {
        return Line::EMPTY;
    }
    if repeat.min == 0 || turn.strokes.is_empty() {
        return Line::gap(turn.bytes());
    }
    let mut line = Line::EMPTY;
    let written = repeat.min.min(STROKES_MAX as u32);
    (0..written).for_each(|_| line.append(&turn));
    if repeat.max > written {
        line.widen(&turn.bytes());
    }
    line
}

fn letter(byte: u8, fold: bool) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    set.insert(byte);
    if fold && has_case(byte) {
        set.insert(byte ^ 0x20);
    }
    set
}

/// How common each byte is in text, by the model.
static SHARES: LazyLock<[f64; 256]> = LazyLock::new(|| {
    let share = |byte: u8| (-f64::from(rarity::alone(byte)) / 8.0).exp2();
    let sum: f64 = (0..=u8::MAX).map(share).sum();
    from_fn(|byte| share(byte as u8) / sum)
});

fn share(set: &ByteSet) -> f64 {
    set.iter().map(|byte| SHARES[usize::from(byte)]).sum()
}

/// How rare the bytes of a set are, in bits.
pub(super) fn surprise(set: &ByteSet) -> f64 {
    -share(set).max(1e-12).log2()
}

/// Loss by the places that a gap allows for the next stroke.
fn surprise_lost(gap: &ByteSet) -> f64 {
    -(1.0 - share(gap)).max(1e-3).log2()
}

/// Strokes that are followed together.
const BITS: usize = WORDS * 64;
/// Words of a block.
const WORDS: usize = 4;

/// Outlines that are looked for together.
#[derive(Debug, Default)]
pub struct Outlines {
    blocks: Vec<Block>,
}

/// As many outlines as have room: one stroke is one bit, the first stroke of an outline the lowest.
#[derive(Debug)]
struct Block {
    /// By byte.
    rows: Box<[Row; 256]>,
    firsts: [u64; WORDS],
    lasts: [u64; WORDS],
    /// By last stroke, the number of the outline.
    owners: Box<[u32; BITS]>,
    /// Strokes of each word that are taken.
    used: [usize; WORDS],
}

/// Effect of a byte: a line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Row {
    /// The strokes that it may stand for.
    takes: [u64; WORDS],
    /// The strokes behind which it may stand.
    stays: [u64; WORDS],
}

impl Outlines {
    /// Adds an outline under a number.
    pub fn add(&mut self, number: u32, outline: &Outline) {
        let length = outline.strokes.len();
        if length == 0 || length > LENGTH_MAX {
            return;
        }
        let fits = |block: &Block| block.used.iter().position(|used| used + length <= 64);
        let place = self.blocks.iter().enumerate().find_map(|(place, block)| Some((place, fits(block)?)));
        let (place, word) = place.unwrap_or_else(|| {
            self.blocks.push(Block::new());
            (self.blocks.len() - 1, 0)
        });
        self.blocks[place].add(word, number, outline);
    }

    /// Tells the numbers of all outlines that stand in the haystack, each once.
    pub fn find(&self, haystack: &[u8], mut found: impl FnMut(u32)) {
        self.blocks.iter().for_each(|block| vector::widely(Look { block, haystack, found: &mut found }));
    }

    /// How many words are followed.
    pub fn words(&self) -> usize {
        self.blocks.len() * WORDS
    }
}

/// A block that is looked for.
struct Look<'l, F> {
    block: &'l Block,
    haystack: &'l [u8],
    found: &'l mut F,
}

impl<F: FnMut(u32)> vector::Widely for Look<'_, F> {
    #[inline(always)]
    fn run(self) {
        self.block.find(self.haystack, self.found);
    }
}

impl Block {
    fn new() -> Block {
        Block {
            rows: Box::new([Row { takes: [0; WORDS], stays: [0; WORDS] }; 256]),
            firsts: [0; WORDS],
            lasts: [0; WORDS],
            owners: Box::new([0; BITS]),
            used: [0; WORDS],
        }
    }

    fn add(&mut self, word: usize, number: u32, outline: &Outline) {
        let start = self.used[word];
        let last = start + outline.strokes.len() - 1;
        for (at, stroke) in (start..).zip(&outline.strokes) {
            stroke.set.iter().for_each(|byte| self.rows[usize::from(byte)].takes[word] |= 1 << at);
            if at < last {
                stroke.gap.iter().for_each(|byte| self.rows[usize::from(byte)].stays[word] |= 1 << at);
            }
        }
        self.firsts[word] |= 1 << start;
        self.lasts[word] |= 1 << last;
        self.owners[word * 64 + last] = number;
        self.used[word] = last + 1;
    }

    #[inline(always)]
    fn find(&self, mut haystack: &[u8], found: &mut impl FnMut(u32)) {
        let mut here = [0; WORDS];
        let mut lasts = self.lasts;
        while !haystack.is_empty() {
            let taken = self.follow(haystack, &lasts, &mut here);
            haystack = haystack.get(taken..).unwrap_or_default();
            self.tell(&here, &mut lasts, found);
        }
    }

    /// Follows strokes up to a byte with which one of `lasts` ends, or all bytes: how many were taken. Nothing in it leaves
    /// the registers, so that the compiler makes vectors of the words; with closures it called them, once for each word.
    #[inline(always)]
    fn follow(&self, haystack: &[u8], lasts: &[u64; WORDS], strokes: &mut [u64; WORDS]) -> usize {
        let (firsts, lasts, mut here) = (self.firsts, *lasts, *strokes);
        let mut taken = 0;
        for &byte in haystack {
            let Row { takes, stays } = &self.rows[usize::from(byte)];
            let mut ended = 0;
            for word in 0..WORDS {
                here[word] = (here[word] << 1 | firsts[word]) & takes[word] | here[word] & stays[word];
                ended |= here[word] & lasts[word];
            }
            taken += 1;
            if ended != 0 {
                break;
            }
        }
        *strokes = here;
        taken
    }

    /// Tells what has ended, and looks for it no more.
    #[cold]
    fn tell(&self, here: &[u64; WORDS], lasts: &mut [u64; WORDS], found: &mut impl FnMut(u32)) {
        for word in 0..WORDS {
            let mut ended = here[word] & lasts[word];
            lasts[word] &= !ended;
            while ended != 0 {
                found(self.owners[word * 64 + ended.trailing_zeros() as usize]);
                ended &= ended - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Flags, parse};
    use super::*;

    fn outline(text: &str) -> Outline {
        let parsed =
            parse::parse(text.as_bytes(), Flags::default(), 100, &mut parse::Memo::default()).expect("an expression");
        Outline::of(&parsed.node, &Facts::default()).expect("an outline")
    }

    fn found(texts: &[&str], haystack: &str) -> Vec<u32> {
        let mut outlines = Outlines::default();
        (0..).zip(texts).for_each(|(number, text)| outlines.add(number, &outline(text)));
        let mut found = Vec::new();
        outlines.find(haystack.as_bytes(), |number| found.push(number));
        found.sort_unstable();
        found
    }

    #[test]
    fn a_haystack_without_the_outline_has_no_match() {
        let texts = ["(?:[a-f]{2,9}[0-9]){2}", "x[-_]{0,3}y[-_]{0,3}z", "(?:ab?|cd)Q", r"Q(?=\d)z"];
        assert_eq!(found(&texts, "abc1de2"), [0]);
        assert_eq!(found(&texts, "abc1d2"), []);
        assert_eq!(found(&texts, "x-y--z"), [1]);
        assert_eq!(found(&texts, "x-y-.z"), []);
        assert_eq!(found(&texts, "abQ"), [2]);
        assert_eq!(found(&texts, "cdQz"), [2, 3]);
    }

    #[test]
    fn outlines_beyond_one_block_are_found() {
        let mut outlines = Outlines::default();
        for number in 0..200 {
            let stroke = |byte| Stroke { set: letter(byte, false), gap: ByteSet::EMPTY };
            let strokes = format!("Q{number:04}Z").bytes().map(stroke).collect();
            outlines.add(number, &Outline { strokes, share: 0.0 });
        }
        let mut found = Vec::new();
        outlines.find(b"Q0003Z Q0199ZQ0003Z Q019 9ZQ0000", |number| found.push(number));
        found.sort_unstable();
        assert_eq!(found, [3, 199]);
        assert!(outlines.words() > WORDS);
    }

    #[test]
    fn what_is_optional_or_referred_to_may_be_anything() {
        assert_eq!(found(&[r"(\w+)Q,\1;Z"], "catQ,dog;Z"), [0]);
        assert_eq!(found(&["Q(?:abc)?Z"], "QcaZ"), [0]);
        assert_eq!(found(&["Q(?:abc)?Z"], "QdZ"), []);
    }
}
