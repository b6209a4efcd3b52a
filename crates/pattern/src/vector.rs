//! Vector code and prefetching: the only unsafe code of this crate.
//!
//! A NEON path would be a module beside these; it is not written, since it could not be run where this was.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

mod digest;
mod sweep;

pub(crate) use digest::paths;
pub(crate) use sweep::{avx2, avx512};

/// Whether this machine has AVX2, which all of it needs.
pub(crate) fn is_supported() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Whether it has the AVX-512 that some of it is compiled for, too.
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")
}

/// Brings the cache line of `item` nearer.
#[inline(always)]
pub(crate) fn prefetch<T>(item: &T) {
    // SAFETY: SSE is part of x86-64, and a prefetch neither reads nor writes as far as the program can tell.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) };
}
