//! Fuzz target: `proto::managesieve::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::managesieve::fuzz_server(data));
