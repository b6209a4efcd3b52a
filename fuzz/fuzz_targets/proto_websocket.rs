//! Fuzz target: `proto::websocket::fuzz`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::websocket::fuzz(data));
