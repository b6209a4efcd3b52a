//! OpenSMTPD on both sides: mail that goes out to it, and mail that it brings.

use std::net::SocketAddr;

use crate::harness::opensmtpd::OpenSmtpd;
use crate::harness::{Behaviour, Sink, Wire, wait_for};
use crate::queue::{Site, send};

const MAIL: &str = "From: a@client.test\r\nSubject: hello\r\n\r\n.dot\r\n\r\ngr\u{fc}\u{df}e\r\n";

#[test]
fn opensmtpd_takes_mail_and_what_it_refuses_comes_back_with_its_words() {
    let sink = Sink::start(Behaviour::default());
    let rules = format!(
        "action \"on\" relay host \"smtp://{}\"\nmatch from any for domain \"opensmtpd.test\" action \"on\"",
        sink.address
    );
    let Some(smtpd) = OpenSmtpd::start(&rules) else { return };
    let at = format!("smtp://127.0.0.1:{}", smtpd.port);
    let routes = format!("routes = {{ \"opensmtpd.test\" = \"{at}\", \".opensmtpd.test\" = \"{at}\" }}");
    let site = Site::start_with(&routes, Behaviour::default());
    let mut wire = site.submit_as("ann@here.test");
    let to = ["<u@opensmtpd.test> NOTIFY=FAILURE ORCPT=rfc822;old+2Bone@here.test", "<u@sub.opensmtpd.test>"];
    assert_eq!(send(&mut wire, "<ann@here.test> RET=HDRS ENVID=QQ+2B314", &to, MAIL), "250 2.0.0 Queued");
    let arrived = wait_for(|| sink.take(), &format!("a mail: {}", smtpd.log()));
    assert_eq!((arrived.from.as_str(), &arrived.to[..]), ("ann@here.test", &["u@opensmtpd.test".to_string()][..]));
    let text = String::from_utf8_lossy(&arrived.content).into_owned();
    assert!(
        text.contains("by hop.test (OpenSMTPD) with ESMTP") && text.contains("\r\n.dot\r\n\r\ngr\u{fc}\u{df}e\r\n"),
        "{text}"
    );
    let notices = site.mails("ann@here.test", 1);
    for wanted in [
        "\r\nFinal-Recipient: rfc822; u@sub.opensmtpd.test\r\nAction: failed\r\n",
        "\r\nOriginal-Envelope-Id: QQ+314\r\n",
        "\r\nDiagnostic-Code: smtp; 550 Invalid recipient: <u@sub.opensmtpd.test>\r\n",
    ] {
        assert!(notices[0].contains(wanted), "{wanted:?} in {}", notices[0]);
    }
}

#[test]
fn opensmtpd_brings_mail_and_bounces_what_is_refused() {
    let site = Site::start_with("", Behaviour::default());
    let sink = Sink::start(Behaviour::default());
    let rules = format!(
        "action \"in\" relay host \"smtp://{}\" helo hop.test\naction \"back\" relay host \"smtp://{}\"\n\
         match from any for domain \"here.test\" action \"in\"\nmatch from local for any action \"back\"",
        site.gateway.addresses[1], sink.address
    );
    let Some(smtpd) = OpenSmtpd::start(&rules) else { return };
    let mut wire = Wire::connect(SocketAddr::from(([127, 0, 0, 1], smtpd.port)));
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    let reply = send(&mut wire, "<a@client.test>", &["<bob@here.test>", "<nobody@here.test>"], MAIL);
    assert!(reply.starts_with("250 2.0.0"), "{reply}");
    let mails = site.mails("bob@here.test", 1);
    assert!(mails[0].starts_with("Return-Path: <a@client.test>\r\nDelivered-To: bob@here.test\r\n"), "{}", mails[0]);
    assert!(mails[0].contains("Received: from hop.test ") && mails[0].ends_with("\r\n.dot\r\n\r\ngr\u{fc}\u{df}e\r\n"));
    let bounce = wait_for(|| sink.take(), &format!("a bounce: {}", smtpd.log()));
    assert_eq!((bounce.from.as_str(), &bounce.to[..]), ("", &["a@client.test".to_string()][..]));
    assert!(bounce.text().contains("nobody@here.test: 550 5.1.1 "), "{}", bounce.text());
}
