//! Replays the fuzz seeds, so that what was found once stays found.

use std::fs;
use std::path::Path;

#[test]
fn every_seed_passes_its_fuzz_body() {
    type Body = fn(&[u8]);
    let bodies: [(&str, Body); 21] = [
        ("proto_tls_client_hello", proto::tls::fuzz_client_hello),
        ("proto_messages", proto::messages::fuzz),
        ("proto_websocket", proto::websocket::fuzz),
        ("proto_dns_message", proto::dns::fuzz_message),
        ("proto_http_server", proto::http::fuzz_server),
        ("proto_http_client", proto::http::fuzz_client),
        ("proto_icap_client", proto::icap::fuzz_client),
        ("proto_icap_server", proto::icap::fuzz_server),
        ("proto_smtp_server", proto::smtp::fuzz_server),
        ("proto_smtp_client", proto::smtp::fuzz_client),
        ("proto_imap_server", proto::imap::fuzz_server),
        ("proto_imap_operation", proto::imap::fuzz_operation),
        ("proto_imap_client", proto::imap::fuzz_client),
        ("proto_managesieve_server", proto::managesieve::fuzz_server),
        ("proto_clamd_server", proto::clamd::fuzz_server),
        ("proto_milter_server", proto::milter::fuzz_server),
        ("proto_proxy_read", proto::proxy::fuzz_read),
        ("proto_rspamd_server", proto::rspamd::fuzz_server),
        ("proto_spamd_server", proto::spamd::fuzz_server),
        ("proto_pop3_server", proto::pop3::fuzz_server),
        ("proto_pop3_client", proto::pop3::fuzz_client),
    ];
    for (name, body) in bodies {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        let mut count = 0;
        for entry in fs::read_dir(&folder).unwrap() {
            body(&fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0, "no seeds in {}", folder.display());
    }
}
