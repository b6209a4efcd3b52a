//! Fuzz target: `mime::fuzz_decoder`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mime::fuzz_decoder(data));
