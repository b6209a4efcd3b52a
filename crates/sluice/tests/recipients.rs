//! Tests of recipients: answered at RCPT, from tables of every kind.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::harness::{Behaviour, Gateway, Sink, Wire, wait_for};

/// A gateway before `forward` that asks tables with these settings, made of these files.
fn gateway(forward: &str, tables: &str, files: &[(&str, &str)]) -> (Gateway, tempfile::TempDir) {
    gateway_speaking("smtp", forward, tables, files)
}

fn gateway_speaking(
    protocol: &str,
    forward: &str,
    tables: &str,
    files: &[(&str, &str)],
) -> (Gateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let tables = tables.replace("TABLES", &folder.path().display().to_string());
    let head = format!("[[recipients]]\nname = 'own'\n{tables}");
    (Gateway::start_with(&head, protocol, forward, "recipients = ['own']"), folder)
}

/// The reply to each recipient of a mail.
fn replies(gateway: &Gateway, recipients: &[&str]) -> Vec<String> {
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *");
    recipients.iter().map(|recipient| wire.command(&format!("RCPT TO:<{recipient}>"))).collect()
}

/// The first words of a reply: its codes.
fn codes(reply: &str) -> String {
    reply.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// Replaces a file at once.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[test]
fn an_unknown_recipient_is_refused_and_no_hop_is_asked() {
    let sink = Sink::start(Behaviour::default());
    let tables = "domains = ['mx.test']\nfiles = ['TABLES/list']\naliases = ['TABLES/aliases']";
    let files = [("list", "b@mx.test\ngone@mx.test 550 5.2.1 Moved away\n"), ("aliases", "info: b\n")];
    let (gateway, _folder) = gateway(&sink.forward(), tables, &files);
    let before = sink.commands().len();
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *
         C: EHLO x
         S: 250-*
         C: MAIL FROM:<a@client.test>
         S: 250 *
         C: RCPT TO:<nobody@mx.test>
         S: 550 5.1.1 No such recipient here (id *
         C: RCPT TO:<gone@MX.test>
         S: 550 5.2.1 Moved away (id *
         C: DATA
         S: 554 5.5.1 *",
    );
    assert!(!sink.commands()[before..].iter().any(|command| command.starts_with("MAIL")), "{:?}", sink.commands());
    wire.talk(
        "C: RCPT TO:<B+tag@mx.test>
         S: 250 *
         C: RCPT TO:<nobody@mx.test>
         S: 550 5.1.1 *
         C: RCPT TO:<Info@mx.test>
         S: 250 *
         C: RCPT TO:<postmaster>
         S: 250 *
         C: RCPT TO:<whoever@elsewhere.test>
         S: 250 *
         C: DATA
         S: 354 *
         C: From: a
         C:
         C: .
         S: 250 2.0.0 Taken",
    );
    let taken = &sink.wait(1)[0].to;
    assert_eq!(taken, &["B+tag@mx.test", "Info@mx.test", "postmaster", "whoever@elsewhere.test"]);
    let log = gateway.wait_for_log("Moved away");
    assert!(log.contains("recipient=\"unknown\" tables=\"own\""), "{log}");
}

#[test]
fn lmtp_asks_the_same_tables() {
    let sink = Sink::start(Behaviour { lmtp: true, ..Behaviour::default() });
    let forward = format!("lmtp://{}", sink.address);
    let (gateway, _folder) = gateway_speaking("lmtp", &forward, "files = ['TABLES/list']", &[("list", "@mx.test\n")]);
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 550 5.1.1 *");
    wire.talk("C: RCPT TO:<c@mx.test>\nS: 250 *");
}

#[test]
fn a_changed_file_is_taken_over_and_a_broken_one_is_not() {
    let (gateway, folder) = gateway("discard:", "files = ['TABLES/list']", &[("list", "old@mx.test\n")]);
    let list = folder.path().join("list");
    let both = || {
        let replies = replies(&gateway, &["old@mx.test", "new@mx.test"]);
        [codes(&replies[0]), codes(&replies[1])]
    };
    assert_eq!(both(), ["250 2.1.5", "550 5.1.1"]);
    replace(&list, "old@mx.test\nnew@mx.test\n");
    wait_for(|| (both() == ["250 2.1.5", "250 2.1.5"]).then_some(()), "the new recipient");
    std::fs::write(&list, "").unwrap();
    gateway.wait_for_log("it has no address");
    replace(&list, "x@y\n\"open\n");
    gateway.wait_for_log("list:2: a quote is not closed");
    assert_eq!(both(), ["250 2.1.5", "250 2.1.5"]);
    // Within a session, too.
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<late@mx.test>\nS: 550 *");
    replace(&list, "late@mx.test\n");
    wait_for(|| replies(&gateway, &["late@mx.test"])[0].starts_with("250").then_some(()), "the new recipient");
    wire.talk("C: RCPT TO:<late@mx.test>\nS: 250 *");
}

#[test]
fn a_wrong_table_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    let text = "[[recipients]]\nname = 'own'\nfiles = ['list']\n[[listener]]\nprotocol = 'smtp'\n\
                address = '127.0.0.1:0'\nforward = 'discard:'\nrecipients = ['own']\n";
    std::fs::write(&config, text).unwrap();
    let check = || {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(check().contains("list: No such file"), "{}", check());
    std::fs::write(folder.path().join("list"), "a@b\n\n@ x\n").unwrap();
    assert!(check().contains("list:3: \"@\" is no address"), "{}", check());
    std::fs::write(folder.path().join("list"), "a@b\n").unwrap();
    assert!(check().contains("1 recipients in files "), "{}", check());
}

/// How often a sink was asked for a recipient by nobody.
fn asked(sink: &Sink, recipient: &str) -> usize {
    let mut is_nobodys = false;
    let commands = sink.commands();
    let count = commands.iter().filter(|command| {
        is_nobodys = if command.starts_with("MAIL") { command.starts_with("MAIL FROM:<>") } else { is_nobodys };
        is_nobodys && command.starts_with(&format!("RCPT TO:<{recipient}>"))
    });
    count.count()
}

#[test]
fn the_next_hop_is_asked_once_and_what_it_said_is_remembered() {
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), ..Behaviour::default() });
    let (gateway, _folder) = gateway(&sink.forward(), "call_ahead = {}", &[]);
    for _ in 0..3 {
        let replies = replies(&gateway, &["nobody@mx.test", "Nobody@MX.test", "nobody2@mx.test"]);
        for reply in replies {
            assert!(reply.starts_with("550 5.1.1 No such user (id "), "{reply}");
        }
    }
    assert_eq!((asked(&sink, "nobody@mx.test"), asked(&sink, "nobody2@mx.test")), (1, 1));
    let mail = b"From: a\r\n\r\nHello\r\n";
    assert_eq!(gateway.connect().deliver(mail), "250 2.0.0 Taken");
    assert_eq!(gateway.connect().deliver(mail), "250 2.0.0 Taken");
    assert_eq!(asked(&sink, "b@mx.test"), 1);
    assert_eq!(sink.mails().len(), 2);
    // One connection for questions, one for mails, and one that asks what is offered.
    assert!(sink.clients().len() <= 3, "{:?}", sink.clients());
    let begun = sink.commands().iter().filter(|command| command.starts_with("MAIL FROM:<a@client.test>")).count();
    assert_eq!(begun, 2, "no hop was leased for those who are unknown");
}

#[test]
fn what_is_said_for_the_time_being_makes_nobody_unknown() {
    let sink = Sink::start(Behaviour { defer: Some("full"), ..Behaviour::default() });
    let (gateway, _folder) = gateway(&sink.forward(), "call_ahead = {}", &[]);
    for count in 1..=2 {
        assert!(replies(&gateway, &["full@mx.test"])[0].starts_with("450 4.2.0 Later"));
        assert_eq!(asked(&sink, "full@mx.test"), count, "it is not remembered");
    }
    let gone = format!("smtp://127.0.0.1:{}", crate::harness::free_port());
    let (gateway, _folder) = self::gateway(&gone, "call_ahead = {}", &[]);
    assert!(replies(&gateway, &["b@mx.test"])[0].starts_with("451 4.4.1 "));
    gateway.wait_for_log("recipient=\"unsure\"");
    let (passes, _folder) =
        self::gateway("discard:", &format!("unsure = 'pass'\ncall_ahead = {{ server = '{gone}' }}"), &[]);
    assert!(replies(&passes, &["b@mx.test"])[0].starts_with("250 "));
}

#[test]
fn many_ask_for_one_at_a_time_and_the_hop_is_asked_once() {
    let thinks = Duration::from_millis(500);
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), thinks, ..Behaviour::default() });
    let (gateway, _folder) = gateway(&sink.forward(), "call_ahead = {}", &[]);
    let mut wires: Vec<Wire> = (0..20).map(|_| gateway.connect()).collect();
    for wire in &mut wires {
        wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<nobody@mx.test>");
    }
    wires.iter_mut().for_each(|wire| wire.expect("550 5.1.1 *"));
    assert_eq!(asked(&sink, "nobody@mx.test"), 1);
}

#[test]
fn a_hop_that_hangs_up_on_those_who_guess_is_asked_on() {
    let behaviour = || Behaviour { refuse: Some("nobody"), refusals: Some(5), ..Behaviour::default() };
    let sink = Sink::start(behaviour());
    let (gateway, _folder) = gateway(&sink.forward(), "call_ahead = { connections_max = 1 }", &[]);
    for session in 0..4 {
        let names: Vec<String> = (0..10).map(|number| format!("nobody{session}x{number}@mx.test")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for reply in replies(&gateway, &names) {
            assert!(reply.starts_with("550 5.1.1 "), "{reply}");
        }
    }
    // And a gentle one is left before it is asked too much.
    let sink = Sink::start(Behaviour { refusals: None, ..behaviour() });
    let (gateway, _folder) = self::gateway(&sink.forward(), "call_ahead = { connections_max = 1 }", &[]);
    let before = sink.clients().len();
    let names: Vec<String> = (0..18).map(|number| format!("nobody{number}@mx.test")).collect();
    replies(&gateway, &names.iter().map(String::as_str).collect::<Vec<_>>());
    // Eight refusals for each connection. On a busy machine some end before that, since they were idle.
    let connections = sink.clients().len() - before;
    assert!((3..18).contains(&connections), "{connections}");
}

#[test]
fn tables_come_before_the_server_and_a_server_of_its_own_is_asked() {
    let sink = Sink::start(Behaviour { lmtp: true, refuse: Some("nobody"), ..Behaviour::default() });
    let tables = format!("files = ['TABLES/list']\ncall_ahead = {{ server = 'lmtp://{}' }}", sink.address);
    let (gateway, _folder) = gateway("discard:", &tables, &[("list", "nobody1@mx.test\n")]);
    let replies = replies(&gateway, &["nobody1@mx.test", "nobody2@mx.test", "tim@mx.test", "postmaster@mx.test"]);
    let codes: Vec<String> = replies.iter().map(|reply| codes(reply)).collect();
    assert_eq!(codes, ["250 2.1.5", "550 5.1.1", "250 2.1.5", "250 2.1.5"]);
    assert_eq!((asked(&sink, "nobody1@mx.test"), asked(&sink, "nobody2@mx.test")), (0, 1));
}

#[test]
fn folders_and_users_are_recipients() {
    let tables = "maildir = 'TABLES/mail/%d/%u'\npasswd = ['TABLES/passwd', 'system']";
    let (gateway, folder) = gateway("discard:", tables, &[("passwd", "anna:x:1:1::/:/bin/sh\n")]);
    let mail = folder.path().join("mail");
    std::fs::create_dir_all(mail.join("mx.test/tim")).unwrap();
    let asked = [
        "tim@mx.test",
        "TIM+x@mx.test",
        "anna@any.test",
        "root@mx.test",
        "nobody-here@mx.test",
        "../mx.test/tim@mx.test",
    ];
    let told = |asked: &[&str]| replies(&gateway, asked).iter().map(|reply| codes(reply)).collect::<Vec<_>>();
    assert_eq!(told(&asked), ["250 2.1.5", "250 2.1.5", "250 2.1.5", "250 2.1.5", "550 5.1.1", "550 5.1.1"]);
    // A file system that is not mounted makes nobody unknown.
    std::fs::rename(&mail, folder.path().join("gone")).unwrap();
    assert_eq!(told(&["anna@mx.test", "tim@mx.test"]), ["250 2.1.5", "451 4.4.3"]);
    gateway.wait_for_log("mail is not there");
}

#[test]
fn the_command_says_which_table_knows() {
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), ..Behaviour::default() });
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    std::fs::write(folder.path().join("list"), "# own\ntim@mx.test\n").unwrap();
    let text = format!(
        "[[recipients]]\nname = 'own'\ndomains = ['mx.test']\nfiles = ['list']\ncall_ahead = {{}}\n[[listener]]\n\
         protocol = 'smtp'\naddress = '127.0.0.1:25'\nforward = '{}'\nrecipients = ['own']\n",
        sink.forward()
    );
    std::fs::write(&config, text).unwrap();
    let check = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.args(["recipients", "check", "--config"]).arg(&config).args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (status, text) = check(&["Tim+x@mx.test", "x@elsewhere.test"]);
    let list = folder.path().join("list").display().to_string();
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains(&format!("Tim+x@mx.test: valid: files {list} (tim@mx.test), line 2, of \"own\"")), "{text}");
    assert!(text.contains("x@elsewhere.test: valid: no table holds its domain: the next hop decides"), "{text}");
    let (status, text) = check(&["--json", "nobody@mx.test"]);
    assert_eq!(status, Some(1), "{text}");
    let object: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&object["answer"], &object["table"]), (&"unknown".into(), &"call_ahead".into()));
    assert_eq!((&object["reply"], &object["source"]), (&"550 5.1.1 No such user".into(), &sink.forward().into()));
    assert_eq!(check(&["not an address"]).0, Some(2));
}

#[test]
fn swaks_is_told_who_is_no_recipient() {
    if !Path::new("/usr/bin/swaks").exists() {
        return eprintln!("skipped: swaks is not installed");
    }
    let sink = Sink::start(Behaviour::default());
    let (gateway, _folder) = gateway(&sink.forward(), "files = ['TABLES/list']", &[("list", "b@y.test\n")]);
    let swaks = |to: &str| {
        let mut command = Command::new("swaks");
        command.args(["--from", "a@x.test", "--to", to, "--server"]).arg(gateway.address.to_string());
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_refused, text) = swaks("c@y.test");
    assert!(!is_refused && text.contains("550 5.1.1 No such recipient here"), "{text}");
    let (is_delivered, text) = swaks("b@y.test");
    assert!(is_delivered, "{text}");
    assert_eq!(sink.wait(1)[0].to, ["b@y.test"]);
}
