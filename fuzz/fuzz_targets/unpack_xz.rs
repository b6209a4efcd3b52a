//! Fuzz target: `unpack::fuzz_xz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_xz(data));
