//! Mail that clients submit, on its way out to the world: a DNS and mail servers of our own on the loopback.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proto::dns::kind;

use crate::harness::dns::{Dns, Told};
use crate::harness::exim::Exim;
use crate::harness::imap::{Answer, ask};
use crate::harness::postfix::Postfix;
use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, free_port, stuffed, wait_for};

const MAIL: &str = "To: x\r\nBcc: hidden@example.org\r\nSubject: hello\r\n\r\nbody\r\n";

/// DNS of the world: a domain for each way in which a delivery ends.
fn world(name: &str, wanted: u16) -> Told {
    let hosts = |names: &[&str]| Told::Hosts(names.iter().map(|name| (*name).into()).collect());
    match (name, wanted) {
        ("good.test", kind::MX) => hosts(&["mx-good.test"]),
        // One that is not there, one that defers, one that takes.
        ("three.test", kind::MX) => hosts(&["mx-dead.test", "mx-defers.test", "mx-good.test"]),
        ("deferred.test", kind::MX) => hosts(&["mx-defers.test"]),
        ("down.test", kind::MX) => hosts(&["mx-dead.test"]),
        ("null.test", kind::MX) => hosts(&["."]),
        ("self.test", kind::MX) => hosts(&["mx.test", "mx-good.test"]),
        ("nowhere.test", kind::MX) => hosts(&["none.test"]),
        ("inside.test", kind::MX) => hosts(&["mx-inside.test"]),
        ("refused.test", kind::MX) => hosts(&["mx-refuses.test", "mx-good.test"]),
        ("bare.test" | "mx-good.test", kind::A) => Told::Addresses(vec![[127, 0, 0, 2]]),
        ("mx-refuses.test", kind::A) => Told::Addresses(vec![[127, 0, 0, 3]]),
        ("mx-defers.test", kind::A) => Told::Addresses(vec![[127, 0, 0, 4]]),
        ("mx-dead.test", kind::A) => Told::Addresses(vec![[127, 0, 0, 5]]),
        ("mx-inside.test", kind::A) => Told::Addresses(vec![[127, 0, 0, 9], [0, 0, 0, 0]]),
        // Such names are there, and have nothing of what is asked for.
        (name, _) if !matches!(name, "gone.test" | "none.test") => Told::Hosts(Vec::new()),
        _ => Told::NoName,
    }
}

pub struct Site {
    pub gateway: Gateway,
    imap: SocketAddr,
    pub good: Sink,
    refuses: Sink,
    _dns: Dns,
    _accounts: tempfile::TempDir,
}

/// A port that is free at all addresses of the loopback.
fn port() -> u16 {
    loop {
        let port = free_port();
        let is_free = (2..6).all(|host| TcpListener::bind(SocketAddr::from(([127, 0, 0, host], port))).is_ok());
        if is_free {
            return port;
        }
    }
}

impl Site {
    fn start() -> Site {
        Site::start_with("", Behaviour { extensions: &["DSN"], ..Behaviour::default() })
    }

    /// Accounts `ann@here.test` and `bob@here.test`; the server that takes all behaves like this.
    pub fn start_with(settings: &str, good: Behaviour) -> Site {
        Site::relayed("mx", settings, good)
    }

    /// The same with a relay, where `GOOD` is the address of the server that takes all.
    pub fn relayed(relay: &str, settings: &str, good: Behaviour) -> Site {
        let accounts = tempfile::tempdir().unwrap();
        for name in ["ann@here.test", "bob@here.test"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
            let path = accounts.path().join("accounts");
            command.args(["account", "--accounts", path.to_str().unwrap(), "add", name]);
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
            assert!(child.wait().unwrap().success());
        }
        let (dns, port, imap) = (Dns::start(world), port(), free_port());
        let at = |host: u8| format!("127.0.0.{host}:{port}");
        let good = Sink::at(&at(2), good);
        let refuses = Sink::at(&at(3), Behaviour { refuse: Some("@refused.test"), ..Behaviour::default() });
        Sink::at(&at(4), Behaviour { defer: Some("@"), ..Behaviour::default() });
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n{}[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\n\
             accounts = \"{}/accounts\"\nimap = [\"127.0.0.1:{imap}\"]\nrelay = \"{}\"\n\
             [store.queue]\nport = {port}\ndestinations = [\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\", \"127.0.0.5\"]\n{settings}\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nauth = \"any\"\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
            dns.settings(),
            accounts.path().display(),
            relay.replace("GOOD", &at(2))
        ));
        let imap = SocketAddr::from(([127, 0, 0, 1], imap));
        Site { gateway, imap, good, refuses, _dns: dns, _accounts: accounts }
    }

    /// A session in which an account has logged in.
    pub fn submit_as(&self, account: &str) -> Wire {
        let mut wire = self.gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        let login = base64(format!("\0{account}\0secret").as_bytes());
        wire.talk(&format!("C: AUTH PLAIN {}\nS: 235 *", login.trim_end()));
        wire
    }

    /// Mails of a mailbox once it has so many.
    pub fn mails(&self, account: &str, count: usize) -> Vec<String> {
        let mut wire = Wire::connect(self.imap);
        wire.line();
        assert!(ask(&mut wire, &format!("LOGIN {account} secret")).status.starts_with("OK"));
        let look = || {
            ask(&mut wire, "SELECT INBOX");
            let Answer { literals, .. } = ask(&mut wire, "UID FETCH 1:* BODY.PEEK[]");
            let mails: Vec<String> = literals.iter().map(|mail| String::from_utf8_lossy(mail).into_owned()).collect();
            Some(mails).filter(|mails| mails.len() >= count)
        };
        wait_for(look, &format!("{count} mails for {account}"))
    }

    pub fn sluice(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let volume = self.gateway.folder.path().join("store/mail");
        let output = command.arg("queue").args(arguments).arg("--store").arg(volume).output().unwrap();
        assert!(output.status.code() < Some(2), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Sends a mail; the reply to its end.
pub fn send(wire: &mut Wire, from: &str, to: &[&str], mail: &str) -> String {
    assert!(wire.command(&format!("MAIL FROM:{from}")).starts_with("250"), "{from}");
    for to in to {
        let reply = wire.command(&format!("RCPT TO:{to}"));
        assert!(reply.starts_with("250"), "{to}: {reply}");
    }
    assert!(wire.command("DATA").starts_with("354"));
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

#[test]
fn a_mail_that_is_submitted_goes_to_the_first_server_that_takes_it() {
    let site = Site::start();
    let mut wire = site.submit_as("ann@here.test");
    let to = ["<u@good.test>", "<v@good.test>", "<U@good.test>", "<u@three.test>", "<u@bare.test>", "<bob@here.test>"];
    assert_eq!(send(&mut wire, "<ann@here.test>", &to, MAIL), "250 2.0.0 Queued");
    let mails = site.good.wait(3);
    let all: BTreeSet<String> = mails.iter().flat_map(|mail| mail.to.clone()).collect();
    let wanted = ["u@good.test", "v@good.test", "U@good.test", "u@three.test", "u@bare.test"];
    assert_eq!(all, wanted.map(String::from).into());
    assert!(mails.iter().any(|mail| mail.to == ["u@good.test", "v@good.test", "U@good.test"]), "{mails:?}");
    for mail in &mails {
        let text = mail.text();
        assert!(text.contains("Date: ") && text.contains("Message-ID: <") && text.contains("From: <ann@here.test>"));
        assert!(text.contains("Received: from client.test") && !text.contains("hidden@"), "{text}");
        assert!(text.ends_with("\r\n\r\nbody\r\n"), "{text}");
    }
    let here = site.mails("bob@here.test", 1);
    assert!(here[0].starts_with("Return-Path: <ann@here.test>\r\nDelivered-To: bob@here.test\r\n"), "{here:?}");
    wait_for(|| site.sluice(&["list"]).is_empty().then_some(()), "an empty queue");
}

#[test]
fn what_is_submitted_for_accounts_here_stays_here_with_a_relay_too() {
    let site = Site::relayed("smtp://GOOD", "", Behaviour::default());
    let mut wire = site.submit_as("ann@here.test");
    assert_eq!(send(&mut wire, "<ann@here.test>", &["<bob@here.test>"], MAIL), "250 2.0.0 Queued");
    assert!(site.mails("bob@here.test", 1)[0].contains("Subject: hello"));
    assert_eq!(send(&mut wire, "<ann@here.test>", &["<x@elsewhere.test>"], MAIL), "250 2.0.0 Queued");
    assert_eq!(site.good.wait(1)[0].to, ["x@elsewhere.test"]);
    assert_eq!(site.good.mails().len(), 1);
    let two = "From: ann@here.test\r\nFrom: bob@here.test\r\n\r\nbody\r\n";
    assert!(send(&mut wire, "<ann@here.test>", &["<bob@here.test>"], two).starts_with("550 5.6.0"));
}

#[test]
fn what_cannot_be_delivered_comes_back_with_its_reason() {
    let site = Site::start();
    let mut wire = site.submit_as("ann@here.test");
    let cases = [
        ("null.test", "5.1.10"),
        ("self.test", "5.4.6"),
        ("nowhere.test", "5.4.4"),
        ("gone.test", "5.1.2"),
        ("inside.test", "5.4.6"),
        ("refused.test", "5.1.1"),
        ("here.test", "5.1.1"),
    ];
    for (count, (domain, status)) in cases.iter().enumerate() {
        let to = format!("<nobody@{domain}> ORCPT=rfc822;some+2Bone@{domain}");
        assert_eq!(send(&mut wire, "<ann@here.test> ENVID=QQ+2B314", &[&to], MAIL), "250 2.0.0 Queued");
        let notices = site.mails("ann@here.test", count + 1);
        let notice = notices.last().unwrap();
        for wanted in [
            format!("\r\nFinal-Recipient: rfc822; nobody@{domain}\r\nAction: failed\r\nStatus: {status}\r\n"),
            format!("\r\nOriginal-Recipient: rfc822;some+one@{domain}\r\n"),
            "\r\nOriginal-Envelope-Id: QQ+314\r\n".into(),
            "report-type=delivery-status".into(),
            "\r\nSubject: hello\r\n".into(),
        ] {
            assert!(notice.contains(&wanted), "{domain}: {wanted:?} in {notice}");
        }
        assert!(!notice.contains("\r\nbody\r\n"), "the header comes back: {notice}");
    }
    assert!(site.good.mails().is_empty(), "where one has refused for ever, no other is asked");
    assert!(site.refuses.commands().iter().any(|line| line.starts_with("RCPT")));
    // Whoever wants to hear nothing hears nothing.
    let never = "<nobody@null.test> NOTIFY=NEVER";
    assert_eq!(send(&mut wire, "<ann@here.test>", &[never], MAIL), "250 2.0.0 Queued");
    wait_for(|| site.sluice(&["list"]).is_empty().then_some(()), "an empty queue");
    assert_eq!(site.mails("ann@here.test", cases.len()).len(), cases.len());
}

#[test]
fn what_was_asked_for_goes_on_and_is_told_where_a_server_does_not() {
    let site = Site::start();
    let mut wire = site.submit_as("ann@here.test");
    let from = "<ann@here.test> RET=HDRS ENVID=a+2Bb";
    let asked = "<u@good.test> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;old+2B1@good.test";
    send(&mut wire, from, &[asked], MAIL);
    site.good.wait(1);
    let said = site.good.commands();
    assert!(
        said.iter().any(|line| line.contains("MAIL FROM:<ann@here.test>") && line.ends_with(" RET=HDRS ENVID=a+2Bb"))
    );
    assert!(said.contains(&format!("RCPT TO:{asked}")), "{said:?}");
    send(&mut wire, from, &["<u@refuses.test> NOTIFY=SUCCESS", "<bob@here.test> NOTIFY=SUCCESS"], MAIL);
    let notices = site.mails("ann@here.test", 1);
    assert!(
        notices[0].contains("\r\nFinal-Recipient: rfc822; bob@here.test\r\nAction: delivered\r\nStatus: 2."),
        "{notices:?}"
    );

    let deaf = Site::start_with("", Behaviour::default());
    send(&mut deaf.submit_as("ann@here.test"), from, &["<u@good.test> NOTIFY=SUCCESS"], MAIL);
    let notices = deaf.mails("ann@here.test", 1);
    assert!(notices[0].contains("\r\nAction: relayed\r\nStatus: 2."), "{notices:?}");
    assert!(!deaf.good.commands().iter().any(|line| line.contains("NOTIFY") || line.contains("RET=")));
}

#[test]
fn nobody_relays_who_has_not_logged_in_and_nobody_sends_as_another() {
    let site = Site::start();
    let foreign = [
        "<u@good.test>",
        "<u%good.test@here.test>",
        "<@here.test:u@good.test>",
        "<good.test!u>",
        "<\"u@good.test\"@here.test>",
        "<u@[127.0.0.2]>",
        "<u@good.test@here.test>",
        "<@good.test>",
    ];
    for from in ["<>", "<ann@here.test>", "<a@client.test>", "<postmaster@mx.test>"] {
        let mut stranger = site.gateway.connect();
        stranger.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        assert!(stranger.command(&format!("MAIL FROM:{from}")).starts_with("250"));
        for to in foreign {
            let reply = stranger.command(&format!("RCPT TO:{to}"));
            assert!(reply.starts_with('5'), "{from} {to}: {reply}");
        }
        assert!(stranger.command("RCPT TO:<ann@here.test>").starts_with("250"), "mail for an account is taken");
    }
    // Where nobody can log in, nothing is told to senders who may be forged.
    let mut outside = Wire::connect(site.gateway.addresses[1]);
    outside.talk("S: 220 *");
    let offered = outside.command("EHLO client.test");
    assert!(!offered.contains("DSN") && !offered.contains("AUTH"), "{offered}");
    let mut wire = site.submit_as("ann@here.test");
    for from in ["<bob@here.test>", "<ann@good.test>", "<ann>", "<ann@here.test@good.test>"] {
        let reply = wire.command(&format!("MAIL FROM:{from}"));
        let reply = if reply.starts_with('2') { wire.command("RCPT TO:<u@good.test>") } else { reply };
        assert!(reply.starts_with("553 5.7.1") || reply.starts_with("501"), "{from}: {reply}");
        wire.command("RSET");
    }
    let mut wrong = site.gateway.connect();
    wrong.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    let login = base64(b"\0ann@here.test\0guess");
    wrong.talk(&format!("C: AUTH PLAIN {}\nS: 535 *", login.trim_end()));
    assert!(wrong.command("MAIL FROM:<ann@here.test>").starts_with("250"));
    assert!(wrong.command("RCPT TO:<u@good.test>").starts_with('5'), "who has failed to log in is a stranger");
    let log = site.gateway.log();
    let is_whole = |line: &str| {
        ["login failed", "ann@here.test", "submission", "client=127.0.0.1"].iter().all(|part| line.contains(part))
    };
    assert!(log.lines().any(is_whole), "{log}");
}

#[test]
fn an_operator_sees_why_mails_wait_and_moves_them() {
    let site = Site::start_with("recipients_hour_max = 4", Behaviour::default());
    let mut wire = site.submit_as("ann@here.test");
    send(&mut wire, "<ann@here.test>", &["<u@deferred.test>", "<u@down.test>"], MAIL);
    let why = wait_for(
        || Some(site.sluice(&["why"])).filter(|why| why.contains("450 4.2.0 Later") && why.contains("reached")),
        "both reasons",
    );
    assert_eq!(why.lines().count(), 2, "{why}");
    assert!(
        site.sluice(&["list", "--domain", "down.test", "--json"]).contains("u@deferred.test"),
        "whole mails are listed"
    );
    assert_eq!(site.sluice(&["hold", "--sender", "ann@here.test"]), "1 mails\n");
    assert!(site.sluice(&["why"]).contains("it is held"));
    assert_eq!(site.sluice(&["release", "--held"]), "1 mails\n");
    assert_eq!(site.sluice(&["retry", "--reason", "Later"]), "1 mails\n");
    wait_for(|| site.sluice(&["list"]).contains("u@deferred.test>\tsince").then_some(()), "the mail");
    assert_eq!(site.sluice(&["delete", "--domain", "down.test"]), "1 mails\n");
    assert!(!site.sluice(&["list"]).contains("down.test"));
    assert_eq!(site.sluice(&["bounce", "--recipient", "u@deferred.test"]), "1 mails\n");
    assert!(site.mails("ann@here.test", 1)[0].contains("given up by the operator"));
    assert_eq!(site.sluice(&["list"]), "");
    // Four recipients an hour, of which two were sent to.
    assert!(wire.command("MAIL FROM:<ann@here.test>").starts_with("250"));
    for at in 0..3 {
        assert!(wire.command(&format!("RCPT TO:<u{at}@good.test>")).starts_with("250"));
    }
    assert!(wire.command("DATA").starts_with("354"));
    wire.send(b"Subject: x\r\n\r\nx\r\n.\r\n");
    assert!(wire.reply().starts_with("450 4.7.1"));
}

/// A sender that is told of a delay, and then that it was given up.
#[test]
fn a_sender_is_warned_and_then_told_that_it_was_given_up() {
    let site = Site::start_with("warning_seconds = 4\nlifetime_seconds = 10", Behaviour::default());
    send(&mut site.submit_as("ann@here.test"), "<ann@here.test>", &["<u@deferred.test>"], MAIL);
    let notices = site.mails("ann@here.test", 2);
    assert!(
        notices[0].contains("\r\nAction: delayed\r\n") && notices[0].contains("\r\nWill-Retry-Until: "),
        "{notices:?}"
    );
    assert!(notices[1].contains("\r\nAction: failed\r\nStatus: 4.4.7\r\n"), "{notices:?}");
    let said = "\r\nRemote-MTA: dns; mx-defers.test\r\nDiagnostic-Code: smtp; 450 4.2.0 Later";
    assert!(notices.iter().all(|notice| notice.contains(said)), "{notices:?}");
    assert_eq!(site.sluice(&["list"]), "");
}

#[test]
fn a_server_that_speaks_no_smtp_is_told_as_such() {
    let server = TcpListener::bind(SocketAddr::from(([127, 0, 0, 4], 0))).unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in server.incoming() {
            let mut wire = Wire::new(stream.unwrap());
            wire.send(b"220 hello\r\n");
            wire.line();
            wire.send(b"250 hello\r\n");
            wire.line();
            wire.send(b"What do you want?\r\n");
        }
    });
    let route = format!("routes = {{ \"rubbish.test\" = \"smtp://127.0.0.4:{port}\" }}");
    let routed = Site::start_with(&route, Behaviour::default());
    send(&mut routed.submit_as("ann@here.test"), "<ann@here.test>", &["<u@rubbish.test>"], MAIL);
    let why = || Some(routed.sluice(&["why"])).filter(|why| why.contains("the connection was lost: not a reply"));
    wait_for(why, "its fault");
}

/// A server says why it ends the session: at EHLO, or at MAIL while the recipient is on its way.
#[test]
fn the_words_of_a_server_that_ends_the_session_are_kept() {
    let begin = |lines: &'static [&'static [u8]]| {
        let server = TcpListener::bind(SocketAddr::from(([127, 0, 0, 4], 0))).unwrap();
        let port = server.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let mut wire = Wire::new(stream.unwrap());
                wire.send(b"220 hello\r\n");
                for line in lines {
                    wire.line();
                    wire.send(line);
                }
            }
        });
        port
    };
    let hello = begin(&[b"421 4.7.0 not you\r\n"]);
    let mail = begin(&[b"250-hello\r\n250 PIPELINING\r\n", b"421 4.7.0 [TSS04] try later\r\n"]);
    let routes = format!(
        "routes = {{ \"hello.test\" = \"smtp://127.0.0.4:{hello}\", \"mail.test\" = \"smtp://127.0.0.4:{mail}\" }}"
    );
    let routed = Site::start_with(&routes, Behaviour::default());
    send(&mut routed.submit_as("ann@here.test"), "<ann@here.test>", &["<u@hello.test>", "<u@mail.test>"], MAIL);
    let words = ["421 4.7.0 not you", "421 4.7.0 [TSS04] try later"];
    let why = || Some(routed.sluice(&["why"])).filter(|why| words.iter().all(|words| why.contains(words)));
    wait_for(why, "the words of both");
}

/// Of the servers behind one address the first that answers defers for ever.
#[test]
fn a_session_in_which_all_was_deferred_is_not_asked_again() {
    let server = TcpListener::bind(SocketAddr::from(([127, 0, 0, 4], 0))).unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (at, stream) in server.incoming().enumerate() {
            std::thread::spawn(move || {
                let mut wire = Wire::new(stream.unwrap());
                wire.send(b"220 hello\r\n");
                loop {
                    let line = wire.line();
                    let reply = match line.get(..4) {
                        Some("RCPT") if at == 0 => "450 4.2.0 later",
                        Some("DATA") => "354 go",
                        _ => "250 2.0.0 ok",
                    };
                    wire.send(format!("{reply}\r\n").as_bytes());
                    if line == "DATA" {
                        while wire.line() != "." {}
                        wire.send(b"250 2.0.0 taken\r\n");
                    }
                }
            });
        }
    });
    let route = format!("routes = {{ \"many.test\" = \"smtp://127.0.0.4:{port}\" }}");
    let routed = Site::start_with(&route, Behaviour::default());
    send(&mut routed.submit_as("ann@here.test"), "<ann@here.test>", &["<u@many.test>"], MAIL);
    wait_for(|| routed.sluice(&["why"]).contains("450 4.2.0 later").then_some(()), "its answer");
    routed.sluice(&["flush"]);
    wait_for(|| routed.sluice(&["list"]).is_empty().then_some(()), "that it is sent");
}

#[test]
fn what_was_accepted_is_sent_whoever_is_killed() {
    let site = Site::start();
    let mut accepted = BTreeSet::new();
    for round in 0..6 {
        let before = site.gateway.pid();
        let mut wire = site.submit_as("ann@here.test");
        for at in 0..25 {
            let name = format!("m{round}x{at}");
            let mail = format!("Subject: {name}\r\n\r\nbody\r\n");
            if send(&mut wire, "<ann@here.test>", &["<u@good.test>", "<u@three.test>"], &mail) == "250 2.0.0 Queued" {
                accepted.insert(name);
            }
        }
        assert!(Command::new("kill").args(["-KILL", &before.to_string()]).status().unwrap().success());
        wait_for(|| (site.gateway.pid() != before).then_some(()), "another edge");
        assert!(Wire::connect(site.imap).line().starts_with("* OK"), "which has the store");
    }
    assert_eq!(accepted.len(), 150);
    wait_for(|| site.sluice(&["list"]).is_empty().then_some(()), "an empty queue");
    for domain in ["good.test", "three.test"] {
        let mails = site.good.mails();
        let of_domain = mails.iter().filter(|mail| mail.to[0].ends_with(&format!("@{domain}")));
        let subject = |text: String| text.split("Subject: ").nth(1).unwrap().split('\r').next().unwrap().to_owned();
        let arrived: Vec<String> = of_domain.map(|mail| subject(mail.text())).collect();
        assert_eq!(arrived.iter().cloned().collect::<BTreeSet<_>>(), accepted, "{domain}");
        assert!(arrived.len() <= accepted.len() + 6 * 20, "those under way when it was killed may come twice");
    }
}

#[test]
fn mail_that_goes_out_is_signed_and_its_records_verify_it() {
    let site = Site::start();
    let config = site.gateway.folder.path().join("sluice.toml");
    let dkim = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.arg("dkim").args(arguments).arg("--config").arg(&config).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::write(&config, format!("[store]\nfolder = \"{}/store\"\n", site.gateway.folder.path().display())).unwrap();
    let records = dkim(&["create", "here.test", "--selector", "one"]);
    assert!(records.contains("oner._domainkey.here.test. IN TXT \"v=DKIM1; k=rsa; p=") && records.contains(": signs"));
    let mut unknown = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let unknown = unknown.args(["dkim", "rotate", "her.test", "--config"]).arg(&config).output().unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("her.test has no keys"), "{unknown:?}");
    let domain = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.arg("domain").args(arguments).arg("--config").arg(&config).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (_, zone, _) = domain(&["add", "here.test"]);
    for wanted in
        ["here.test. IN MX 10 ", "here.test. IN TXT \"v=spf1 mx -all\"", "_dmarc.here.test. IN TXT \"v=DMARC1; "]
    {
        assert!(zone.contains(wanted), "{zone}");
    }
    assert_eq!(zone.matches("._domainkey.here.test. IN TXT").count(), 2, "the keys that are there");
    let (file, host) = (config.with_file_name("records"), zone.split([' ', '\n']).nth(4).unwrap().to_owned());
    let lines: Vec<&str> = zone.lines().filter(|line| !line.starts_with(';')).collect();
    let whole = format!("{}\n{host} IN A 192.0.2.1\n", lines.join("\n"));
    std::fs::write(&file, &whole).unwrap();
    let check = ["check", "here.test", "--zone", file.to_str().unwrap()];
    let (status, said, error) = domain(&check);
    assert_eq!((status, said.matches("right ").count()), (Some(0), 7), "{said}{error}");
    std::fs::write(&file, whole.replace("spf1 mx", "spf1").replace("_dmarc", "_other")).unwrap();
    let (status, said, error) = domain(&check);
    assert!(status == Some(1) && said.contains("\n          found: v=spf1 -all"), "{said}{error}");
    assert!(said.contains("missing   _dmarc.here.test."), "{said}");
    let later = dkim(&["rotate", "here.test", "--selector", "two"]);
    assert!(later.contains("twoe._domainkey.here.test.") && later.contains("signs in 2"), "{later}");
    send(&mut site.submit_as("ann@here.test"), "<ann@here.test>", &["<u@good.test>"], MAIL);
    let mail = site.good.wait(1)[0].clone();
    assert_eq!(mail.text().matches("DKIM-Signature: ").count(), 2, "{}", mail.text());
    assert!(!mail.text().contains("s=two"));
    let (zone, file) = (config.with_file_name("zone"), config.with_file_name("mail.eml"));
    std::fs::write(&zone, dkim(&["list"])).unwrap();
    std::fs::write(&file, &mail.content).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["auth", "check", "--from", "ann@here.test"]);
    let output = command.arg("--zone").arg(&zone).arg(&file).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.matches("dkim=pass").count() == 2 || said.matches("pass").count() >= 2, "{said}");
    // A verifier of somebody else's.
    let python = "import sys, dkim; m = open(sys.argv[1], 'rb').read(); z = sys.argv[2:]; t = dict(zip(z[0::2], z[1::2])); \
                  f = lambda n, timeout=5: t[n.decode()].encode(); \
                  print([dkim.DKIM(m).verify(idx=i, dnsfunc=f) for i in range(2)])";
    let lines = std::fs::read_to_string(&zone).unwrap();
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", python]).arg(&file);
    for line in lines.lines().filter(|line| !line.starts_with(';')) {
        let (name, text) = line.split_once(" IN TXT ").unwrap();
        command.arg(name).arg(text.trim_matches('"').replace("\" \"", ""));
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if error.contains("No module named") {
        eprintln!("skipped: dkimpy is not installed");
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[True, True]\n", "{error}");
}

/// Real servers, by the table of routes: what they take arrives, and what they refuse comes back with their words.
#[test]
fn postfix_and_exim_take_mail_and_refuse_it() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !std::path::Path::new("/usr/sbin/postfix").exists() || !is_root {
        return eprintln!("skipped: postfix is not installed, or we are not root");
    }
    let postfix = Postfix::start(
        "virtual_mailbox_domains = postfix.test\n\
         smtpd_recipient_restrictions = check_recipient_access inline:{refused@postfix.test=REJECT}, permit_mynetworks",
    );
    let port = free_port();
    let peer = "peer:\n  driver = accept\n  domains = exim.test\n  transport = box\n";
    let exim = Exim::start(&[port], "chunking_advertise_hosts = *\ndsn_advertise_hosts = *", peer, "");
    let routes = format!(
        "routes = {{ \"postfix.test\" = \"smtp://127.0.0.1:{}\", \".exim.test\" = \"smtp://127.0.0.1:{port}\", \
         \"exim.test\" = \"smtp://127.0.0.1:{port}\" }}",
        postfix.port
    );
    let site = Site::start_with(&routes, Behaviour::default());
    let mut wire = site.submit_as("ann@here.test");
    let mail = format!("{MAIL}.dot\r\n\r\ngr\u{fc}\u{df}e\r\n");
    let to = ["<box@postfix.test> NOTIFY=FAILURE", "<refused@postfix.test> ORCPT=rfc822;old@postfix.test"];
    assert_eq!(send(&mut wire, "<ann@here.test> RET=FULL ENVID=x", &to, &mail), "250 2.0.0 Queued");
    let arrived = String::from_utf8(wait_for(|| postfix.mail(), "delivery by Postfix")).unwrap();
    assert!(arrived.contains("\n.dot\n\ngr\u{fc}\u{df}e\n") && arrived.contains("\nSubject: hello\n"), "{arrived}");
    let notices = site.mails("ann@here.test", 1);
    for wanted in [
        "\r\nOriginal-Recipient: rfc822;old@postfix.test\r\nFinal-Recipient: rfc822; refused@postfix.test\r\n",
        "\r\nAction: failed\r\nStatus: 5.7.1\r\nRemote-MTA: dns; [127.0.0.1]\r\n",
        "Diagnostic-Code: smtp; 554 5.7.1 <refused@postfix.test>: Recipient address rejected: Access denied\r\n",
    ] {
        assert!(notices[0].contains(wanted), "{wanted:?} in {}", notices[0]);
    }
    if let Some(exim) = exim {
        assert_eq!(send(&mut wire, "<ann@here.test>", &["<box@exim.test>"], &mail), "250 2.0.0 Queued");
        let arrived = String::from_utf8(wait_for(|| exim.mail(), "delivery by Exim")).unwrap();
        assert!(arrived.contains("\n.dot\n\ngr\u{fc}\u{df}e\n"), "{arrived}");
    }
}

#[test]
fn a_mail_comes_back_whole_with_the_fields_that_it_went_out_with() {
    let site = Site::start();
    let mut wire = site.submit_as("ann@here.test");
    let mail = "Subject: hello\r\n\r\ngr\u{fc}\u{df}e\r\n";
    assert_eq!(send(&mut wire, "<ann@here.test> RET=FULL", &["<x@refused.test>"], mail), "250 2.0.0 Queued");
    let notice = site.mails("ann@here.test", 1).remove(0);
    let (head, original) = notice.split_once("\r\nContent-Type: message/rfc822\r\n").unwrap();
    assert!(head.contains("; boundary=") && head.contains("\"\r\nContent-Transfer-Encoding: 8bit\r\n\r\n--"), "{head}");
    let original = original.strip_prefix("Content-Transfer-Encoding: 8bit\r\n\r\n").unwrap();
    assert!(original.contains("\r\nSubject: hello\r\n\r\ngr\u{fc}\u{df}e\r\n"), "{notice}");
    for field in ["Date: ", "From: <ann@here.test>\r\n", "Message-ID: <"] {
        assert!(original.contains(field), "{field}: {notice}");
    }
}

#[test]
fn a_mail_that_is_to_go_out_later_goes_out_then() {
    let site = Site::start();
    let mut outside = Wire::connect(site.gateway.addresses[1]);
    outside.talk("S: 220 *");
    assert!(!outside.command("EHLO client.test").contains("FUTURERELEASE"));
    let mut wire = site.gateway.connect();
    wire.talk("S: 220 *");
    assert!(wire.command("EHLO client.test").contains("250-FUTURERELEASE 2592000 2"));
    wire.command("MAIL FROM:<ann@here.test> HOLDFOR=5");
    assert!(wire.command("RCPT TO:<bob@here.test>").starts_with("530"));
    let mut wire = site.submit_as("ann@here.test");
    for wrong in ["HOLDFOR=2592001", "HOLDUNTIL=2999-01-01T00:00:00Z", "HOLDFOR=x", "HOLDUNTIL=soon"] {
        assert!(wire.command(&format!("MAIL FROM:<ann@here.test> {wrong}")).starts_with("501 5.5.4"), "{wrong}");
    }
    let began = Instant::now();
    assert_eq!(send(&mut wire, "<ann@here.test> HOLDFOR=4", &["<later@good.test>"], MAIL), "250 2.0.0 Queued");
    assert_eq!(send(&mut wire, "<ann@here.test> HOLDFOR=9999", &["<named@good.test>"], MAIL), "250 2.0.0 Queued");
    assert_eq!(send(&mut wire, "<ann@here.test>", &["<now@good.test>"], MAIL), "250 2.0.0 Queued");
    assert_eq!(site.good.wait(1)[0].to, ["now@good.test"]);
    let listed = wait_for(|| Some(site.sluice(&["list"])).filter(|list| list.lines().count() == 2), "the other two");
    site.sluice(&["flush"]);
    assert_eq!(site.good.wait(2)[1].to, ["later@good.test"]);
    assert!(began.elapsed() >= Duration::from_secs(3), "flush does not send it earlier: {:?}", began.elapsed());
    let named = listed.lines().find(|line| line.contains("named@")).unwrap();
    site.sluice(&["retry", named.split_whitespace().next().unwrap()]);
    assert_eq!(site.good.wait(3)[2].to, ["named@good.test"]);
}
