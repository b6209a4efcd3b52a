//! Fuzz target: `unpack::fuzz_cab`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_cab(data));
