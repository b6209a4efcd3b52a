//! Fuzz target: `proto::tls::fuzz_client_hello`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::tls::fuzz_client_hello(data));
