//! Fuzz target: `scan::fuzz_container`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_container(data));
