//! Fuzz target: `unpack::fuzz_runs`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_runs(data));
