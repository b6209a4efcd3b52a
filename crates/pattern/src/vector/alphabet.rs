//! Whether all bytes are of a set that is told by their halves, 32 of them at a time.

use std::arch::x86_64::*;

/// Whether the halves of every byte have a class in common, as far as whole vectors go: the rest of the bytes then. `classes` has
/// a bit for each class, by low half and by high half. None on machines without AVX2.
pub(crate) fn starts<'a>(bytes: &'a [u8], classes: &[[u8; 16]; 2]) -> Option<&'a [u8]> {
    if !super::is_supported() {
        return None;
    }
    // SAFETY: this machine has AVX2.
    unsafe { here(bytes, classes) }
}

#[target_feature(enable = "avx2")]
fn here<'a>(bytes: &'a [u8], classes: &[[u8; 16]; 2]) -> Option<&'a [u8]> {
    // SAFETY: the 16 bytes are there, and the loads ask for no alignment.
    let [low, high] = classes
        .each_ref()
        .map(|classes| _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(classes.as_ptr().cast()) }));
    let half = _mm256_set1_epi8(15);
    let (vectors, rest) = bytes.as_chunks::<32>();
    for vector in vectors {
        // SAFETY: the 32 bytes are there, and the load asks for no alignment.
        let bytes = unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) };
        let below = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, half));
        let above = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half));
        let foreign = _mm256_cmpeq_epi8(_mm256_and_si256(below, above), _mm256_setzero_si256());
        if _mm256_movemask_epi8(foreign) != 0 {
            return None;
        }
    }
    Some(rest)
}
