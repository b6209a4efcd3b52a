//! Fuzz target: `pattern::fuzz_pattern`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pattern::fuzz_pattern(data));
