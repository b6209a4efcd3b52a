//! Fuzz target: `unpack::fuzz_compress`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_compress(data));
