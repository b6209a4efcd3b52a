//! Fuzz target: `sieve::fuzz_sieve`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sieve::fuzz_sieve(data));
