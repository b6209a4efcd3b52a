//! The common part of all hash functions: the choice of streams to hash together, and the end of a stream.

use crate::lanes::{self, Block, Function};

/// Takes blocks of any number of streams into their states; of each stream as many as of the one that has the fewest.
pub(crate) fn compress<F: Function<N>, const N: usize>(streams: &mut [(&mut [u32; N], &[Block])]) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if streams.len() > F::in_pairs_max()
        && let Some(paths) = crate::vector::paths::<F, N>().next()
    {
        return paths.take(streams);
    }
    let count = lanes::common(streams);
    for streams in streams.chunks_mut(2) {
        match streams {
            [(first, blocks), (second, beside)] => F::take_few([first, second], [&blocks[..count], &beside[..count]]),
            streams => streams.iter_mut().for_each(|(state, blocks)| F::take_few([state], [&blocks[..count]])),
        }
    }
}

/// Computes the digest, of `B` bytes, of a whole content.
pub(crate) fn digest<F: Function<N>, const N: usize, const B: usize>(content: &[u8]) -> [u8; B] {
    let (blocks, rest) = content.as_chunks();
    let mut state = F::INITIAL;
    compress::<F, N>(&mut [(&mut state, blocks)]);
    finish::<F, N, B>(state, rest, content.len() as u64)
}

/// Computes the digest after `rest` (less than a block), the end of `length` bytes.
pub(crate) fn finish<F: Function<N>, const N: usize, const B: usize>(
    mut state: [u32; N],
    rest: &[u8],
    length: u64,
) -> [u8; B] {
    let bits = length.wrapping_mul(8);
    let (end, count) = lanes::end(rest, if F::SWAPS { bits.to_be_bytes() } else { bits.to_le_bytes() });
    compress::<F, N>(&mut [(&mut state, &end[..count])]);
    let bytes = |word: u32| if F::SWAPS { word.to_be_bytes() } else { word.to_le_bytes() };
    let mut digest = [0; B];
    digest.as_chunks_mut().0.iter_mut().zip(state).for_each(|(place, word)| *place = bytes(word));
    digest
}
