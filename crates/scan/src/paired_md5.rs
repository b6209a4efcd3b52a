//! MD5 (RFC 1321) of several streams side by side.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     a, b, c, d = d, b + rotate(a + f(b, c, d) + word + constant), b, c
//! ```
//! Each step waits for the one before, so one stream leaves most of a processor idle. What has come is therefore kept for
//! a while, up to [`PENDING_BYTES`] and a block, until another stream's bytes can be hashed beside it: two streams take 0.65
//! of the time that they take one after the other (`cargo bench -p sluice-scan`).

/// The block of the algorithm.
const BLOCK_BYTES: usize = 64;

/// The most that is kept of one stream.
const PENDING_BYTES: usize = 4 << 10;

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

const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The running digest of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Md5 {
    state: [u32; 4],
    length: u64,
    /// What has come and is not hashed.
    pending: Vec<u8>,
}

impl Md5 {
    pub(crate) const fn new() -> Md5 {
        Md5 { state: INITIAL, length: 0, pending: Vec::new() }
    }

    /// Takes in the next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.length = self.length.wrapping_add(bytes.len() as u64);
        for piece in bytes.chunks(PENDING_BYTES) {
            let excess = (self.pending.len() + piece.len()).saturating_sub(PENDING_BYTES);
            self.hash_alone(excess.div_ceil(BLOCK_BYTES));
            self.pending.extend_from_slice(piece);
        }
    }

    /// Bytes that wait to be hashed.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Hashes as much of both streams as both have waiting.
    pub(crate) fn hash_beside(&mut self, other: &mut Md5) {
        let (blocks, _) = self.pending.as_chunks::<BLOCK_BYTES>();
        let (others, _) = other.pending.as_chunks::<BLOCK_BYTES>();
        let count = blocks.len().min(others.len());
        let mut states = [self.state, other.state];
        for (block, other) in blocks.iter().zip(others) {
            compress(&mut states, [block, other]);
        }
        [self.state, other.state] = states;
        self.pending.drain(..count * BLOCK_BYTES);
        other.pending.drain(..count * BLOCK_BYTES);
    }

    /// Hashes so many blocks, as far as they are there.
    fn hash_alone(&mut self, blocks_max: usize) {
        let (blocks, _) = self.pending.as_chunks::<BLOCK_BYTES>();
        let blocks = &blocks[..blocks.len().min(blocks_max)];
        let mut state = [self.state];
        blocks.iter().for_each(|block| compress(&mut state, [block]));
        [self.state] = state;
        let count = blocks.len() * BLOCK_BYTES;
        self.pending.drain(..count);
    }

    /// The digest of all that came.
    pub(crate) fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        self.hash_alone(usize::MAX);
        self.pending.push(0x80);
        let filled = (self.pending.len() + 8).next_multiple_of(BLOCK_BYTES);
        self.pending.resize(filled - 8, 0);
        self.pending.extend_from_slice(&bits.to_le_bytes());
        self.hash_alone(usize::MAX);
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

/// Takes one block of each stream into its state; the streams' steps alternate.
#[inline(always)]
fn compress<const STREAMS: usize>(states: &mut [[u32; 4]; STREAMS], blocks: [&[u8; BLOCK_BYTES]; STREAMS]) {
    let words = blocks.map(|block| {
        let (words, _) = block.as_chunks::<4>();
        std::array::from_fn::<u32, 16, _>(|index| u32::from_le_bytes(words[index]))
    });
    let mut now = *states;
    macro_rules! steps {
        ($round:expr, $mix:expr, $turns:expr, $first:expr, $stride:expr) => {
            for group in 0..4 {
                for turn in 0..4 {
                    let step = 4 * group + turn;
                    let word = ($first + $stride * step) % 16;
                    for stream in 0..STREAMS {
                        let [a, b, c, d] = now[stream];
                        let sum = a
                            .wrapping_add($mix(b, c, d))
                            .wrapping_add(words[stream][word])
                            .wrapping_add(CONSTANTS[16 * $round + step]);
                        now[stream] = [d, b.wrapping_add(sum.rotate_left($turns[turn])), b, c];
                    }
                }
            }
        };
    }
    steps!(0, |b: u32, c: u32, d: u32| d ^ (b & (c ^ d)), [7, 12, 17, 22], 0, 1);
    steps!(1, |b: u32, c: u32, d: u32| (b & d).wrapping_add(c & !d), [5, 9, 14, 20], 1, 5);
    steps!(2, |b: u32, c: u32, d: u32| b ^ c ^ d, [4, 11, 16, 23], 5, 3);
    steps!(3, |b: u32, c: u32, d: u32| c ^ (b | !d), [6, 10, 15, 21], 0, 7);
    for (state, now) in states.iter_mut().zip(now) {
        for (word, now) in state.iter_mut().zip(now) {
            *word = word.wrapping_add(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::Digest;

    fn library(bytes: &[u8]) -> [u8; 16] {
        md5::Md5::digest(bytes).into()
    }

    fn noise(len: usize) -> Vec<u8> {
        (0..len as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    #[test]
    fn a_stream_of_any_length_in_pieces_of_any_size_has_its_digest() {
        for len in (0..300).chain([4_095, 4_096, 4_097, 8_192, 10_000]) {
            let bytes = noise(len);
            for piece in [1, 63, 64, 65, 4_096, 5_000] {
                let mut md5 = Md5::new();
                bytes.chunks(piece).for_each(|piece| md5.update(piece));
                assert!(md5.pending_bytes() <= PENDING_BYTES + BLOCK_BYTES);
                assert_eq!(md5.finish(), library(&bytes), "{len} bytes by {piece}");
            }
        }
    }

    #[test]
    fn two_streams_side_by_side_have_their_own_digests() {
        let (first, second) = (noise(40_000), noise(25_000));
        for (piece, other) in [(4_096, 3_072), (1, 64), (100, 4_096), (777, 333)] {
            let (mut one, mut two) = (Md5::new(), Md5::new());
            let mut others = second.chunks(other);
            for piece in first.chunks(piece) {
                one.update(piece);
                others.next().into_iter().for_each(|other| two.update(other));
                one.hash_beside(&mut two);
            }
            others.for_each(|other| two.update(other));
            assert_eq!((one.finish(), two.finish()), (library(&first), library(&second)), "{piece} {other}");
        }
    }
}
