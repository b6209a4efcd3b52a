//! Fuzz target: `scan::fuzz_compiled`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_compiled(data));
