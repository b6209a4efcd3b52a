//! SHA-256 (FIPS 180-4), of several streams side by side where the processor has no instructions for it.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     t = h + s1(e) + choice(e, f, g) + constant + word
//!     a, b, c, d, e, f, g, h = t + s0(a) + majority(a, b, c), a, b, c, d + t, e, f, g
//! ```

use crate::lanes::{self, Block, Function, Words};

/// What a digest is made of.
pub type State = [u32; 8];

/// What every digest begins with.
pub const INITIAL: State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// The first 32 bits behind the point of the cube roots of the first 64 primes.
const CONSTANTS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Takes blocks of up to [`LANES`](lanes::LANES) streams into their states; of each stream as many as of the one that has
/// the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    if !lanes::has_sha() && lanes::compress::<Sha256, 8>(streams) {
        return;
    }
    let count = lanes::common(streams);
    // Two streams a block at a time: while one waits for itself, a processor looks far enough ahead to go on with the other.
    for streams in streams.chunks_mut(2) {
        match streams {
            [(first, blocks), (second, beside)] => {
                for (block, other) in blocks[..count].chunks(1).zip(beside[..count].chunks(1)) {
                    sha2::block_api::compress256(first, block);
                    sha2::block_api::compress256(second, other);
                }
            }
            streams => {
                streams.iter_mut().for_each(|(state, blocks)| sha2::block_api::compress256(state, &blocks[..count]))
            }
        }
    }
}

/// The digest, when what came last is `rest` (less than a block) and `length` bytes came in all.
pub fn finish(mut state: State, rest: &[u8], length: u64) -> [u8; 32] {
    let (end, count) = lanes::end(rest, length.wrapping_mul(8).to_be_bytes());
    compress(&mut [(&mut state, &end[..count])]);
    let mut digest = [0; 32];
    digest.as_chunks_mut().0.iter_mut().zip(state).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    digest
}

pub(crate) struct Sha256;

impl Function<8> for Sha256 {
    const SWAPS: bool = true;

    #[inline(always)]
    fn take<W: Words>(state: &mut [W; 8], words: &[W; 16]) {
        let mut words = *words;
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
        macro_rules! steps {
            ($constants:ident: $($index:literal)*) => { $(
                let sum = h.add(words[$index].add(W::all($constants[$index]))).add(choice(e, f, g)).add(turned(e, [6, 11, 25]));
                (h, g, f, e) = (g, f, e, d.add(sum));
                let first = sum.add(majority(a, b, c)).add(turned(a, [2, 13, 22]));
                (d, c, b, a) = (c, b, a, first);
            )* };
        }
        macro_rules! spread {
            ($($index:literal)*) => { $(
                let [second, tenth, fifteenth] = [1, 9, 14].map(|ahead| words[($index + ahead) % 16]);
                let low = second.rotate_left(32 - 7).xor(second.rotate_left(32 - 18)).xor(second.shift_right(3));
                let high = fifteenth.rotate_left(32 - 17).xor(fifteenth.rotate_left(32 - 19)).xor(fifteenth.shift_right(10));
                words[$index] = words[$index].add(low).add(tenth).add(high);
            )* };
        }
        // Written out, so that the words stay in registers.
        for constants in CONSTANTS.as_chunks::<16>().0 {
            steps!(constants: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            // What the next sixteen steps take; after the last ones it is for nothing.
            spread!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        for (before, now) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *before = before.add(now);
        }
    }
}

/// The bits of `second` where `which` has them set, those of `third` elsewhere.
#[inline(always)]
fn choice<W: Words>(which: W, second: W, third: W) -> W {
    third.xor(which.and(second.xor(third)))
}

/// The bits that two of the three have.
#[inline(always)]
fn majority<W: Words>(first: W, second: W, third: W) -> W {
    first.and(second).or(third.and(first.or(second)))
}

/// The sum, bit by bit, of the word turned right by each of `turns`.
#[inline(always)]
fn turned<W: Words>(word: W, turns: [u32; 3]) -> W {
    let [first, second, third] = turns.map(|turn| word.rotate_left(32 - turn));
    first.xor(second).xor(third)
}
