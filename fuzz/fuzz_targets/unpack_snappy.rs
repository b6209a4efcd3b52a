//! Fuzz target: `unpack::fuzz_snappy`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_snappy(data));
