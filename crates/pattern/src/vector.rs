//! Vector code and prefetching: the only unsafe code of this crate.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(crate) mod alphabet;
pub(crate) mod sweep;

use crate::limit;

/// Whether this machine has AVX2, which all of it needs, and the limit allows it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_supported() -> bool {
    limit::allows(limit::VECTORS) && is_x86_feature_detected!("avx2")
}

/// Whether this machine has NEON, which all of it needs, with numbers as they are written here, and the limit allows it.
#[cfg(target_arch = "aarch64")]
pub(crate) fn is_supported() -> bool {
    limit::allows(limit::VECTORS) && std::arch::is_aarch64_feature_detected!("neon") && cfg!(target_endian = "little")
}

/// Code that the compiler can make vectors of; it is always inlined.
pub(crate) trait Widely {
    fn run(self);
}

/// Runs it, compiled for AVX2 where this machine has that. What comes of it is the same.
#[cfg(target_arch = "x86_64")]
pub(crate) fn widely(work: impl Widely) {
    #[target_feature(enable = "avx2")]
    fn wide(work: impl Widely) {
        work.run();
    }
    if is_supported() {
        // SAFETY: this machine has AVX2.
        return unsafe { wide(work) };
    }
    work.run();
}

/// Runs it: what other machines have is always there.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn widely(work: impl Widely) {
    work.run();
}

/// Whether it has the AVX-512 that some of it is compiled for, too.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")
}

/// Whether it gathers sixteen words in less time than it loads them: Intel's since the fourth Xeon Scalable, which are the first
/// with AVX512-FP16 and need no mitigation that makes a gather slow.
#[cfg(target_arch = "x86_64")]
#[allow(
    unused_unsafe,
    reason = "whoever asks the processor is safe in newer compilers than the oldest that we build with"
)]
pub(crate) fn gathers() -> bool {
    // SAFETY: every x86-64 can be asked.
    let (vendor, features) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid_count(7, 0)) };
    let is_intel = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel";
    let has_fp16 = features.edx >> 23 & 1 == 1;
    is_intel && has_fp16 && has_avx512()
}

/// Brings the cache line of `item` nearer.
#[inline(always)]
pub(crate) fn prefetch<T>(item: &T) {
    let item = std::ptr::from_ref(item);
    // SAFETY: SSE is part of x86-64, and a prefetch neither reads nor writes as far as the program can tell.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(item.cast())
    };
    // SAFETY: as above; the instruction is part of every AArch64.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) item.addr(), options(nomem, nostack, preserves_flags))
    };
}
