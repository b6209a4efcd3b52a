//! Fuzz target: `unpack::fuzz_activemime`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_activemime(data));
