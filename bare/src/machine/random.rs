//! Randomness of the processor.

use core::arch::x86_64::{__cpuid, _rdrand64_step};

/// How often the processor may say that it has none yet.
const TRIES: u32 = 100;

/// Whether the processor has any.
pub fn check() {
    let has = __cpuid(1).ecx & 1 << 30 != 0;
    assert!(has, "the processor has no randomness (RDRAND)");
}

/// Random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&word().to_le_bytes()[..piece.len()]);
    }
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
            return value;
        }
    }
    panic!("the processor has no randomness now")
}
