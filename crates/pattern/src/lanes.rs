//! Digests of several streams side by side.
//!
//! A hash function of the family of MD4 takes blocks of sixteen words of 32 bits, and each of its steps waits for the one
//! before: one stream leaves most of a processor idle. Up to [`LANES`] streams are therefore taken a step at a time, the
//! word of each beside those of the others in one register (`cargo bench -p sluice-pattern --bench digests` has the rates).
//! It is here because vector code is.

/// How many bytes are taken at a time.
pub const BLOCK_BYTES: usize = 64;

/// How many streams are hashed side by side.
pub const LANES: usize = 8;

/// What a hash function takes at a time.
pub type Block = [u8; BLOCK_BYTES];

/// One word, or the words of several streams beside each other.
pub(crate) trait Words: Copy {
    fn all(word: u32) -> Self;
    fn add(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_right(self, bits: u32) -> Self;
    fn rotate_left(self, bits: u32) -> Self;
}

/// A hash function whose state is of `N` words.
pub(crate) trait Function<const N: usize> {
    /// Whether words come with their high byte first.
    const SWAPS: bool;

    /// Takes a block of each stream.
    fn take<W: Words>(state: &mut [W; N], words: &[W; 16]);
}

/// Takes blocks of up to [`LANES`] streams into their states, of each as many as of the one that has the fewest; `false`,
/// and nothing done, where this machine has no vectors for it.
pub(crate) fn compress<F: Function<N>, const N: usize>(streams: &mut [(&mut [u32; N], &[Block])]) -> bool {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if let Some(take) = crate::vector::paths::<F, N>().next() {
        debug_assert!(streams.len() <= LANES);
        let count = common(streams);
        let Some((_, spare)) = streams.first() else { return true };
        // A lane without a stream takes the first one's blocks, to no end.
        let mut blocks = [&spare[..count]; LANES];
        let mut lanes = [[0; LANES]; N];
        for (lane, (state, stream)) in streams.iter().take(LANES).enumerate() {
            blocks[lane] = &stream[..count];
            lanes.iter_mut().zip(**state).for_each(|(words, word)| words[lane] = word);
        }
        take(&mut lanes, blocks);
        for (lane, (state, _)) in streams.iter_mut().take(LANES).enumerate() {
            **state = lanes.map(|words| words[lane]);
        }
        return true;
    }
    let _ = streams;
    false
}

/// Whether the processor computes SHA-256 by itself.
pub(crate) fn has_sha() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("sha");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    false
}

/// How many blocks every stream has.
pub(crate) fn common<const N: usize>(streams: &[(&mut [u32; N], &[Block])]) -> usize {
    streams.iter().map(|(_, blocks)| blocks.len()).min().unwrap_or(0)
}

/// The words of a block.
pub(crate) fn words(block: &Block, read: fn([u8; 4]) -> u32) -> [u32; 16] {
    let (chunks, _) = block.as_chunks();
    std::array::from_fn(|index| read(chunks[index]))
}

/// The last one or two blocks: `rest`, the mark of the end, and the length in bits.
pub(crate) fn end(rest: &[u8], bits: [u8; 8]) -> ([Block; 2], usize) {
    let mut end = [[0; BLOCK_BYTES]; 2];
    let count = (rest.len() + 1 + bits.len()).div_ceil(BLOCK_BYTES);
    let bytes = end.as_flattened_mut();
    bytes[..rest.len()].copy_from_slice(rest);
    bytes[rest.len()] = 0x80;
    bytes[count * BLOCK_BYTES - bits.len()..][..bits.len()].copy_from_slice(&bits);
    (end, count)
}

impl Words for u32 {
    #[inline(always)]
    fn all(word: u32) -> u32 {
        word
    }
    #[inline(always)]
    fn add(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn and(self, other: u32) -> u32 {
        self & other
    }
    #[inline(always)]
    fn or(self, other: u32) -> u32 {
        self | other
    }
    #[inline(always)]
    fn xor(self, other: u32) -> u32 {
        self ^ other
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> u32 {
        self >> bits
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> u32 {
        u32::rotate_left(self, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{md5, sha256};
    use ::md5::Digest;

    fn noise(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|n| (((n ^ seed) as u32).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    #[test]
    fn one_stream_of_any_length_has_its_digests() {
        for len in 0..300 {
            let content = noise(len, 1);
            let (blocks, rest) = content.as_chunks();
            let (mut first, mut second) = (md5::INITIAL, sha256::INITIAL);
            md5::compress(&mut [(&mut first, blocks)]);
            sha256::compress(&mut [(&mut second, blocks)]);
            assert_eq!(md5::finish(first, rest, len as u64)[..], ::md5::Md5::digest(&content)[..], "{len} bytes");
            assert_eq!(sha256::finish(second, rest, len as u64)[..], sha2::Sha256::digest(&content)[..], "{len} bytes");
        }
    }

    #[test]
    fn streams_side_by_side_have_their_own_digests() {
        for count in 1..=LANES {
            let contents: Vec<_> = (0..count).map(|n| noise((n + 2) * 1_024, n)).collect();
            let (mut first, mut second) = (vec![md5::INITIAL; count], vec![sha256::INITIAL; count]);
            let blocks = || contents.iter().map(|content| content.as_chunks().0);
            md5::compress(&mut first.iter_mut().zip(blocks()).collect::<Vec<_>>());
            sha256::compress(&mut second.iter_mut().zip(blocks()).collect::<Vec<_>>());
            for ((first, second), content) in first.into_iter().zip(second).zip(&contents) {
                // As much of each as the shortest has.
                let common = &content[..2_048];
                assert_eq!(md5::finish(first, &[], 2_048)[..], ::md5::Md5::digest(common)[..], "{count} streams");
                assert_eq!(sha256::finish(second, &[], 2_048)[..], sha2::Sha256::digest(common)[..], "{count} streams");
            }
        }
    }

    /// Whatever this machine would choose: vectors of either kind, and plain words.
    #[test]
    fn every_path_is_the_same() {
        let contents: [_; LANES] = std::array::from_fn(|lane| noise(4_096, lane));
        let blocks = contents.each_ref().map(|content| content.as_chunks().0);
        assert_paths_agree::<md5::Md5, 4>(md5::INITIAL, blocks, u32::from_le_bytes);
        assert_paths_agree::<sha256::Sha256, 8>(sha256::INITIAL, blocks, u32::from_be_bytes);
    }

    fn assert_paths_agree<F: Function<N>, const N: usize>(
        initial: [u32; N],
        blocks: [&[Block]; LANES],
        read: fn([u8; 4]) -> u32,
    ) {
        let plain = blocks.map(|blocks| {
            let mut state = initial;
            blocks.iter().for_each(|block| F::take(&mut state, &words(block, read)));
            state
        });
        let mut states = [initial; LANES];
        let mut streams: Vec<_> = states.iter_mut().zip(blocks).collect();
        if compress::<F, N>(&mut streams) {
            assert_eq!(plain, states);
        }
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        for path in crate::vector::paths::<F, N>() {
            let mut lanes = initial.map(|word| [word; LANES]);
            path(&mut lanes, blocks);
            assert_eq!(plain, std::array::from_fn(|lane| lanes.map(|words| words[lane])));
        }
    }
}
