//! Fuzz target: `proto::milter::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::milter::fuzz_server(data));
