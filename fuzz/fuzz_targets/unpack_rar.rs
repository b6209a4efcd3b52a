//! Fuzz target: `unpack::fuzz_rar`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_rar(data));
