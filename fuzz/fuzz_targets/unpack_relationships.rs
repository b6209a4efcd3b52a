//! Fuzz target: `unpack::fuzz_relationships`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_relationships(data));
