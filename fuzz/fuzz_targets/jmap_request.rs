//! Fuzz target: `jmap::fuzz_request`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| jmap::fuzz_request(data));
