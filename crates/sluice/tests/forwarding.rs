//! Mail that a script forwards: its sender is rewritten, and what comes back finds its way.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::{Behaviour, Gateway, Sink, Wire, stuffed, wait_for};

const MAIL: &[u8] = b"From: eve@sender.test\r\nSubject: hello\r\n\r\nbody\r\n";

/// A gateway with the account `ann@here.test`, all of whose mail goes to `carl@elsewhere.test`.
fn forwarder(sink: &Sink, folder: &tempfile::TempDir) -> Gateway {
    let at = folder.path().display().to_string();
    std::fs::write(folder.path().join("forward.sieve"), "redirect \"carl@elsewhere.test\";\n").unwrap();
    std::fs::write(folder.path().join("secret"), "a secret of this test\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["account", "--accounts", &format!("{at}/accounts"), "add", "ann@here.test"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    assert!(child.wait().unwrap().success());
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{at}/accounts\"\n\
         relay = \"{}\"\nsieve_before = \"{at}/forward.sieve\"\n[store.queue]\nsrs_secret = \"{at}/secret\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
        sink.forward()
    ))
}

fn begin(gateway: &Gateway, from: &str) -> Wire {
    let mut wire = gateway.connect();
    wire.talk(&format!("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<{from}>\nS: 250 *"));
    wire
}

fn finish(wire: &mut Wire, mail: &[u8]) {
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail));
    wire.talk("C: .\nS: 250 *");
}

/// Bounces that one address takes in an hour.
const BOUNCES_TO_ONE_MAX: usize = 20;

#[test]
fn a_rewritten_address_takes_so_many_bounces_in_an_hour() {
    let sink = Sink::start(Behaviour::default());
    let folder = tempfile::tempdir().unwrap();
    let gateway = forwarder(&sink, &folder);
    let mut wire = begin(&gateway, "eve@sender.test");
    wire.talk("C: RCPT TO:<ann@here.test>\nS: 250 *");
    finish(&mut wire, MAIL);
    let from = wait_for(|| sink.take(), "the forwarded mail").from;
    let bounce = |answer: &str| {
        let mut wire = begin(&gateway, "");
        wire.talk(&format!("C: RCPT TO:<{from}>\nS: 250 *\nC: DATA\nS: 354 *"));
        wire.send(b"Subject: undelivered\r\n\r\nbounce\r\n.\r\n");
        wire.talk(&format!("S: {answer}"));
    };
    (0..BOUNCES_TO_ONE_MAX).for_each(|_| bounce("250 *"));
    bounce("450 4.7.1 *");
    gateway.wait_for_log("too many bounces");
}

#[test]
fn the_sender_of_forwarded_mail_is_rewritten_and_a_bounce_reaches_it() {
    let sink = Sink::start(Behaviour::default());
    let folder = tempfile::tempdir().unwrap();
    let gateway = forwarder(&sink, &folder);
    let mut wire = begin(&gateway, "eve@sender.test");
    wire.talk("C: RCPT TO:<ann@here.test>\nS: 250 *");
    finish(&mut wire, MAIL);
    let forwarded = wait_for(|| sink.take(), "the forwarded mail");
    assert_eq!(forwarded.to, ["carl@elsewhere.test"]);
    let from = &forwarded.from;
    assert!(from.starts_with("SRS0=") && from.ends_with("=sender.test=eve@mx.test"), "{from}");

    let mut wire = begin(&gateway, "");
    wire.talk(&format!("C: RCPT TO:<{from}>\nS: 250 *\nC: RCPT TO:<ann@here.test>\nS: 452 4.5.3 *"));
    finish(&mut wire, b"Subject: undelivered\r\n\r\nbounce\r\n");
    let back = wait_for(|| sink.take(), "the bounce");
    assert_eq!((back.from.as_str(), back.to.as_slice()), ("", &["eve@sender.test".to_owned()][..]));
    let text = back.text();
    assert!(text.contains("Subject: undelivered\r\n\r\nbounce\r\n") && !text.contains("Return-Path"), "{text}");

    // Others do not send by it, and nobody makes such an address.
    let mut wire = begin(&gateway, "eve@sender.test");
    wire.talk(&format!("C: RCPT TO:<{from}>\nS: 550 5.1.1 *"));
    let mut wire = begin(&gateway, "");
    wire.talk(&format!("C: RCPT TO:<{}>\nS: 550 5.1.1 *", from.replace("eve", "all")));
}
