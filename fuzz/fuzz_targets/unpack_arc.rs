//! Fuzz target: `unpack::fuzz::fuzz_arc`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz::fuzz_arc(data));
