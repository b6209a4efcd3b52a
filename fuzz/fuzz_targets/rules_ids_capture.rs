//! Fuzz target: `rules::ids::capture::fuzz_capture`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::ids::capture::fuzz_capture(data));
