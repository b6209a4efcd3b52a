//! `[store]`: mail that a gateway inspects and keeps, and gives out itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::harness::imap::{Answer, ask};
use crate::harness::{
    Behaviour, Gateway, Sink, Wire, base64, children_of, eicar, free_port, is_running, mail_with, stuffed, wait_for,
};
use crate::learn;

/// A folder with accounts `ann` and `bob` with the password `secret`; `bob` may have 4 KiB.
fn accounts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("accounts");
    for (name, more) in [("ann", &[][..]), ("bob", &["--quota", "4096"])] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["account", "--accounts", path.to_str().unwrap(), "add"]).args(more).arg(name);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
    folder
}

struct Site {
    gateway: Gateway,
    lmtp: SocketAddr,
    imap: SocketAddr,
    _accounts: tempfile::TempDir,
}

impl Site {
    /// SMTP and LMTP in, IMAP out.
    fn start() -> Site {
        Site::start_with("")
    }

    /// The same with some tables in front.
    fn start_with(head: &str) -> Site {
        let accounts = accounts();
        // The port stays over restarts.
        let port = free_port();
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n{head}[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\n\
             accounts = \"{}/accounts\"\nimap = [\"127.0.0.1:{port}\"]\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n\
             [[listener]]\nprotocol = \"lmtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
            accounts.path().display()
        ));
        let (lmtp, imap) = (gateway.addresses[1], gateway.addresses[2]);
        assert_eq!(imap.port(), port);
        Site { gateway, lmtp, imap, _accounts: accounts }
    }

    fn smtp(&self) -> Wire {
        let mut wire = self.gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        wire
    }

    /// A session of a user.
    fn imap(&self, name: &str) -> Wire {
        let mut wire = Wire::connect(self.imap);
        assert!(wire.line().starts_with("* OK"));
        assert!(ask(&mut wire, &format!("LOGIN {name} secret")).status.starts_with("OK"));
        wire
    }

    /// Messages of a mailbox, whole.
    fn mails(&self, name: &str) -> Vec<String> {
        let mut wire = self.imap(name);
        assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
        let Answer { literals, .. } = ask(&mut wire, "UID FETCH 1:* BODY.PEEK[]");
        literals.iter().map(|mail| String::from_utf8_lossy(mail).into_owned()).collect()
    }
}

/// Sends a mail; the reply to each RCPT, and those to the content.
fn send(wire: &mut Wire, to: &[&str], mail: &[u8], replies: usize) -> (Vec<String>, Vec<String>) {
    assert!(wire.command(&format!("MAIL FROM:<a@client.test> SIZE={}", mail.len())).starts_with("250"));
    let answers: Vec<String> = to.iter().map(|to| wire.command(&format!("RCPT TO:<{to}>"))).collect();
    if answers.iter().all(|answer| !answer.starts_with("250")) {
        wire.command("RSET");
        return (answers, Vec::new());
    }
    assert!(wire.command("DATA").starts_with("354"));
    wire.send(&stuffed(mail));
    wire.send(b".\r\n");
    (answers, (0..replies).map(|_| wire.reply()).collect())
}

fn mail(subject: &str, length: usize) -> Vec<u8> {
    format!("From: a@client.test\r\nSubject: {subject}\r\n\r\n{}\r\n", "x".repeat(length)).into_bytes()
}

#[test]
fn an_inspected_mail_is_stored_once_for_all_and_can_be_read() {
    let site = Site::start();
    let mut wire = site.smtp();
    let (answers, ends) = send(&mut wire, &["nobody@mx.test", "ann@mx.test", "bob@mx.test"], &mail("both", 10), 1);
    assert!(answers[0].starts_with("550 5.1.1"), "{answers:?}");
    assert!(ends[0].starts_with("250 "), "{ends:?}");
    for name in ["ann", "bob"] {
        let mails = site.mails(name);
        assert_eq!(mails.len(), 1, "{mails:?}");
        assert!(mails[0].starts_with("Return-Path: <a@client.test>\r\nReceived: from "), "{}", mails[0]);
        assert!(mails[0].ends_with("Subject: both\r\n\r\nxxxxxxxxxx\r\n"), "{}", mails[0]);
        assert_eq!(mails[0].matches("Received: ").count(), 1, "{}", mails[0]);
    }
    let (_, ends) = send(&mut wire, &["ann+x@mx.test"], &mail("one", 10), 1);
    assert!(ends[0].starts_with("250 "), "{ends:?}");
    let wanted = "Return-Path: <a@client.test>\r\nDelivered-To: ann+x@mx.test\r\nReceived: ";
    assert!(site.mails("ann")[1].starts_with(wanted), "{:?}", site.mails("ann"));
    // A virus is not stored.
    let infected = mail_with("base64", "eicar.com", &base64(&eicar()));
    let (_, ends) = send(&mut wire, &["ann@mx.test"], &infected, 1);
    assert!(ends[0].starts_with("554 "), "{ends:?}");
    assert_eq!((site.mails("ann").len(), site.mails("bob").len()), (2, 1));
}

#[test]
fn who_has_no_room_is_deferred_and_others_have_their_mail() {
    let site = Site::start();
    let mut wire = site.smtp();
    // The size is announced: at RCPT.
    let (answers, ends) = send(&mut wire, &["bob@mx.test", "ann@mx.test"], &mail("announced", 5_000), 1);
    assert!(answers[0].starts_with("452 4.2.2") && answers[1].starts_with("250"), "{answers:?}");
    assert!(ends[0].starts_with("250 "), "{ends:?}");
    // It is not: by SMTP nobody has it, by LMTP who has room.
    let unannounced = |wire: &mut Wire| {
        assert!(wire.command("MAIL FROM:<a@client.test>").starts_with("250"));
        wire.talk("C: RCPT TO:<bob@mx.test>\nS: 250 *\nC: RCPT TO:<ann@mx.test>\nS: 250 *\nC: DATA\nS: 354 *");
        wire.send(&stuffed(&mail("large", 5_000)));
        wire.send(b".\r\n");
        wire.reply()
    };
    let reply = unannounced(&mut wire);
    assert!(reply.starts_with("452 4.2.2"), "{reply}");
    assert_eq!((site.mails("ann").len(), site.mails("bob").len()), (1, 0));
    let mut wire = Wire::connect(site.lmtp);
    wire.talk("S: 220 *\nC: LHLO client.test\nS: 250-*");
    let replies = [unannounced(&mut wire), wire.reply()];
    assert!(replies[0].starts_with("452 4.2.2") && replies[1].starts_with("250 "), "{replies:?}");
    assert_eq!((site.mails("ann").len(), site.mails("bob").len()), (2, 0));
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_a_handover() {
    let site = Site::start();
    let end = send(&mut site.smtp(), &["ann@mx.test"], &mail("before", 10), 1).1;
    assert!(end[0].starts_with("250 "), "{end:?}");
    // At once, and without a chance to close anything.
    let before = site.gateway.pid();
    assert!(Command::new("kill").args(["-KILL", &before.to_string()]).status().unwrap().success());
    wait_for(|| (site.gateway.pid() != before).then_some(()), "another edge");
    assert_eq!(site.mails("ann").len(), 1);
    let before = site.gateway.pid();
    site.gateway.signal("USR2");
    wait_for(|| (site.gateway.pid() != before).then_some(()), "the next edge");
    site.gateway.wait_for_log("draining");
    // Mails wait for the store that the one before closes.
    let end = send(&mut site.smtp(), &["ann@mx.test"], &mail("after", 10), 1).1;
    assert!(end[0].starts_with("250 "), "{end:?}");
    assert_eq!(site.mails("ann").len(), 2);
    // A reload that changes the store is taken over by another process, which waits for the store.
    site.gateway.signal("HUP");
    site.gateway.wait_for_log("reloaded");
    let config = site.gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("size = \"64M\"", "size = \"65M\"")).unwrap();
    site.gateway.signal("HUP");
    wait_for(|| (site.gateway.log().matches("draining").count() == 2).then_some(()), "the second process to drain");
    let (answers, end) = send(&mut site.smtp(), &["ann@mx.test"], &mail("later", 10), 1);
    assert!(end.first().is_some_and(|end| end.starts_with("250 ")), "{answers:?} {end:?}");
    assert_eq!(site.mails("ann").len(), 3);
}

#[test]
fn a_store_that_changes_hands_refuses_no_mail() {
    let site = Site::start();
    let deliver = |wire: &mut Wire| {
        let (answers, ends) = send(wire, &["ann@mx.test"], &mail("x", 10), 1);
        assert!(ends.first().is_some_and(|end| end.starts_with("250 ")), "{answers:?} {ends:?}");
    };
    let mut kept = site.smtp();
    deliver(&mut kept);
    let (before, stop) = (site.gateway.pid(), AtomicBool::new(false));
    let count: usize = std::thread::scope(|scope| {
        let flow = || (0..).take_while(|_| !stop.load(Relaxed)).inspect(|_| deliver(&mut site.smtp())).count();
        let senders: Vec<_> = (0..4).map(|_| scope.spawn(flow)).collect();
        site.gateway.signal("USR2");
        wait_for(|| (site.gateway.pid() != before).then_some(()), "the next edge");
        site.gateway.wait_for_log("the store is closed");
        // The session stays with the edge before, and its mails go where the store is now.
        deliver(&mut kept);
        deliver(&mut kept);
        assert!(is_running(before));
        stop.store(true, Relaxed);
        senders.into_iter().map(|sender| sender.join().unwrap()).sum()
    });
    assert!(count > 0);
    assert_eq!(site.mails("ann").len(), count + 3);
}

#[test]
fn a_mail_is_found_and_taken_out_of_all_mailboxes_while_they_are_open() {
    let site = Site::start();
    let mut wire = site.smtp();
    let wanted = b"Message-ID: <bad@client.test>\r\nSubject: bad\r\n\r\nx\r\n";
    assert!(send(&mut wire, &["ann@mx.test", "bob@mx.test"], wanted, 1).1[0].starts_with("250 "));
    assert!(send(&mut wire, &["ann@mx.test"], &mail("good", 10), 1).1[0].starts_with("250 "));
    let volume = site.gateway.folder.path().join("store/mail");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.args(words).arg("bad@client.test").arg("--store").arg(&volume).output().unwrap();
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), format!("{out}{error}"))
    };
    assert_eq!(run(&["who"]), (Some(0), "ann\tINBOX\t1\nbob\tINBOX\t1\n".into()));
    // Nothing is done that was not said twice.
    let (code, said) = run(&["recall"]);
    assert!(code == Some(0) && said.contains("2 places: would be recalled with --yes"), "{said}");
    assert_eq!((site.mails("ann").len(), site.mails("bob").len()), (2, 1));
    // Who reads it now hears that it is gone.
    let mut reader = Wire::connect(site.imap);
    reader.line();
    ask(&mut reader, "LOGIN bob secret");
    ask(&mut reader, "SELECT INBOX");
    let (code, said) = run(&["recall", "--yes", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(code == Some(0) && told["recalled"] == true && told["places"].as_array().unwrap().len() == 2, "{said}");
    assert!(ask(&mut reader, "NOOP").lines.iter().any(|line| line == "* 1 EXPUNGE"));
    assert_eq!((site.mails("ann").len(), site.mails("bob").len()), (1, 0));
    assert_eq!(run(&["who"]).0, Some(1));
    let audit = std::fs::read_to_string(volume.with_extension("audit")).unwrap();
    let noted: serde_json::Value = serde_json::from_str(audit.trim_end()).unwrap();
    assert!(noted["recalled"] == "bad@client.test" && noted["places"][1]["account"] == "bob", "{audit}");
    // And without a server.
    drop(reader);
    site.gateway.signal("TERM");
    wait_for(|| (!crate::harness::is_running(site.gateway.supervisor())).then_some(()), "the gateway to end");
    assert_eq!(run(&["who"]).0, Some(1));
}

#[test]
fn without_a_configuration_there_is_a_mailbox_whose_password_is_printed() {
    // Its ports are always the same, so it is on a machine of its own.
    let alone = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).status();
    if !alone.is_ok_and(|done| done.success()) {
        return eprintln!("skipped: no network namespaces for us");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "ip link set lo up && exec \"$0\" serve --allow-root";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", script, env!("CARGO_BIN_EXE_sluice")]).current_dir(folder.path());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    while !said.contains("Ctrl-C") {
        assert!(output.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let curl = said.lines().find(|line| line.trim_start().starts_with("curl ")).unwrap().trim().to_owned();
    let pid = child.id().to_string();
    let within = |script: &str| {
        let output = Command::new("nsenter").args(["--net", "--target", &pid, "sh", "-c", script]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let sent = within(
        "printf 'Subject: hello\\n\\nIt works.\\n' | curl -sS -T - smtp://127.0.0.1:2525 \
         --mail-from you@example.org --mail-rcpt me@example.org",
    );
    let read = within(&format!("{curl} -sS"));
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(read.contains("Return-Path: <you@example.org>") && read.contains("It works."), "{said}{sent}{read}{rest}");
}

const SCRIPT: &str = r#"require ["fileinto", "mailbox", "vacation"];
if header :contains "subject" "file" { fileinto :create "Lists/dev"; }
elsif header :contains "subject" "away" { vacation :addresses "ann@mx.test" "I am away."; }
elsif header :contains "subject" "on" { redirect "ann@elsewhere.test"; }"#;

#[test]
fn clients_that_do_not_log_in_keep_nobody_waiting_and_are_counted() {
    let accounts = accounts();
    let (imap, pop3, sieve, lmtp, metrics) = (free_port(), free_port(), free_port(), free_port(), free_port());
    let _gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[metrics]\naddress = \"127.0.0.1:{metrics}\"\n\
         [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nsessions_max = 40\n\
         accounts = \"{}/accounts\"\nimap = [\"127.0.0.1:{imap}\"]\npop3 = [\"127.0.0.1:{pop3}\"]\n\
         sieve = [\"127.0.0.1:{sieve}\"]\nlmtp = [\"127.0.0.1:{lmtp}\"]\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
        accounts.path().display()
    ));
    let at = |port: u16| Wire::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    let mut there = at(imap);
    assert!(there.line().starts_with("* OK"));
    assert!(ask(&mut there, "LOGIN ann secret").status.starts_with("OK"));
    for (port, greeting, goodbye) in [(imap, "* OK", "* BYE"), (pop3, "+OK", "-ERR"), (sieve, "\"IMPL", "BYE")] {
        let mut held: Vec<Wire> = (0..60).map(|_| at(port)).collect();
        for wire in &mut held {
            assert!(wire.line().starts_with(greeting));
        }
        let mut oldest = held.swap_remove(0);
        let told = wait_for(|| Some(oldest.line()).filter(|line| line.starts_with(goodbye)), "its end");
        assert!(told.starts_with(goodbye), "{told}");
    }
    let mut held: Vec<Wire> = (0..60).map(|_| at(lmtp)).collect();
    let refused = held.iter_mut().filter_map(|wire| Some(wire.line()).filter(|line| line.starts_with("421 4.7.0")));
    assert!(refused.count() >= 50, "none who delivers is cut off");
    assert!(ask(&mut there, "NOOP").status.starts_with("OK"));
    let mut scrape = at(metrics);
    scrape.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut text = String::new();
    while !text.contains("sluice_store_delivery_seconds_count") {
        text += &(scrape.line() + "\n");
    }
    for line in ["sluice_store_logins_total 1", "sluice_store_sessions_total{protocol=\"imap\"} 61"] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
}

#[test]
fn scripts_that_users_put_file_answer_and_send_on_even_if_the_relay_is_down_for_a_while() {
    let accounts = accounts();
    let before = "require \"fileinto\"; if header :contains \"subject\" \"site\" { fileinto \"Archive\"; }";
    std::fs::write(accounts.path().join("before"), before).unwrap();
    let (sieve, imap, relay) = (free_port(), free_port(), free_port());
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\n\
         accounts = \"{0}/accounts\"\nimap = [\"127.0.0.1:{imap}\"]\nsieve = [\"127.0.0.1:{sieve}\"]\n\
         relay = \"smtp://127.0.0.1:{relay}\"\nsieve_before = \"{0}/before\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
        accounts.path().display()
    ));
    let at = |port: u16| Wire::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    let mut wire = at(sieve);
    while wire.line().starts_with('"') {}
    let login = base64(b"\0ann\0secret");
    wire.send(format!("AUTHENTICATE \"PLAIN\" \"{}\"\r\n", login.trim_end()).as_bytes());
    assert_eq!(wire.line(), "OK \"Logged in\"");
    wire.send(format!("PUTSCRIPT \"main\" {{{}+}}\r\n{SCRIPT}\r\nSETACTIVE \"main\"\r\n", SCRIPT.len()).as_bytes());
    for _ in 0..2 {
        let reply = wire.line();
        assert!(reply.starts_with("OK"), "{reply}");
    }
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    for subject in ["file", "away", "go on", "file of the site"] {
        let mail = format!("From: a@client.test\r\nTo: ann@mx.test\r\nSubject: {subject}\r\n\r\nbody\r\n");
        assert!(send(&mut wire, &["ann@mx.test"], mail.as_bytes(), 1).1[0].starts_with("250 "));
    }
    let mut reader = at(imap);
    reader.line();
    ask(&mut reader, "LOGIN ann secret");
    let counts = [("INBOX", 1), ("Lists/dev", 1), ("Archive", 1)];
    for (mailbox, count) in counts {
        let answer = ask(&mut reader, &format!("STATUS {mailbox} (MESSAGES)"));
        assert!(answer.lines[0].ends_with(&format!("(MESSAGES {count})")), "{:?}", answer.lines);
    }
    // Nobody takes mail yet: it waits, also over the death of who has it.
    let volume = gateway.folder.path().join("store/mail");
    let queue = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.arg("queue").args(arguments).arg("--store").arg(&volume).output().unwrap();
        assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let tried = || Some(queue(&["list"])).filter(|said| said.matches(", 1 tries, ").count() == 2);
    let said = wait_for(tried, "a try of both");
    assert!(said.contains("\t<a@client.test>\t<ann@elsewhere.test>\tsince "), "{said}");
    assert!(said.contains("\t<>\t<a@client.test>\tsince "), "{said}");
    let before = gateway.pid();
    assert!(Command::new("kill").args(["-KILL", &before.to_string()]).status().unwrap().success());
    wait_for(|| (gateway.pid() != before).then_some(()), "another edge");
    let sink = Sink::at(&format!("127.0.0.1:{relay}"), Behaviour::default());
    // Whoever is greeted is so by the next one, which has the store.
    assert!(at(imap).line().starts_with("* OK"));
    let json: serde_json::Value = serde_json::from_str(&queue(&["flush", "--json"])).unwrap();
    assert_eq!(json["mails"], 2, "{json}");
    let mails = sink.wait(2);
    let to = |to: &str| mails.iter().find(|mail| mail.to == [to]).unwrap_or_else(|| panic!("{mails:?}")).clone();
    let (answer, sent_on) = (to("a@client.test"), to("ann@elsewhere.test"));
    assert!(answer.from.is_empty() && answer.text().contains("I am away."), "{}", answer.text());
    assert!(sent_on.from == "a@client.test" && sent_on.text().contains("Subject: go on"), "{}", sent_on.text());
    assert!(sent_on.text().starts_with("X-Sieve-Redirected-From: ann@mx.test\r\n"), "{}", sent_on.text());
    wait_for(|| queue(&["list"]).is_empty().then_some(()), "an empty queue");
    gateway.signal("TERM");
    wait_for(|| (!crate::harness::is_running(gateway.supervisor())).then_some(()), "the gateway to end");
    // Without a server the store is looked into.
    assert_eq!(queue(&["list"]), "");
}

/// Nothing in the store keeps what inspects with signatures of before.
#[test]
fn inspections_with_old_signatures_end_where_there_is_a_store() {
    let signatures = tempfile::tempdir().unwrap();
    let file = signatures.path().join("a.ndb");
    std::fs::write(&file, "Test.One:0:*:6f6e65206f6620746865206f6c64\n").unwrap();
    let site = Site::start_with(&format!("[database]\npaths = [\"{}\"]\n", signatures.path().display()));
    let jails = || {
        let children = children_of(site.gateway.supervisor());
        children
            .into_iter()
            .filter(|(_, name)| name.starts_with("sluice: jail "))
            .map(|(pid, _)| pid)
            .collect::<Vec<_>>()
    };
    let before = wait_for(|| Some(jails()).filter(|jails| jails.len() == 1), "a process that inspects");
    std::fs::write(&file, "Test.Two:0:*:74776f206f6620746865206e6577\n").unwrap();
    site.gateway.wait_for_log("reloaded generation=2");
    wait_for(|| Some(jails()).filter(|jails| jails.len() == 1 && *jails != before), "another alone");
}

#[test]
fn mail_that_is_moved_into_junk_and_out_of_it_is_learned() {
    for (isolation, moves) in [("process", true), ("none", true), ("none", false)] {
        let rules = learn::site(learn::DOOR_RULES, 0);
        let site = Site::start_with(&learn::head(rules.path(), isolation, &format!("moves = {moves}")));
        let mut wire = site.smtp();
        for number in 1..4 {
            let mail = format!("{}number {number}\r\n", learn::MAIL);
            let (_, ends) = send(&mut wire, &["ann@mx.test"], mail.as_bytes(), 1);
            assert!(ends[0].starts_with("250 "), "{ends:?}");
        }
        let mut imap = site.imap("ann");
        let mut done = |commands: &[&str]| {
            for command in commands {
                let answer = ask(&mut imap, command);
                assert!(answer.status.starts_with("OK"), "{command}: {answer:?}");
            }
        };
        let told_of = || site.gateway.log().matches("moved mail learned").count();
        let counts = || {
            let stat = learn::learn(rules.path(), &["stat"]);
            (stat["spam"].as_u64().unwrap(), stat["ham"].as_u64().unwrap())
        };
        // What is thrown away says nothing, and neither does what is moved between other mailboxes.
        done(&["SELECT INBOX", "UID MOVE 1 Junk", "UID COPY 2:3 Archive", "SELECT Junk", "UID COPY 1 Trash"]);
        done(&["SELECT INBOX", "UID COPY 2:3 Junk"]);
        if !moves {
            done(&["LOGOUT"]);
            assert_eq!((told_of(), counts()), (0, (0, 0)));
            continue;
        }
        wait_for(|| (told_of() == 3).then_some(()), "three mails that are learned");
        assert_eq!(counts(), (3, 0), "{isolation}");
        done(&["SELECT Junk", "UID MOVE 2:3 INBOX"]);
        wait_for(|| (told_of() == 5).then_some(()), "two that are corrected");
        assert_eq!(counts(), (1, 2), "{isolation}");
    }
}

/// Texts are read by the processes that inspect, and found wherever they stand.
#[test]
fn what_is_in_mails_is_found_by_an_index_that_inspections_make() {
    let site = Site::start();
    let mut wire = site.smtp();
    let page = mail_with("base64", "page.html", &base64(b"<html><body><p>nee<b>dle4711</b> here</body></html>\r\n"));
    send(&mut wire, &["ann@mx.test"], &page, 1);
    for number in 0..40 {
        send(&mut wire, &["ann@mx.test"], &mail(&format!("number {number}"), 10), 1);
    }
    let mut imap = site.imap("ann");
    assert!(ask(&mut imap, "SELECT INBOX").status.starts_with("OK"));
    let mut search = |key: &str| ask(&mut imap, &format!("SEARCH {key}")).lines;
    // Reading bytes does not find it.
    assert_eq!(search("BODY needle4711"), ["* SEARCH"]);
    wait_for(|| (search("BODY needle4711") == ["* SEARCH 1"]).then_some(()), "the index");
    assert_eq!(search("BODY \"needle4711 here\""), ["* SEARCH 1"]);
    assert_eq!(search("SUBJECT \"number 3\" NOT SUBJECT 37"), ["* SEARCH 5 32 33 34 35 36 37 38 40 41"]);
    assert_eq!(search("TEXT page.htm"), ["* SEARCH 1"]);
}
