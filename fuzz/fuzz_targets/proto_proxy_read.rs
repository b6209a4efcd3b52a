//! Fuzz target: `proto::proxy::fuzz_read`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::proxy::fuzz_read(data));
