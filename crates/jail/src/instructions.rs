//! Instructions that content is searched and hashed with: the best of the processor, or by the environment fewer, so that one
//! machine can test and measure the code of others.

use std::process::Command;

use digest::Instructions;
use pattern::Path;

/// Variable of the environment: `portable`, `sse`, `avx2`, or `avx512` without gathering. Other values mean `portable`.
const VARIABLE: &str = "SLUICE_INSTRUCTIONS";

/// Keeps this process to the instructions that the environment names.
pub fn limit() {
    let Some(name) = std::env::var_os(VARIABLE) else { return };
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

/// Passes the limit on to a process whose environment is otherwise empty.
pub fn hand_on(command: &mut Command) {
    command.envs(std::env::var_os(VARIABLE).map(|name| (VARIABLE, name)));
}

/// Describes the instructions in use, for people.
pub fn describe() -> String {
    format!("content would be searched with {}, and hashed with {}", Path::best(), Instructions::best())
}
