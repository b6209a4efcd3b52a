//! Fuzz target: `scan::fuzz_picture`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_picture(data));
