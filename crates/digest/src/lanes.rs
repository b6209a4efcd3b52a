//! Hash functions over several streams side by side.
//!
//! A hash function of the family of MD4 takes blocks of sixteen words of 32 bits, and each of its steps waits for the one
//! before: one stream leaves most of a processor idle. In plain words:
//!
//! ```text
//! for each stream: for each block: state = step(state, block)
//! ```
//!
//! The tricks, and what each buys (`cargo bench -p sluice-digest` has the rates):
//! * **Pairs** in plain registers, or in the processor's own instructions: while one stream waits for itself, a processor
//!   looks far enough ahead to go on with the other.
//! * **Vectors**: the same word of eight streams stands in one register, and each step is taken for all of them at once.
//! * **Two vectors** of eight, from nine streams on: what one waits for itself, the other computes. It is pairs again.

/// How many bytes are taken at a time.
pub const BLOCK_BYTES: usize = 64;

/// How many streams are hashed side by side.
pub const LANES: usize = 16;

/// Input of one step of a hash function.
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
pub(crate) trait Function<const N: usize>: Sized {
    /// Initial state of every digest.
    const INITIAL: [u32; N];

    /// Whether words come with their high byte first.
    const SWAPS: bool;

    /// How many streams this machine takes one after the other, in pairs, and not in vectors.
    fn in_pairs_max() -> usize;

    /// Takes blocks of one stream or of two, equally many of each, into their states.
    fn take_few<const S: usize>(states: [&mut [u32; N]; S], blocks: [&[Block]; S]);

    /// Takes a block of each stream.
    fn take<W: Words>(state: &mut [W; N], words: &[W; 16]);
}

/// Takes blocks of `L` streams, equally many of each, into their states: the words of all lanes beside each other.
pub(crate) type Take<const N: usize, const L: usize> = fn(&mut [[u32; L]; N], [&[Block]; L]);

/// Takes blocks of the streams into their states, `L` at a time, of each as many as of the one that has the fewest.
pub(crate) fn side_by_side<const N: usize, const L: usize>(
    take: Take<N, L>,
    streams: &mut [(&mut [u32; N], &[Block])],
) {
    let count = common(streams);
    for streams in streams.chunks_mut(L) {
        let Some((_, spare)) = streams.first() else { return };
        // A lane without a stream takes the first one's blocks, to no end.
        let mut blocks = [&spare[..count]; L];
        let mut lanes = [[0; L]; N];
        for (lane, (state, stream)) in streams.iter().enumerate() {
            blocks[lane] = &stream[..count];
            lanes.iter_mut().zip(**state).for_each(|(words, word)| words[lane] = word);
        }
        take(&mut lanes, blocks);
        for (lane, (state, _)) in streams.iter_mut().enumerate() {
            **state = lanes.map(|words| words[lane]);
        }
    }
}

/// How many blocks every stream has.
pub(crate) fn common<const N: usize>(streams: &[(&mut [u32; N], &[Block])]) -> usize {
    streams.iter().map(|(_, blocks)| blocks.len()).min().unwrap_or(0)
}

/// The words of a block.
pub(crate) fn words(block: &Block, read: fn([u8; 4]) -> u32) -> [u32; 16] {
    let (chunks, _) = block.as_chunks();
    core::array::from_fn(|index| read(chunks[index]))
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

/// Two sets of words: while the first ones wait for a result, the second compute.
#[derive(Clone, Copy)]
pub(crate) struct Two<W>(pub W, pub W);

impl<W: Words> Words for Two<W> {
    #[inline(always)]
    fn all(word: u32) -> Two<W> {
        Two(W::all(word), W::all(word))
    }
    #[inline(always)]
    fn add(self, other: Two<W>) -> Two<W> {
        Two(self.0.add(other.0), self.1.add(other.1))
    }
    #[inline(always)]
    fn and(self, other: Two<W>) -> Two<W> {
        Two(self.0.and(other.0), self.1.and(other.1))
    }
    #[inline(always)]
    fn or(self, other: Two<W>) -> Two<W> {
        Two(self.0.or(other.0), self.1.or(other.1))
    }
    #[inline(always)]
    fn xor(self, other: Two<W>) -> Two<W> {
        Two(self.0.xor(other.0), self.1.xor(other.1))
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Two<W> {
        Two(self.0.shift_right(bits), self.1.shift_right(bits))
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Two<W> {
        Two(self.0.rotate_left(bits), self.1.rotate_left(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{md5, sha1, sha256};
    use ::md5::Digest;

    fn noise(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|n| (((n ^ seed) as u32).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The examples of RFC 1321 and of FIPS 180.
    #[test]
    fn known_answers() {
        const ALPHABETS: &[u8] = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        for (content, [md5, sha1, sha256]) in [
            (
                &b""[..],
                [
                    "d41d8cd98f00b204e9800998ecf8427e",
                    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                ],
            ),
            (
                b"abc",
                [
                    "900150983cd24fb0d6963f7d28e17f72",
                    "a9993e364706816aba3e25717850c26c9cd0d89d",
                    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                ],
            ),
            (
                ALPHABETS,
                [
                    "8215ef0796a20bcaaae116d3876c664a",
                    "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
                    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
                ],
            ),
            (
                &[b'a'; 1_000_000],
                [
                    "7707d6ae4e027c70eea2a935c2296f21",
                    "34aa973cd4c4daa4f61eeb2bdbad27316534016f",
                    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
                ],
            ),
        ] {
            assert_eq!(hex(&md5::digest(content)), md5);
            assert_eq!(hex(&sha1::digest(content)), sha1);
            assert_eq!(hex(&sha256::digest(content)), sha256);
        }
    }

    #[test]
    fn one_stream_of_any_length_has_its_digests() {
        for len in 0..300 {
            let content = noise(len, 1);
            assert_eq!(md5::digest(&content)[..], ::md5::Md5::digest(&content)[..], "{len} bytes");
            assert_eq!(sha1::digest(&content)[..], ::sha1::Sha1::digest(&content)[..], "{len} bytes");
            assert_eq!(sha256::digest(&content)[..], sha2::Sha256::digest(&content)[..], "{len} bytes");
        }
    }

    #[test]
    fn streams_side_by_side_have_their_own_digests() {
        for count in 1..=LANES + 3 {
            let contents: Vec<_> = (0..count).map(|n| noise((n + 2) * 1_024, n)).collect();
            let blocks = || contents.iter().map(|content| content.as_chunks().0);
            let mut md5s = vec![md5::INITIAL; count];
            let mut sha1s = vec![sha1::INITIAL; count];
            let mut sha256s = vec![sha256::INITIAL; count];
            md5::compress(&mut md5s.iter_mut().zip(blocks()).collect::<Vec<_>>());
            sha1::compress(&mut sha1s.iter_mut().zip(blocks()).collect::<Vec<_>>());
            sha256::compress(&mut sha256s.iter_mut().zip(blocks()).collect::<Vec<_>>());
            for (index, content) in contents.iter().enumerate() {
                // As much of each as the shortest has.
                let common = &content[..2_048];
                let what = format!("stream {index} of {count}");
                assert_eq!(md5::finish(md5s[index], &[], 2_048)[..], ::md5::Md5::digest(common)[..], "{what}");
                assert_eq!(sha1::finish(sha1s[index], &[], 2_048)[..], ::sha1::Sha1::digest(common)[..], "{what}");
                assert_eq!(sha256::finish(sha256s[index], &[], 2_048)[..], sha2::Sha256::digest(common)[..], "{what}");
            }
        }
    }

    /// Tests every kind of vectors and plain words, whatever this machine would choose.
    #[test]
    fn every_path_is_the_same() {
        assert_paths_agree::<md5::Md5, 4>(md5::INITIAL, u32::from_le_bytes);
        assert_paths_agree::<sha1::Sha1, 5>(sha1::INITIAL, u32::from_be_bytes);
        assert_paths_agree::<sha256::Sha256, 8>(sha256::INITIAL, u32::from_be_bytes);
    }

    fn assert_paths_agree<F: Function<N>, const N: usize>(initial: [u32; N], read: fn([u8; 4]) -> u32) {
        let contents: [_; LANES] = core::array::from_fn(|lane| noise(4_096, lane));
        let blocks = contents.each_ref().map(|content| content.as_chunks().0);
        let plain = blocks.map(|blocks| {
            let mut state = initial;
            blocks.iter().for_each(|block| F::take(&mut state, &words(block, read)));
            state
        });
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        for crate::vector::Paths { eight, sixteen } in crate::vector::paths::<F, N>() {
            let mut states = [initial; LANES];
            side_by_side(eight, &mut states.iter_mut().zip(blocks).collect::<Vec<_>>());
            assert_eq!(plain, states);
            let mut states = [initial; LANES];
            side_by_side(sixteen, &mut states.iter_mut().zip(blocks).collect::<Vec<_>>());
            assert_eq!(plain, states);
        }
        let _ = plain;
    }
}
