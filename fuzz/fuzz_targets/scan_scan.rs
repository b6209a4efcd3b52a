//! Fuzz target: `scan::fuzz_scan`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_scan(data));
