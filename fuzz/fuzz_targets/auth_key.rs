//! Fuzz target: `auth::fuzz_key`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| auth::fuzz_key(data));
