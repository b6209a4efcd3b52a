//! The limit of the instructions that this process uses: one machine can so try the code of others.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Level of AVX2 and NEON; portable code has the level below it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) const VECTORS: u8 = 1;

/// The highest level that is allowed.
static LIMIT: AtomicU8 = AtomicU8::new(u8::MAX);

/// Allows this level and those below it, from now on.
pub(crate) fn set(level: u8) {
    LIMIT.store(level, Relaxed);
}

/// Whether this level is allowed.
pub(crate) fn allows(level: u8) -> bool {
    level <= LIMIT.load(Relaxed)
}
