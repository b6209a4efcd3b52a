//! Fuzz target: `scan::fuzz_links`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_links(data));
