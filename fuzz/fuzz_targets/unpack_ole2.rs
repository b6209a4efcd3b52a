//! Fuzz target: `unpack::fuzz_ole2`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_ole2(data));
