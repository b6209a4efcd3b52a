//! Fuzz target: `proto::rspamd::fuzz_server`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| proto::rspamd::fuzz_server(data));
