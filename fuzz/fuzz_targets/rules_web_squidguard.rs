//! Fuzz target: `rules::web::fuzz_squidguard`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::web::fuzz_squidguard(data));
