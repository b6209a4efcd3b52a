//! The sweep: which of the sampled offsets hold a q-gram that the filter lets pass.
//!
//! One bit an offset, eight a byte, without a branch. There is one such function for each [`Path`], and all give the
//! same answers from the same tables.

use std::fmt;

use crate::filter::{Filter, Member};
use crate::limit;
use crate::shape::folded;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::vector;

/// Instructions of the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Instructions that every machine has.
    Portable,
    /// AVX2 of x86-64: eight offsets at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 of x86-64 (F, BW and VL): sixteen offsets at a time.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same, with the words of the filter gathered by one instruction, where that is quicker.
    #[cfg(target_arch = "x86_64")]
    Avx512Gather,
    /// NEON of AArch64: sixteen offsets at a time, in four vectors.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Path::Portable => "portable code",
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => "AVX-512",
            #[cfg(target_arch = "x86_64")]
            Path::Avx512Gather => "AVX-512, gathering",
            #[cfg(target_arch = "aarch64")]
            Path::Neon => "NEON",
        })
    }
}

impl Path {
    /// All paths, the slowest first.
    const ALL: &[Path] = &[
        Path::Portable,
        #[cfg(target_arch = "x86_64")]
        Path::Avx2,
        #[cfg(target_arch = "x86_64")]
        Path::Avx512,
        #[cfg(target_arch = "x86_64")]
        Path::Avx512Gather,
        #[cfg(target_arch = "aarch64")]
        Path::Neon,
    ];

    /// The paths that this machine can go and the limit allows, the slowest first.
    pub fn available() -> Vec<Path> {
        Path::ALL.iter().copied().filter(|path| path.is_available()).collect()
    }

    pub(crate) fn is_available(self) -> bool {
        limit::allows(self.level())
            && match self {
                Path::Portable => true,
                #[cfg(target_arch = "x86_64")]
                Path::Avx2 => vector::is_supported(),
                #[cfg(target_arch = "x86_64")]
                Path::Avx512 => vector::has_avx512(),
                #[cfg(target_arch = "x86_64")]
                Path::Avx512Gather => vector::gathers(),
                #[cfg(target_arch = "aarch64")]
                Path::Neon => vector::is_supported(),
            }
    }

    /// Keeps this process to this path and slower ones from now on, and its other vector code to the instructions of that, so that
    /// one machine can try the code of others.
    pub fn limit(self) {
        limit::set(self.level());
    }

    fn level(self) -> u8 {
        match self {
            Path::Portable => 0,
            #[cfg(target_arch = "x86_64")]
            Path::Avx2 => limit::VECTORS,
            #[cfg(target_arch = "x86_64")]
            Path::Avx512 => 2,
            #[cfg(target_arch = "x86_64")]
            Path::Avx512Gather => 3,
            #[cfg(target_arch = "aarch64")]
            Path::Neon => limit::VECTORS,
        }
    }

    /// The fastest path of this machine.
    pub fn best() -> Path {
        Path::available().pop().unwrap_or(Path::Portable)
    }
}

/// Looks at every `S`-th offset of `bytes` for the `Q` bytes there, [`folded`] by `fold`, and returns the answers,
/// for which there is room in `masks`.
pub(crate) fn sweep<'a, const Q: usize, const S: usize>(
    path: Path,
    filter: &Filter,
    fold: u64,
    bytes: &[u8],
    masks: &'a mut [u8],
) -> &'a [u8] {
    let looks = bytes.len().checked_sub(Q).map_or(0, |room| room / S + 1);
    let masks = &mut masks[..looks.div_ceil(8)];
    let done = match path {
        Path::Portable => 0,
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => vector::sweep::avx2::<Q, S>(filter, fold, bytes, masks),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => vector::sweep::avx512::<Q, S>(filter, fold, bytes, masks),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512Gather => vector::sweep::avx512_gather::<Q, S>(filter, fold, bytes, masks),
        #[cfg(target_arch = "aarch64")]
        Path::Neon => vector::sweep::neon::<Q, S>(filter, fold, bytes, masks),
    };
    let rest = bytes.get(done * 8 * S..).unwrap_or(&[]);
    for (group, mask) in masks[done..].iter_mut().enumerate() {
        let group = rest.get(group * 8 * S..).unwrap_or(&[]);
        *mask = eight::<Q, S>(filter, fold, group);
    }
    masks
}

/// Looks at every second offset of `bytes` for the eight bytes there, as [`sweep`] does, in half as many words of the filter: two
/// neighbours share six bytes, and with these a word.
pub(crate) fn sweep_pairs<'a>(path: Path, filter: &Filter, fold: u64, bytes: &[u8], masks: &'a mut [u8]) -> &'a [u8] {
    let looks = bytes.len().checked_sub(8).map_or(0, |room| room / 2 + 1);
    let masks = &mut masks[..looks.div_ceil(8)];
    let done = match path {
        Path::Portable => 0,
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => vector::sweep::avx2_pairs(filter, fold, bytes, masks),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512 => vector::sweep::avx512_pairs(filter, fold, bytes, masks),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512Gather => vector::sweep::avx512_gather_pairs(filter, fold, bytes, masks),
        #[cfg(target_arch = "aarch64")]
        Path::Neon => vector::sweep::neon_pairs(filter, fold, bytes, masks),
    };
    for (group, mask) in masks.iter_mut().enumerate().skip(done) {
        *mask = four_pairs(filter, fold, &bytes[group * 16..]);
    }
    masks
}

/// The answers for the first four pairs of grams, or as many as there are.
#[inline(always)]
fn four_pairs(filter: &Filter, fold: u64, bytes: &[u8]) -> u8 {
    let gram = |bytes: &[u8]| folded(load::<8>(bytes), fold);
    let pair = |bytes: &[u8], number: usize| {
        filter.has_pair(gram(&bytes[number * 4..]), gram(&bytes[number * 4 + 2..])) << (2 * number)
    };
    if let Some(bytes) = bytes.first_chunk::<22>() {
        return pair(bytes, 0) | pair(bytes, 1) | pair(bytes, 2) | pair(bytes, 3);
    }
    bytes.windows(8).step_by(2).enumerate().fold(0, |all, (number, eight)| {
        let member = if number % 2 == 0 { Member::Earlier(gram(eight)) } else { Member::Later(gram(eight)) };
        all | u8::from(filter.has(member)) << number
    })
}

/// Brings the cache line of `item` nearer, where the machine can be asked to.
#[inline(always)]
pub(crate) fn prefetch<T>(item: &T) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    vector::prefetch(item);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = item;
}

/// The answers for the first eight offsets, or as many as there are.
#[inline(always)]
fn eight<const Q: usize, const S: usize>(filter: &Filter, fold: u64, bytes: &[u8]) -> u8 {
    // So that the compiler sees that short grams have no high half.
    let fold = if Q > 4 { fold } else { u64::from(fold as u32) };
    let look = |bytes: &[u8], number: usize| {
        let gram = folded(load::<Q>(&bytes[number * S..number * S + Q]), fold);
        u8::from(filter.passes(gram)) << number
    };
    match bytes.get(..7 * S + Q) {
        // Written out so that the eight loads from the filter overlap.
        Some(bytes) => {
            let low = look(bytes, 0) | look(bytes, 1) | look(bytes, 2) | look(bytes, 3);
            low | look(bytes, 4) | look(bytes, 5) | look(bytes, 6) | look(bytes, 7)
        }
        None => (0..8).take_while(|number| number * S + Q <= bytes.len()).fold(0, |all, one| all | look(bytes, one)),
    }
}

/// The first `Q` bytes, 8 at most, as a number.
#[inline(always)]
pub(crate) fn load<const Q: usize>(gram: &[u8]) -> u64 {
    match Q {
        8 => gram.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight)),
        6 => gram.first_chunk().map_or(0, |&[a, b, c, d, e, f]| u64::from_le_bytes([a, b, c, d, e, f, 0, 0])),
        4 => gram.first_chunk().map_or(0, |four| u64::from(u32::from_le_bytes(*four))),
        _ => gram.first_chunk().map_or(0, |two| u64::from(u16::from_le_bytes(*two))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::shape::FOLD;

    /// Bytes of which each gram recurs now and then.
    fn sample(length: usize) -> Vec<u8> {
        let mut state = 7u32;
        let next = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"AaBb\0\xff"[(state >> 16) as usize % 6]
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    /// Every path against the definition, for one shape.
    fn agrees<const Q: usize, const S: usize>() {
        let data = sample(700);
        let fold_q = FOLD & (u64::MAX >> (64 - 8 * Q));
        for fold in [0, fold_q] {
            let grams: Vec<u64> =
                data.windows(Q).rev().step_by(5).take(30).map(|gram| folded(load::<Q>(gram), fold)).collect();
            let grams: Vec<Member> = grams.into_iter().map(Member::Gram).collect();
            let filter = Filter::salted(&grams, 0x1234_5678);
            for length in (0..200).chain([699, 700]) {
                let bytes = &data[700 - length..];
                let wanted: Vec<bool> =
                    bytes.windows(Q).step_by(S).map(|gram| filter.passes(folded(load::<Q>(gram), fold))).collect();
                let count = wanted.len();
                assert!(length < 100 || wanted.contains(&true) && (Q == 2 || wanted.contains(&false)));
                for path in Path::available() {
                    let mut masks = [0xaa; 100];
                    let masks = sweep::<Q, S>(path, &filter, fold, bytes, &mut masks);
                    let got: Vec<bool> =
                        (0..masks.len() * 8).map(|number| masks[number / 8] >> (number % 8) & 1 == 1).collect();
                    assert_eq!(&got[..count], wanted, "{path:?} Q{Q}S{S} {length} {fold:x}");
                    assert!(!got[count..].contains(&true), "{path:?} looks past the end");
                }
            }
        }
    }

    #[test]
    fn every_path_gives_the_same_answers_for_pairs() {
        let data = sample(700);
        for fold in [0, FOLD] {
            let grams = data.windows(8).rev().step_by(5).take(30).map(|gram| folded(load::<8>(gram), fold));
            let members: Vec<Member> = grams.flat_map(|gram| [Member::Earlier(gram), Member::Later(gram)]).collect();
            let filter = Filter::salted(&members, 0x1234_5678);
            for length in (0..200).chain([699, 700]) {
                let bytes = &data[700 - length..];
                let grams = bytes.windows(8).step_by(2).map(|gram| folded(load::<8>(gram), fold));
                let wanted = grams.enumerate().map(|(number, gram)| match number % 2 {
                    0 => filter.has(Member::Earlier(gram)),
                    _ => filter.has(Member::Later(gram)),
                });
                let wanted: Vec<bool> = wanted.collect();
                assert!(length < 100 || wanted.contains(&true) && wanted.contains(&false));
                for path in Path::available() {
                    let mut masks = [0xaa; 100];
                    let masks = sweep_pairs(path, &filter, fold, bytes, &mut masks);
                    let got = (0..masks.len() * 8).map(|number| masks[number / 8] >> (number % 8) & 1 == 1);
                    let wanted = wanted.iter().copied().chain([false; 8]).take(masks.len() * 8);
                    assert!(got.eq(wanted), "{path:?} {length} {fold:x}");
                }
            }
        }
    }

    #[test]
    fn every_path_gives_the_same_answers() {
        agrees::<8, 8>();
        agrees::<8, 4>();
        agrees::<6, 4>();
        agrees::<4, 4>();
        agrees::<4, 2>();
        agrees::<4, 1>();
        agrees::<2, 1>();
    }
}
