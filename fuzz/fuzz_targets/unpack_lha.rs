//! Fuzz target: `unpack::fuzz_lha`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_lha(data));
