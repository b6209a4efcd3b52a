//! Fuzz target: `auth::fuzz_spf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| auth::fuzz_spf(data));
