//! Fuzz target: `rules::spam::message::fuzz_message`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::spam::message::fuzz_message(data));
