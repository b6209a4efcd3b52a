//! Fuzz target: `unpack::fuzz_lz4`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_lz4(data));
