//! Fuzz target: `edge::recipients::entry::fuzz_entries`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| edge::recipients::entry::fuzz_entries(data));
