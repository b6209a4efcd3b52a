//! Fuzz target: `dnsbl::prefix::fuzz_read`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| dnsbl::prefix::fuzz_read(data));
