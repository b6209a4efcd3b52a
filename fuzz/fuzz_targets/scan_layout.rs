//! Fuzz target: `scan::fuzz_layout`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_layout(data));
