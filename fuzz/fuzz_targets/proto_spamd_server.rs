//! Fuzz target: `proto::spamd::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::spamd::fuzz_server(data));
