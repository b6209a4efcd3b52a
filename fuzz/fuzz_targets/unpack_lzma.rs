//! Fuzz target: `unpack::fuzz_lzma`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_lzma(data));
