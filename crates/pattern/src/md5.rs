//! MD5 (RFC 1321), of several streams side by side.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     a, b, c, d = d, b + rotate(a + f(b, c, d) + word + constant), b, c
//! ```

use crate::lanes::{self, Block, Function, Words};

/// What a digest is made of.
pub type State = [u32; 4];

/// What every digest begins with.
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

/// Takes blocks of up to [`LANES`](lanes::LANES) streams into their states; of each stream as many as of the one that has
/// the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    // One stream alone is as fast in plain registers.
    if streams.len() > 1 && lanes::compress::<Md5, 4>(streams) {
        return;
    }
    let count = lanes::common(streams);
    for (state, blocks) in streams {
        blocks[..count].iter().for_each(|block| Md5::take(state, &lanes::words(block, u32::from_le_bytes)));
    }
}

/// The digest, when what came last is `rest` (less than a block) and `length` bytes came in all.
pub fn finish(mut state: State, rest: &[u8], length: u64) -> [u8; 16] {
    let (end, count) = lanes::end(rest, length.wrapping_mul(8).to_le_bytes());
    compress(&mut [(&mut state, &end[..count])]);
    let mut digest = [0; 16];
    digest.as_chunks_mut().0.iter_mut().zip(state).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    digest
}

pub(crate) struct Md5;

impl Function<4> for Md5 {
    const SWAPS: bool = false;

    #[inline(always)]
    fn take<W: Words>(state: &mut [W; 4], words: &[W; 16]) {
        let [mut a, mut b, mut c, mut d] = *state;
        macro_rules! round {
            ($round:expr, $mix:expr, $turns:expr, $first:expr, $stride:expr) => {
                for group in 0..4 {
                    macro_rules! step {
                        ($turn:expr, $a:ident, $b:ident, $c:ident, $d:ident) => {
                            let step = 4 * group + $turn;
                            let word = words[($first + $stride * step) % 16].add(W::all(CONSTANTS[16 * $round + step]));
                            $a = $a.add(word).add($mix($b, $c, $d)).rotate_left($turns[$turn]).add($b);
                        };
                    }
                    step!(0, a, b, c, d);
                    step!(1, d, a, b, c);
                    step!(2, c, d, a, b);
                    step!(3, b, c, d, a);
                }
            };
        }
        round!(0, |b: W, c: W, d: W| d.xor(b.and(c.xor(d))), [7, 12, 17, 22], 0, 1);
        round!(1, |b: W, c: W, d: W| c.xor(d.and(b.xor(c))), [5, 9, 14, 20], 1, 5);
        round!(2, |b: W, c: W, d: W| c.xor(d).xor(b), [4, 11, 16, 23], 5, 3);
        round!(3, |b: W, c: W, d: W| c.xor(b.or(d.xor(W::all(!0)))), [6, 10, 15, 21], 0, 7);
        for (before, now) in state.iter_mut().zip([a, b, c, d]) {
            *before = before.add(now);
        }
    }
}
