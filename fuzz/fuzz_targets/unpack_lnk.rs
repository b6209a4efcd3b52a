//! Fuzz target: `unpack::fuzz_lnk`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_lnk(data));
