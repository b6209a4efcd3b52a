//! Fuzz target: `scan::fuzz_cdiff`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_cdiff(data));
