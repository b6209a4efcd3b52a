//! Fuzz target: `dnsbl::delta::fuzz_delta`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| dnsbl::delta::fuzz_delta(data));
