//! Fuzz target: `rules::web::fuzz_adblock`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::web::fuzz_adblock(data));
