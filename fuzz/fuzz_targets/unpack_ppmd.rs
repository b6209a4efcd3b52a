//! Fuzz target: `unpack::fuzz_ppmd`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_ppmd(data));
