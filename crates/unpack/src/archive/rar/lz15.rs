//! The compression of RAR 1.5: LZ77 whose bytes and places are looked up in tables that move what is used to the front,
//! under fixed codes of which running averages choose one.
//!
//! ```text
//! member  := step*                        bits with the highest first, distances up to 64 KiB
//! step    := 1 likelier | 01 the other | 00 short match     likelier: literal or long match, by weights of both
//! flags   := these bits come eight at a time: place in a table of bytes, by PLACES[2]
//! literal := place, by the average of places
//! long    := length, by the average of lengths; place of the upper distance, by the average of those; 7 bits
//! short   := [1 the last match again, where it was again twice], choice:
//!            0..9    a distance up to 256, by a table in which neighbours change places; length is choice + 2
//!            9       the last match again
//!            10..14  one of the last four distances; length
//!            14      distance of 32 KiB and 15 bits; length
//! ```
//! Where 16 literals have come in a row, and the flags are used up, literals follow without flags, until place 0 says that
//! they end, or that a match comes first. A length that cannot be changes the code of choices, and is no match.
//!
//! Distance 0 means the same byte one window before. Source: the behaviour of The Unarchiver's reader.

use super::lz::{DATA, Model, Stop};
use super::table15::{Byte, Table};
use crate::bits::history::History;
use crate::bits::huffman::Huffman;
use crate::bits::pushed::Bits;

/// The most bits of one step: twice flags, a place, a length, a distance.
const STEP_BITS: usize = 128;
const WINDOW_BYTES: usize = 0x1_0000;

/// Numbers of symbols with their lengths of codes, in order.
type Lengths = &'static [(u8, u8)];

const PLACES: [Lengths; 5] = [
    &[(4, 8), (5, 8), (6, 8), (7, 9), (12, 224)],
    &[(5, 4), (6, 40), (7, 16), (8, 16), (9, 4), (11, 47), (12, 130)],
    &[(5, 2), (6, 5), (7, 46), (8, 64), (9, 116), (10, 24)],
    &[(6, 2), (7, 14), (8, 202), (9, 33), (10, 6)],
    &[(8, 255), (9, 2)],
];
const LENGTHS: [Lengths; 2] = [
    &[(2, 2), (3, 1), (4, 2), (5, 2), (6, 4), (7, 5), (8, 4), (9, 4), (10, 8), (12, 224)],
    &[(3, 5), (4, 2), (5, 2), (6, 4), (7, 5), (8, 4), (9, 4), (10, 8), (11, 2), (12, 220)],
];
/// Below these averages of places each code but the last is taken.
const LITERAL_AVERAGES: [u32; 4] = [0xe00, 0x3600, 0x5e00, 0x7600];
const DISTANCE_AVERAGES: [u32; 2] = [0x700, 0x2900];

/// Codes of choices: bits and their number. By whether the average is high, without and with the change.
const CHOICES: [[[(u8, u8); 15]; 2]; 2] = {
    const REST: [(u8, u8); 6] = [(0xc, 4), (0x8, 4), (0x12, 5), (0x26, 6), (0x27, 6), (0xb, 4)];
    const LOW: [(u8, u8); 9] =
        [(0, 1), (5, 3), (0xd, 4), (0xe, 4), (0x1e, 5), (0x3e, 6), (0x7e, 7), (0xfe, 8), (0xff, 8)];
    const HIGH: [(u8, u8); 9] = [(0, 2), (2, 3), (3, 3), (5, 3), (0xd, 4), (0xe, 4), (0x1e, 5), (0x3e, 6), (0x3f, 6)];
    const fn code(first: [(u8, u8); 9], changed: usize, count: usize) -> [(u8, u8); 15] {
        let mut code = [(0, 0); 15];
        let mut at = 0;
        while at < count {
            code[at] = if at < 9 { first[at] } else { REST[at - 9] };
            at += 1;
        }
        if changed > 0 {
            code[changed] = (0xa, 4);
        }
        code
    }
    [[code(LOW, 0, 14), code(LOW, 1, 15)], [code(HIGH, 0, 14), code(HIGH, 3, 15)]]
};
const AGAIN: usize = 9;
const FAR: usize = 14;

/// The model.
pub(super) struct Lz15 {
    places: [Huffman; 5],
    lengths: [Huffman; 2],
    learned: Learned,
    flags: u8,
    flags_left: u32,
    /// Whether literals come without flags.
    is_run: bool,
    /// How often the last match came again.
    again: u32,
}

/// State with which solid members go on.
struct Learned {
    literals: Table,
    distances: Table,
    flag_bytes: Table,
    short: [u8; 256],
    literal_average: u32,
    length_average: u32,
    distance_average: u32,
    choice_average: u32,
    /// How usual short lengths within the limit are.
    near: u32,
    /// From this distance on matches are longer.
    limit: usize,
    literal_weight: u32,
    match_weight: u32,
    literals_in_row: u32,
    is_changed: bool,
    old: [usize; 4],
    old_at: usize,
    last: (usize, usize),
}

const LIMIT_LOW: usize = 0x2001;
const LIMIT_HIGH: usize = 0x7f00;

fn huffman(lengths: Lengths) -> Huffman {
    let all: Vec<u8> = lengths.iter().flat_map(|&(length, count)| [length].repeat(count.into())).collect();
    let mut code = Huffman::new();
    code.set(&all).expect("the lengths are those of a code, as the test shows");
    code
}

impl Learned {
    fn new() -> Learned {
        Learned {
            literals: Table::new(|at| at, 0xa1),
            distances: Table::ranked(0xff),
            flag_bytes: Table::new(u8::wrapping_neg, 0xff),
            short: std::array::from_fn(|at| at as u8),
            literal_average: 0x3500,
            length_average: 0,
            distance_average: 0,
            choice_average: 0,
            near: 0,
            limit: LIMIT_LOW,
            literal_weight: 0x80,
            match_weight: 0x80,
            literals_in_row: 0,
            is_changed: false,
            old: [0; 4],
            old_at: 0,
            last: (0, 0),
        }
    }

    fn remember(&mut self, found: (usize, usize)) {
        self.old[self.old_at % 4] = found.0;
        self.old_at += 1;
        self.last = found;
    }

    /// The distance so many matches ago.
    fn recall(&self, ago: usize) -> usize {
        self.old[self.old_at.wrapping_sub(ago) % 4]
    }
}

/// Adds to an average that forgets one part of `1 << shift` of itself each time.
fn add(average: &mut u32, value: usize, shift: u32) {
    *average += value as u32;
    *average -= *average >> shift;
}

/// One kind has come: the weight of it grows, that of the other is halved before it would overflow.
fn weigh(this: &mut u32, other: &mut u32) {
    *this += 16;
    if *this > 0xff {
        *this = 0x90;
        *other >>= 1;
    }
}

/// Result of a step.
enum Step {
    Byte(u8),
    Match(usize, usize),
    Nothing,
}

impl Lz15 {
    pub fn new() -> Lz15 {
        Lz15 {
            places: PLACES.map(huffman),
            lengths: LENGTHS.map(huffman),
            learned: Learned::new(),
            flags: 0,
            flags_left: 0,
            is_run: false,
            again: 0,
        }
    }

    fn flag(&mut self, bits: &mut Bits) -> Option<bool> {
        if self.flags_left == 0 {
            let place = self.places[2].read(bits)?;
            self.flags = self.learned.flag_bytes.look_up(Byte::of(place)?);
            self.flags_left = 8;
        }
        self.flags_left -= 1;
        Some(self.flags >> self.flags_left & 1 != 0)
    }

    fn step(&mut self, bits: &mut Bits) -> Option<Step> {
        if self.is_run {
            return self.literal(bits);
        }
        let is_match_likelier = self.learned.match_weight > self.learned.literal_weight;
        let is_match = match self.flag(bits)? {
            true => is_match_likelier,
            false if self.flag(bits)? => !is_match_likelier,
            false => return self.short_match(bits),
        };
        if is_match { self.long_match(bits) } else { self.literal(bits) }
    }

    fn literal(&mut self, bits: &mut Bits) -> Option<Step> {
        let average = self.learned.literal_average;
        let code = LITERAL_AVERAGES.iter().take_while(|&&limit| average >= limit).count();
        let mut place = self.places[code].read(bits)?;
        if self.is_run {
            let Some(less) = place.checked_sub(1) else { return self.end_of_run(bits) };
            place = less;
        } else {
            place &= 0xff;
            let row = self.learned.literals_in_row;
            self.learned.literals_in_row = row.saturating_add(1);
            self.is_run = row >= 16 && self.flags_left == 0;
        }
        let learned = &mut self.learned;
        add(&mut learned.literal_average, place, 8);
        weigh(&mut learned.literal_weight, &mut learned.match_weight);
        Some(Step::Byte(learned.literals.look_up(Byte::of(place)?)))
    }

    fn end_of_run(&mut self, bits: &mut Bits) -> Option<Step> {
        if bits.flag() {
            self.is_run = false;
            self.learned.literals_in_row = 0;
            return Some(Step::Nothing);
        }
        let length = if bits.flag() { 4 } else { 3 };
        let high = self.places[2].read(bits)?;
        Some(Step::Match(high << 5 | bits.take(5) as usize, length))
    }

    fn length(&self, bits: &mut Bits) -> Option<usize> {
        const UNARY_MAX: u32 = 8;
        match self.learned.length_average {
            122.. => self.lengths[1].read(bits),
            64.. => self.lengths[0].read(bits),
            _ => {
                let zeros = bits.peek(UNARY_MAX).leading_zeros() - (u32::BITS - UNARY_MAX);
                bits.skip(UNARY_MAX.min(zeros + 1));
                Some(if zeros == UNARY_MAX { bits.take(8) } else { zeros } as usize)
            }
        }
    }

    fn long_match(&mut self, bits: &mut Bits) -> Option<Step> {
        const NEAR: usize = 256;
        self.learned.literals_in_row = 0;
        weigh(&mut self.learned.match_weight, &mut self.learned.literal_weight);
        let short = self.length(bits)?;
        let average = self.learned.distance_average;
        let code = DISTANCE_AVERAGES.iter().take_while(|&&limit| average >= limit).count();
        let place = Byte::of(self.places[code].read(bits)?)?;
        let learned = &mut self.learned;
        let distance = usize::from(learned.distances.look_up(place)) << 7 | bits.take(7) as usize;
        let limit = learned.limit;
        let length = short + 3 + usize::from(distance >= limit) + if distance <= NEAR { 8 } else { 0 };
        let is_high = learned.near > 0xb0 || learned.literal_average >= 0x2a00 && learned.length_average < 64;
        learned.limit = if is_high { LIMIT_HIGH } else { LIMIT_LOW };
        add(&mut learned.length_average, short, 5);
        add(&mut learned.distance_average, place.value().into(), 8);
        match short {
            0 if distance <= limit => add(&mut learned.near, 1, 8),
            1 | 4 => {}
            _ => learned.near = learned.near.saturating_sub(1),
        }
        learned.remember((distance, length));
        Some(Step::Match(distance, length))
    }

    fn short_match(&mut self, bits: &mut Bits) -> Option<Step> {
        const AGAIN_MAX: u32 = 2;
        self.learned.literals_in_row = 0;
        let (distance, length) = self.learned.last;
        if self.again == AGAIN_MAX {
            if bits.flag() {
                return Some(Step::Match(distance, length));
            }
            self.again = 0;
        }
        let choice = self.choice(bits)?;
        if choice == AGAIN {
            self.again += 1;
            return Some(Step::Match(distance, length));
        }
        self.again = 0;
        match choice {
            ..AGAIN => self.nearest(choice, bits),
            FAR => {
                let length = self.lengths[1].read(bits)? + 5;
                self.learned.last = (bits.take(15) as usize + 0x8000, length);
                Some(Step::Match(self.learned.last.0, length))
            }
            _ => self.old_distance(choice - AGAIN, bits),
        }
    }

    fn choice(&self, bits: &mut Bits) -> Option<usize> {
        const HIGH: u32 = 37;
        let learned = &self.learned;
        let code = CHOICES[usize::from(learned.choice_average >= HIGH)][usize::from(learned.is_changed)];
        let ahead = bits.peek(8);
        let is_it = |&(code, length): &(u8, u8)| length > 0 && ahead >> (8 - length) == code.into();
        let choice = code.iter().position(is_it)?;
        bits.skip(code[choice].1.into());
        Some(choice)
    }

    fn nearest(&mut self, choice: usize, bits: &mut Bits) -> Option<Step> {
        add(&mut self.learned.choice_average, choice, 4);
        let place = self.places[2].read(bits)? & 0xff;
        let found = (usize::from(self.learned.short[place]) + 1, choice + 2);
        if place > 0 {
            self.learned.short.swap(place, place - 1);
        }
        self.learned.remember(found);
        Some(Step::Match(found.0, found.1))
    }

    fn old_distance(&mut self, ago: usize, bits: &mut Bits) -> Option<Step> {
        const NEAR: usize = 256;
        const IMPOSSIBLE: usize = 0x101;
        let distance = self.learned.recall(ago);
        let length = self.lengths[0].read(bits)? + 2;
        if length == IMPOSSIBLE && ago == 1 {
            self.learned.is_changed = !self.learned.is_changed;
            return Some(Step::Nothing);
        }
        let length = length + usize::from(distance > NEAR) + usize::from(distance >= self.learned.limit);
        self.learned.remember((distance, length));
        Some(Step::Match(distance, length))
    }
}

impl Model for Lz15 {
    fn start(&mut self, solid: bool) {
        if !solid {
            self.learned = Learned::new();
        }
        (self.flags_left, self.is_run, self.again) = (0, false, 0);
    }

    fn run(&mut self, bits: &mut Bits, history: &mut History, end: u64) -> Stop {
        while history.position() < end {
            if !bits.has(STEP_BITS) || bits.is_at_end() {
                return Stop::Input;
            }
            match self.step(bits) {
                Some(Step::Byte(byte)) => history.dictionary.push(byte),
                Some(Step::Match(distance, length)) => {
                    let distance = if distance == 0 { WINDOW_BYTES } else { distance };
                    if let Err(unreachable) = history.copy(distance, length, end) {
                        return unreachable.into();
                    }
                }
                Some(Step::Nothing) => {}
                None => return Stop::Fault(DATA),
            }
        }
        Stop::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_codes_are_complete() {
        let sum = |lengths: Lengths| lengths.iter().map(|&(length, count)| u32::from(count) << (12 - length)).sum();
        for lengths in PLACES.into_iter().chain(LENGTHS) {
            let sum: u32 = sum(lengths);
            assert_eq!(sum, 1 << 12);
            let _ = huffman(lengths);
        }
        for code in CHOICES.as_flattened() {
            let spans = (0..256).filter(|ahead| {
                code.iter().any(|&(bits, length)| length > 0 && ahead >> (8 - length) == u32::from(bits))
            });
            assert_eq!(spans.count(), 256);
        }
    }
}
