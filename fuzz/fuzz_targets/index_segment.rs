//! Fuzz target: `index::fuzz_segment`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| index::fuzz_segment(data));
