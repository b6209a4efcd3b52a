//! SHA-1 and SHA-256 in the instructions that processors have for them, of one stream or of two in turns: each waits for
//! itself for several cycles after every instruction.

use core::arch::x86_64::*;

use crate::instructions::Instructions;
use crate::lanes::Block;
use crate::roots::CUBE_ROOTS;

/// Takes blocks of each stream, equally many, into its state. The machine must have the instructions.
pub(crate) fn sha1<const S: usize>(states: [&mut [u32; 5]; S], blocks: [&[Block]; S]) {
    assert!(Instructions::Sha.are_here());
    // SAFETY: the machine has them.
    unsafe { take_sha1(states, blocks) }
}

/// The same for SHA-256.
pub(crate) fn sha256<const S: usize>(states: [&mut [u32; 8]; S], blocks: [&[Block]; S]) {
    assert!(Instructions::Sha.are_here());
    // SAFETY: the machine has them.
    unsafe { take_sha256(states, blocks) }
}

/// The sixteen words of a block of each stream, four in a vector, as `order` has their bytes. A macro, since neither a
/// function for machines with some feature nor a closure has to be inlined, and here all of it must be.
macro_rules! words {
    ($blocks:ident[$index:ident], $order:ident) => {{
        let mut words = [[$order; 4]; S];
        for s in 0..S {
            let (quarters, _) = $blocks[s][$index].as_chunks::<16>();
            for quarter in 0..4 {
                // SAFETY: the sixteen bytes are there, and the load asks for no alignment.
                let bytes = unsafe { _mm_loadu_si128(quarters[quarter].as_ptr().cast()) };
                words[s][quarter] = _mm_shuffle_epi8(bytes, $order);
            }
        }
        words
    }};
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
#[allow(clippy::needless_range_loop, reason = "it goes through all streams at once")]
fn take_sha1<const S: usize>(states: [&mut [u32; 5]; S], blocks: [&[Block]; S]) {
    // Whole blocks hold the first word highest.
    let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let zero = _mm_setzero_si128();
    let mut four = [zero; S];
    let mut fifth = [zero; S];
    for stream in 0..S {
        let [a, b, c, d, e] = states[stream].map(u32::cast_signed);
        four[stream] = _mm_set_epi32(a, b, c, d);
        fifth[stream] = _mm_set_epi32(e, 0, 0, 0);
    }
    for index in 0..blocks[0].len() {
        let mut w = words!(blocks[index], order);
        let before = (four, fifth);
        // Four steps of each stream: `next` is the fifth word of those that follow.
        macro_rules! steps {
            ($group:literal, $function:literal) => {
                for s in 0..S {
                    let words = w[s][$group % 4];
                    let sum = match $group {
                        0 => _mm_add_epi32(fifth[s], words),
                        _ => _mm_sha1nexte_epu32(fifth[s], words),
                    };
                    fifth[s] = four[s];
                    four[s] = _mm_sha1rnds4_epu32::<$function>(four[s], sum);
                    // The words of the group that is four later.
                    if $group < 16 {
                        let (one, two, three) =
                            (w[s][($group + 1) % 4], w[s][($group + 2) % 4], w[s][($group + 3) % 4]);
                        let mixed = _mm_xor_si128(_mm_sha1msg1_epu32(words, one), two);
                        w[s][$group % 4] = _mm_sha1msg2_epu32(mixed, three);
                    }
                }
            };
        }
        steps!(0, 0);
        steps!(1, 0);
        steps!(2, 0);
        steps!(3, 0);
        steps!(4, 0);
        steps!(5, 1);
        steps!(6, 1);
        steps!(7, 1);
        steps!(8, 1);
        steps!(9, 1);
        steps!(10, 2);
        steps!(11, 2);
        steps!(12, 2);
        steps!(13, 2);
        steps!(14, 2);
        steps!(15, 3);
        steps!(16, 3);
        steps!(17, 3);
        steps!(18, 3);
        steps!(19, 3);
        for s in 0..S {
            fifth[s] = _mm_sha1nexte_epu32(fifth[s], before.1[s]);
            four[s] = _mm_add_epi32(four[s], before.0[s]);
        }
    }
    for (stream, state) in states.into_iter().enumerate() {
        let four = four[stream];
        let words = [
            _mm_extract_epi32::<3>(four),
            _mm_extract_epi32::<2>(four),
            _mm_extract_epi32::<1>(four),
            _mm_extract_epi32::<0>(four),
            _mm_extract_epi32::<3>(fifth[stream]),
        ];
        *state = words.map(i32::cast_unsigned);
    }
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
#[allow(clippy::needless_range_loop, reason = "it goes through all streams at once")]
fn take_sha256<const S: usize>(states: [&mut [u32; 8]; S], blocks: [&[Block]; S]) {
    let order = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let zero = _mm_setzero_si128();
    // The instructions want the words so: a, b, e, f and c, d, g, h, the first highest.
    let (mut abef, mut cdgh) = ([zero; S], [zero; S]);
    for stream in 0..S {
        let [a, b, c, d, e, f, g, h] = states[stream].map(u32::cast_signed);
        abef[stream] = _mm_set_epi32(a, b, e, f);
        cdgh[stream] = _mm_set_epi32(c, d, g, h);
    }
    let constants = CUBE_ROOTS.as_chunks::<4>().0;
    for index in 0..blocks[0].len() {
        let mut w = words!(blocks[index], order);
        let before = (abef, cdgh);
        macro_rules! steps {
            ($($group:literal)*) => { $(
                // SAFETY: sixteen bytes are there, and the load asks for no alignment.
                let constant = unsafe { _mm_loadu_si128(constants[$group].as_ptr().cast()) };
                for s in 0..S {
                    let words = w[s][$group % 4];
                    let sum = _mm_add_epi32(words, constant);
                    cdgh[s] = _mm_sha256rnds2_epu32(cdgh[s], abef[s], sum);
                    abef[s] = _mm_sha256rnds2_epu32(abef[s], cdgh[s], _mm_shuffle_epi32::<0x0e>(sum));
                    // The words of the group that is four later.
                    if $group < 12 {
                        let (one, two, three) = (w[s][($group + 1) % 4], w[s][($group + 2) % 4], w[s][($group + 3) % 4]);
                        let middle = _mm_alignr_epi8::<4>(three, two);
                        let mixed = _mm_add_epi32(_mm_sha256msg1_epu32(words, one), middle);
                        w[s][$group % 4] = _mm_sha256msg2_epu32(mixed, three);
                    }
                }
            )* };
        }
        steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for s in 0..S {
            abef[s] = _mm_add_epi32(abef[s], before.0[s]);
            cdgh[s] = _mm_add_epi32(cdgh[s], before.1[s]);
        }
    }
    for (stream, state) in states.into_iter().enumerate() {
        let (abef, cdgh) = (abef[stream], cdgh[stream]);
        let words = [
            _mm_extract_epi32::<3>(abef),
            _mm_extract_epi32::<2>(abef),
            _mm_extract_epi32::<3>(cdgh),
            _mm_extract_epi32::<2>(cdgh),
            _mm_extract_epi32::<1>(abef),
            _mm_extract_epi32::<0>(abef),
            _mm_extract_epi32::<1>(cdgh),
            _mm_extract_epi32::<0>(cdgh),
        ];
        *state = words.map(i32::cast_unsigned);
    }
}
