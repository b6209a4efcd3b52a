//! Fuzz target: `unpack::fuzz_alz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_alz(data));
