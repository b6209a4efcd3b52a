//! Logging in through the gateway: what passes, what does not, and over whose connection mails go.

use std::process::Command;

use crate::harness::dovecot::Dovecot;
use crate::harness::postfix::Postfix;
use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, LOGIN, PLAIN, Sink, Wire, base64, eicar, mail_with, wait_for};

const MAIL: &[u8] = b"From: a\r\n\r\nHello\r\n";
const NO_PASSWORD: [&str; 4] = [PLAIN, "c2VjcmV0", "secret", "AHRpbQ"];

fn sink(behaviour: Behaviour) -> Sink {
    let extensions = &["AUTH GSSAPI LOGIN PLAIN SCRAM-SHA-256-PLUS EXTERNAL"];
    Sink::start(Behaviour { extensions, login: true, ..behaviour })
}

/// A gateway with STARTTLS, and what clients have to trust.
fn gateway(sink: &Sink, settings: &str) -> (Gateway, Certificate) {
    front(&sink.forward(), "", settings)
}

/// A session in TLS that has said EHLO; what was offered.
fn secured(gateway: &Gateway, certificate: &Certificate) -> (Wire, String) {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: STARTTLS\nS: 220 *");
    let mut wire = wire.secure(certificate.client("mx.test"));
    let offered = wire.command("EHLO client.test");
    (wire, offered)
}

fn exchanges(sink: &Sink) -> Vec<String> {
    sink.commands().into_iter().filter(|line| !line.starts_with("EHLO") && !line.starts_with("XFORWARD")).collect()
}

#[test]
fn a_client_logs_in_to_the_next_hop_and_its_mail_goes_over_that_connection() {
    let sink = sink(Behaviour::default());
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut wire, offered) = secured(&gateway, &certificate);
    assert!(offered.contains("250-AUTH PLAIN LOGIN "), "{offered}");
    wire.talk(&format!("C: auth plain {PLAIN}\nS: 235 2.7.0 Welcome\nC: AUTH PLAIN {PLAIN}\nS: 503 5.5.1 *"));
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert!(sink.wait(2)[1].text().contains("with ESMTPSA id "), "{}", sink.mails()[1].text());
    assert!(gateway.log().contains("logged in") && gateway.log().contains("tim"), "{}", gateway.log());

    let (mut other, _) = secured(&gateway, &certificate);
    let [user, password] = LOGIN;
    other.talk(&format!(
        "C: AUTH LOGIN\nS: 334 VXNlcm5hbWU6\nC: {user}\nS: 334 UGFzc3dvcmQ6\nC: {password}\nS: 235 2.7.0 Welcome"
    ));
    assert_eq!(other.transaction(MAIL), "250 2.0.0 Taken");
    for password in NO_PASSWORD {
        assert!(!gateway.log().contains(password), "{}", gateway.log());
    }
}

#[test]
fn nothing_is_told_to_the_next_hop_in_the_clear_unless_that_is_allowed() {
    let sink = sink(Behaviour::default());
    let (gateway, _) = gateway(&sink, "auth = \"tls\"");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *");
    let offered = wire.command("EHLO x");
    assert!(offered.contains("STARTTLS") && !offered.contains("AUTH"), "{offered}");
    wire.talk(&format!("C: AUTH PLAIN {PLAIN}\nS: 538 5.7.11 *\nC: AUTH LOGIN\nS: 538 5.7.11 *"));
    assert!(!sink.commands().iter().any(|line| line.contains("AUTH")), "{:?}", sink.commands());

    let (open, _) = self::gateway(&sink, "auth = \"any\"");
    let mut wire = open.connect();
    wire.talk("S: 220 *");
    assert!(wire.command("EHLO x").contains("AUTH PLAIN LOGIN"));
    wire.talk(&format!("C: AUTH PLAIN {PLAIN}\nS: 235 *"));
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert!(sink.wait(1)[0].text().contains("with ESMTPA id "));

    let (none, certificate) = self::gateway(&sink, "");
    let (mut wire, offered) = secured(&none, &certificate);
    assert!(!offered.contains("AUTH"));
    wire.talk(&format!("C: AUTH PLAIN {PLAIN}\nS: 502 5.5.1 Command not implemented"));
}

#[test]
fn who_has_not_logged_in_gets_nothing_of_the_connection_of_one_who_has() {
    let sink = sink(Behaviour::default());
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut tim, _) = secured(&gateway, &certificate);
    tim.talk(&format!("C: AUTH PLAIN {PLAIN}\nS: 235 *"));
    assert_eq!(tim.transaction(MAIL), "250 2.0.0 Taken");
    let mut nobody = gateway.connect();
    let refused = "C: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 530 5.7.0 Log in first*";
    nobody.talk(&format!("S: 220 *\nC: EHLO x\nS: 250-*\n{refused}"));
    tim.talk("C: QUIT\nS: 221 *");
    nobody.talk(&format!("C: RSET\nS: 250 *\n{refused}"));
}

#[test]
fn when_the_hop_has_gone_nothing_is_sent_in_nobodys_name() {
    let sink = sink(Behaviour { close_at: Some("MAIL"), ..Behaviour::default() });
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut wire, _) = secured(&gateway, &certificate);
    wire.talk(&format!("C: AUTH PLAIN {PLAIN}\nS: 235 *"));
    let before = sink.clients().len();
    wire.talk("C: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 421 4.4.2 *");
    assert_eq!(wire.line(), "");
    assert_eq!(sink.clients().len(), before, "no other connection was made");
}

#[test]
fn an_exchange_is_given_up_and_begun_again() {
    let sink = sink(Behaviour::default());
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut wire, _) = secured(&gateway, &certificate);
    wire.talk("C: AUTH LOGIN\nS: 334 VXNlcm5hbWU6\nC: *\nS: 501 5.7.0 Given up");
    wire.talk("C: AUTH LOGIN dGlt\nS: 334 UGFzc3dvcmQ6\nC: no Base64!\nS: 501 5.7.0 Given up");
    wire.talk("C: AUTH PLAIN AHRpbQBhAA==\nS: 535 5.7.8 Wrong");
    wire.talk("C: AUTH PLAIN a b\nS: 501 5.5.4 *\nC: AUTH PLAIN !\nS: 501 5.5.2 *\nC: AUTH GSSAPI\nS: 504 5.5.4 *");
    wire.talk(&format!("C: AUTH PLAIN\nS: 334*\nC: {PLAIN}\nS: 235 *"));
    assert_eq!(wire.transaction(MAIL), "250 2.0.0 Taken");
    assert!(!exchanges(&sink).iter().any(|line| line.contains('!')), "{:?}", sink.commands());
}

#[test]
fn responses_without_end_are_given_up_and_the_hop_sees_none_of_them() {
    let sink = sink(Behaviour::default());
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut wire, _) = secured(&gateway, &certificate);
    let long = "A".repeat(20_000);
    wire.talk(&format!("C: AUTH PLAIN {long}\nS: 500 5.5.2 Line too long"));
    wire.talk(&format!("C: AUTH LOGIN\nS: 334 *\nC: {long}\nS: 501 5.7.0 Given up"));
    wire.talk("C: NOOP\nS: 250 *");
    assert!(sink.commands().iter().all(|line| line.len() < 1_000));
    // As long as RFC 4954 allows passes.
    let most = "A".repeat(12_288);
    wire.talk(&format!("C: AUTH PLAIN\nS: 334*\nC: {most}\nS: 535 5.7.8 Wrong"));
    assert!(sink.commands().contains(&most));
}

#[test]
fn what_is_sent_behind_a_login_is_heard_after_it() {
    let sink = sink(Behaviour::default());
    let (gateway, certificate) = gateway(&sink, "auth = \"tls\"");
    let (mut wire, _) = secured(&gateway, &certificate);
    let envelope = "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n";
    wire.send(format!("AUTH PLAIN {PLAIN}\r\n{envelope}RSET\r\n").as_bytes());
    wire.talk("S: 235 *\nS: 250 *\nS: 250 *\nS: 250 *");
    let (mut wrong, _) = secured(&gateway, &certificate);
    wrong.send(format!("AUTH PLAIN AAAA\r\n{envelope}").as_bytes());
    wrong.talk("S: 535 *\nS: 250 *\nS: 530 *");
    let (mut within, _) = secured(&gateway, &certificate);
    within.talk(&format!(
        "C: MAIL FROM:<a@b>\nS: 250 *\nC: AUTH PLAIN {PLAIN}\nS: 503 5.5.1 Not allowed during a mail transaction"
    ));
    // A password behind a mechanism that is not offered is no command, and stands in no log.
    let (mut hasty, _) = secured(&gateway, &certificate);
    hasty.send(format!("AUTH CRAM-MD5\r\n{PLAIN}\r\n").as_bytes());
    hasty.talk("S: 504 *\nS: 500 *");
    for password in NO_PASSWORD {
        assert!(!gateway.log().contains(password), "{}", gateway.log());
    }
}

#[test]
fn dovecot_lets_in_by_each_mechanism_through_the_gateway() {
    let sink = Sink::start(Behaviour::default());
    let Some(dovecot) = Dovecot::with_submission(sink.address) else { return };
    let Some(submission) = dovecot.submission else { return };
    let (gateway, _) = front(&format!("smtp://{submission}"), "", "auth = \"tls\"");
    for (count, mechanism) in ["PLAIN", "LOGIN", "CRAM-MD5"].into_iter().enumerate() {
        let said = swaks(&gateway, mechanism, "secret", "b@x.test");
        assert!(said.contains("235 2.7.0"), "{mechanism}: {said}\n{}\n{}", gateway.log(), dovecot.log());
        sink.wait(count + 1);
    }
    let said = swaks(&gateway, "PLAIN", "wrong", "b@x.test");
    assert!(said.contains("535 5.7.8"), "{said}");
    assert_eq!(sink.mails().len(), 3);
}

#[test]
fn postfix_takes_mail_from_those_whom_dovecot_vouches_for() {
    if !std::path::Path::new("/usr/sbin/postfix").exists() {
        return eprintln!("skipped: postfix is not installed");
    }
    let Some(dovecot) = Dovecot::start() else { return };
    let hop = Certificate::of("hop.test");
    let folder = tempfile::tempdir().unwrap();
    hop.store(folder.path(), "hop");
    let at = folder.path().display();
    let postfix = Postfix::start(&format!(
        "mynetworks = 192.0.2.1/32\nsmtpd_sasl_auth_enable = yes\nsmtpd_sasl_type = dovecot\n\
         smtpd_sasl_path = inet:{}\nsmtpd_sasl_authenticated_header = yes\nsmtpd_tls_security_level = may\n\
         smtpd_tls_auth_only = yes\nsmtpd_tls_cert_file = {at}/hop.crt\nsmtpd_tls_key_file = {at}/hop.key\n\
         smtpd_relay_restrictions =\nsmtpd_recipient_restrictions = permit_sasl_authenticated, reject",
        dovecot.auth,
    ));
    let (gateway, certificate) = front(
        &format!("smtp://127.0.0.1:{}", postfix.port),
        &format!("[tls]\nauthorities = \"{at}/hop.crt\"\n"),
        "auth = \"tls\"\nforward_tls = \"require\"\nforward_verify = \"name:hop.test\"",
    );
    let delivered = || crate::harness::files(&postfix.folder.path().join("mail/box/new")).len();
    let log = || std::fs::read_to_string(postfix.folder.path().join("log")).unwrap_or_default();
    for (count, mechanism) in ["PLAIN", "LOGIN", "CRAM-MD5"].into_iter().enumerate() {
        let said = swaks(&gateway, mechanism, "secret", "b@mx.test");
        assert!(said.contains("235 2.7.0"), "{mechanism}: {said}\n{}\n{}", gateway.log(), log());
        wait_for(|| (delivered() == count + 1).then_some(()), "delivery");
    }
    let mail = String::from_utf8(postfix.mail().unwrap()).unwrap();
    assert!(mail.contains("(Authenticated sender: tim)") && mail.contains("with ESMTPSA id "), "{mail}");
    let said = swaks(&gateway, "PLAIN", "wrong", "b@mx.test");
    assert!(said.contains("535 5.7.8"), "{said}");
    let (mut nobody, _) = secured(&gateway, &certificate);
    let refusal = nobody.command("MAIL FROM:<a@b>") + &nobody.command("RCPT TO:<b@mx.test>");
    assert!(refusal.contains("554 5.7.1"), "{refusal}");
    // Who has logged in is inspected all the same.
    let (mut tim, _) = secured(&gateway, &certificate);
    tim.talk(&format!("C: AUTH PLAIN {}\nS: 235 *", base64(b"\0tim\0secret").trim_end()));
    let reply = tim.transaction(&mail_with("base64", "eicar.com", &base64(&eicar())));
    assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"), "{reply}");
    assert_eq!(delivered(), 3);
}

/// A gateway with STARTTLS, and what clients have to trust.
fn front(forward: &str, head: &str, settings: &str) -> (Gateway, Certificate) {
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("{head}[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n");
    let settings = format!("tls = \"offer\"\n{settings}");
    (Gateway::start_with(&head, "smtp", forward, &settings).owning(folder), certificate)
}

fn swaks(gateway: &Gateway, mechanism: &str, password: &str, to: &str) -> String {
    let mut command = Command::new("swaks");
    command.args([
        "--timeout",
        "90",
        "--server",
        &gateway.address.to_string(),
        "--tls",
        "--auth",
        mechanism,
        "--auth-user",
        "tim",
    ]);
    let sent = command.args(["--auth-password", password, "--from", "tim@x.test", "--to", to]).output();
    String::from_utf8_lossy(&sent.unwrap().stdout).into_owned()
}
