//! Tests of client identity over relays: XCLIENT and the PROXY protocol, on both sides.

use std::process::Command;

use crate::harness::postfix::Postfix;
use crate::harness::{Behaviour, Gateway, Sink, mail_with, wait_for};

const TRUSTED: &str = "xclient_from = [\"127.0.0.0/8\"]\n";

fn clean() -> Vec<u8> {
    mail_with("7bit", "a.txt", "Hello")
}

/// A session of a client at 192.0.2.9, for whom a relay speaks.
fn deliver_for_another(gateway: &Gateway) -> String {
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 mx.test ESMTP Sluice
         C: EHLO relay.test
         S: 250-mx.test *
         C: XCLIENT ADDR=192.0.2.9 PORT=4711 HELO=client.test NAME=[UNAVAILABLE] PROTO=ESMTP
         S: 220 mx.test ESMTP Sluice
         C: EHLO relay.test
         S: 250-mx.test *",
    );
    wire.transaction(&clean())
}

#[test]
fn a_client_for_whom_another_speaks_is_the_client() {
    let sink = Sink::start(Behaviour { extensions: &["XFORWARD NAME ADDR PROTO HELO"], ..Behaviour::default() });
    let rule = "[[listener.rule]]\nclient = [\"192.0.2.0/24\"]\non_encrypted = \"tag\"\n";
    let gateway = Gateway::start(&sink.forward(), &format!("{TRUSTED}{rule}"));
    assert_eq!(deliver_for_another(&gateway), "250 2.0.0 Taken");
    assert!(
        sink.mails()[0].text().starts_with("Received: from client.test ([192.0.2.9])"),
        "{}",
        sink.mails()[0].text()
    );
    let told = sink.commands().into_iter().find(|command| command.starts_with("XFORWARD")).unwrap();
    assert_eq!(told, "XFORWARD ADDR=192.0.2.9 PORT=4711 HELO=client.test PROTO=ESMTP");
    assert!(gateway.wait_for_log("message").contains("client=192.0.2.9"));
}

#[test]
fn others_may_not_speak_for_anybody() {
    let gateway = Gateway::start("discard:", "xclient_from = [\"192.0.2.0/24\"]");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x");
    assert!(!wire.reply().contains("XCLIENT"));
    wire.talk("C: XCLIENT ADDR=192.0.2.9\nS: 550 5.7.0 Insufficient authorization");
    assert_eq!(wire.transaction(&clean()), "250 2.0.0 Discarded");
    assert!(gateway.wait_for_log("message").contains("client=127.0.0.1"));
}

#[test]
fn swaks_speaks_for_another() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), TRUSTED);
    let swaks = Command::new("swaks")
        .args([
            "--xclient-addr",
            "192.0.2.9",
            "--xclient-helo",
            "client.test",
            "--from",
            "a@x.test",
            "--to",
            "b@y.test",
        ])
        .args(["--server", &gateway.address.to_string()])
        .output();
    let Ok(swaks) = swaks else {
        eprintln!("skipped: swaks is not installed");
        return;
    };
    assert!(swaks.status.success(), "{}", String::from_utf8_lossy(&swaks.stdout));
    assert!(
        sink.mails()[0].text().starts_with("Received: from client.test ([192.0.2.9])"),
        "{}",
        sink.mails()[0].text()
    );
}

#[test]
fn a_header_of_the_proxy_protocol_goes_before_everything() {
    let sink = Sink::start(Behaviour { proxy: true, ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), &format!("{TRUSTED}forward_proxy = \"v1\""));
    let mut wire = gateway.connect();
    let port = wire.stream.local_addr().unwrap().port();
    assert_eq!(wire.deliver(&clean()), "250 2.0.0 Taken");
    assert_eq!(wire.transaction(&clean()), "250 2.0.0 Taken");
    assert_eq!(deliver_for_another(&gateway), "250 2.0.0 Taken");
    let here = gateway.address.port();
    // Once to learn what the hop offers, once for each client; which connection is accepted first is nobody's to say.
    let mut wanted = vec![
        "PROXY UNKNOWN".to_string(),
        format!("PROXY TCP4 127.0.0.1 127.0.0.1 {port} {here}"),
        format!("PROXY TCP4 192.0.2.9 127.0.0.1 4711 {here}"),
    ];
    wanted.sort();
    let headers = wait_for(
        || {
            let mut headers: Vec<String> =
                sink.commands().into_iter().filter(|line| line.starts_with("PROXY")).collect();
            headers.sort();
            (headers.len() >= wanted.len()).then_some(headers)
        },
        "a header for each connection",
    );
    assert_eq!(headers, wanted);
}

/// A real Postfix believes us.
fn postfix_sees_the_client(postfix_settings: &str, settings: &str) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !std::path::Path::new("/usr/sbin/postfix").exists() || !is_root {
        eprintln!("skipped: postfix is not installed, or we are not root");
        return;
    }
    let postfix = Postfix::start(postfix_settings);
    let forward = format!("smtp://127.0.0.1:{}", postfix.port);
    let gateway = Gateway::start(&forward, &format!("{TRUSTED}{settings}\nreceived = false"));
    let reply = deliver_for_another(&gateway);
    assert!(reply.starts_with("250 2.0.0 Ok: ") && reply.contains("queued as"), "{reply}");
    let mail = String::from_utf8(wait_for(|| postfix.mail(), "delivery")).unwrap();
    assert!(mail.contains("[192.0.2.9])"), "{mail}");
}

#[test]
fn postfix_takes_the_header_of_the_proxy_protocol() {
    let believes = "smtpd_upstream_proxy_protocol = haproxy";
    postfix_sees_the_client(believes, "forward_proxy = \"v1\"");
    postfix_sees_the_client(believes, "forward_proxy = \"v2\"");
}

#[test]
fn postfix_takes_xclient() {
    postfix_sees_the_client("smtpd_authorized_xclient_hosts = 127.0.0.0/8", "forward_xclient = true");
}
