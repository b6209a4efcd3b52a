//! Fuzz target: `proto::http::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::http::fuzz_server(data));
