//! Fuzz target: `store::fuzz_open`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| store::fuzz_open(data));
