//! Fuzz target: `scan::fuzz_detached`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_detached(data));
