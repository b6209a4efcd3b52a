//! Fuzz target: `proto::dns::fuzz_message`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::dns::fuzz_message(data));
