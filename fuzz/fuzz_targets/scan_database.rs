//! Fuzz target: `scan::fuzz_database`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| scan::fuzz_database(data));
