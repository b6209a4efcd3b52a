//! Fuzz target: `unpack::fuzz_disk`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_disk(data));
