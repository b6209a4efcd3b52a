//! Hash functions in vectors, AVX2 or NEON, and in the processor's instructions for them: the only unsafe code of this
//! crate. Where the processor has AVX-512 the vector code is compiled for it as well: a rotation and a mix of three words
//! are then one instruction each.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
pub(crate) mod sha;

use crate::instructions::Instructions;
use crate::lanes::{Block, Function, Take, Two, Words, side_by_side};
#[cfg(target_arch = "x86_64")]
use avx2::{Vector, transpose};
#[cfg(target_arch = "aarch64")]
use neon::{Vector, transpose};

/// How many words there are in a vector.
const WIDTH: usize = 8;

/// One way to take blocks of eight streams, and of sixteen.
pub(crate) struct Paths<const N: usize> {
    pub eight: Take<N, WIDTH>,
    pub sixteen: Take<N, { 2 * WIDTH }>,
}

impl<const N: usize> Paths<N> {
    /// Takes blocks of the streams into their states, of each as many as of the one that has the fewest.
    pub(crate) fn take(&self, streams: &mut [(&mut [u32; N], &[Block])]) {
        match streams.len() {
            ..=WIDTH => side_by_side(self.eight, streams),
            _ => side_by_side(self.sixteen, streams),
        }
    }
}

/// How this machine can take blocks, the best first.
#[cfg(target_arch = "x86_64")]
pub(crate) fn paths<F: Function<N>, const N: usize>() -> impl Iterator<Item = Paths<N>> {
    // SAFETY: a path is called where the machine has what it is compiled for.
    let avx512 = Instructions::Avx512.are_used().then_some(Paths::<N> {
        eight: |lanes, blocks| unsafe { take_avx512::<F, Vector, N, _>(lanes, blocks) },
        sixteen: |lanes, blocks| unsafe { take_avx512::<F, Two<Vector>, N, _>(lanes, blocks) },
    });
    // SAFETY: as above.
    let avx2 = Instructions::Vectors.are_used().then_some(Paths::<N> {
        eight: |lanes, blocks| unsafe { take_avx2::<F, Vector, N, _>(lanes, blocks) },
        sixteen: |lanes, blocks| unsafe { take_avx2::<F, Two<Vector>, N, _>(lanes, blocks) },
    });
    avx512.into_iter().chain(avx2)
}

/// How this machine can take blocks: with NEON, if it can.
#[cfg(target_arch = "aarch64")]
pub(crate) fn paths<F: Function<N>, const N: usize>() -> impl Iterator<Item = Paths<N>> {
    // SAFETY: a path is called where the machine has what it is compiled for.
    let neon = Instructions::Vectors.are_used().then_some(Paths::<N> {
        eight: |lanes, blocks| unsafe { take_neon::<F, Vector, N, _>(lanes, blocks) },
        sixteen: |lanes, blocks| unsafe { take_neon::<F, Two<Vector>, N, _>(lanes, blocks) },
    });
    neon.into_iter()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2")]
fn take_avx512<F: Function<N>, V: Lanes<L>, const N: usize, const L: usize>(
    lanes: &mut [[u32; L]; N],
    blocks: [&[Block]; L],
) {
    take_all::<F, V, N, L>(lanes, blocks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn take_avx2<F: Function<N>, V: Lanes<L>, const N: usize, const L: usize>(
    lanes: &mut [[u32; L]; N],
    blocks: [&[Block]; L],
) {
    take_all::<F, V, N, L>(lanes, blocks);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn take_neon<F: Function<N>, V: Lanes<L>, const N: usize, const L: usize>(
    lanes: &mut [[u32; L]; N],
    blocks: [&[Block]; L],
) {
    take_all::<F, V, N, L>(lanes, blocks);
}

#[inline(always)]
fn take_all<F: Function<N>, V: Lanes<L>, const N: usize, const L: usize>(
    lanes: &mut [[u32; L]; N],
    blocks: [&[Block]; L],
) {
    let mut state = lanes.map(V::new);
    for index in 0..blocks[0].len() {
        let mut next = [&blocks[0][index]; L];
        for (next, blocks) in next.iter_mut().zip(blocks) {
            *next = &blocks[index];
        }
        let words = V::words(next, F::SWAPS);
        F::take(&mut state, &words);
    }
    *lanes = state.map(V::lanes);
}

/// Words of `L` streams.
trait Lanes<const L: usize>: Words {
    fn new(lanes: [u32; L]) -> Self;
    fn lanes(self) -> [u32; L];
    /// The words of a block of each stream.
    fn words(blocks: [&Block; L], swaps: bool) -> [Self; 16];
}

impl Lanes<WIDTH> for Vector {
    #[inline(always)]
    fn new(lanes: [u32; WIDTH]) -> Vector {
        Vector::new(lanes)
    }

    #[inline(always)]
    fn lanes(self) -> [u32; WIDTH] {
        Vector::lanes(self)
    }

    #[inline(always)]
    fn words(blocks: [&Block; WIDTH], swaps: bool) -> [Vector; 16] {
        let mut words = [Vector::all(0); 16];
        for half in 0..2 {
            let mut rows = [Vector::all(0); WIDTH];
            for (row, block) in rows.iter_mut().zip(blocks) {
                *row = Vector::read(&block.as_chunks::<32>().0[half], swaps);
            }
            words[8 * half..][..8].copy_from_slice(&transpose(rows));
        }
        words
    }
}

impl Lanes<{ 2 * WIDTH }> for Two<Vector> {
    #[inline(always)]
    fn new(lanes: [u32; 2 * WIDTH]) -> Two<Vector> {
        let half = |half: usize| Vector::new(core::array::from_fn(|lane| lanes[WIDTH * half + lane]));
        Two(half(0), half(1))
    }

    #[inline(always)]
    fn lanes(self) -> [u32; 2 * WIDTH] {
        let (first, second) = (self.0.lanes(), self.1.lanes());
        core::array::from_fn(|lane| if lane < WIDTH { first[lane] } else { second[lane - WIDTH] })
    }

    #[inline(always)]
    fn words(blocks: [&Block; 2 * WIDTH], swaps: bool) -> [Two<Vector>; 16] {
        let (mut first, mut second) = ([blocks[0]; WIDTH], [blocks[0]; WIDTH]);
        first.copy_from_slice(&blocks[..WIDTH]);
        second.copy_from_slice(&blocks[WIDTH..]);
        let (first, second) = (Vector::words(first, swaps), Vector::words(second, swaps));
        let mut words = [Two(first[0], second[0]); 16];
        for (word, (first, second)) in words.iter_mut().zip(first.into_iter().zip(second)) {
            *word = Two(first, second);
        }
        words
    }
}
