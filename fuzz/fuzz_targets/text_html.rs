//! Fuzz target: `text::html::fuzz_html`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| text::html::fuzz_html(data));
