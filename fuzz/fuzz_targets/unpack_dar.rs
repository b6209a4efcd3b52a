//! Fuzz target: `unpack::fuzz::fuzz_dar`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz::fuzz_dar(data));
