//! Fuzz target: `rules::ids::fuzz_rules`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::ids::fuzz_rules(data));
