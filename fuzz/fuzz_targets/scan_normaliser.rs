//! Fuzz target: `scan::fuzz_normaliser`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_normaliser(data));
