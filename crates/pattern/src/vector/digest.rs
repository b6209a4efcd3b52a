//! Hash functions over eight streams, in AVX2 or NEON. Where the processor has AVX-512 the same code is compiled for it: a
//! rotation and a mix of three words are then one instruction each.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::lanes::{Block, Function, LANES, Words};
#[cfg(target_arch = "x86_64")]
use avx2::{Vector, transpose};
#[cfg(target_arch = "aarch64")]
use neon::{Vector, transpose};

/// Takes blocks, equally many of each stream, into the states of all lanes.
pub(crate) type Take<const N: usize> = fn(&mut [[u32; LANES]; N], [&[Block]; LANES]);

/// How this machine can take blocks, the best first.
#[cfg(target_arch = "x86_64")]
pub(crate) fn paths<F: Function<N>, const N: usize>() -> impl Iterator<Item = Take<N>> {
    // SAFETY: a path is called where the machine has what it is compiled for.
    let avx512 =
        super::has_avx512().then_some::<Take<N>>(|lanes, blocks| unsafe { take_avx512::<F, N>(lanes, blocks) });
    let avx2 = super::is_supported().then_some::<Take<N>>(|lanes, blocks| unsafe { take_avx2::<F, N>(lanes, blocks) });
    avx512.into_iter().chain(avx2)
}

/// How this machine can take blocks.
#[cfg(target_arch = "aarch64")]
pub(crate) fn paths<F: Function<N>, const N: usize>() -> impl Iterator<Item = Take<N>> {
    // SAFETY: a path is called where the machine has what it is compiled for.
    let neon = super::is_supported().then_some::<Take<N>>(|lanes, blocks| unsafe { take_neon::<F, N>(lanes, blocks) });
    neon.into_iter()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn take_avx512<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    take_all::<F, N>(lanes, blocks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn take_avx2<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    take_all::<F, N>(lanes, blocks);
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn take_neon<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    take_all::<F, N>(lanes, blocks);
}

#[inline(always)]
fn take_all<F: Function<N>, const N: usize>(lanes: &mut [[u32; LANES]; N], blocks: [&[Block]; LANES]) {
    let mut state = lanes.map(Vector::new);
    for index in 0..blocks[0].len() {
        let blocks = blocks.map(|blocks| blocks[index].as_chunks::<32>().0);
        let mut words = [Vector::all(0); 16];
        for half in 0..2 {
            let rows = blocks.map(|block| Vector::read(&block[half], F::SWAPS));
            words[8 * half..][..8].copy_from_slice(&transpose(rows));
        }
        F::take(&mut state, &words);
    }
    *lanes = state.map(Vector::lanes);
}
