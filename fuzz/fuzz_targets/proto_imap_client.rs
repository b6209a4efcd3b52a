//! Fuzz target: `proto::imap::fuzz_client`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::imap::fuzz_client(data));
