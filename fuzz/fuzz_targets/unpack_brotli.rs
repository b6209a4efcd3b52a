//! Fuzz target: `unpack::fuzz_brotli`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_brotli(data));
