//! Fuzz target: `unpack::fuzz_pdf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_pdf(data));
