//! Fuzz target: `unpack::fuzz_rtf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_rtf(data));
