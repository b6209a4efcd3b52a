//! Fuzz target: `auth::fuzz_report`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| auth::fuzz_report(data));
