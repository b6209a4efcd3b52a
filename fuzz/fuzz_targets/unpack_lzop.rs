//! Fuzz target: `unpack::fuzz_lzop`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_lzop(data));
