//! Clients and servers that mean ill: what they send is refused, and what it costs is bounded.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use crate::harness::imap::{Imap, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, Sink, Wire, mail_with};

fn resident_kb(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn mailbox(server: &Pop3, head: &str, settings: &str) -> Gateway {
    Gateway::start_with(head, "pop3", &format!("pop3://localhost:{}", server.start().port()), settings)
}

fn mailboxes(server: &Imap, head: &str, settings: &str) -> Gateway {
    Gateway::start_with(head, "imap", &format!("imap://localhost:{}", server.start().port()), settings)
}

/// A certificate of the gateway's, and the settings that show it.
fn certificate(folder: &std::path::Path) -> (Certificate, String) {
    let certificate = Certificate::of("mx.test");
    certificate.store(folder, "mx");
    let at = folder.display();
    (certificate, format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\""))
}

fn is_greeting(line: &str) -> bool {
    ["220 ", "+OK ", "* OK "].iter().any(|start| line.starts_with(start))
}

/// Whether the other side closes, and says no more.
fn is_closed(wire: &mut Wire) -> bool {
    matches!(wire.stream.read(&mut [0]), Ok(0))
}

/// How long single bytes are sent at the most: many times what a session may take.
const DRIP_MAX: Duration = Duration::from_secs(30);

/// Sends single bytes until the other side has enough of it.
fn drip(wire: &mut Wire, text: &str) -> Duration {
    let started = Instant::now();
    for byte in text.bytes().cycle() {
        if wire.stream.write_all(&[byte]).is_err() || started.elapsed() > DRIP_MAX {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    started.elapsed()
}

/// A gateway of each kind.
fn each(settings: &str) -> [Gateway; 3] {
    let pop3 = mailbox(&Pop3::with(&[]), "", settings);
    [Gateway::start("discard:", settings), pop3, mailboxes(&Imap::with(&[]), "", settings)]
}

#[test]
fn who_sends_a_byte_at_a_time_is_left_in_time() {
    for gateway in each("session_seconds_max = 2") {
        let took = drip(&mut gateway.connect(), "NOOP xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        assert!(took < DRIP_MAX, "the session goes on");
    }
}

#[test]
fn those_who_have_begun_and_say_no_more_hold_up_nobody() {
    for gateway in each("") {
        let begun = |_| {
            let mut wire = gateway.connect();
            wire.send(b"NO");
            wire
        };
        let idle: Vec<Wire> = (0..200).map(begun).collect();
        // Their time is long, so whoever waited for them would not be heard.
        let greeting = gateway.connect().line();
        assert!(is_greeting(&greeting), "{greeting}");
        drop(idle);
    }
}

#[test]
fn a_line_without_end_is_not_collected() {
    let server = Pop3::with(&[]);
    for gateway in [Gateway::start("discard:", ""), mailbox(&server, "", "")] {
        let mut wire = gateway.connect();
        wire.line();
        let before = resident_kb(&gateway);
        for _ in 0..64 {
            wire.send(&[b'x'; 256 << 10]);
        }
        wire.send(b"\r\nNOOP\r\n");
        let refusal = wire.line();
        assert!(refusal.contains("Line too long"), "{refusal}");
        let answer = wire.line();
        assert!(answer.starts_with("250 ") || answer == "+OK", "{answer}");
        let after = resident_kb(&gateway);
        assert!(after < before + 10_240, "{before} kB, {after} kB");
    }
}

#[test]
fn what_imap_clients_send_without_end_is_not_collected() {
    let server = Imap::with(&[]);
    let gateway = mailboxes(&server, "", "");
    let before = resident_kb(&gateway);
    let block = [b'x'; 256 << 10];
    let small = b"{1+}\r\nx ".repeat(40_000);
    for (start, more) in [
        (&b""[..], &block[..]),
        (b"a LOGIN {4294967295+}\r\n", &block),
        (b"a LOGIN {99999999999999999999999+}\r\n", &block),
        (b"a LOGIN ", &small),
        (b"a ID (", &b"(".repeat(256 << 10)),
    ] {
        let mut wire = gateway.connect();
        wire.line();
        let _ = wire.try_send(start);
        let sent = (0..64).take_while(|_| wire.try_send(more).is_ok()).count();
        assert!(sent < 64, "16 MB were taken behind {}", String::from_utf8_lossy(start));
    }
    // What is only too long is passed over, and the session goes on.
    let mut wire = gateway.connect();
    wire.line();
    wire.send(&[b"a LOGIN {200000+}\r\n", &block[..200_000], b" x\r\n"].concat());
    wire.talk("S: a BAD *\nC: b NOOP\nS: b OK *");
    let after = resident_kb(&gateway);
    assert!(after < before + 12_288, "{before} kB, {after} kB");
    assert_eq!(server.commands(), ["NOOP"]);
}

#[test]
fn who_asks_and_does_not_listen_is_not_heard_for_ever() {
    let gateway = Gateway::start("discard:", "");
    let mut wire = gateway.connect();
    wire.line();
    let before = resident_kb(&gateway);
    let mut sender = wire.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let _ = sender.set_write_timeout(Some(Duration::from_secs(2)));
        let noops = "NOOP\r\n".repeat(10_000);
        (0..200).take_while(|_| sender.write_all(noops.as_bytes()).is_ok()).count()
    });
    let blocks = sending.join().unwrap();
    assert!(blocks < 200, "12 MB of commands were taken and nothing of their answers");
    let after = resident_kb(&gateway);
    assert!(after < before + 12_288, "{before} kB, {after} kB");
    // It serves others meanwhile.
    let greeting = gateway.connect().line();
    assert!(is_greeting(&greeting), "{greeting}");
}

/// A server whose one message never ends; it says how many blocks of 256 KiB were taken of it when no more are.
fn endless_message(start: &'static [u8]) -> (std::net::SocketAddr, mpsc::Receiver<usize>) {
    const BLOCKS_MAX: usize = 400;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (taken, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut wire = Wire::new(listener.accept().unwrap().0);
        let is_imap = start.starts_with(b"*");
        wire.send(if is_imap { b"* OK [CAPABILITY IMAP4rev1] ready\r\n" } else { b"+OK ready\r\n" });
        loop {
            let line = wire.line();
            let (tag, command) = if is_imap { line.split_once(' ').unwrap_or_default() } else { ("+OK", &*line) };
            match command.split(' ').next().unwrap_or_default() {
                "CAPA" => wire.send(b"-ERR\r\n"),
                "RETR" | "FETCH" => break,
                _ if is_imap => wire.send(format!("{tag} OK\r\n").as_bytes()),
                _ => wire.send(b"+OK 1 name\r\n"),
            }
        }
        wire.send(start);
        wire.send(b"Subject: x\r\n\r\n");
        let block = b"And so on, and on.\r\n".repeat((256 << 10) / 20);
        wire.stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        let blocks = (0..BLOCKS_MAX).take_while(|_| wire.try_send(&block).is_ok()).count();
        taken.send(blocks).unwrap();
    });
    (address, told)
}

#[test]
fn who_fetches_and_does_not_read_has_the_server_wait() {
    for (protocol, start) in
        [("pop3", &b"+OK 200000000 octets\r\n"[..]), ("imap", b"* 1 FETCH (BODY[] {200000000}\r\n")]
    {
        let (server, taken) = endless_message(start);
        let gateway = Gateway::start_with("", protocol, &format!("{protocol}://{server}"), "");
        let mut wire = gateway.connect();
        wire.line();
        wire.talk(match protocol {
            "pop3" => "C: USER tim\nS: +OK *\nC: PASS x\nS: +OK *\nC: RETR 1",
            _ => "C: a LOGIN tim x\nS: a OK *\nC: b SELECT INBOX\nS: b OK *\nC: c FETCH 1 BODY[]",
        });
        let before = resident_kb(&gateway);
        let blocks = taken.recv().unwrap();
        // What the sockets of the system hold on four sides, and no more.
        assert!(blocks < 200, "{protocol}: 50 MB were taken for one who reads nothing");
        let after = resident_kb(&gateway);
        assert!(after < before + 12_288, "{protocol}: {before} kB, {after} kB");
    }
}

#[test]
fn what_pop3_clients_say_before_the_handshake_is_dropped() {
    let server = Pop3::with(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (certificate, head) = certificate(folder.path());
    let gateway = mailbox(&server, &head, "tls = \"offer\"");
    let mut wire = gateway.connect();
    wire.line();
    wire.send(b"STLS\r\nUSER evil\r\nPASS evil\r\n");
    assert_eq!(wire.line(), "+OK Begin TLS negotiation");
    let mut wire = wire.secure(certificate.client("mx.test"));
    wire.talk("C: USER tim\nS: +OK\nC: NOOP\nS: +OK");
    assert!(!server.commands().iter().any(|command| command.contains("evil")), "{:?}", server.commands());
}

#[test]
fn what_imap_clients_say_before_the_handshake_is_dropped() {
    let server = Imap::with(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (certificate, head) = certificate(folder.path());
    let gateway = mailboxes(&server, &head, "tls = \"offer\"");
    let mut wire = gateway.connect();
    wire.line();
    wire.send(b"a STARTTLS\r\nb LOGIN evil evil\r\n");
    assert!(wire.line().starts_with("a OK "));
    let mut wire = wire.secure(certificate.client("mx.test"));
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "NOOP").status.starts_with("OK"));
    assert!(!server.commands().iter().any(|command| command.contains("evil")), "{:?}", server.commands());
}

#[test]
fn a_client_that_has_said_its_last_is_not_waited_for() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let mut wire = gateway.connect();
    wire.begin_data();
    wire.send(b"From: a\r\n\r\nhalf a mail\r\n");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut wire));
    assert!(sink.mails().is_empty());
    let server = Pop3::with(&[b"Subject: x\r\n\r\nHello\r\n"]);
    let gateway = mailbox(&server, "", "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut wire));
    let gateway = mailboxes(&Imap::with(&[]), "", "");
    let mut wire = gateway.connect();
    wire.line();
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    wire.send(b"a APPEND INBOX {100+}\r\nhalf a mail");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert!(is_closed(&mut wire));
}

/// A server that greets, says one thing to each line, and goes away.
fn server_that_says(greeting: &'static [u8], words: &'static [u8]) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.write_all(greeting);
            let mut heard = [0; 4096];
            while matches!(stream.read(&mut heard), Ok(1..)) {
                if stream.write_all(words).is_err() {
                    break;
                }
            }
        }
    });
    address
}

#[test]
fn a_hop_cannot_put_words_into_our_mouth() {
    let sink =
        Sink::start(Behaviour { final_reply: Some("554 5.0.0 no\r250 2.0.0 injected\u{7}"), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    let reply = gateway.connect().deliver(&mail_with("7bit", "a.txt", "Hello"));
    assert!(reply.starts_with("554 5.0.0 no 250 2.0.0 injected "), "{reply:?}");
    // A reply without end, lines that are none, replies that nobody asked for.
    let endless: &'static [u8] = Vec::leak(b"250-and so on\r\n".repeat(10_000));
    for words in [endless, b"+OK\r\n", b"250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n", b"250-a\r\n551 b\r\n"] {
        let gateway = Gateway::start(&format!("smtp://{}", server_that_says(b"220 hop\r\n", words)), "");
        let mut wire = gateway.connect();
        wire.talk("S: 220 mx.test *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>");
        let reply = wire.reply();
        assert!(reply.starts_with("451 4.4."), "{reply}");
        wire.talk("C: NOOP\nS: 250 *");
    }
}

#[test]
fn a_mailbox_that_breaks_off_gives_no_end() {
    let address = half_a_message(b"+OK 100 octets\r\n", b"Subject: half\r\n\r\nof it\r\n".into(), None);
    let gateway = Gateway::start_with("", "pop3", &format!("pop3://{address}"), "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK ready\nC: USER tim\nS: +OK 1 name\nC: PASS x\nS: +OK 1 name\nC: RETR 1");
    let all = String::from_utf8(wire.rest()).unwrap();
    assert!(!all.contains("\r\n.\r\n") && all.contains("-ERR [SYS/TEMP] The server is gone"), "{all}");
}

/// A server that sends the first half of a message, and waits, or hangs up.
fn half_a_message(start: &'static [u8], half: Vec<u8>, wait: Option<Arc<Barrier>>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut wire = Wire::new(stream.unwrap());
            let is_imap = start.starts_with(b"*");
            wire.send(if is_imap { b"* OK [CAPABILITY IMAP4rev1] ready\r\n" } else { b"+OK ready\r\n" });
            loop {
                let line = wire.line();
                let (tag, command) = if is_imap { line.split_once(' ').unwrap_or_default() } else { ("+OK", &*line) };
                match command.split(' ').next().unwrap_or_default() {
                    "" => break,
                    "CAPA" => wire.send(b"-ERR\r\n"),
                    "RETR" | "FETCH" => {
                        wire.send(&[start, &half].concat());
                        if let Some(wait) = wait {
                            wait.wait();
                        }
                        return;
                    }
                    _ if is_imap => wire.send(format!("{tag} OK\r\n").as_bytes()),
                    _ => wire.send(b"+OK 1 name\r\n"),
                }
            }
        }
    });
    address
}

#[test]
fn an_imap_server_that_breaks_off_gives_no_end() {
    let server = half_a_message(b"* 1 FETCH (BODY[] {300}\r\n", b"Subject: half\r\n\r\nof it\r\n".into(), None);
    let gateway = Gateway::start_with("", "imap", &format!("imap://{server}"), "");
    let mut wire = gateway.connect();
    wire.line();
    wire.talk("C: a LOGIN tim x\nS: a OK *\nC: b SELECT INBOX\nS: b OK *\nC: c FETCH 1 BODY[]");
    let all = String::from_utf8(wire.rest()).unwrap();
    assert!(!all.contains("c OK") && !all.contains("of it"), "{all}");
}

#[test]
fn a_message_that_is_announced_as_large_streams_at_once() {
    let part = [b"Subject: half\r\n\r\n".as_slice(), &b"And so on.\r\n".repeat(5_000)].concat();
    for (protocol, start) in [("pop3", &b"+OK 3000000 octets\r\n"[..]), ("imap", b"* 1 FETCH (BODY[] {3000000}\r\n")] {
        let rest = Arc::new(Barrier::new(2));
        let server = half_a_message(start, part.clone(), Some(rest.clone()));
        let gateway = Gateway::start_with("", protocol, &format!("{protocol}://{server}"), "");
        let mut wire = gateway.connect();
        wire.line();
        wire.talk(match protocol {
            "pop3" => "C: USER tim\nS: +OK *\nC: PASS x\nS: +OK *\nC: RETR 1",
            _ => "C: a LOGIN tim x\nS: a OK *\nC: b SELECT INBOX\nS: b OK *\nC: c FETCH 1 BODY[]",
        });
        // Half of what has come is here while the server has sent no more, and that is less than the head window.
        assert_eq!(wire.line().as_bytes(), start.trim_ascii_end());
        assert!(wire.exactly(part.len() / 2) == part[..part.len() / 2]);
        rest.wait();
        assert!(wire.rest().len() < part.len() / 2);
    }
}
