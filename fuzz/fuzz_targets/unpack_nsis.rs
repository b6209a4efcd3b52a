//! Fuzz target: `unpack::fuzz_nsis`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_nsis(data));
