//! Fuzz target: `mime::fuzz_embedded`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mime::fuzz_embedded(data));
