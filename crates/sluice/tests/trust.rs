//! What a connection costs until it has earned trust, and who is refused before any work is done.

use std::io::Read as _;
use std::net::TcpStream;

use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, Sink, Wire};

/// Connections that wait; each is also a descriptor or two of the test.
const CONNECTIONS: usize = 300;

/// Memory of the gateway that is in RAM and its own (proc_pid_smaps(5)).
fn resident_bytes(gateway: &Gateway) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", gateway.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Anonymous:")).expect("the kernel tells");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// What each of many connections adds to the memory of the gateway that have greeted and wait.
fn bytes_for_each<C>(gateway: &Gateway, mut wait: impl FnMut() -> C) -> u64 {
    // What comes with the first ones is not theirs.
    let _first: Vec<C> = (0..50).map(|_| wait()).collect();
    let before = resident_bytes(gateway);
    let _held: Vec<C> = (0..CONNECTIONS).map(|_| wait()).collect();
    let each = resident_bytes(gateway).saturating_sub(before) / CONNECTIONS as u64;
    println!("{each} bytes for each connection");
    each
}

#[test]
fn a_connection_that_waits_costs_little() {
    let gateway = Gateway::start("discard:", "");
    let each = bytes_for_each(&gateway, || {
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
        wire.stream
    });
    assert!(each <= 6 << 10, "{each} bytes");
}

#[test]
fn an_encrypted_connection_that_waits_costs_little() {
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n");
    let gateway = Gateway::start_with(&head, "smtp", "discard:", "tls = \"offer\"");
    let each = bytes_for_each(&gateway, || {
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: STARTTLS\nS: 220 *");
        let mut wire = wire.secure(certificate.client("mx.test"));
        wire.talk("C: EHLO client.test\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
        wire
    });
    assert!(each <= 40 << 10, "{each} bytes");
}
