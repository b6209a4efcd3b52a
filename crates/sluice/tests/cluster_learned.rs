//! Nodes that share what they have learned: greylisting, lessons, a database that is away, and failures of logins.

use std::process::{Command, Output};

use crate::cluster::{Cluster, SECRET, files};
use crate::harness::imap::ask;
use crate::harness::{Behaviour, Gateway, Sink, Wire, stuffed, wait_for};

const RULES: &str = "body MONEY /money/\nscore MONEY 3\nclear_headers\n\
                     bayes_min_spam_num 1\nbayes_min_ham_num 1\nbody BAYES_ANY eval:check_bayes('0.00', '1.00')\n\
                     score BAYES_ANY 1\ntflags BAYES_ANY learn\n";

/// Rules, ledgers of nodes, and where their mail goes.
struct Site {
    cluster: Cluster,
    folder: tempfile::TempDir,
    sink: Sink,
}

impl Site {
    fn new() -> Option<Site> {
        let cluster = Cluster::start()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("rules")).unwrap();
        std::fs::write(folder.path().join("rules/a.cf"), RULES).unwrap();
        let mail = "From: a@client.test\r\nSubject: a lesson\r\n\r\nmany words of a lesson\r\n";
        std::fs::write(folder.path().join("mail.eml"), mail).unwrap();
        Some(Site { cluster, folder, sink: Sink::start(Behaviour::default()) })
    }

    /// A node whose clients come by a proxy.
    fn node(&self, name: &str, keeping: &str, wait_ms: u64) -> Gateway {
        let text = self.cluster.text(name, &format!("synchronous = false\n{keeping}"));
        let forward = format!("forward = \"{}\"\nproxy_from = [\"127.0.0.1\"]", self.sink.forward());
        let at = self.folder.path().display();
        let spam = format!(
            "[spam]\nrules = [\"{at}/rules\"]\ngreylist = 3\ngreylist_seconds = 1\nreject = 20\n\
             [spam.bayes]\nledger = \"{at}/{name}\"\nwait_ms = {wait_ms}\n[[listener]]"
        );
        let text = text.replace("forward = \"store:\"", &forward).replacen("[[listener]]", &spam, 1);
        Gateway::with_files(&text, &files(SECRET))
    }

    fn mail(&self) -> String {
        self.folder.path().join("mail.eml").display().to_string()
    }
}

/// Reply to a client of this address at the end of a mail.
fn send(gateway: &Gateway, client: &str, words: &str) -> String {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk("S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    wire.talk("C: RCPT TO:<c@d.example>\nS: 250 *\nC: DATA\nS: 354 *");
    wire.send(&stuffed(format!("From: a@client.test\r\nSubject: {words}\r\n\r\n{words}\r\n").as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

fn learn(node: &Gateway, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.arg("learn").args(words).arg("-c").arg(node.folder.path().join("sluice.toml")).output().unwrap()
}

fn stat(node: &Gateway) -> serde_json::Value {
    let done = learn(node, &["stat", "--json"]);
    serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&done.stderr)))
}

const GREY: &str = "451 4.7.1 Greylisted";

#[test]
fn a_mail_that_came_to_one_node_and_again_to_another_passes() {
    let Some(site) = Site::new() else { return };
    let [a, b] = ["a", "b"].map(|name| site.node(name, "", 30_000));
    assert!(send(&a, "192.0.2.7", "money").starts_with(GREY), "{}", a.log());
    // It has waited when it comes to the other for the first time.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(send(&b, "192.0.2.7", "money"), "250 2.0.0 Taken", "{}", b.log());
    assert_eq!(send(&a, "192.0.2.7", "money"), "250 2.0.0 Taken", "it is known from now on");
    let (status, said) = site.cluster.command(&a, &["check"]);
    assert!(status == 0 && said.contains("ok     learned: 0 words of 0 mails"), "{said}");
    let status = || Some(site.cluster.command(&b, &["status"])).filter(|(status, _)| *status == 0);
    let said = wait_for(status, "a store").1;
    assert!(said.contains("learned: 0 words, 1 marks of greylisting"), "{said}");
}

#[test]
fn lessons_of_one_node_are_those_of_all_unless_each_keeps_its_own() {
    let Some(site) = Site::new() else { return };
    let mail = site.mail();
    for (keeping, known) in [("learned = \"node\"", 0), ("", 1)] {
        let [a, b] = ["a", "b"].map(|name| site.node(name, keeping, 30_000));
        if keeping.is_empty() {
            // It had learned before.
            a.wait_for_log("sluice learn export --ledger ");
            assert!(!b.log().contains("the cluster has learned nothing"), "{}", b.log());
        }
        let done = learn(&a, &["spam", &mail]);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "1 learned\n", "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!((stat(&a)["spam"].as_u64(), stat(&b)["spam"].as_u64()), (Some(1), Some(known)));
        let exported = |node: &Gateway| learn(node, &["export"]).stdout;
        assert_eq!(exported(&a) == exported(&b), known == 1);
        let checked = |node: &Gateway| {
            let config = node.folder.path().join("sluice.toml");
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
            command.args(["spam", "check", "--local", "--json", &mail, "--config"]).arg(config);
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let ham = site.folder.path().join("ham.eml").display().to_string();
        std::fs::write(&ham, "From: b@client.test\r\nSubject: other\r\n\r\nother text of a friend\r\n").unwrap();
        assert_eq!(learn(&a, &["ham", &ham]).stdout, b"1 learned\n");
        assert!(checked(&a).contains("BAYES_ANY"), "{}", checked(&a));
        assert_eq!(checked(&b).contains("BAYES_ANY"), known == 1, "{}", checked(&b));
        if known == 1 {
            assert_eq!(learn(&b, &["forget", &mail]).stdout, b"1 forgotten\n");
            assert_eq!(stat(&a)["spam"].as_u64(), Some(0));
        }
    }
}

#[test]
fn mail_passes_without_a_database_that_is_away() {
    let Some(mut site) = Site::new() else { return };
    let a = site.node("a", "", 300);
    wait_for(|| send(&a, "192.0.2.7", "money").starts_with(GREY).then_some(()), "the ledger");
    // A slow machine may have no connection yet at first.
    let losses = || a.log().matches("learned data unavailable").count();
    let before = losses();
    site.cluster.server.as_mut().unwrap().end();
    for _ in 0..5 {
        assert_eq!(send(&a, "192.0.2.7", "money"), "250 2.0.0 Taken");
    }
    wait_for(|| (losses() > before).then_some(()), "the log");
    site.cluster.server.as_mut().unwrap().begin();
    let client = std::cell::Cell::new(0);
    let again = || {
        client.set(client.get() + 1);
        let (net, host) = (18 + client.get() / 250, client.get() % 250);
        send(&a, &format!("198.{net}.{host}.7"), "money").starts_with(GREY).then_some(())
    };
    wait_for(again, "the ledger again");
    a.wait_for_log("learned data available again");
    let told = losses() - before;
    assert!(told <= 2, "once for questions, once for lessons: {}", a.log());
}

#[test]
fn failures_of_logins_count_at_the_owner_whatever_the_node() {
    let Some(cluster) = Cluster::start() else { return };
    let node = |name| Gateway::with_files(&cluster.text(name, "synchronous = false"), &files(SECRET));
    let a = node("a");
    cluster.wait_for_owner(&a, "a");
    let b = node("b");
    let log_in = |node: &Gateway| {
        let mut wire = Wire::connect(node.addresses[1]);
        assert!(wire.line().starts_with("* OK"));
        assert!(ask(&mut wire, "LOGIN tim wrong").status.starts_with("NO"));
    };
    log_in(&b);
    a.wait_for_log("login failed");
    log_in(&a);
    wait_for(|| (a.log().matches("login failed").count() == 2).then_some(()), "the second failure");
    assert!(!b.log().contains("login failed"), "{}", b.log());
}
