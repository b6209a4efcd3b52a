//! Fuzz target: `unpack::fuzz_installshield`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_installshield(data));
