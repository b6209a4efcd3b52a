//! Fuzz target: `unpack::fuzz_swf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_swf(data));
