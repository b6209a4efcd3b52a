//! Fewer instructions than the processor has, if the environment says so: the names are those of the program.

use digest::Instructions;
use pattern::Path;

/// Keeps this process to the instructions that `SLUICE_INSTRUCTIONS` names.
pub fn limit() {
    let Some(name) = std::env::var_os("SLUICE_INSTRUCTIONS") else { return };
    let (path, instructions) = match name.to_str() {
        #[cfg(target_arch = "x86_64")]
        Some("avx512") => (Path::Avx512, Instructions::Avx512),
        #[cfg(target_arch = "x86_64")]
        Some("avx2") => (Path::Avx2, Instructions::Vectors),
        Some("sse") => (Path::Portable, Instructions::Sha),
        _ => (Path::Portable, Instructions::Portable),
    };
    path.limit();
    instructions.limit();
}
