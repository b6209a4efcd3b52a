#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rules::spam::run::fuzz_check(data));
