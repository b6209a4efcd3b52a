//! Fuzz target: `unpack::fuzz_arj`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_arj(data));
