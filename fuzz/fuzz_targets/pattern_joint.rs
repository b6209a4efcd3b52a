//! Fuzz target: `pattern::expression::fuzz_joint`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pattern::expression::fuzz_joint(data));
