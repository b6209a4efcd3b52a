//! Fuzz target: `proto::messages::fuzz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::messages::fuzz(data));
