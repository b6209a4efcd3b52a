//! SHA-1 (FIPS 180-4), of several streams side by side.
//!
//! ```text
//! for each block of 64 bytes, for each of 80 steps:
//!     a, b, c, d, e = rotate(a, 5) + f(b, c, d) + e + constant + word, a, rotate(b, 30), c, d
//! ```

use crate::driver;
use crate::instructions::Instructions;
use crate::lanes::{Block, Function, Words};

/// State of a digest.
pub type State = [u32; 5];

/// Initial state of every digest.
pub const INITIAL: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// Constants, each of twenty steps.
const CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// Takes blocks of any number of streams into their states; of each stream as many as of the one that has the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    driver::compress::<Sha1, _>(streams);
}

/// Computes the digest of a whole content.
pub fn digest(content: &[u8]) -> [u8; 20] {
    driver::digest::<Sha1, _, _>(content)
}

/// Computes the digest after `rest` (less than a block), the end of `length` bytes.
pub fn finish(state: State, rest: &[u8], length: u64) -> [u8; 20] {
    driver::finish::<Sha1, _, _>(state, rest, length)
}

pub(crate) struct Sha1;

impl Function<5> for Sha1 {
    const INITIAL: State = INITIAL;
    const SWAPS: bool = true;

    fn in_pairs_max() -> usize {
        if Instructions::Sha.are_used() { usize::MAX } else { 1 }
    }

    fn take_few<const S: usize>(states: [&mut State; S], blocks: [&[Block]; S]) {
        #[cfg(target_arch = "x86_64")]
        if Instructions::Sha.are_used() {
            return crate::vector::sha::sha1(states, blocks);
        }
        states.into_iter().zip(blocks).for_each(|(state, blocks)| ::sha1::block_api::compress(state, blocks));
    }

    #[inline(always)]
    fn take<W: Words>(state: &mut [W; 5], words: &[W; 16]) {
        let mut words = *words;
        let before = *state;
        steps::<W, 0>(state, &mut words);
        steps::<W, 1>(state, &mut words);
        steps::<W, 2>(state, &mut words);
        steps::<W, 3>(state, &mut words);
        for (now, before) in state.iter_mut().zip(before) {
            *now = now.add(before);
        }
    }
}

/// The twenty steps of one constant.
#[inline(always)]
fn steps<W: Words, const ROUND: usize>(state: &mut [W; 5], words: &mut [W; 16]) {
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    let constant = W::all(CONSTANTS[ROUND]);
    macro_rules! step {
        ($offset:literal) => {
            let index = 20 * ROUND + $offset;
            if index >= 16 {
                let (near, far) = (words[(index + 13) % 16].xor(words[(index + 8) % 16]), words[(index + 2) % 16]);
                words[index % 16] = words[index % 16].xor(far).xor(near).rotate_left(1);
            }
            let sum = e.add(constant).add(words[index % 16]).add(mix::<W, ROUND>(b, c, d)).add(a.rotate_left(5));
            (a, b, c, d, e) = (sum, a, b.rotate_left(30), c, d);
        };
    }
    // Written out, so that the words stay where they are.
    step!(0);
    step!(1);
    step!(2);
    step!(3);
    step!(4);
    step!(5);
    step!(6);
    step!(7);
    step!(8);
    step!(9);
    step!(10);
    step!(11);
    step!(12);
    step!(13);
    step!(14);
    step!(15);
    step!(16);
    step!(17);
    step!(18);
    step!(19);
    *state = [a, b, c, d, e];
}

/// Mixes three words, as in twenty steps of one round.
#[inline(always)]
fn mix<W: Words, const ROUND: usize>(b: W, c: W, d: W) -> W {
    match ROUND {
        0 => d.xor(b.and(c.xor(d))),
        2 => b.and(c).or(d.and(b.or(c))),
        _ => b.xor(c).xor(d),
    }
}
