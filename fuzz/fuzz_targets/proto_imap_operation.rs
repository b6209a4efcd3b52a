//! Fuzz target: `proto::imap::fuzz_operation`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::imap::fuzz_operation(data));
