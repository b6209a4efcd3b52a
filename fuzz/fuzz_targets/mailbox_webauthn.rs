//! Fuzz target: `mailbox::webauthn::fuzz_webauthn`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| mailbox::webauthn::fuzz_webauthn(data));
