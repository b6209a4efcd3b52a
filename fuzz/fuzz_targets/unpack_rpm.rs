//! Fuzz target: `unpack::fuzz_rpm`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_rpm(data));
