//! Fuzz target: `webmail::fuzz_sanitise`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| webmail::fuzz_sanitise(data));
