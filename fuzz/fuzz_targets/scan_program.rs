//! Fuzz target: `scan::fuzz_program`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_program(data));
