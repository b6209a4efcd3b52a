//! Fuzz target: `unpack::fuzz_pdf`.
#![no_main]
libfuzzer_sys::fuzz_pdfget!(|data: &[u8]| unpack::fuzz_pdf(data));
