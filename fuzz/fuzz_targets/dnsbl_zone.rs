//! Fuzz target: `dnsbl::zone::fuzz_files`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| dnsbl::zone::fuzz_files(data));
