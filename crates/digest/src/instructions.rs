//! Instructions that digests are computed with: the best of the processor, or fewer, so that one machine can try the code of
//! others.

use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

#[cfg(target_arch = "x86_64")]
cpufeatures::new!(sha_here, "sha", "ssse3", "sse4.1");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(avx2_here, "avx2");
#[cfg(target_arch = "x86_64")]
cpufeatures::new!(avx512_here, "avx512f", "avx512vl", "avx2");
#[cfg(target_arch = "aarch64")]
cpufeatures::new!(sha_here, "sha2");

/// Sets of instructions, from the oldest processors' to the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Instructions {
    /// Instructions that every machine has.
    Portable,
    /// Instructions for SHA-1 and SHA-256.
    Sha,
    /// Vectors of 32 bytes: AVX2, or pairs of NEON.
    Vectors,
    /// AVX-512, for the same vectors.
    Avx512,
}

/// The highest set that is used.
static LIMIT: AtomicU8 = AtomicU8::new(Instructions::Avx512 as u8);

impl Instructions {
    const ALL: [Instructions; 4] =
        [Instructions::Portable, Instructions::Sha, Instructions::Vectors, Instructions::Avx512];

    /// Keeps the digests of this process to these instructions and those before them, from now on.
    pub fn limit(self) {
        LIMIT.store(self as u8, Relaxed);
    }

    /// The newest that are used.
    pub fn best() -> Instructions {
        Self::ALL.into_iter().rfind(|instructions| instructions.are_used()).unwrap_or(Instructions::Portable)
    }

    /// Whether this machine has them, and the limit allows them.
    pub(crate) fn are_used(self) -> bool {
        self as u8 <= LIMIT.load(Relaxed) && self.are_here()
    }

    /// Whether this machine has them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn are_here(self) -> bool {
        match self {
            Instructions::Portable => true,
            Instructions::Sha => sha_here::get(),
            Instructions::Vectors => avx2_here::get(),
            Instructions::Avx512 => avx512_here::get(),
        }
    }

    /// Whether this machine has them: NEON, if the program is compiled for it and words are in memory as it wants them.
    #[cfg(target_arch = "aarch64")]
    fn are_here(self) -> bool {
        match self {
            Instructions::Portable => true,
            Instructions::Sha => sha_here::get(),
            Instructions::Vectors => cfg!(all(target_feature = "neon", target_endian = "little")),
            Instructions::Avx512 => false,
        }
    }

    /// Whether this machine has them, which is not known of others.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn are_here(self) -> bool {
        self == Instructions::Portable
    }
}

impl fmt::Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Instructions::Portable => "portable code",
            Instructions::Sha => "SHA instructions",
            Instructions::Vectors if cfg!(target_arch = "aarch64") => "NEON",
            Instructions::Vectors => "AVX2",
            Instructions::Avx512 => "AVX-512",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_all_that_this_machine_has_are_used() {
        assert!(Instructions::ALL.iter().all(|instructions| instructions.are_used() == instructions.are_here()));
        assert!(Instructions::best().are_here());
    }
}
