//! Fuzz target: `pattern::expression::fuzz_expression`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| pattern::expression::fuzz_expression(data));
