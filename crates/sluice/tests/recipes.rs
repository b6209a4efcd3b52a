//! The recipes of docs/start/recipes.md, each with the real mail server.

use std::net::SocketAddr;

use crate::harness::exim::Exim;
use crate::harness::postfix::Postfix;
use crate::harness::{Gateway, Wire, base64, eicar, free_port, mail_with, wait_for};

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

fn clean() -> Vec<u8> {
    mail_with("7bit", "a.txt", "Hello")
}

fn deliver(port: u16, mail: &[u8]) -> String {
    Wire::connect(SocketAddr::from(([127, 0, 0, 1], port))).deliver(mail)
}

fn postfix_is_there() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    let there = is_root && std::path::Path::new("/usr/sbin/postfix").exists();
    if !there {
        eprintln!("skipped: postfix is not installed, or we are not root");
    }
    there
}

#[test]
fn before_the_queue_of_postfix() {
    if !postfix_is_there() {
        return;
    }
    let back = free_port();
    let gateway =
        Gateway::start(&format!("smtp://127.0.0.1:{back}"), "xforward_from = [\"127.0.0.1\"]\nreceived = false");
    let postfix = Postfix::with(
        &format!("smtpd_proxy_filter = {}", gateway.address),
        &format!(
            "127.0.0.1:{back} inet n - n - - smtpd\n -o smtpd_proxy_filter=\n -o smtpd_authorized_xforward_hosts=127.0.0.0/8\n \
             -o smtpd_client_restrictions=\n -o mynetworks=127.0.0.0/8\n"
        ),
    );
    let reply = deliver(postfix.port, &infected());
    assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"), "{reply}");
    let reply = deliver(postfix.port, &clean());
    assert!(reply.starts_with("250 2.0.0 Ok"), "{reply}");
    let mail = String::from_utf8(wait_for(|| postfix.mail(), "delivery")).unwrap();
    assert!(mail.contains("from client.test"), "{mail}");
}

#[test]
fn behind_the_queue_of_postfix() {
    if !postfix_is_there() {
        return;
    }
    let back = free_port();
    let gateway = Gateway::start(
        &format!("smtp://127.0.0.1:{back}"),
        "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"\nxforward_from = [\"127.0.0.1\"]",
    );
    let postfix = Postfix::with(
        &format!("content_filter = smtp:[127.0.0.1]:{}\nsmtp_send_xforward_command = yes", gateway.address.port()),
        &format!(
            "127.0.0.1:{back} inet n - n - - smtpd\n -o content_filter=\n -o receive_override_options=no_unknown_recipient_checks,no_milters\n \
             -o smtpd_authorized_xforward_hosts=127.0.0.0/8\n -o mynetworks=127.0.0.0/8\n"
        ),
    );
    assert!(deliver(postfix.port, &infected()).starts_with("250 2.0.0 Ok"), "it is taken, and looked at later");
    wait_for(|| (gateway.files("quarantine").len() == 2).then_some(()), "the quarantine");
    assert!(deliver(postfix.port, &clean()).starts_with("250 2.0.0 Ok"));
    let mail = String::from_utf8(wait_for(|| postfix.mail(), "delivery")).unwrap();
    assert!(mail.contains("Hello") && mail.contains("(Sluice) with ESMTP"), "{mail}");
    assert_eq!(crate::harness::files(&postfix.folder.path().join("mail/box/new")).len(), 1);
}

#[test]
fn in_front_of_exim() {
    let inner = free_port();
    let Some(exim) = Exim::start(&[inner], "hosts_proxy = 127.0.0.1", "", "") else { return };
    let gateway = Gateway::start(
        &format!("smtp://127.0.0.1:{inner}"),
        "forward_proxy = \"v2\"\nreceived = false\nxclient_from = [\"127.0.0.1\"]",
    );
    assert!(gateway.connect().deliver(&infected()).starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"));
    let mut wire = gateway.connect();
    // Somebody from elsewhere.
    wire.talk("S: 220 *\nC: XCLIENT ADDR=192.0.2.9 PORT=4711\nS: 220 *\nC: EHLO client.test\nS: 250-*");
    let reply = wire.transaction(&clean());
    // Of several lines, for content in chunks.
    assert!(reply.starts_with("250"), "{reply} {}", exim.log());
    let mail = String::from_utf8(wait_for(|| exim.mail(), "delivery")).unwrap();
    assert!(mail.contains("[192.0.2.9]"), "{mail}");
}

#[test]
fn behind_the_queue_of_exim() {
    let (outer, inner) = (free_port(), free_port());
    let gateway = Gateway::start(
        &format!("smtp://127.0.0.1:{inner}"),
        "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"",
    );
    let router = format!(
        "sluice:\n  driver = manualroute\n  condition = ${{if eq{{$received_port}}{{{inner}}}{{no}}{{yes}}}}\n  \
         transport = sluice\n  route_list = * 127.0.0.1 byname\n  self = send\n"
    );
    let port = gateway.address.port();
    let transport = format!("sluice:\n  driver = smtp\n  port = {port}\n  allow_localhost\n  hosts_avoid_tls = *\n");
    let Some(exim) = Exim::start(&[outer, inner], "", &router, &transport) else { return };
    let reply = deliver(outer, &infected());
    assert!(reply.starts_with("250 "), "it is taken, and looked at later: {reply}");
    wait_for(|| (gateway.files("quarantine").len() == 2).then_some(()), "the quarantine");
    assert!(deliver(outer, &clean()).starts_with("250 "));
    let mail = String::from_utf8(wait_for(|| exim.mail(), &format!("delivery {}", exim.log()))).unwrap();
    assert!(mail.contains("Hello") && mail.contains("(Sluice) with ESMTP"), "{mail}");
}
