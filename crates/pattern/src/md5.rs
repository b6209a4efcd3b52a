//! MD5 (RFC 1321) of several streams side by side.
//!
//! ```text
//! for each block of 64 bytes, for each of 64 steps:
//!     a, b, c, d = d, b + rotate(a + f(b, c, d) + word + constant), b, c
//! ```
//! Each step waits for the one before, so one stream leaves most of a processor idle. Up to [`LANES`] streams are therefore
//! taken a step at a time, a word of each beside the others in one register (`cargo bench -p sluice-scan` has the rates).
//! It is here because vector code is.

/// The block of the algorithm.
pub const BLOCK_BYTES: usize = 64;

/// How many streams are hashed side by side.
pub const LANES: usize = 4;

/// A block of a stream.
pub type Block = [u8; BLOCK_BYTES];

/// What a digest is made of.
pub type State = [u32; 4];

/// The states of all lanes, word by word.
pub(crate) type Lanes = [[u32; LANES]; 4];

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

/// Takes blocks of up to [`LANES`] streams into their states; of each stream as many as of the one that has the fewest.
pub fn compress(streams: &mut [(&mut State, &[Block])]) {
    if let [(state, blocks)] = streams {
        let mut lane = state.map(|word| [word]);
        blocks.iter().for_each(|block| take(&mut lane, [block]));
        **state = lane.map(|[word]| word);
        return;
    }
    let Some((_, spare)) = streams.first() else { return };
    let count = streams.iter().map(|(_, blocks)| blocks.len()).min().unwrap_or(0);
    // A lane without a stream takes the first one's blocks, to no end.
    let mut blocks = [*spare; LANES];
    let mut lanes = INITIAL.map(|word| [word; LANES]);
    for (lane, (state, stream)) in streams.iter().take(LANES).enumerate() {
        blocks[lane] = stream;
        lanes.iter_mut().zip(**state).for_each(|(words, word)| words[lane] = word);
    }
    take_all(&mut lanes, blocks.map(|blocks| &blocks[..count]));
    for (lane, (state, _)) in streams.iter_mut().take(LANES).enumerate() {
        **state = lanes.map(|words| words[lane]);
    }
}

/// The digest, when what came last is `rest` (less than a block) and `length` bytes came in all.
pub fn finish(mut state: State, rest: &[u8], length: u64) -> [u8; 16] {
    let mut end = [0; 2 * BLOCK_BYTES];
    end[..rest.len()].copy_from_slice(rest);
    end[rest.len()] = 0x80;
    let count = (rest.len() + 1 + 8).div_ceil(BLOCK_BYTES);
    end[count * BLOCK_BYTES - 8..][..8].copy_from_slice(&length.wrapping_mul(8).to_le_bytes());
    let (blocks, _) = end.as_chunks();
    compress(&mut [(&mut state, &blocks[..count])]);
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// Takes the blocks of all lanes; they are equally many.
fn take_all(lanes: &mut Lanes, blocks: [&[Block]; LANES]) {
    #[cfg(target_arch = "x86_64")]
    if crate::vector::is_supported() {
        return crate::vector::take_md5(lanes, blocks);
    }
    take_each(lanes, blocks);
}

#[inline(always)]
pub(crate) fn take_each(lanes: &mut Lanes, blocks: [&[Block]; LANES]) {
    let [first, second, third, fourth] = blocks;
    for (((first, second), third), fourth) in first.iter().zip(second).zip(third).zip(fourth) {
        take(lanes, [first, second, third, fourth]);
    }
}

/// Takes one block of each stream.
#[inline(always)]
fn take<const N: usize>(state: &mut [[u32; N]; 4], blocks: [&Block; N]) {
    let mut words = [[0; N]; 16];
    for (lane, block) in blocks.into_iter().enumerate() {
        let (chunks, _) = block.as_chunks();
        words.iter_mut().zip(chunks).for_each(|(word, chunk)| word[lane] = u32::from_le_bytes(*chunk));
    }
    let [mut a, mut b, mut c, mut d] = *state;
    macro_rules! round {
        ($round:expr, $mix:expr, $turns:expr, $first:expr, $stride:expr) => {
            for group in 0..4 {
                macro_rules! step {
                    ($turn:expr, $a:ident, $b:ident, $c:ident, $d:ident) => {
                        let step = 4 * group + $turn;
                        let word = &words[($first + $stride * step) % 16];
                        $a = std::array::from_fn(|lane| {
                            let mixed = $a[lane].wrapping_add($mix($b[lane], $c[lane], $d[lane]));
                            let sum = mixed.wrapping_add(word[lane]).wrapping_add(CONSTANTS[16 * $round + step]);
                            $b[lane].wrapping_add(sum.rotate_left($turns[$turn]))
                        });
                    };
                }
                step!(0, a, b, c, d);
                step!(1, d, a, b, c);
                step!(2, c, d, a, b);
                step!(3, b, c, d, a);
            }
        };
    }
    round!(0, |b: u32, c: u32, d: u32| d ^ (b & (c ^ d)), [7, 12, 17, 22], 0, 1);
    round!(1, |b: u32, c: u32, d: u32| (b & d).wrapping_add(c & !d), [5, 9, 14, 20], 1, 5);
    round!(2, |b: u32, c: u32, d: u32| b ^ c ^ d, [4, 11, 16, 23], 5, 3);
    round!(3, |b: u32, c: u32, d: u32| c ^ (b | !d), [6, 10, 15, 21], 0, 7);
    for (before, now) in state.iter_mut().zip([a, b, c, d]) {
        before.iter_mut().zip(now).for_each(|(before, now)| *before = before.wrapping_add(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::md5::Digest;

    fn noise(len: usize, seed: u32) -> Vec<u8> {
        (0..len as u32).map(|n| ((n ^ seed).wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    #[test]
    fn one_stream_of_any_length_has_its_digest() {
        for len in 0..300 {
            let bytes = noise(len, 1);
            let (blocks, rest) = bytes.as_chunks();
            let mut state = INITIAL;
            compress(&mut [(&mut state, blocks)]);
            let expected: [u8; 16] = ::md5::Md5::digest(&bytes).into();
            assert_eq!(finish(state, rest, len as u64), expected, "{len} bytes");
        }
    }

    #[test]
    fn streams_side_by_side_have_their_own_digests() {
        for count in 1..=LANES {
            let contents: Vec<_> = (0..count).map(|n| noise((n + 2) * 1_024, n as u32)).collect();
            let mut states = vec![INITIAL; count];
            let mut streams: Vec<_> =
                states.iter_mut().zip(&contents).map(|(state, content)| (state, content.as_chunks().0)).collect();
            compress(&mut streams);
            for (state, content) in states.into_iter().zip(&contents) {
                let common: &[u8] = if count == 1 { content } else { &content[..2_048] };
                let expected: [u8; 16] = ::md5::Md5::digest(common).into();
                assert_eq!(finish(state, &[], common.len() as u64), expected, "{count} streams");
            }
        }
    }

    #[test]
    fn without_vectors_it_is_the_same() {
        let contents: [_; LANES] = std::array::from_fn(|lane| noise(4_096, lane as u32));
        let blocks = contents.each_ref().map(|content| content.as_chunks().0);
        let mut portable = INITIAL.map(|word| [word; LANES]);
        let mut lanes = portable;
        take_each(&mut portable, blocks);
        take_all(&mut lanes, blocks);
        assert_eq!(portable, lanes);
    }
}
