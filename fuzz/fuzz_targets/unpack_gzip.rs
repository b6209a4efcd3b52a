//! Fuzz target: `unpack::fuzz_gzip`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_gzip(data));
