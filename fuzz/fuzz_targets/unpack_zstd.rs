//! Fuzz target: `unpack::fuzz_zstd`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_zstd(data));
