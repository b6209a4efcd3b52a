//! Clients and servers that mean ill: what they send is refused, and what it costs is bounded.

mod harness;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::time::{Duration, Instant};

use harness::mailbox::Pop3;
use harness::tls::Certificate;
use harness::{Behaviour, Gateway, Sink, Wire, mail_with};

fn resident_kb(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn mailbox(server: &Pop3, head: &str, settings: &str) -> Gateway {
    Gateway::start_with(head, "pop3", &format!("pop3://localhost:{}", server.start().port()), settings)
}

/// Sends single bytes until the other side has enough of it.
fn drip(wire: &mut Wire, text: &str) -> Duration {
    let started = Instant::now();
    for byte in text.bytes().cycle() {
        if wire.stream.write_all(&[byte]).is_err() || started.elapsed() > Duration::from_secs(10) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    started.elapsed()
}

#[test]
fn who_sends_a_byte_at_a_time_is_left_in_time_and_holds_up_nobody() {
    let server = Pop3::with(&[]);
    let smtp = Gateway::start("discard:", "session_seconds_max = 2");
    let pop3 = mailbox(&server, "", "session_seconds_max = 2");
    for gateway in [&smtp, &pop3] {
        let idle: Vec<Wire> = (0..200)
            .map(|_| {
                let mut wire = gateway.connect();
                wire.send(b"NO");
                wire
            })
            .collect();
        let mut slow = gateway.connect();
        let dripping = std::thread::spawn(move || drip(&mut slow, "NOOP xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
        let started = Instant::now();
        let greeting = gateway.connect().line();
        assert!(greeting.starts_with("220 ") || greeting.starts_with("+OK "), "{greeting}");
        assert!(started.elapsed() < Duration::from_secs(1), "held up");
        assert!(dripping.join().unwrap() < Duration::from_secs(9), "the session goes on");
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
        assert!(after < before + 4_096, "{before} kB, {after} kB");
    }
}

#[test]
fn who_asks_and_does_not_listen_is_not_heard_for_ever() {
    let server = Pop3::with(&[]);
    for gateway in [Gateway::start("discard:", ""), mailbox(&server, "", "")] {
        let mut wire = gateway.connect();
        wire.line();
        let before = resident_kb(&gateway);
        let mut sender = wire.stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let _ = sender.set_write_timeout(Some(Duration::from_secs(2)));
            let noops = b"NOOP\r\n".repeat(10_000);
            (0..200).take_while(|_| sender.write_all(&noops).is_ok()).count()
        });
        let blocks = sending.join().unwrap();
        assert!(blocks < 200, "12 MB of commands were taken and nothing of their answers");
        let after = resident_kb(&gateway);
        assert!(after < before + 8_192, "{before} kB, {after} kB");
        // It serves others meanwhile.
        let greeting = gateway.connect().line();
        assert!(greeting.starts_with("220 ") || greeting.starts_with("+OK "), "{greeting}");
    }
}

#[test]
fn what_pop3_clients_say_before_the_handshake_is_dropped() {
    let server = Pop3::with(&[]);
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"");
    let gateway = mailbox(&server, &head, "tls = \"offer\"");
    let mut wire = gateway.connect();
    wire.line();
    wire.send(b"STLS\r\nUSER evil\r\nPASS evil\r\n");
    assert_eq!(wire.line(), "+OK Begin");
    let mut wire = wire.secure(certificate.client("mx.test"));
    wire.talk("C: USER tim\nS: +OK\nC: NOOP\nS: +OK");
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
    assert_eq!(wire.rest(), b"");
    assert!(sink.mails().is_empty());
    let server = Pop3::with(&[b"Subject: x\r\n\r\nHello\r\n"]);
    let gateway = mailbox(&server, "", "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    wire.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(wire.rest(), b"");
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
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut wire = Wire::new(stream.unwrap());
            wire.send(b"+OK ready\r\n");
            loop {
                let line = wire.line();
                match line.split(' ').next().unwrap_or_default() {
                    "" => break,
                    "CAPA" => wire.send(b"-ERR\r\n"),
                    "RETR" => {
                        wire.send(b"+OK 100 octets\r\nSubject: half\r\n\r\nof it\r\n");
                        break;
                    }
                    _ => wire.send(b"+OK 1 name\r\n"),
                }
            }
        }
    });
    let gateway = Gateway::start_with("", "pop3", &format!("pop3://{address}"), "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK ready\nC: USER tim\nS: +OK 1 name\nC: PASS x\nS: +OK 1 name\nC: RETR 1");
    let all = String::from_utf8(wire.rest()).unwrap();
    assert!(!all.contains("\r\n.\r\n") && all.contains("-ERR [SYS/TEMP] The server is gone"), "{all}");
}
