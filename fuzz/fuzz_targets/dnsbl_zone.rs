//! Fuzz target: `dnsbl::fuzz_files`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| dnsbl::fuzz_files(data));
