//! Fuzz target: `proto::clamd::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::clamd::fuzz_server(data));
