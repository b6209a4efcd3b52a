//! Fuzz target: `proto::icap::fuzz_client`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::icap::fuzz_client(data));
