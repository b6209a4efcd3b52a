//! Fuzz target: `unpack::fuzz_ar`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_ar(data));
