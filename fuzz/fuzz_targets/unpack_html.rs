//! Fuzz target: `unpack::fuzz_html`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz_html(data));
