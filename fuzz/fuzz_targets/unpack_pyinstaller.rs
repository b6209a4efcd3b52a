//! Fuzz target: `unpack::fuzz::fuzz_pyinstaller`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| unpack::fuzz::fuzz_pyinstaller(data));
