//! Fuzz target: `unpack::fuzz_bzip2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_bzip2(data));
