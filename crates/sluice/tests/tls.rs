//! TLS with clients and with next hops, and what stands against it.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, Sink, SinkTls, base64, eicar, mail_with, wait_for};
use tempfile::TempDir;
use tokio_rustls::rustls;

const MAIL: &[u8] = b"From: a\r\n\r\nHello\r\n";

/// A gateway with a certificate for mx.test.
fn gateway(forward: &str, settings: &str) -> (Gateway, Certificate) {
    let certificate = Certificate::of("mx.test");
    let (table, folder) = stored(&certificate, "mx");
    let gateway = Gateway::start_with(&format!("[tls]\n{table}"), "smtp", forward, settings);
    (gateway.owning(folder), certificate)
}

/// The table for a certificate, and where its files are.
fn stored(certificate: &Certificate, name: &str) -> (String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), name);
    let at = folder.path().display();
    (format!("[[tls.certificate]]\nchain = \"{at}/{name}.crt\"\nkey = \"{at}/{name}.key\"\n"), folder)
}

/// A sink that shows a certificate for localhost.
fn secure_sink(implicit: bool, injected: &'static str) -> (Sink, Arc<Certificate>) {
    let certificate = Arc::new(Certificate::of("localhost"));
    let tls = SinkTls { certificate: certificate.clone(), implicit, injected };
    let extensions = if implicit { &[][..] } else { &["STARTTLS"] };
    (Sink::start(Behaviour { extensions, tls: Some(tls), ..Behaviour::default() }), certificate)
}

fn at_localhost(scheme: &str, sink: &Sink) -> String {
    format!("{scheme}://localhost:{}", sink.address.port())
}

#[test]
fn a_client_that_says_starttls_is_served_within_it() {
    let sink = Sink::start(Behaviour::default());
    let (gateway, certificate) = gateway(&sink.forward(), "tls = \"offer\"");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO before\nS: 250-*\nC: STARTTLS\nS: 220 2.0.0 Ready to start TLS");
    let mut wire = wire.secure(certificate.client("mx.test"));
    wire.talk("C: MAIL FROM:<a@b>\nS: 503 *\nC: EHLO after");
    assert!(!wire.reply().contains("STARTTLS"));
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert!(
        sink.wait(1)[0].text().starts_with("Received: from after ([127.0.0.1])\r\n\tby mx.test (Sluice) with ESMTPS")
    );
    let virus = mail_with("base64", "e.com", &base64(&eicar()));
    assert!(wire.transaction(&virus).starts_with("554 5.7.1 Message refused: Eicar"));
    wire.talk("C: QUIT\nS: 221 *");
    assert_eq!(wire.line(), "", "closed in good order");
}

#[test]
fn commands_sent_before_the_handshake_are_dropped() {
    let sink = Sink::start(Behaviour::default());
    let (gateway, certificate) = gateway(&sink.forward(), "tls = \"offer\"");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    wire.send(b"STARTTLS\r\nEHLO evil\r\nMAIL FROM:<evil@x.test>\r\nRCPT TO:<b@mx.test>\r\n");
    assert_eq!(wire.reply(), "220 2.0.0 Ready to start TLS");
    let mut wire = wire.secure(certificate.client("mx.test"));
    // Were the injected EHLO obeyed, this would be taken; were the MAIL, it would be the second.
    wire.talk("C: MAIL FROM:<a@b>\nS: 503 5.5.1 Send EHLO first\nC: EHLO x\nS: 250-*");
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert_eq!(sink.wait(1)[0].from, "a@client.test");
}

#[test]
fn where_tls_is_required_no_mail_is_taken_without() {
    let (gateway, certificate) = gateway("discard:", "tls = \"require\"");
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 530 5.7.0 Must issue a STARTTLS command first\nC: STARTTLS\nS: 220 *",
    );
    let mut wire = wire.secure(certificate.client("mx.test"));
    wire.talk("C: EHLO x\nS: 250-*");
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Discarded");
}

#[test]
fn implicit_tls_greets_within_it_and_tells_nothing_outside() {
    let (gateway, certificate) = gateway("discard:", "tls = \"implicit\"");
    let mut wire = gateway.connect().secure(certificate.client("mx.test"));
    assert_eq!(wire.deliver(MAIL), "250 2.0.0 Discarded");
    gateway.wait_for_log("tls=\"TLSv1.3 TLS_AES_256_GCM_SHA384\" from=");
    let mut clear = gateway.connect();
    clear.send(b"EHLO x\r\n");
    let answer = clear.line();
    assert!(!answer.contains("220") && !answer.contains("mx.test"), "{answer:?}");
}

#[test]
fn the_name_asked_for_chooses_the_certificate_and_a_reload_takes_new_ones() {
    let (first, second) = (Certificate::of("mx.test"), Certificate::of("*.example.test"));
    let ((one, folder), (other, _folder)) = (stored(&first, "first"), stored(&second, "second"));
    let gateway = Gateway::start_with(&format!("[tls]\n{one}{other}"), "smtp", "discard:", "tls = \"implicit\"");
    let shown = |certificate: &Certificate, name| {
        let mut stream = gateway.connect().stream;
        certificate.handshake(&mut stream, name, rustls::ALL_VERSIONS).is_ok()
    };
    assert!(shown(&first, "mx.test") && shown(&second, "mail.example.test"));
    assert!(!shown(&second, "mx.test"));
    let third = Certificate::of("mx.test");
    third.store(folder.path(), "first");
    assert!(shown(&first, "mx.test"), "before the reload the old one is shown");
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded");
    wait_for(|| shown(&third, "mx.test").then_some(()), "the new certificate");
    std::fs::write(folder.path().join("first.crt"), "no certificate").unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("not reloaded");
    assert!(shown(&third, "mx.test"), "what cannot be read changes nothing");
}

#[test]
fn the_oldest_version_is_one_setting() {
    let certificate = Certificate::of("mx.test");
    for (minimum, taken) in [("1.2", true), ("1.3", false)] {
        let (table, _folder) = stored(&certificate, "mx");
        let head = format!("[tls]\nminimum = \"{minimum}\"\n{table}");
        let gateway = Gateway::start_with(&head, "smtp", "discard:", "tls = \"implicit\"");
        let mut stream = gateway.connect().stream;
        let outcome = certificate.handshake(&mut stream, "mx.test", &[&rustls::version::TLS12]);
        assert_eq!(outcome.is_ok(), taken, "{minimum}");
    }
}

#[test]
fn a_handshake_that_does_not_come_ends_the_session() {
    let (gateway, _) = gateway("discard:", "tls = \"implicit\"\nconnections_max = 1");
    let mut wire = gateway.connect();
    wire.send(&[b'x'; 20_000]);
    assert!(wire.rest().len() <= 7, "an alert at most");
    wait_for(
        || {
            let mut next = gateway.connect();
            next.stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut byte = [0];
            std::io::Read::read(&mut next.stream, &mut byte).is_err().then_some(())
        },
        "room for another session",
    );
}

#[test]
fn a_hop_that_offers_starttls_gets_it() {
    let (sink, _) = secure_sink(false, "");
    let gateway = Gateway::start(&sink.forward(), "");
    assert_eq!(gateway.connect().deliver(MAIL), "250 2.0.0 Taken");
    // The hop is asked what it offers at the same time, on a connection of its own.
    let commands = sink.commands();
    let before_mail: Vec<_> = commands.iter().take_while(|command| !command.starts_with("MAIL")).collect();
    let secured = before_mail.iter().position(|command| *command == "STARTTLS");
    let greeted = before_mail.iter().rposition(|command| *command == "EHLO mx.test");
    assert!(secured.is_some() && greeted > secured, "{commands:?}");
}

#[test]
fn replies_injected_before_the_handshake_are_never_heard() {
    let (sink, _) = secure_sink(false, "250-sink.test\r\n250 SMTPUTF8\r\n250 2.1.0 Ok\r\n");
    let gateway =
        Gateway::start(&at_localhost("smtp", &sink), "forward_tls = \"require\"\nforward_verify = \"nothing\"");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 451 4.7.4 *");
    gateway.wait_for_log("it spoke before the handshake");
    assert!(sink.mails().is_empty());
}

#[test]
fn a_hop_has_to_prove_who_it_is() {
    for implicit in [false, true] {
        let (sink, certificate) = secure_sink(implicit, "");
        let (scheme, require) = if implicit { ("smtps", "") } else { ("smtp", "forward_tls = \"require\"\n") };
        let fingerprint: String = {
            use sha2::{Digest, Sha256};
            Sha256::digest(certificate.der()).iter().map(|byte| format!("{byte:02X}")).collect()
        };
        let authorities = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authorities.path(), &certificate.chain).unwrap();
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(other.path(), Certificate::of("localhost").chain).unwrap();
        for (authorities, verify, taken) in [
            (&authorities, String::new(), true),
            (&other, String::new(), false),
            (&authorities, "name:other.test".into(), false),
            (&other, format!("sha256:{fingerprint}"), true),
            (&other, format!("sha256:{}", "00".repeat(32)), false),
            (&other, "nothing".into(), true),
        ] {
            let head = format!("[tls]\nauthorities = \"{}\"", authorities.path().display());
            let setting = if verify.is_empty() { String::new() } else { format!("forward_verify = \"{verify}\"") };
            let forward = at_localhost(scheme, &sink);
            let gateway = Gateway::start_with(&head, "smtp", &forward, &format!("{require}{setting}"));
            let mut wire = gateway.connect();
            wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>");
            let reply = wire.reply();
            assert_eq!(reply.starts_with("250"), taken, "{scheme} {verify:?}: {reply}");
            assert!(taken || reply.starts_with("451 4.7.4"), "{reply}");
        }
    }
}

#[test]
fn a_hop_without_starttls_gets_no_mail_where_it_is_required() {
    let sink = Sink::start(Behaviour::default());
    let gateway =
        Gateway::start(&at_localhost("smtp", &sink), "forward_tls = \"require\"\nforward_verify = \"nothing\"");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 451 4.7.4 *");
}

#[test]
fn openssl_and_swaks_get_on_with_it() {
    let (gateway, _) = gateway("discard:", "tls = \"offer\"");
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(arguments).stdin(Stdio::null()).output();
        let Ok(output) = output else {
            eprintln!("skipped: {program} is not installed");
            return None;
        };
        Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let address = gateway.address.to_string();
    for version in ["-tls1_2", "-tls1_3"] {
        let arguments = ["s_client", "-connect", &address, "-starttls", "smtp", "-servername", "mx.test", version];
        if let Some(text) = run("openssl", &arguments) {
            assert!(text.contains("CN = rcgen self signed cert") && text.contains("Cipher is "), "{text}");
        }
    }
    let arguments = ["s_client", "-connect", &address, "-starttls", "smtp", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
    if let Some(text) = run("openssl", &arguments) {
        assert!(text.contains("Cipher is (NONE)"), "an old version was spoken: {text}");
    }
    if let Some(text) = run("swaks", &["--from", "a@x.test", "--to", "b@y.test", "--tls", "--server", &address])
        && !text.contains("requires Net::SSLeay")
    {
        assert!(text.contains("TLS started with cipher") && text.contains("<~  250 2.0.0 Discarded"), "{text}");
    }
}
