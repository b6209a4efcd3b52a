//! Fuzz target: `proto::pop3::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::pop3::fuzz_server(data));
