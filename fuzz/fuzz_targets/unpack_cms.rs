//! Fuzz target: `unpack::fuzz_cms`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_cms(data));
