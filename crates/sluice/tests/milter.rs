//! The milter door, asked by a mail server of our own, by miltertest, and by Postfix.

use std::path::Path;
use std::process::Command;

use crate::harness::postfix::Postfix;
use crate::harness::sendmail::Sendmail;
use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, eicar, mail_with, wait_for};

fn gateway(settings: &str) -> Gateway {
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n{settings}\n"
    ))
}

/// A mail server that asks.
pub struct Server {
    wire: Wire,
    silent: bool,
}

/// Reply at the end of a message.
pub type Answer = (char, String);

impl Server {
    /// Agrees on all changes, and on silence or none.
    pub fn new(gateway: &Gateway, silent: bool) -> Server {
        let mut server = Server { wire: gateway.connect(), silent };
        let flags: u32 = if silent { 0x1f_ffff } else { 0 };
        server.tell('O', &[&6u32.to_be_bytes()[..], &0x1ffu32.to_be_bytes(), &flags.to_be_bytes()].concat());
        let (letter, agreed) = server.packet();
        assert_eq!((letter, agreed.len()), ('O', 12));
        assert_eq!(agreed[..8], [0, 0, 0, 6, 0, 0, 0, 0x33], "version, and the changes that are wanted");
        server
    }

    pub fn tell(&mut self, letter: char, data: &[u8]) {
        let length = u32::try_from(data.len() + 1).unwrap().to_be_bytes();
        self.wire.send(&[&length[..], &[letter as u8], data].concat());
    }

    pub fn packet(&mut self) -> (char, Vec<u8>) {
        let head = self.wire.exactly(5);
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        (head[4].into(), self.wire.exactly(length as usize - 1))
    }

    pub fn tell_and_hear(&mut self, letter: char, data: &[u8]) {
        self.tell(letter, data);
        if !self.silent {
            assert_eq!(self.packet(), ('c', Vec::new()), "after {letter}");
        }
    }

    /// Tells a whole message; what is answered to its end.
    pub fn message(&mut self, mail: &[u8], chunk: usize) -> Vec<Answer> {
        self.tell_and_hear('C', b"client.test\x004\x00\x19192.0.2.7\0");
        self.tell_and_hear('H', b"client.test\0");
        self.tell('D', b"Mi\0QUEUE-ID\0");
        self.tell_and_hear('M', b"<a@client.test>\0SIZE=10\0");
        self.tell_and_hear('R', b"<b@mx.test>\0");
        let end = mail.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        for line in
            String::from_utf8_lossy(&mail[..end]).replace("\r\n\t", "\n\t").replace("\r\n ", "\n ").split("\r\n")
        {
            let (name, value) = line.split_once(':').unwrap();
            let value = if self.silent { value } else { value.trim_start() };
            self.tell_and_hear('L', format!("{name}\0{value}\0").as_bytes());
        }
        self.tell_and_hear('N', b"");
        for chunk in mail[end + 4..].chunks(chunk) {
            self.tell_and_hear('B', chunk);
        }
        self.tell('E', b"");
        let mut answers = Vec::new();
        loop {
            let (letter, data) = self.packet();
            answers.push((letter, String::from_utf8_lossy(&data).into_owned()));
            if matches!(letter, 'a' | 'c' | 'r' | 't' | 'd' | 'y') {
                return answers;
            }
        }
    }
}

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

#[test]
fn a_clean_message_is_accepted_and_an_infected_one_refused() {
    let gateway = gateway("");
    for silent in [true, false] {
        let mut server = Server::new(&gateway, silent);
        for chunk in [65_535, 7] {
            assert_eq!(server.message(&mail_with("7bit", "a.txt", "Hello"), chunk), [('a', String::new())]);
            let answers = server.message(&infected(), chunk);
            assert_eq!(answers.len(), 1);
            let (letter, text) = &answers[0];
            assert!(
                *letter == 'y' && text.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature in eicar.com (id ")
            );
            assert!(text.ends_with(")\0"), "{text:?}");
        }
    }
    let log = gateway.wait_for_log("action=\"reject\"");
    assert!(
        log.contains("queue_id=\"QUEUE-ID\" message_id=\"<test@client.test>\" door=\"milter\" client=192.0.2.7 hello=\"client.test\" from=\"a@client.test\""),
        "{log}"
    );
}

#[test]
fn blank_sends_the_body_back_and_marks_the_message() {
    let gateway = gateway("on_infected = \"blank\"");
    let mut server = Server::new(&gateway, true);
    let mail = infected();
    let forged = [b"X-Sluice-Status: clean\r\nX-SLUICE-status: very\r\n", &mail[..]].concat();
    let answers = server.message(&forged, 100);
    let letters: String = answers.iter().map(|(letter, _)| *letter).collect();
    assert_eq!(letters, "mmhba");
    assert_eq!(answers[0].1, "\0\0\0\u{2}X-Sluice-Status\0\0", "the second goes first");
    assert_eq!(answers[1].1, "\0\0\0\u{1}X-Sluice-Status\0\0");
    assert_eq!(answers[2].1, "X-Sluice-Status\0 found;\n\tEicar-Test-Signature (match)\0");
    let text = String::from_utf8(mail).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let part = base64(&eicar());
    let filler: String =
        part.chars().map(|c| if c.is_ascii_alphanumeric() || "+/".contains(c) { 'A' } else { c }).collect();
    assert_eq!(answers[3].1, body.replace(&part, &filler));
}

#[test]
fn what_is_too_large_to_send_back_is_refused_and_nothing_of_it_is_held() {
    let gateway = gateway("on_infected = \"blank\"");
    let mut server = Server::new(&gateway, true);
    let filler = "A line of a long letter.\r\n".repeat(400_000);
    let mail = String::from_utf8(infected()).unwrap().replacen("Hello.\r\n", &filler, 1);
    let before = resident_kb(gateway.pid());
    let answers = server.message(mail.as_bytes(), 65_535);
    assert!(answers[0].1.starts_with("554 5.7.1"), "{answers:?}");
    assert!(resident_kb(gateway.pid()) < before + 7_000, "10 MB were held");
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn quarantine_and_tag_are_the_mail_servers_to_do() {
    let quarantining = gateway("on_infected = \"quarantine\"");
    let answers = Server::new(&quarantining, true).message(&infected(), 1_000);
    assert_eq!((answers[0].0, answers[1].0), ('q', 'a'));
    assert!(answers[0].1.starts_with("Eicar-Test-Signature in eicar.com (id "));
    let tagging = gateway("on_infected = \"tag\"");
    let answers = Server::new(&tagging, true).message(&infected(), 1_000);
    assert_eq!((answers[0].0, answers[1].0), ('h', 'a'));
}

#[test]
fn what_was_not_agreed_on_is_not_done() {
    for (action, letter) in [("blank", 'y'), ("quarantine", 'y'), ("tag", 'y')] {
        let gateway = gateway(&format!("on_infected = \"{action}\""));
        let mut server = Server { wire: gateway.connect(), silent: true };
        server.tell('O', &[&6u32.to_be_bytes()[..], &[0; 4], &0x1f_ffffu32.to_be_bytes()].concat());
        assert_eq!(server.packet().1[4..8], [0; 4]);
        assert_eq!(server.message(&infected(), 1_000)[0].0, letter, "{action}");
    }
}

#[test]
fn an_aborted_message_leaves_nothing_behind() {
    let gateway = gateway("");
    let mut server = Server::new(&gateway, true);
    server.tell('M', b"<a@b>\0");
    server.tell('B', &eicar());
    server.tell('A', b"");
    assert_eq!(server.message(&mail_with("7bit", "a.txt", "Hello"), 100), [('a', String::new())]);
    server.tell('K', b"");
    assert_eq!(server.message(&mail_with("7bit", "a.txt", "Hello"), 100), [('a', String::new())]);
    server.tell('Q', b"");
    assert_eq!(server.wire.rest(), b"");
}

#[test]
fn no_content_comes_by_that_stands_elsewhere_than_it_should() {
    let gateway = gateway("");
    let infected = infected();
    let header_end = infected.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (header, body) = (String::from_utf8_lossy(&infected[..header_end]), &infected[header_end + 4..]);
    let ways: [(&str, bool, bool); 4] = [
        ("as it should", true, false),
        ("no envelope", false, false),
        ("all at its end", true, true),
        ("both", false, true),
    ];
    let mut server = Server::new(&gateway, true);
    for (way, has_envelope, at_end) in ways {
        if has_envelope {
            server.tell('M', b"<a@b>\0");
            server.tell('R', b"<c@d>\0");
        }
        for line in header.replace("\r\n\t", "\n\t").replace("\r\n ", "\n ").split("\r\n") {
            let (name, value) = line.split_once(':').unwrap();
            server.tell('L', format!("{name}\0{value}\0").as_bytes());
        }
        server.tell('N', b"");
        // What comes behind an end belongs to another message.
        if at_end {
            server.tell('E', body);
        } else {
            server.tell('B', body);
            server.tell('E', b"");
        }
        assert_eq!(server.packet().0, 'y', "{way}");
    }
}

#[test]
fn what_is_no_milter_is_left() {
    let gateway = gateway("");
    for rubbish in [&b"EHLO x\r\n"[..], &[0; 64], &[0, 0, 0, 1, b'B'], b"\0\0\0\x05Habc\0", b"\x7f\xff\xff\xffL"] {
        let mut wire = gateway.connect();
        wire.send(rubbish);
        assert_eq!(wire.rest(), b"", "{rubbish:?}");
    }
    // A packet that says it is long is not waited for in memory.
    let mut server = Server::new(&gateway, true);
    server.wire.send(b"\x00\x20\x00\x01L");
    assert_eq!(server.wire.rest(), b"");
}

fn has(path: &str) -> bool {
    let there = Path::new(path).exists();
    if !there {
        eprintln!("skipped: {path} is not installed");
    }
    there
}

#[test]
fn miltertest_gets_the_answers_it_knows() {
    if !has("/usr/bin/miltertest") {
        return;
    }
    let gateway = gateway("on_infected = \"tag\"\non_malformed = \"reject\"");
    let script = format!(
        "conn = mt.connect('inet:{}@127.0.0.1')\n\
         if conn == nil then error('no connection') end\n\
         if mt.conninfo(conn, 'localhost', '127.0.0.1') ~= nil then error('conninfo') end\n\
         if mt.helo(conn, 'localhost') ~= nil then error('helo') end\n\
         mt.macro(conn, SMFIC_MAIL, 'i', 'test-id')\n\
         if mt.mailfrom(conn, '<a@x.test>') ~= nil then error('mailfrom') end\n\
         if mt.rcptto(conn, '<b@y.test>') ~= nil then error('rcptto') end\n\
         if mt.header(conn, 'From', 'a@x.test') ~= nil then error('header') end\n\
         if mt.eoh(conn) ~= nil then error('eoh') end\n\
         if mt.bodystring(conn, '{}\\r\\n') ~= nil then error('body') end\n\
         if mt.eom(conn) ~= nil then error('eom') end\n\
         if mt.getreply(conn) ~= SMFIR_ACCEPT then error('reply') end\n\
         if not mt.eom_check(conn, MT_HDRADD, 'X-Sluice-Status') then error('no field') end\n\
         mt.disconnect(conn)\n\
         mt.echo('all well')\n",
        gateway.address.port(),
        String::from_utf8(eicar()).unwrap().replace('\\', "\\\\"),
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.lua");
    std::fs::write(&path, script).unwrap();
    let output = Command::new("timeout").args(["20", "miltertest", "-s"]).arg(&path).output().unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("all well"), "{text} {}", gateway.log());
}

#[test]
fn a_real_postfix_asks_and_does_as_it_is_told() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !is_root || !has("/usr/sbin/postfix") {
        return;
    }
    let blanking = gateway("on_infected = \"blank\"\non_malformed = \"reject\"");
    let refusing = gateway("on_limit = \"reject\"");
    let with =
        |gateway: &Gateway| format!("smtpd_milters = inet:{}\nmilter_default_action = tempfail", gateway.address);
    let postfix = Postfix::start(&with(&refusing));
    let deliver = |postfix: &Postfix, mail: &[u8]| Wire::connect(([127, 0, 0, 1], postfix.port).into()).deliver(mail);
    assert!(deliver(&postfix, &mail_with("7bit", "a.txt", "Hello 100%")).starts_with("250 2.0.0 Ok"));
    let reply = deliver(&postfix, &infected());
    assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature in eicar.com (id "), "{reply}");
    drop(postfix);
    let postfix = Postfix::start(&with(&blanking));
    let reply = deliver(&postfix, &infected());
    assert!(reply.starts_with("250 2.0.0 Ok"), "{reply}");
    let mail = crate::harness::wait_for(|| postfix.mail(), "delivery");
    let text = String::from_utf8(mail).unwrap();
    assert!(text.contains("X-Sluice-Status: found;\n\tEicar-Test-Signature (match)"), "{text}");
    assert!(text.contains("AAAAAAAAAAAA") && !text.contains(&base64(&eicar())[..40]), "{text}");
}

#[test]
fn a_real_sendmail_asks_and_does_as_it_is_told() {
    let sink = Sink::start(Behaviour::default());
    for (action, replied) in [
        ("reject", "554 5.7.1 Message refused: Eicar-Test-Signature"),
        ("blank", "250 "),
        ("tag", "250 "),
        ("quarantine", "250 "),
    ] {
        let gateway = gateway(&format!("on_infected = \"{action}\""));
        let Some(sendmail) = Sendmail::start(gateway.address.port(), sink.address.port()) else { return };
        let deliver = |mail: &[u8]| Wire::connect(([127, 0, 0, 1], sendmail.port).into()).deliver(mail);
        let clean = deliver(&mail_with("7bit", "a.txt", "Hello"));
        assert!(clean.starts_with("250 2.0.0"), "{action}: {clean}");
        crate::harness::wait_for(|| sink.take(), "the clean mail");
        let reply = deliver(&infected());
        assert!(reply.starts_with(replied), "{action}: {reply}\n{}", gateway.log());
        match action {
            "blank" | "tag" => {
                let text = crate::harness::wait_for(|| sink.take(), "delivery").text();
                assert!(text.contains("X-Sluice-Status: found;"), "{text}");
                assert_eq!(text.contains("AAAAAAAAAAAA"), action == "blank", "{text}");
            }
            "quarantine" => crate::harness::wait_for(|| (sendmail.held() == 1).then_some(()), "the mail to be held"),
            _ => {}
        }
    }
    assert!(sink.take().is_none(), "something else was delivered");
}

#[test]
fn what_comes_slowly_is_inspected_as_it_comes() {
    let gateway = Gateway::with(
        "hostname = \"mx.test\"\n[log]\nlevel = \"debug\"\n[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n",
    );
    let mut server = Server::new(&gateway, true);
    let mail = infected();
    let end = mail.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    server.tell('M', b"<a@client.test>\0");
    server.tell('R', b"<b@mx.test>\0");
    server.tell('L', b"Content-Type\0 multipart/mixed; boundary=\"frontier\"\0");
    server.tell('N', b"");
    server.tell('B', &mail[end..]);
    // It is found while the mail server has not said yet that this is all; nothing is answered before it does.
    let more = "Nothing to see here, and much of it.\r\n".repeat(2_000);
    let is_found = || gateway.log().contains("found=\"Eicar-Test-Signature in eicar.com\"");
    wait_for(
        || {
            more.as_bytes().chunks(500).for_each(|chunk| server.tell('B', chunk));
            is_found().then_some(())
        },
        "what is infected to be found",
    );
    assert!(!gateway.log().contains("message filtered"));
    server.tell('B', more.as_bytes());
    server.tell('E', b"");
    assert_eq!(server.packet().0, 'y');
}

#[test]
fn rules_hold_where_all_recipients_have_the_same() {
    let gateway = gateway("[[listener.rule]]\nrecipient = [\"b@mx.test\"]\non_infected = \"pass\"");
    let mut server = Server::new(&gateway, true);
    assert_eq!(server.message(&infected(), 1_000), [('a', String::new())]);
    // The message of this helper is for b@mx.test; here is one more recipient, who has no rule.
    server.tell('M', b"<a@client.test>\0");
    server.tell('R', b"<b@mx.test>\0");
    server.tell('R', b"<c@mx.test>\0");
    server.tell('L', b"From\0 a@client.test\0");
    server.tell('N', b"");
    server.tell('B', &eicar());
    server.tell('E', b"");
    assert_eq!(server.packet().0, 'y');
}

#[test]
fn a_real_postfix_asks_over_a_unix_socket() {
    use std::os::unix::fs::PermissionsExt;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !is_root || !has("/usr/sbin/postfix") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("milter");
    // What an earlier run has left behind stands in nobody's way.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let postfix = Postfix::start(&format!("smtpd_milters = unix:{}\nmilter_default_action = tempfail", path.display()));
    let deliver = |mail: &[u8]| Wire::connect(([127, 0, 0, 1], postfix.port).into()).deliver(mail);
    let gateway = Gateway::with(&format!(
        "threads = 2\n[[listener]]\nprotocol = \"milter\"\naddress = \"unix:{}\"\nsocket_mode = \"666\"\n\
         socket_group = \"postfix\"\n[metrics]\naddress = \"127.0.0.1:0\"\n[[listener]]\nprotocol = \"smtp\"\n\
         address = \"127.0.0.1:0\"\nforward = \"discard:\"\n",
        path.display()
    ));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    for _ in 0..4 {
        let reply = deliver(&infected());
        assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature in eicar.com (id "), "{reply}");
    }
    assert!(deliver(&mail_with("7bit", "a.txt", "Hello")).starts_with("250 2.0.0 Ok"));
    gateway.signal("TERM");
    crate::harness::wait_for(|| (!path.exists()).then_some(()), "the socket to be removed");
}
