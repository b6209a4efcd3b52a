//! Fuzz target: `mailbox::digest::fuzz_digest`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mailbox::digest::fuzz_digest(data));
