//! Fuzz target: `auth::fuzz_mail`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| auth::fuzz_mail(data));
