//! Fuzz target: `unpack::fuzz_cpio`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_cpio(data));
