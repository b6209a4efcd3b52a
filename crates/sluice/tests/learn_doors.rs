//! Tests of learning at the doors other than SMTP, and on a full disk.

use std::fs;
use std::process::Command;

use crate::harness::{Behaviour, Gateway, Sink, Wire, stuffed, wait_for};
use crate::learn::{DOOR_RULES, MAIL, head, learn, send, site, status};
use crate::milter::Server;

const SCORED: &str = "No 4.8 tests=BAYES_99,MONEY autolearn=no autolearn_force=no";

#[test]
fn lmtp_and_milter_ask_what_was_learned() {
    for isolation in ["process", "none"] {
        let site = site(DOOR_RULES, 5);
        let site = site.path();
        learn(site, &["spam", "spam"]);
        learn(site, &["ham", "ham"]);
        let head = head(site, isolation, "");

        let sink = Sink::start(Behaviour { lmtp: true, ..Behaviour::default() });
        let gateway = Gateway::start_with(&head, "lmtp", &format!("lmtp://{}", sink.address), "");
        let mut wire = gateway.connect();
        wire.talk(
            "S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *",
        );
        wire.talk("C: DATA\nS: 354 *");
        wire.send(&stuffed(MAIL.as_bytes()));
        wire.send(b".\r\n");
        assert_eq!(wire.reply(), "250 2.0.0 Taken");
        assert_eq!(status(&sink.wait(1)[0]), format!("X-Spam-Status: {SCORED}"), "{isolation}");

        let door = "[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n";
        let gateway = Gateway::with(&format!("threads = 1\n{head}{door}"));
        let answers = Server::new(&gateway, true).message(MAIL.as_bytes(), 1_000);
        let field = ('h', format!("X-Spam-Status\0 {SCORED}\0"));
        assert!(answers.contains(&field), "{isolation}: {answers:?}");
    }
}

#[test]
fn a_full_disk_costs_no_mail_and_is_told() {
    let site = site(DOOR_RULES, 5);
    let site = site.path();
    let ledger = site.join("ledger");
    fs::create_dir(&ledger).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=200k,mode=700", "none"]).arg(&ledger).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no file system of a size may be mounted here");
    }
    let unmounted = Unmounted(ledger);
    learn(site, &["spam", "spam"]);
    learn(site, &["ham", "ham"]);
    let sink = Sink::start(Behaviour::default());
    let port = crate::harness::free_port();
    let metrics = format!("[metrics]\naddress = \"127.0.0.1:{port}\"\n");
    let head = format!("{}{metrics}", head(site, "process", "autolearn = true"));
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
    // More words than there is room for.
    let words: String =
        (0..30_000).map(|word| format!("w{word}x{}", if word % 10 == 9 { "\r\n" } else { " " })).collect();
    let large = MAIL.replace("cheap", "much").replace("winner", "more") + &words;
    assert_eq!(send(&gateway, &large), "250 2.0.0 Taken");
    gateway.wait_for_log("no room left on the disk");
    assert_eq!(send(&gateway, MAIL), "250 2.0.0 Taken");
    let found = status(&sink.wait(2)[1]);
    assert!(found.starts_with("X-Spam-Status: No 4.8 tests=BAYES_99,MONEY"), "what is there is read: {found}");
    let lost = || {
        let mut wire = Wire::connect(([127, 0, 0, 1], port).into());
        wire.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let text = String::from_utf8_lossy(&wire.rest()).into_owned();
        let line = text.lines().find(|line| line.starts_with("sluice_spam_lessons_lost_total "))?;
        line.ends_with(" 1").then_some(())
    };
    wait_for(lost, "the lesson that is lost");
    drop(gateway);
    drop(unmounted);
}

/// A mounted folder.
struct Unmounted(std::path::PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
