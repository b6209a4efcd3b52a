//! Fuzz target: `proto::http::fuzz_client`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::http::fuzz_client(data));
