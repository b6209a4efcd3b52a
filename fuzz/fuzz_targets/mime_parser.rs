//! Fuzz target: `mime::fuzz_parser`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mime::fuzz_parser(data));
