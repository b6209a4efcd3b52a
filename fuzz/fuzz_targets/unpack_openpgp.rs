//! Fuzz target: `unpack::fuzz::fuzz_openpgp`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz::fuzz_openpgp(data));
