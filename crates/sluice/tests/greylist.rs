//! Greylisting: who has to come again, and who need not.

use std::fs;
use std::path::Path;

use crate::harness::{Behaviour, Gateway, Sink, stuffed, wait_for};
use crate::milter::Server;

const RULES: &str = "body MONEY /money/\nscore MONEY 3\nbody MUCH /much/\nscore MUCH 20\nheader RCVD_IN_DNSWL_MED Subject =~ /known/\n\
                     score RCVD_IN_DNSWL_MED -0.1\nclear_headers\n";
const BEHIND_PROXY: &str = "proxy_from = [\"127.0.0.1\"]\ntrust = \"off\"";

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("rules")).unwrap();
    fs::write(folder.path().join("rules/a.cf"), RULES).unwrap();
    folder
}

fn head(site: &Path, isolation: &str, spam: &str) -> String {
    format!(
        "isolation = \"{isolation}\"\n[spam]\nrules = [\"{0}/rules\"]\n{spam}\n[spam.bayes]\nledger = \"{0}/ledger\"\nwait_ms = 30000\n",
        site.display()
    )
}

/// What a client of this address is told at the end of a mail.
fn send(gateway: &Gateway, client: &str, to: &[&str], mail: &str) -> String {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk("S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    to.iter().for_each(|to| assert!(wire.command(&format!("RCPT TO:<{to}>")).starts_with("250 ")));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

fn mail(words: &str) -> String {
    format!("From: a@client.test\r\nSubject: {words}\r\n\r\n{words}\r\n")
}

const GREY: &str = "451 4.7.1 Greylisted, try again in a few minutes (id ";

#[test]
fn a_doubtful_mail_of_a_stranger_has_to_come_again() {
    for isolation in ["process", "none"] {
        let (site, sink) = (site(), Sink::start(Behaviour::default()));
        let head = head(site.path(), isolation, "greylist = 3\ngreylist_seconds = 1\nreject = 20");
        let rule = "[[listener.rule]]\nrecipient = [\"abuse@*\"]\nspam = { greylist = 10 }\n";
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), &format!("{BEHIND_PROXY}\n{rule}"));
        let (to, money) = (&["c@d.example"][..], mail("money"));
        assert!(send(&gateway, "192.0.2.7", to, &money).starts_with(GREY), "{isolation}");
        gateway.wait_for_log("Greylisted");
        // The next server of the same prefix brings it once it may.
        let again = || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            (send(&gateway, "192.0.2.8", to, &money) == "250 2.0.0 Taken").then_some(())
        };
        wait_for(again, "its time");
        assert_eq!(send(&gateway, "192.0.2.9", to, &money), "250 2.0.0 Taken", "it is known from now on");
        let others = &["c@d.example", "e@d.example"];
        assert!(send(&gateway, "192.0.2.7", others, &money).starts_with(GREY), "one of them is not");
        assert!(send(&gateway, "192.0.3.7", to, &money).starts_with(GREY), "nor is another prefix");
        assert_eq!(send(&gateway, "192.0.4.7", &["abuse@d.example"], &money), "250 2.0.0 Taken", "as its rule says");
        assert_eq!(send(&gateway, "192.0.4.7", to, &mail("news")), "250 2.0.0 Taken", "nothing is wrong with it");
    }
}

#[test]
fn who_is_known_otherwise_need_not_come_again_and_spam_is_refused_at_once() {
    let (site, sink) = (site(), Sink::start(Behaviour::default()));
    let head = head(site.path(), "process", "greylist = 2.5\nreject = 20");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    let to = &["c@d.example"][..];
    assert_eq!(send(&gateway, "127.0.0.1", to, &mail("money")), "250 2.0.0 Taken", "this machine");
    assert_eq!(send(&gateway, "192.0.2.7", to, &mail("known money")), "250 2.0.0 Taken", "a list has it");
    assert!(send(&gateway, "192.0.2.7", to, &mail("much")).starts_with("554 5.7.1"));
    assert!(send(&gateway, "192.0.2.7", to, &mail("money")).starts_with(GREY));
    drop(gateway);
    // Where nobody can say who has waited, nobody has to.
    for name in ["learned.db-wal", "learned.db-shm"] {
        let _ = fs::remove_file(site.path().join("ledger").join(name));
    }
    fs::write(site.path().join("ledger/learned.db"), "no database, whatever else it is").unwrap();
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    assert_eq!(send(&gateway, "192.0.2.7", to, &mail("money")), "250 2.0.0 Taken");
}

#[test]
fn a_mail_server_is_told_by_milter() {
    let site = site();
    let head = head(site.path(), "process", "greylist = 3\ngreylist_seconds = 1");
    let gateway =
        Gateway::with(&format!("threads = 1\n{head}[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n"));
    let mut server = Server::new(&gateway, true);
    let mut told = |words: &str| server.message(mail(words).as_bytes(), 1_000);
    let (letter, text) = told("money").pop().unwrap();
    assert!(letter == 'y' && text.starts_with(GREY), "{letter} {text}");
    assert_eq!(told("news").pop().unwrap().0, 'a');
    let again = || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        (told("money").pop().unwrap().0 == 'a').then_some(())
    };
    wait_for(again, "its time");
}
