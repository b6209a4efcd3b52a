//! Fuzz target: `pattern::fuzz_sweep`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pattern::fuzz_sweep(data));
