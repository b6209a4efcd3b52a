//! Fuzz target: `proto::smtp::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::smtp::fuzz_server(data));
