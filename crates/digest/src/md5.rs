//! MD5 (RFC 1321), of several streams side by side.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     a, b, c, d = d, b + rotate(a + f(b, c, d) + word + constant), b, c
//! ```

use core::hint::black_box;

use crate::driver;
use crate::lanes::{self, Block, Function, Two, Words};

/// State of a digest.
pub type State = [u32; 4];

/// Initial state of every digest.
pub const INITIAL: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

const CONSTANTS: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// For each round: the word of the first step, how far on that of the next is, and by how much four steps turn.
const ROUNDS: [(usize, usize, [u32; 4]); 4] =
    [(0, 1, [7, 12, 17, 22]), (1, 5, [5, 9, 14, 20]), (5, 3, [4, 11, 16, 23]), (0, 7, [6, 10, 15, 21])];

/// Takes blocks of any number of streams into their states; of each stream as many as of the one that has the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    driver::compress::<Md5, _>(streams);
}

/// Computes the digest of a whole content.
pub fn digest(content: &[u8]) -> [u8; 16] {
    driver::digest::<Md5, _, _>(content)
}

/// Computes the digest after `rest` (less than a block), the end of `length` bytes.
pub fn finish(state: State, rest: &[u8], length: u64) -> [u8; 16] {
    driver::finish::<Md5, _, _>(state, rest, length)
}

fn words(block: &Block) -> [u32; 16] {
    lanes::words(block, u32::from_le_bytes)
}

pub(crate) struct Md5;

impl Function<4> for Md5 {
    const INITIAL: State = INITIAL;
    const SWAPS: bool = false;

    /// Plain registers are faster for one or two streams: their operations take fewer cycles than those of vectors.
    fn in_pairs_max() -> usize {
        2
    }

    /// A step of each in turn: while one stream waits for itself, the processor goes on with the other.
    fn take_few<const S: usize>(mut states: [&mut State; S], blocks: [&[Block]; S]) {
        let ([first, second], [blocks, beside]) = (&mut states[..], &blocks[..]) else {
            let each = states.into_iter().zip(blocks);
            return each.for_each(|(state, blocks)| blocks.iter().for_each(|block| Md5::take(state, &words(block))));
        };
        let mut state: [Two<u32>; 4] = core::array::from_fn(|word| Two(first[word], second[word]));
        for (block, other) in blocks.iter().zip(*beside) {
            let (words, others) = (words(block), words(other));
            let mut pairs = [Two(0, 0); 16];
            for (pair, (word, other)) in pairs.iter_mut().zip(words.into_iter().zip(others)) {
                *pair = Two(word, other);
            }
            Md5::take(&mut state, &pairs);
        }
        (**first, **second) = (state.map(|Two(word, _)| word), state.map(|Two(_, word)| word));
    }

    #[inline(always)]
    fn take<W: Words>(state: &mut [W; 4], words: &[W; 16]) {
        let before = *state;
        round::<W, 0>(state, words);
        round::<W, 1>(state, words);
        round::<W, 2>(state, words);
        round::<W, 3>(state, words);
        add(state, before);
    }
}

/// One of the four rounds of sixteen steps.
#[inline(always)]
fn round<W: Words, const ROUND: usize>(state: &mut [W; 4], words: &[W; 16]) {
    let [mut a, mut b, mut c, mut d] = *state;
    // Each step waits for the `b` of the one before, so all else has to be added up by then. A compiler that knows the
    // constants adds them last.
    let constants = black_box(&CONSTANTS);
    let (first, stride, turns) = const { ROUNDS[ROUND] };
    macro_rules! steps {
        ($($step:literal: $a:ident $b:ident $c:ident $d:ident)*) => { $(
            let word = words[(first + stride * $step) % 16].add(W::all(constants[16 * ROUND + $step]));
            $a = mix::<W, ROUND>($a.add(word), $b, $c, $d).rotate_left(turns[$step % 4]).add($b);
        )* };
    }
    // Written out, so that it is known which word each step takes.
    steps!(0: a b c d   1: d a b c   2: c d a b   3: b c d a);
    steps!(4: a b c d   5: d a b c   6: c d a b   7: b c d a);
    steps!(8: a b c d   9: d a b c  10: c d a b  11: b c d a);
    steps!(12: a b c d  13: d a b c  14: c d a b  15: b c d a);
    *state = [a, b, c, d];
}

/// The sum, and what a round makes of three words. Whatever is said here is inlined as a closure would not be.
#[inline(always)]
fn mix<W: Words, const ROUND: usize>(sum: W, b: W, c: W, d: W) -> W {
    match ROUND {
        0 => sum.add(d.xor(b.and(c.xor(d)))),
        1 => sum.add(c.and(not(d))).add(b.and(d)),
        2 => sum.add(c.xor(d).xor(b)),
        _ => sum.add(c.xor(b.or(not(d)))),
    }
}

#[inline(always)]
fn not<W: Words>(word: W) -> W {
    word.xor(W::all(!0))
}

#[inline(always)]
fn add<W: Words>(state: &mut [W; 4], before: [W; 4]) {
    for (now, before) in state.iter_mut().zip(before) {
        *now = now.add(before);
    }
}
