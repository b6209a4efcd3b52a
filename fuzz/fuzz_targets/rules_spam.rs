//! Fuzz target: `rules::spam::fuzz_load`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::spam::fuzz_load(data));
