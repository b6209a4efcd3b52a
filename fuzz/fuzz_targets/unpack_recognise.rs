//! Fuzz target: `unpack::fuzz_recognise`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_recognise(data));
