//! SHA-256 (FIPS 180-4), of several streams side by side where the processor has no instructions for it.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     t = h + s1(e) + choice(e, f, g) + constant + word
//!     a, b, c, d, e, f, g, h = t + s0(a) + majority(a, b, c), a, b, c, d + t, e, f, g
//! ```

use crate::driver;
use crate::instructions::Instructions;
use crate::lanes::{Block, Function, Words};
use crate::roots::CUBE_ROOTS;

/// State of a digest.
pub type State = [u32; 8];

/// Initial state of every digest.
pub const INITIAL: State =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Takes blocks of any number of streams into their states; of each stream as many as of the one that has the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    driver::compress::<Sha256, _>(streams);
}

/// Computes the digest of a whole content.
pub fn digest(content: &[u8]) -> [u8; 32] {
    driver::digest::<Sha256, _, _>(content)
}

/// Computes the digest after `rest` (less than a block), the end of `length` bytes.
pub fn finish(state: State, rest: &[u8], length: u64) -> [u8; 32] {
    driver::finish::<Sha256, _, _>(state, rest, length)
}

pub(crate) struct Sha256;

impl Function<8> for Sha256 {
    const INITIAL: State = INITIAL;
    const SWAPS: bool = true;

    fn in_pairs_max() -> usize {
        if Instructions::Sha.are_used() { usize::MAX } else { 1 }
    }

    fn take_few<const S: usize>(states: [&mut State; S], blocks: [&[Block]; S]) {
        #[cfg(target_arch = "x86_64")]
        if Instructions::Sha.are_used() {
            return crate::vector::sha::sha256(states, blocks);
        }
        states.into_iter().zip(blocks).for_each(|(state, blocks)| sha2::block_api::compress256(state, blocks));
    }

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
                let (second, tenth, fifteenth) =
                    (words[($index + 1) % 16], words[($index + 9) % 16], words[($index + 14) % 16]);
                let low = second.rotate_left(32 - 7).xor(second.rotate_left(32 - 18)).xor(second.shift_right(3));
                let high = fifteenth.rotate_left(32 - 17).xor(fifteenth.rotate_left(32 - 19)).xor(fifteenth.shift_right(10));
                words[$index] = words[$index].add(low).add(tenth).add(high);
            )* };
        }
        // Written out, so that the words stay in registers.
        for constants in CUBE_ROOTS.as_chunks::<16>().0 {
            steps!(constants: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            // Schedules the words of the next sixteen steps; after the last ones without use.
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
    let [first, second, third] = turns;
    word.rotate_left(32 - first).xor(word.rotate_left(32 - second)).xor(word.rotate_left(32 - third))
}
