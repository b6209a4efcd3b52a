//! Fuzz target: `unpack::fuzz::fuzz_coded`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz::fuzz_coded(data));
