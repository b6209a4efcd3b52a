//! Fuzz target: `unpack::fuzz_appledouble`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_appledouble(data));
