//! Recipients that have reported a mail, and those that an operator names, get no more mail of accounts.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::dns::{Dns, Told};
use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, stuffed};

fn known(name: &str) -> Told {
    Told::Text(match name {
        "isp.test" => "v=spf1 ip4:192.0.2.7 -all".into(),
        "_dmarc.isp.test" => "v=DMARC1; p=none".into(),
        _ => return Told::NoName,
    })
}

/// A gateway with the accounts `ann@here.test` and `fbl@here.test`, at which reports of `isp.test` come in.
fn gateway(dns: &Dns, sink: &Sink) -> Gateway {
    let accounts = tempfile::tempdir().unwrap();
    let path = accounts.path().join("accounts");
    for name in ["ann@here.test", "fbl@here.test"] {
        let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
        add.args(["account", "--accounts"]).arg(&path).args(["add", name]).stdin(Stdio::piped());
        let mut child = add.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
    let text = format!(
        "hostname = \"mx.test\"\nthreads = 1\n{}[authentication]\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{}\"\n\
         relay = \"{}\"\nmaildrop = \"FOLDER/maildrop\"\n[store.queue]\nfeedback = \"fbl@here.test\"\nfeedback_from = [\"isp.test\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nproxy_from = [\"127.0.0.1\"]\ntrust = \"off\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nproxy_from = [\"127.0.0.1\"]\ntrust = \"off\"\n\
         auth = \"any\"\n",
        dns.settings(),
        path.display(),
        sink.forward()
    );
    Gateway::with(&text).owning(accounts)
}

/// A session of a client at the listener of other servers, or at that of accounts.
fn session(gateway: &Gateway, listener: usize, client: &str) -> Wire {
    let mut wire = Wire::connect(gateway.addresses[listener]);
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk("S: 220 *\nC: EHLO mail.client.test\nS: 250-*");
    wire
}

/// Reports a mail to this recipient, from this client.
fn report(gateway: &Gateway, client: &str, recipient: &str) {
    let mut wire = session(gateway, 0, client);
    wire.talk("C: MAIL FROM:<fbl@isp.test>\nS: 250 *\nC: RCPT TO:<FBL@here.test>\nS: 250 *\nC: DATA\nS: 354 *");
    let mail = format!(
        "From: <fbl@isp.test>\r\nSubject: complaint\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report;\r\n report-type=feedback-report; \
         boundary=b1\r\n\r\n--b1\r\nContent-Type: text/plain\r\n\r\nspam\r\n--b1\r\nContent-Type: message/feedback-report\r\n\r\n\
         Feedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\nOriginal-Rcpt-To: <{recipient}>\r\n\r\n--b1\r\n\
         Content-Type: message/rfc822\r\n\r\nFrom: <ann@here.test>\r\nTo: <{recipient}>\r\nSubject: hello\r\n\r\nbody\r\n--b1--\r\n"
    );
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    assert_eq!(wire.reply(), "250 2.0.0 Delivered");
}

fn suppress(gateway: &Gateway, arguments: &[&str]) -> Output {
    let volume = gateway.folder.path().join("store/mail");
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["queue", "suppress"]).args(arguments).arg("--store").arg(volume).output().unwrap()
}

fn listed(gateway: &Gateway) -> Vec<String> {
    let answer: Value = serde_json::from_slice(&suppress(gateway, &["list", "--json"]).stdout).unwrap();
    let all = answer["suppressed"].as_array().unwrap();
    all.iter().map(|one| format!("{} {}", one["address"].as_str().unwrap(), one["reason"].as_str().unwrap())).collect()
}

/// Replies to recipients of a mail of ann.
fn tried(gateway: &Gateway, from: &str, to: &[&str]) -> Vec<String> {
    let mut wire = session(gateway, 1, "192.0.2.1");
    wire.talk(&format!("C: AUTH PLAIN {}\nS: 235 *", base64(b"\0ann@here.test\0secret").trim_end()));
    wire.talk(&format!("C: MAIL FROM:<{from}>\nS: 250 *"));
    to.iter().map(|to| wire.command(&format!("RCPT TO:<{to}>"))).collect()
}

#[test]
fn who_has_reported_a_mail_gets_no_more_of_them() {
    let (dns, sink) = (Dns::start(|name, _| known(name)), Sink::start(Behaviour::default()));
    let gateway = gateway(&dns, &sink);
    assert_eq!(suppress(&gateway, &["list"]).status.code(), Some(1), "nobody yet");
    report(&gateway, "192.0.2.7", "Carl@isp.test");
    // A report that its domain has not sent counts for nothing.
    report(&gateway, "192.0.2.9", "dora@isp.test");
    assert_eq!(listed(&gateway), ["carl@isp.test it has reported a mail"]);
    let replies = tried(&gateway, "ann@here.test", &["carl@ISP.test", "dora@isp.test"]);
    assert!(replies[0].starts_with("550 5.7.1 The recipient has reported mail from here"), "{replies:?}");
    assert!(replies[1].starts_with("250"), "{replies:?}");
    // What has no sender, such as a notification, goes there all the same.
    assert!(tried(&gateway, "", &["carl@isp.test"])[0].starts_with("250"));
    let added = suppress(&gateway, &["add", "DORA@isp.test", "no address", "--reason", "asked for it"]);
    assert_eq!(String::from_utf8_lossy(&added.stdout), "1 addresses\n");
    assert_eq!(listed(&gateway), ["carl@isp.test it has reported a mail", "dora@isp.test asked for it"]);
    // A mail that no door has seen comes back.
    let mut send = Command::new(env!("CARGO_BIN_EXE_sluice"));
    send.args(["sendmail", "-C"])
        .arg(gateway.folder.path().join("sluice.toml"))
        .args(["dora@isp.test", "eve@isp.test"]);
    assert!(send.stdin(Stdio::null()).status().unwrap().success());
    let mails = sink.wait(2);
    let sent = mails.iter().find(|mail| !mail.from.is_empty()).unwrap();
    assert_eq!(sent.to, ["eve@isp.test"]);
    let notice = mails.iter().find(|mail| mail.from.is_empty()).unwrap().text();
    assert!(
        notice.contains("Final-Recipient: rfc822; dora@isp.test\r\nAction: failed\r\nStatus: 5.7.1\r\n"),
        "{notice}"
    );
    assert_eq!(
        suppress(&gateway, &["delete", "Carl@isp.test", "dora@isp.test", "eve@isp.test"]).stdout,
        b"2 addresses\n"
    );
    assert_eq!(suppress(&gateway, &["delete", "carl@isp.test"]).status.code(), Some(1));
    assert!(listed(&gateway).is_empty());
    assert!(tried(&gateway, "ann@here.test", &["carl@isp.test"])[0].starts_with("250"));
    assert_eq!(sink.mails().len(), 2);
}
