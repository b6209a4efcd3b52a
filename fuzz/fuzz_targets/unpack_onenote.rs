//! Fuzz target: `unpack::fuzz_onenote`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_onenote(data));
