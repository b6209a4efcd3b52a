//! Fuzz target: `unpack::fuzz_ole2`.
#![no_main]
libfuzzer_sys::fuzz_ole2get!(|data: &[u8]| unpack::fuzz_ole2(data));
