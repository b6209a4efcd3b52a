//! The methods of PMarc, an archiver of CP/M and MSX: LZSS whose literals are coded by the time of their last use.
//!
//! `pm1` has codes that never change, one of 32 for literals. `pm2` has codes that are replaced at certain places of
//! the content: after 1, 2, 4 and 8 KiB, then every 4 KiB.
//!
//! Source: the formats as lhasa's comments describe them.

// A bit machine: its sums are those of the code, and overflow checks are on.
#![allow(clippy::arithmetic_side_effects)]

use super::method::{Method, Run};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

/// More than any step of a member takes; the codes at a place where `pm2` tells them may have 31 lengths of 7 bits.
const STEP_BITS: usize = 320;

/// All bytes, the last one told first.
struct Recent {
    bytes: [u8; 256],
    /// Part of the history that they know.
    seen: u64,
}

impl Recent {
    /// Before anything has been emitted: letters, control characters, then those of kana.
    fn new(seen: u64) -> Recent {
        let order = (0x20..=0x7f).chain(0..=0x1f).chain(0xa0..=0xdf).chain(0x80..=0x9f).chain(0xe0..=0xff);
        let mut bytes = [0; 256];
        bytes.iter_mut().zip(order).for_each(|(byte, next)| *byte = next);
        Recent { bytes, seen }
    }

    /// Follows the output since the last call.
    fn follow(&mut self, history: &History) {
        let new = (history.position() - self.seen) as usize;
        for back in (1..=new).rev() {
            let byte = history.dictionary.back(back);
            let place = memchr::memchr(byte, &self.bytes).unwrap_or(0);
            self.bytes[..=place].rotate_right(1);
        }
        self.seen = history.position();
    }
}

/// A number of several bits above a base.
#[derive(Clone, Copy)]
struct Span(u32, u32);

impl Span {
    fn read(self, bits: &mut Bits) -> usize {
        (self.0 + bits.take(self.1)) as usize
    }
}

/// The method `pm1`.
pub(super) struct Pm1 {
    state: State,
    recent: Recent,
}

enum State {
    Head,
    Command { tree: &'static [u8] },
    Literals { tree: &'static [u8], left: u32, then_copy: bool },
    Copy { tree: &'static [u8] },
}

impl Pm1 {
    pub fn new() -> Pm1 {
        Pm1 { state: State::Head, recent: Recent::new(0) }
    }

    fn step(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<()> {
        self.state = match self.state {
            State::Head => State::Command { tree: TREES[bits.take(5) as usize] },
            State::Command { tree } if bits.flag() => {
                let left = literals(bits);
                State::Literals { tree, left, then_copy: left < LITERALS_MAX }
            }
            State::Command { tree } => State::Copy { tree },
            State::Literals { tree, left: 0, then_copy: true } => State::Copy { tree },
            State::Literals { tree, left: 0, then_copy: false } => State::Command { tree },
            State::Literals { tree, left, then_copy } => {
                const RANGES: [Span; 6] =
                    [Span(0, 4), Span(16, 4), Span(32, 5), Span(64, 6), Span(128, 6), Span(192, 6)];
                let age = RANGES[leaf(tree, bits)].read(bits);
                self.recent.follow(history);
                history.dictionary.push(self.recent.bytes[age]);
                State::Literals { tree, left: left - 1, then_copy }
            }
            State::Copy { tree } => {
                let (length, distance) = copied(bits, history.position());
                history.copy(distance, length, end).ok()?;
                State::Command { tree }
            }
        };
        Some(())
    }
}

impl Method for Pm1 {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        self.recent.follow(history);
        while history.position() < end {
            // The last bits of a member may be missing where they are zero.
            if !bits.has(STEP_BITS) || bits.overran() {
                return Some(Run::Input);
            }
            self.step(bits, history, end)?;
        }
        self.recent.follow(history);
        Some(Run::Full)
    }
}

const LITERALS_MAX: u32 = 216;

/// How many literals follow.
fn literals(bits: &mut Bits) -> u32 {
    match bits.take(2) {
        few @ 0..3 => few + 1,
        _ => match bits.take(3) {
            some @ 0..7 => some + 4,
            _ => match bits.take(4) {
                more @ 0..14 => more + 11,
                14 => bits.take(6) + 25,
                _ => bits.take(7) + 89,
            },
        },
    }
}

/// Reads the length and the distance of a match; the coding of distances depends on their range.
fn copied(bits: &mut Bits, told: u64) -> (usize, usize) {
    let after = |start: u64, bits: &mut Bits, before: bool| if told >= start { bits.flag() } else { before };
    // The narrowest width of the range that reaches all of the output.
    let width =
        |base: u64, least: u32, most: u32| (least..most).find(|&width| told < base + (1 << width)).unwrap_or(most);
    let (is_pair, span) = if !bits.flag() {
        match after(576, bits, false) {
            true => (false, Span(576, width(576, 8, 11))),
            false if after(64, bits, false) => (true, Span(64, 8)),
            false => (true, Span(0, 6)),
        }
    } else if !after(64, bits, true) {
        (false, Span(64, width(64, 8, 9)))
    } else if after(2624, bits, true) {
        (false, Span(0, 6))
    } else {
        (false, Span(2624, width(2624, 8, 13)))
    };
    let length = if is_pair { 2 } else { length(bits) };
    (length as usize, span.read(bits) + 1)
}

fn length(bits: &mut Bits) -> u32 {
    match bits.take(2) {
        few @ 0..3 => few + 3,
        _ => match bits.take(3) {
            some @ 0..5 => some + 6,
            5 => bits.take(2) + 11,
            6 => bits.take(3) + 15,
            _ => match bits.take(6) {
                more @ 0..62 => more + 23,
                62 => bits.take(5) + 85,
                _ => bits.take(7) + 117,
            },
        },
    }
}

/// The leaf of a tree that the bits lead to. A tree is written as a pair of trees or as the letter of a leaf.
fn leaf(tree: &[u8], bits: &mut Bits) -> usize {
    let mut rest = tree;
    while let [b'(', pair @ ..] = rest {
        rest = if bits.flag() { &pair[first_len(pair)..] } else { pair };
    }
    rest.first().map_or(0, |letter| usize::from(letter - b'a'))
}

/// The length of the tree that this begins with.
fn first_len(pair: &[u8]) -> usize {
    let mut depth = 0;
    for (at, byte) in pair.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    pair.len()
}

/// The codes for the range that a literal's age is in. That of number 17 never says `a` or `b`.
const TREES: [&[u8]; 32] = [
    b"((((ab)c)d)(ef))",
    b"(((ab)(cf))(de))",
    b"(((ab)c)(d(ef)))",
    b"((a(bc))(d(ef)))",
    b"((a(bd))(c(ef)))",
    b"((a(b(ef)))(cd))",
    b"((ab)((cd)(ef)))",
    b"((ab)((c(ef))d))",
    b"((ab)(c(d(ef))))",
    b"(a(((bf)c)(de)))",
    b"(a(((b(ef))c)d))",
    b"(a(((bc)d)(ef)))",
    b"(a((b(cf))(de)))",
    b"(a((bc)(d(ef))))",
    b"(a((b(d(ef)))c))",
    b"(a(b((cd)(ef))))",
    b"(a(b(c(d(ef)))))",
    b"(((de)c)(de))",
    b"((a(be))(cd))",
    b"((ab)(c(de)))",
    b"(a(((be)c)d))",
    b"(a((bc)(de)))",
    b"(a((b(de))c))",
    b"(a(b(c(de))))",
    b"(((ab)c)d)",
    b"((a(bd))c)",
    b"((ab)(cd))",
    b"(a((bd)c))",
    b"(a(b(cd)))",
    b"(a(bc))",
    b"(ab)",
    b"a",
];

/// The method `pm2`.
pub(super) struct Pm2 {
    recent: Recent,
    /// Where the history began.
    start: u64,
    /// Number of replacements of the codes.
    told: u32,
    /// Codes of the next item: literals by the range of their age, matches by the range of their length.
    main: Huffman,
    /// How many bits a distance has.
    widths: Huffman,
    has_widths: bool,
}

impl Pm2 {
    /// Ranges of ages, of literals.
    const LITERALS: usize = 8;
    /// Matches that have a symbol of their own.
    const SHORT: usize = 15;

    /// The method, its history beginning at `start`.
    pub fn new(start: u64) -> Pm2 {
        let mut widths = Huffman::new();
        widths.set_constant(0);
        Pm2 { recent: Recent::new(start), start, told: 0, main: Huffman::new(), widths, has_widths: false }
    }

    /// Where codes are replaced next.
    const fn place(&self) -> u64 {
        let content = match self.told {
            0 => 0,
            1..=4 => 512 << self.told,
            later => (later as u64 - 2) * 4096,
        };
        self.start + content
    }

    fn codes(&mut self, bits: &mut Bits) -> Option<()> {
        match self.told {
            0 => {
                bits.skip(1);
                self.read_main(bits)?;
                self.read_widths(5, bits)?;
            }
            1 => self.read_widths(6, bits)?,
            2 => self.read_widths(7, bits)?,
            3 => {
                if bits.flag() {
                    self.read_main(bits)?;
                }
                self.read_widths(8, bits)?;
            }
            _ if bits.flag() => {
                self.read_main(bits)?;
                self.read_widths(8, bits)?;
            }
            _ => {}
        }
        self.told += 1;
        Some(())
    }

    fn read_main(&mut self, bits: &mut Bits) -> Option<()> {
        let (count, least) = (bits.take(5) as usize, bits.take(3));
        self.has_widths = count >= 10 && !(count == 29 && least == 0);
        if least == 0 {
            self.main.set_constant(count.checked_sub(1)? as u16);
            return Some(());
        }
        let width = bits.take(3);
        let mut lengths = [0; 31];
        for length in &mut lengths[..count] {
            *length = match bits.take(width) {
                0 => 0,
                more => (least + more - 1) as u8,
            };
        }
        self.main.set(&lengths[..count]).ok()
    }

    fn read_widths(&mut self, count: usize, bits: &mut Bits) -> Option<()> {
        if !self.has_widths {
            return Some(());
        }
        let mut lengths = [0; 8];
        lengths[..count].iter_mut().for_each(|length| *length = bits.take(3) as u8);
        let used: Vec<usize> = (0..count).filter(|&width| lengths[width] > 0).collect();
        if let [only] = used[..] {
            self.widths.set_constant(only as u16);
            return Some(());
        }
        self.widths.set(&lengths).ok()
    }

    fn literal(&mut self, range: usize, bits: &mut Bits, history: &mut History) {
        const RANGES: [Span; Pm2::LITERALS] =
            [Span(0, 3), Span(8, 3), Span(16, 4), Span(32, 5), Span(64, 5), Span(96, 5), Span(128, 6), Span(192, 6)];
        let age = RANGES[range].read(bits);
        self.recent.follow(history);
        history.dictionary.push(self.recent.bytes[age]);
    }

    /// The length and the distance of a match.
    fn copied(&self, symbol: usize, bits: &mut Bits) -> Option<(usize, usize)> {
        const LENGTHS: [Span; 6] = [Span(17, 3), Span(25, 3), Span(33, 5), Span(65, 6), Span(129, 7), Span(256, 0)];
        const LONGEST: usize = Pm2::SHORT + LENGTHS.len() - 1;
        let length = match symbol {
            0..Pm2::SHORT => symbol + 2,
            _ => LENGTHS.get(symbol - Pm2::SHORT)?.read(bits),
        };
        let offset = match symbol {
            0 => Span(0, 6),
            LONGEST => Span(0, 0),
            _ => match self.widths.read(bits)? as u32 {
                0 => Span(0, 6),
                width => Span(1 << (width + 5), width + 5),
            },
        };
        Some((length, offset.read(bits) + 1))
    }
}

impl Method for Pm2 {
    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Option<Run> {
        self.recent.follow(history);
        while history.position() < end {
            if !bits.has(STEP_BITS) || bits.overran() {
                return Some(Run::Input);
            }
            if history.position() >= self.place() {
                self.codes(bits)?;
                continue;
            }
            match self.main.read(bits)? {
                range @ 0..Pm2::LITERALS => self.literal(range, bits, history),
                symbol => {
                    let (length, distance) = self.copied(symbol - Pm2::LITERALS, bits)?;
                    history.copy(distance, length, end).ok()?;
                }
            }
        }
        self.recent.follow(history);
        Some(Run::Full)
    }
}
