//! Fuzz target: `unpack::fuzz_autoit`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_autoit(data));
