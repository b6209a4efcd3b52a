//! Fuzz target: `digest::fuzz_batch`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| digest::fuzz_batch(data));
