//! Randomness of the processor (RDRAND).
//!
//! Processors are known that have the instruction and answer always the same. So a sample is looked at when the machine starts, and no
//! word may repeat the one before it (NIST SP 800-90B, section 4.4.1, with words for samples): a good source does that once in 2^64 times.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use core::arch::x86_64::{__cpuid, _rdrand64_step};

/// How often the processor may say that it has none yet.
const TRIES: u32 = 100;

/// Words of the sample, and how many of its 4,096 bits are set: of good ones all but one in 10^14 are within that.
const SAMPLE_WORDS: usize = 64;
const SAMPLE_BITS: core::ops::RangeInclusive<u32> = 1_800..=2_296;

/// The last word.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Whether the processor has any.
pub fn check() -> Result<(), &'static str> {
    if __cpuid(1).ecx & 1 << 30 == 0 {
        return Err("the processor has no randomness (RDRAND)");
    }
    let bits = (0..SAMPLE_WORDS).map(|_| word().count_ones()).sum();
    SAMPLE_BITS.contains(&bits).then_some(()).ok_or("the processor's randomness (RDRAND) is not random")
}

/// Fills a buffer with random bytes.
pub fn fill(bytes: &mut [u8]) {
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&word().to_le_bytes()[..piece.len()]);
    }
}

/// Random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

fn word() -> u64 {
    #[target_feature(enable = "rdrand")]
    fn step(value: &mut u64) -> bool {
        _rdrand64_step(value) == 1
    }
    let mut value = 0;
    for _ in 0..TRIES {
        // SAFETY: `check` has seen that there is this instruction.
        if unsafe { step(&mut value) } {
            assert!(LAST.swap(value, Relaxed) != value, "the processor's randomness (RDRAND) repeats itself");
            return value;
        }
    }
    panic!("the processor has no randomness now")
}
