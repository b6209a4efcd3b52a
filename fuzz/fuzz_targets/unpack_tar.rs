//! Fuzz target: `unpack::fuzz_tar`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_tar(data));
