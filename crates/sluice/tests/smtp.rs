//! Whole conversations through the gateway.

use std::io::Write;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::harness::{Behaviour, Gateway, Sink, Wire, base64, eicar, mail_with, stuffed, wait_for};

/// A mail of about `bytes` bytes in one Base64 attachment that compresses badly.
fn large_mail(bytes: usize) -> Vec<u8> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let body: Vec<u8> = (0..bytes * 3 / 4)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as u8
        })
        .collect();
    mail_with("base64", "random.bin", &base64(&body))
}

fn quoted_printable(bytes: &[u8]) -> String {
    bytes.chunks(20).map(|line| line.iter().map(|byte| format!("={byte:02X}")).collect::<String>() + "=\r\n").collect()
}

fn uuencode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(if value == 0 { b'`' } else { value + 32 });
    let mut text = String::from("begin 644 eicar.com\r\n");
    for line in bytes.chunks(45) {
        text.push(digit(line.len() as u8));
        for group in line.chunks(3) {
            let at = |index: usize| group.get(index).copied().unwrap_or(0);
            let (a, b, c) = (at(0), at(1), at(2));
            text.extend([a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63].map(digit));
        }
        text.push_str("\r\n");
    }
    text + "`\r\nend"
}

#[test]
fn clean_mails_arrive_as_they_were_sent() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let mut wire = gateway.connect();
    wire.talk("S: 220 mx.test ESMTP Sluice\nC: EHLO client.test\nS: 250-*");
    let dots = b"From: a\r\n\r\n.\r\n..\r\n.x\r\n\r\n.\r\n".to_vec();
    let mails = [dots, mail_with("7bit", "a.txt", "Hello"), large_mail(100_000), large_mail(3_000_000)];
    for (index, mail) in mails.iter().enumerate() {
        assert_eq!(wire.transaction(mail), "250 2.0.0 Taken");
        let arrived = sink.wait(index + 1)[index].clone();
        assert!(arrived.original() == mail, "mail {index} was changed");
        assert!(
            arrived
                .text()
                .starts_with("Received: from client.test ([127.0.0.1])\r\n\tby mx.test (Sluice) with ESMTP id ")
        );
        assert_eq!((arrived.from.as_str(), arrived.to), ("a@client.test", vec!["b@mx.test".to_string()]));
    }
}

#[test]
fn eicar_is_refused_in_every_coding_and_nothing_is_delivered() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let virus = eicar();
    let text = String::from_utf8(virus.clone()).unwrap();
    for (what, mail) in [
        ("plain", mail_with("7bit", "eicar.com", &text)),
        ("base64", mail_with("base64", "eicar.com", &base64(&virus))),
        ("quoted-printable", mail_with("quoted-printable", "eicar.com", &quoted_printable(&virus))),
        ("uuencode", mail_with("x-uuencode", "eicar.com", &uuencode(&virus))),
        ("uuencode in text", mail_with("7bit", "letter.txt", &format!("See below.\r\n\r\n{}", uuencode(&virus)))),
        ("a mail in base64", mail_with("base64", "mail.eml", &base64(&mail_with("base64", "e.com", &base64(&virus))))),
    ] {
        let reply = gateway.connect().deliver(&mail);
        assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"), "{what}: {reply}");
    }
    assert!(sink.mails().is_empty() && sink.unfinished().is_empty());
}

#[test]
fn a_virus_behind_the_head_window_never_gets_its_final_dot() {
    for extensions in [&[][..], &["CHUNKING"][..]] {
        let sink = Sink::start(Behaviour { extensions, ..Behaviour::default() });
        let head = "[resources]\nhead_window_bytes = 32768";
        let gateway = Gateway::start_with(head, "smtp", &sink.forward(), "");
        let mut mail = large_mail(200_000);
        let end = b"--frontier--\r\n";
        mail.truncate(mail.len() - end.len());
        mail.extend_from_slice(
            b"--frontier\r\nContent-Type: application/x-com\r\nContent-Transfer-Encoding: base64\r\n\r\n",
        );
        mail.extend_from_slice(base64(&eicar()).as_bytes());
        mail.extend_from_slice(end);
        let mut wire = gateway.connect();
        assert!(wire.deliver(&mail).starts_with("554 5.7.1 Message refused: Eicar"), "{extensions:?}");
        assert!(sink.mails().is_empty());
        // The next mail in the same session is none the worse.
        assert_eq!(wire.transaction(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Taken");
        assert_eq!(sink.wait(1)[0].original(), b"From: a\r\n\r\nHello\r\n");
    }
}

#[test]
fn a_mail_announced_as_larger_than_the_head_window_streams_at_once() {
    let mail = stuffed(&large_mail(300_000));
    for (size, settings, streams) in [
        (" SIZE=300000", "", true),
        ("", "", false),
        (" SIZE=200000", "", false),
        (" SIZE=300000", "on_infected = \"blank\"", false),
    ] {
        let sink = Sink::start(Behaviour::default());
        let gateway = Gateway::start(&sink.forward(), settings);
        let mut wire = gateway.connect();
        wire.talk(&format!("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>{size}\nS: 250 *\nC: RCPT TO:<c@d>"));
        wire.talk("S: 250 *\nC: DATA\nS: 354 *");
        wire.send(&mail[..100_000]);
        let begun = || sink.commands().iter().any(|command| command == "DATA");
        if streams {
            wait_for(|| begun().then_some(()), "the content to begin");
        }
        assert_eq!(begun(), streams, "{size:?} {settings:?}");
        wire.send(&mail[100_000..]);
        wire.send(b".\r\n");
        wire.expect("250 *");
        assert_eq!(sink.wait(1).len(), 1);
    }
}

#[test]
fn what_is_cleared_goes_on_while_the_client_pauses() {
    let mail = stuffed(&large_mail(600_000));
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b> SIZE=600000\nS: 250 *\nC: RCPT TO:<c@d>");
    wire.talk("S: 250 *\nC: DATA\nS: 354 *");
    for count in [400_000, 410_000] {
        wire.send(&mail[if count == 400_000 { 0 } else { 400_000 }..count]);
        // All but the tail of 16 KiB, and what the decoder holds of a line.
        let is_there = || sink.content_bytes() > count - (17 << 10);
        wait_for(|| is_there().then_some(()), "what is cleared");
    }
    wire.send(&mail[410_000..]);
    wire.send(b".\r\n");
    wire.expect("250 *");
    assert_eq!(sink.wait(1).len(), 1);
}

#[test]
fn blank_overwrites_the_part_and_tells_the_recipient() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "on_infected = \"blank\"");
    let body = base64(&eicar());
    let mail = mail_with("base64", "eicar.com", &body);
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    let mails = sink.wait(2);
    let (blanked, notice) = (&mails[0], &mails[1]);
    let wanted: String =
        body.chars().map(|c| if c.is_ascii_alphanumeric() || c == '+' || c == '/' { 'A' } else { c }).collect();
    let wanted = String::from_utf8(mail).unwrap().replace(&body, &wanted);
    assert_eq!(String::from_utf8_lossy(blanked.original()), wanted);
    assert_eq!((notice.from.as_str(), &notice.to), ("", &vec!["b@mx.test".to_string()]));
    assert!(notice.text().contains("Eicar-Test-Signature in eicar.com"), "{}", notice.text());
    assert!(notice.text().contains("Auto-Submitted: auto-replied"));
}

#[test]
fn blank_of_a_part_that_streams_overwrites_the_rest() {
    let sink = Sink::start(Behaviour::default());
    let head = "[resources]\nhead_window_bytes = 32768";
    let gateway = Gateway::start_with(head, "smtp", &sink.forward(), "on_infected = \"blank\"");
    let marker = b"SLUICE-TEST-MARKER-";
    let database = gateway.folder.path().join("local.ndb");
    let hex: String = marker.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&database, format!("Local.Marker:0:*:{hex}\n")).unwrap();
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[database]\npaths = [\"local.ndb\"]\n")).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded");

    let mut bytes: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    bytes[150_000..150_000 + marker.len()].copy_from_slice(marker);
    let mail = mail_with("base64", "half.bin", &base64(&bytes));
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    let blanked = sink.wait(2)[0].clone();
    assert_eq!(blanked.original().len(), mail.len());
    let differ: Vec<usize> = (0..mail.len()).filter(|&at| blanked.original()[at] != mail[at]).collect();
    let (hit, first) = (150_000 * 78 / 57, *differ.first().unwrap());
    assert!(first < hit && hit - first < 100_000, "overwritten from {first} on, hit at {hit}");
    let end = mail.len() - 20;
    assert!(blanked.original()[hit..end].iter().all(|byte| b"A=\r\n-".contains(byte)), "not overwritten to its end");
}

#[test]
fn tag_marks_quarantine_keeps_and_pass_lets_through() {
    let sink = Sink::start(Behaviour::default());
    let mail = mail_with("base64", "eicar.com", &base64(&eicar()));

    let gateway = Gateway::start(&sink.forward(), "on_infected = \"tag\"");
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    let tagged = sink.wait(1)[0].clone();
    assert!(
        tagged.text().contains("X-Sluice-Status: found;\r\n\tEicar-Test-Signature (match)\r\n"),
        "{}",
        tagged.text()
    );
    assert_eq!(tagged.original(), mail);

    let gateway = Gateway::start(&sink.forward(), "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"");
    assert_eq!(gateway.connect().deliver(b"From: a\r\n\r\nclean\r\n"), "250 2.0.0 Taken");
    assert!(gateway.files("quarantine").is_empty(), "clean mail does not touch the quarantine");
    assert!(gateway.connect().deliver(&mail).starts_with("250 2.0.0 Held back (id "));
    let kept = gateway.files("quarantine");
    assert_eq!(kept.len(), 2);
    assert_eq!(std::fs::read(&kept[0]).unwrap(), mail);
    assert!(std::fs::read_to_string(&kept[1]).unwrap().contains("Eicar-Test-Signature"));
    assert_eq!(sink.mails().len(), 2);

    let settings = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"\nmessage_bytes_max = 20000";
    let gateway = Gateway::start(&sink.forward(), settings);
    let large = [&mail[..], &vec![b'x'; 50_000]].concat();
    assert!(gateway.connect().deliver(&large).starts_with("554 "), "what is kept is kept whole");
    assert!(gateway.files("quarantine").is_empty());

    let gateway = Gateway::start(&sink.forward(), "on_infected = \"pass\"");
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    assert_eq!(sink.wait(3)[2].original(), mail);
}

#[test]
fn the_hops_refusal_is_the_clients() {
    let sink = Sink::start(Behaviour { refuse: Some("nobody"), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    gateway.connect().talk(
        "S: 220 *
         C: EHLO x
         S: 250-*
         C: MAIL FROM:<a@b>
         S: 250 *
         C: RCPT TO:<nobody@mx.test>
         S: 550 5.1.1 No such user (id *
         C: RCPT TO:<c@mx.test>
         S: 250 2.1.5 Ok
         C: DATA
         S: 354 *
         C: From: x
         C:
         C: y
         C: .
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 *",
    );
    assert_eq!(sink.mails()[0].to, ["c@mx.test"]);
}

#[test]
fn a_hop_that_refuses_the_end_refuses_the_client() {
    let sink = Sink::start(Behaviour { final_reply: Some("452 4.3.1 Disk full"), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    assert!(gateway.connect().deliver(b"From: a\r\n\r\nx\r\n").starts_with("452 4.3.1 Disk full (id "));
}

#[test]
fn a_hop_that_is_not_there_or_goes_away_defers_the_mail() {
    let gateway = Gateway::start("smtp://127.0.0.1:1", "");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 451 4.4.1 *");

    for behaviour in [
        Behaviour { close_at: Some("DATA"), ..Behaviour::default() },
        Behaviour { close_after_bytes: Some(1000), ..Behaviour::default() },
    ] {
        let sink = Sink::start(behaviour);
        let gateway = Gateway::start(&sink.forward(), "");
        let reply = gateway.connect().deliver(&large_mail(1_000_000));
        assert!(reply.starts_with("451 4.4.2 "), "{reply}");
        assert!(sink.mails().is_empty());
    }
}

#[test]
fn a_hop_that_has_had_enough_of_a_connection_gets_the_next_mail_over_another() {
    let sink = Sink::start(Behaviour { mails_max: Some(2), ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    let mut wire = gateway.connect();
    let mail = mail_with("7bit", "a.txt", "clean");
    assert_eq!(wire.deliver(&mail), "250 2.0.0 Taken");
    for _ in 0..4 {
        assert_eq!(wire.transaction(&mail), "250 2.0.0 Taken");
    }
    assert_eq!(sink.mails().len(), 5);
    assert!(sink.clients().len() >= 3, "{:?}", sink.clients());
}

#[test]
fn a_client_that_goes_away_delivers_nothing() {
    for extensions in [&[][..], &["CHUNKING"][..]] {
        let sink = Sink::start(Behaviour { extensions, ..Behaviour::default() });
        let gateway = Gateway::start_with("[resources]\nhead_window_bytes = 32768", "smtp", &sink.forward(), "");
        for bytes in [10, 100_000] {
            let mut wire = gateway.connect();
            wire.begin_data();
            wire.send(&stuffed(&large_mail(300_000))[..bytes]);
            wire.stream.shutdown(Shutdown::Both).unwrap();
        }
        assert_eq!(gateway.connect().deliver(b"From: a\r\n\r\nlast\r\n"), "250 2.0.0 Taken");
        assert_eq!(sink.wait(1).len(), 1);
    }
}

#[test]
fn killed_in_the_middle_the_gateway_delivers_nothing() {
    let sink = Sink::start(Behaviour::default());
    let mut gateway = Gateway::start_with("[resources]\nhead_window_bytes = 32768", "smtp", &sink.forward(), "");
    let mut wire = gateway.connect();
    wire.begin_data();
    wire.send(&stuffed(&large_mail(300_000))[..200_000]);
    wait_for(|| sink.commands().iter().any(|command| command == "DATA").then_some(()), "the content to begin");
    gateway.kill();
    gateway.wait();
    wait_for(|| (!sink.unfinished().is_empty()).then_some(()), "the hop to lose its client");
    assert!(sink.mails().is_empty());
    assert_eq!(wire.line(), "");
}

#[test]
fn no_sequence_smuggles_a_second_mail() {
    for extensions in [&[][..], &["CHUNKING"][..]] {
        let sink = Sink::start(Behaviour { extensions, ..Behaviour::default() });
        let gateway = Gateway::start(&sink.forward(), "");
        for end in [
            "\n.\n",
            "\n.\r\n",
            "\r\n.\n",
            "\r.\r",
            "\r.\r\n",
            "\r\n.\r",
            "\r\n\0.\r\n",
            "\r\n.\0\r\n",
            "\r\r\n.\r\r\n",
        ] {
            let before = sink.mails().len();
            let smuggled = format!(
                "From: a\r\n\r\nfirst{end}MAIL FROM:<evil@x>\r\nRCPT TO:<victim@x>\r\nDATA\r\nFrom: evil\r\n\r\nsecond\r\n.\r\n"
            );
            let mut wire = gateway.connect();
            wire.begin_data();
            wire.send(smuggled.as_bytes());
            wire.expect("250 2.0.0 Taken");
            wire.talk("C: QUIT\nS: 221 *");
            let mails = sink.mails();
            assert_eq!(mails.len(), before + 1, "{end:?}");
            assert_eq!(mails[before].from, "a@b");
            let content = &mails[before].content;
            assert!(
                !content.iter().enumerate().any(|(at, &byte)| byte == b'\n' && content[at - 1] != b'\r'),
                "{end:?}"
            );
            assert!(!sink.commands().iter().any(|command| command.contains("evil@x")), "{end:?}");
        }
    }
}

#[test]
fn bare_line_ends_are_refused_where_that_is_set() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "bare_line_ends = \"refuse\"");
    let mut wire = gateway.connect();
    wire.begin_data();
    // What follows is not heard: it may be what the line ends were to hide.
    wire.send(b"From: a\r\n\r\nbare\nline\r\n.\r\nMAIL FROM:<a@b>\r\n");
    wire.expect("521 5.5.2 *");
    assert_eq!(wire.line(), "", "the session goes on");
    assert!(sink.mails().is_empty());
}

#[test]
fn no_recipient_gets_into_the_content_of_another() {
    for extensions in [&[][..], &["CHUNKING"][..]] {
        let sink = Sink::start(Behaviour { extensions, ..Behaviour::default() });
        let gateway = Gateway::start_with("[resources]\nhead_window_bytes = 32768", "smtp", &sink.forward(), "");
        let mail = large_mail(200_000);
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *\nC: RCPT TO:<c@d>\nS: 250 *");
        wire.send(format!("BDAT {}\r\n", mail.len()).as_bytes());
        wire.send(&mail);
        wire.expect("250 2.0.0 Chunk received");
        wire.talk("C: RCPT TO:<late@d>\nS: 503 5.5.1 *\nC: NOOP\nS: 250 *\nC: BDAT 0 LAST\nS: 250 *");
        assert_eq!(sink.wait(1)[0].original(), mail);
        assert!(!sink.commands().iter().any(|command| command.contains("late")), "{:?}", sink.commands());
    }
}

#[test]
fn a_hop_that_knows_only_helo_gets_it() {
    let sink = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let forward = format!("smtp://{}", sink.local_addr().unwrap());
    let hop = std::thread::spawn(move || {
        let mut wire = Wire::new(sink.accept().unwrap().0);
        wire.send(b"220 old\r\n");
        assert!(wire.line().starts_with("EHLO "));
        wire.send(b"500 What?\r\n");
        let heard = wire.line();
        wire.send(b"250 Hello\r\n");
        heard
    });
    let _gateway = Gateway::start(&forward, "");
    assert_eq!(hop.join().unwrap(), "HELO mx.test");
}

#[test]
fn a_second_gateway_does_not_get_the_address() {
    let gateway = Gateway::start("discard:", "");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    let start = |address: &str| {
        let listener = "[[listener]]\nprotocol = \"smtp\"\nforward = \"discard:\"\n";
        std::fs::write(&config, format!("{listener}address = \"{address}\"\n")).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_sluice"));
        let started = command.arg("serve").arg("--config").arg(&config).stdout(std::process::Stdio::piped());
        let mut child = started.stderr(std::process::Stdio::piped()).spawn().unwrap();
        // One that listens would not end by itself.
        let mut ready = String::new();
        let _ = std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut ready);
        let _ = child.kill();
        (ready, String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap())
    };
    let port = gateway.address.port();
    for address in [format!("127.0.0.1:{port}"), format!("0.0.0.0:{port}")] {
        let (ready, error) = start(&address);
        let by = format!("cannot listen on {address}: address in use by sluice (process {})", gateway.supervisor());
        assert!(ready.is_empty() && error.contains(&by), "{ready:?} {error}");
    }
    // Whoever waits there has lost nothing.
    assert!((0..8).all(|_| gateway.connect().reply().starts_with("220 ")));
}

#[test]
fn one_gateway_may_have_an_address_twice_and_keeps_it_over_a_reload() {
    let port = crate::harness::free_port();
    let listener = |address: &str| {
        format!("[[listener]]\nprotocol = \"smtp\"\naddress = \"{address}:{port}\"\nforward = \"discard:\"\n")
    };
    let gateway = Gateway::with(&format!("threads = 2\n{}{}", listener("0.0.0.0"), listener("127.0.0.1")));
    let file = gateway.folder.path().join("sluice.toml");
    std::fs::write(&file, format!("threads = 2\n{}", listener("127.0.0.1"))).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded");
    assert!((0..8).all(|_| Wire::connect(([127, 0, 0, 1], port).into()).reply().starts_with("220 ")));
}

#[test]
fn who_may_come_is_said_by_the_listener() {
    let gateway = Gateway::start("discard:", "clients = [\"192.0.2.0/24\"]");
    assert_eq!(gateway.connect().reply(), "554 5.7.1 Access denied");
    let gateway = Gateway::start("discard:", "clients = [\"192.0.2.0/24\", \"127.0.0.1\"]");
    assert!(gateway.connect().reply().starts_with("220 "));
}

#[test]
fn what_a_client_learns_of_a_refusal_is_set() {
    let mail = mail_with("base64", "eicar.com", &base64(&eicar()));
    for (refusal, says) in [
        ("id", "554 5.7.1 Message refused (id "),
        ("name", "554 5.7.1 Message refused: Eicar-Test-Signature in eicar.com (id "),
        ("Ask postmaster@mx.test about {id}.", "554 5.7.1 Ask postmaster@mx.test about "),
    ] {
        let gateway = Gateway::start("discard:", &format!("refusal = \"{refusal}\""));
        let reply = gateway.connect().deliver(&mail);
        let id = reply.trim_end_matches([')', '.']).rsplit(' ').next().unwrap();
        assert!(reply.starts_with(says) && reply.matches(id).count() == 1, "{refusal}: {reply}");
        assert!(gateway.wait_for_log("Eicar-Test-Signature").contains(id), "the log knows it");
    }
}

#[test]
fn who_sends_too_many_infected_mails_is_told_to_come_later() {
    let mail = mail_with("base64", "eicar.com", &base64(&eicar()));
    let gateway = Gateway::start("discard:", "infected_per_client_max = 2");
    let mut wire = gateway.connect();
    assert!(wire.deliver(&mail).starts_with("554 "));
    assert_eq!(wire.transaction(b"From: a\r\n\r\nclean\r\n"), "250 2.0.0 Discarded");
    assert!(wire.transaction(&mail).starts_with("554 "));
    wire.talk("C: MAIL FROM:<a@b>\nS: 450 4.7.1 *");
    let mut another = gateway.connect();
    another.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 450 4.7.1 *");
    gateway.wait_for_log("too many infected messages");
}

#[test]
fn the_quarantine_takes_a_mail_of_any_size() {
    let attached = |mail: &[u8], infected: &str| {
        let end = "--frontier--\r\n";
        let part = "--frontier\r\nContent-Type: application/x-com\r\nContent-Transfer-Encoding: base64\r\n\r\n";
        [mail.strip_suffix(end.as_bytes()).unwrap(), part.as_bytes(), infected.as_bytes(), end.as_bytes()].concat()
    };
    let first = mail_with("base64", "eicar.com", &base64(&eicar()));
    let rest = large_mail(200_000);
    let boundary = rest.windows(12).position(|bytes| bytes == b"--frontier\r\n").unwrap();
    let first = [first.strip_suffix(b"--frontier--\r\n").unwrap(), &rest[boundary..]].concat();
    let last = attached(&large_mail(200_000), &base64(&eicar()));
    for (mail, streams) in [(first, false), (last, true)] {
        let sink = Sink::start(Behaviour::default());
        let settings = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";
        let gateway = Gateway::start_with("[resources]\nhead_window_bytes = 32768", "smtp", &sink.forward(), settings);
        let mut wire = gateway.connect();
        assert!(wire.deliver(&mail).starts_with("250 2.0.0 Held back (id "));
        let kept = gateway.files("quarantine");
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert!(std::fs::read(&kept[0]).unwrap() == mail, "not what was sent");
        assert_eq!(sink.commands().iter().any(|command| command == "DATA"), streams);
        // A clean one of that size leaves nothing.
        assert_eq!(wire.transaction(&large_mail(200_000)), "250 2.0.0 Taken");
        assert_eq!(gateway.files("quarantine").len(), 2);
        assert_eq!(sink.wait(1).len(), 1);
    }
}

#[test]
fn pipelined_commands_and_chunks_are_taken() {
    let sink =
        Sink::start(Behaviour { extensions: &["CHUNKING", "SMTPUTF8", "DSN", "SIZE 100000"], ..Behaviour::default() });
    let gateway = Gateway::start(&sink.forward(), "");
    wait_for(|| (!sink.commands().is_empty()).then_some(()), "the probe");
    let mut wire = gateway.connect();
    wire.expect("220 *");
    let offered = wait_for(
        || {
            Some(gateway.connect())
                .map(|mut wire| (wire.reply(), wire.command("EHLO x")))
                .filter(|(_, hello)| hello.contains("DSN"))
        },
        "the hop to be learned",
    )
    .1;
    for extension in ["PIPELINING", "8BITMIME", "SMTPUTF8", "CHUNKING", "ENHANCEDSTATUSCODES", "DSN", "SIZE 100000"] {
        assert!(offered.contains(extension), "{extension} in {offered}");
    }
    wire.send(
        "EHLO x\r\nMAIL FROM:<j\u{f6}@x> SMTPUTF8 BODY=8BITMIME RET=HDRS ENVID=e1\r\nRCPT TO:<c@d> NOTIFY=NEVER\r\nBDAT 10\r\nFrom: x\r\n\rBDAT 7 LAST\r\n\nhello\r"
            .as_bytes(),
    );
    let _ = wire.reply();
    for wanted in ["250 2.1.0 *", "250 2.1.5 *", "250 2.0.0 *", "250 2.0.0 Taken"] {
        wire.expect(wanted);
    }
    assert_eq!(sink.wait(1)[0].original(), b"From: x\r\n\r\nhello\r\n");
    let commands = sink.commands();
    assert!(
        commands.iter().any(|line| line == "MAIL FROM:<j\u{f6}@x> BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=e1"),
        "{commands:?}"
    );
    assert!(commands.iter().any(|line| line == "RCPT TO:<c@d> NOTIFY=NEVER"), "{commands:?}");
}

#[test]
fn an_lmtp_hop_gets_one_recipient_a_message_from_an_smtp_client() {
    let sink = Sink::start(Behaviour { lmtp: true, ..Behaviour::default() });
    let gateway = Gateway::start(&format!("lmtp://{}", sink.address), "");
    gateway.connect().talk(
        "S: 220 *
         C: EHLO x
         S: 250-*
         C: MAIL FROM:<a@b>
         S: 250 *
         C: RCPT TO:<c@d>
         S: 250 *
         C: RCPT TO:<e@d>
         S: 452 4.5.3 *
         C: DATA
         S: 354 *
         C: From: a
         C:
         C: x
         C: .
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 *",
    );
    let gateway = Gateway::start_with("", "lmtp", &format!("lmtp://{}", sink.address), "");
    gateway.connect().talk(
        "S: 220 mx.test LMTP Sluice
         C: LHLO x
         S: 250-*
         C: MAIL FROM:<a@b>
         S: 250 *
         C: RCPT TO:<c@d>
         S: 250 *
         C: RCPT TO:<e@d>
         S: 250 *
         C: DATA
         S: 354 *
         C: From: a
         C:
         C: x
         C: .
         S: 250 2.0.0 Taken
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 *",
    );
    assert_eq!(sink.mails()[1].to, ["c@d", "e@d"]);
}

#[test]
fn the_reply_for_one_recipient_does_not_wait_for_that_of_another() {
    let silence = Duration::from_secs(4);
    let sink = Sink::start(Behaviour { lmtp: true, replies: Some((2, silence)), ..Behaviour::default() });
    let gateway = Gateway::start_with("", "lmtp", &format!("lmtp://{}", sink.address), "");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@b>\nS: 250 *");
    wire.talk("C: RCPT TO:<c@d>\nS: 250 *\nC: RCPT TO:<e@d>\nS: 250 *\nC: RCPT TO:<f@d>\nS: 250 *\nC: RCPT TO:<g@d>\nS: 250 *");
    wire.talk("C: DATA\nS: 354 *\nC: From: a\nC:\nC: x");
    let started = Instant::now();
    wire.talk("C: .\nS: 250 2.0.0 Taken\nS: 250 2.0.0 Taken");
    assert!(started.elapsed() < silence, "they waited for the rest: {:?}", started.elapsed());
    wire.talk("S: 451 4.4.2 *\nS: 451 4.4.2 *");
    assert!(started.elapsed() >= silence);
    assert!(gateway.wait_for_log("reply=\"250 2.0.0 Taken; 250 2.0.0 Taken; 451").contains("to=\"c@d,e@d,f@d,g@d\""));
    wire.talk("C: NOOP\nS: 250 *");
}

#[test]
fn a_maildir_gets_whole_mails_with_the_systems_line_ends() {
    let gateway = Gateway::start("maildir:FOLDER/box", "");
    assert_eq!(gateway.connect().deliver(b"From: a\r\n\r\n.dot\r\n"), "250 2.0.0 Delivered");
    assert!(gateway.connect().deliver(&mail_with("base64", "e", &base64(&eicar()))).starts_with("554 "));
    let box_files = gateway.files("box");
    assert_eq!(box_files.len(), 1);
    assert!(box_files[0].parent().unwrap().ends_with("new"));
    let text = std::fs::read_to_string(&box_files[0]).unwrap();
    assert!(
        text.starts_with("Received: ") && text.ends_with("\nFrom: a\n\n.dot\n") && !text.contains('\r'),
        "{text:?}"
    );
}

#[test]
fn limits_of_size_and_sessions_hold() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "message_bytes_max = 1000\nconnections_per_client_max = 1");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b> SIZE=2000\nS: 552 5.3.4 *");
    assert!(wire.transaction(&large_mail(5_000)).starts_with("552 5.3.4 "));
    assert!(gateway.connect().reply().starts_with("421 4.7.0 "));
    drop(wire);
    wait_for(|| gateway.connect().reply().starts_with("220 ").then_some(()), "room for another session");
    assert!(sink.mails().is_empty());
}

#[test]
fn a_session_ends_in_time_however_busy_it_is() {
    let gateway = Gateway::start("discard:", "session_seconds_max = 1");
    let mut wire = gateway.connect();
    wire.begin_data();
    let started = Instant::now();
    while wire.stream.write_all(b"more and more\r\n").is_ok() {
        assert!(started.elapsed() < Duration::from_secs(10), "the session goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_allow_list_speaks_for_a_mail_that_streams() {
    let sink = Sink::start(Behaviour::default());
    let mut part = eicar();
    part.resize(100_000, b' ');
    let head = "[resources]\nhead_window_bytes = 32768\n[database]\npaths = [\"FOLDER/allow.sfp\"]";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("part");
    std::fs::write(&file, &part).unwrap();
    let sum = std::process::Command::new("sha256sum").arg(&file).output().unwrap().stdout;
    let line = format!("{}:100000:Known.Good\n", String::from_utf8_lossy(&sum[..64]));
    let allow = folder.path().join("allow.sfp");
    std::fs::write(&allow, line).unwrap();
    let head = head.replace("FOLDER/allow.sfp", &allow.display().to_string());
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
    let mail = mail_with("base64", "known.bin", &base64(&part));
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    assert!(sink.wait(1)[0].original() == mail);
    part[99_999] = b'.';
    assert!(gateway.connect().deliver(&mail_with("base64", "other.bin", &base64(&part))).starts_with("554 "));
}

#[test]
fn a_term_signal_lets_a_message_come_to_its_end() {
    let sink = Sink::start(Behaviour::default());
    let mut gateway = Gateway::start(&sink.forward(), "");
    let (mut idle, mut busy) = (gateway.connect(), gateway.connect());
    idle.expect("220 *");
    busy.begin_data();
    gateway.signal("TERM");
    idle.expect("421 4.3.2 *");
    busy.talk("C: From: a\nC:\nC: x\nC: .\nS: 250 2.0.0 Taken\nS: 421 4.3.2 *");
    assert!(gateway.wait().success());
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn a_reload_changes_the_policy_and_keeps_the_sessions() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let mut old = gateway.connect();
    old.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    let config = gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}nonsense = 1\n")).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("not reloaded");
    std::fs::write(&config, format!("{text}on_infected = \"pass\"\n")).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded generation");
    let mail = mail_with("base64", "e", &base64(&eicar()));
    assert!(old.transaction(&mail).starts_with("554 "), "a session keeps the policy that it began with");
    // Each event loop takes the change over at its next turn.
    wait_for(|| (gateway.connect().deliver(&mail) == "250 2.0.0 Taken").then_some(()), "the new policy");
}

#[test]
fn a_slow_hop_holds_up_nobody_else() {
    let (stalled, sink) = (
        Sink::start(Behaviour { stall_after_bytes: Some(1000), ..Behaviour::default() }),
        Sink::start(Behaviour::default()),
    );
    let more =
        format!("[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"{}\"", sink.forward());
    let gateway = Gateway::start(&stalled.forward(), &more);
    let mut slow = gateway.connect();
    slow.begin_data();
    let stream = slow.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut stream = stream;
        let _ = stream.write_all(&stuffed(&large_mail(20_000_000)));
    });
    wait_for(|| stalled.commands().iter().any(|command| command == "DATA").then_some(()), "the slow hop to stall");
    let started = Instant::now();
    assert_eq!(Wire::connect(gateway.addresses[1]).deliver(b"From: a\r\n\r\nx\r\n"), "250 2.0.0 Taken");
    gateway.connect().talk("S: 220 *\nC: EHLO x\nS: 250-*\nC: NOOP\nS: 250 *");
    assert!(started.elapsed() < Duration::from_secs(30), "held up");
}

#[test]
fn the_log_says_what_was_decided_and_nothing_of_the_content() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with("[log]\nformat = \"json\"", "smtp", &sink.forward(), "");
    let reply = gateway.connect().deliver(&mail_with("base64", "eicar.com", &base64(&eicar())));
    let id = reply.split("(id ").nth(1).unwrap().trim_end_matches(')').to_string();
    let log = gateway.wait_for_log(&id);
    let line = log.lines().find(|line| line.contains("\"message\":\"message\"")).unwrap();
    for part in [
        "\"action\":\"reject\"",
        "\"found\":\"Eicar-Test-Signature in eicar.com\"",
        "\"from\":\"a@client.test\"",
        "\"to\":\"b@mx.test\"",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!log.contains("Subject") && !log.contains("Hello."));
}

#[test]
fn a_relay_says_for_whom_it_speaks() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(
        &sink.forward(),
        "proxy_from = [\"127.0.0.1\"]\ntrust = \"off\"\nconnections_per_client_max = 1",
    );
    let binary = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x08\x7f\0\0\x01\x12\x34\0\x19".to_vec();
    let mut open = Vec::new();
    for (index, (header, address)) in
        [(b"PROXY TCP4 192.0.2.7 127.0.0.1 1 25\r\n".to_vec(), "192.0.2.7"), (binary, "192.0.2.8")]
            .into_iter()
            .enumerate()
    {
        let mut wire = gateway.connect();
        wire.send(&header);
        assert_eq!(wire.deliver(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Taken");
        let arrived = sink.wait(index + 1)[index].text();
        assert!(arrived.starts_with(&format!("Received: from client.test ([{address}])")), "{arrived}");
        open.push(wire);
    }
    // Limits hold for the client behind.
    let mut wire = gateway.connect();
    wire.send(b"PROXY TCP4 192.0.2.7 127.0.0.1 2 25\r\n");
    wire.talk("S: 421 4.7.0 *");
    // Without a header nothing is said.
    let mut wire = gateway.connect();
    wire.send(b"EHLO client.test\r\n");
    assert_eq!(wire.line(), "");
    gateway.wait_for_log("invalid PROXY header");
    // Where none is expected, it is a wrong command.
    let trusting = Gateway::start(&sink.forward(), "");
    let mut wire = trusting.connect();
    wire.talk("S: 220 *\nC: PROXY TCP4 192.0.2.7 127.0.0.1 1 25\nS: 500 *");
}

#[test]
fn a_next_hop_may_be_on_a_unix_socket() {
    use std::io::{BufRead as _, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("smtp");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (sender, arrived) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut writer, sender) = (stream.unwrap(), sender.clone());
            std::thread::spawn(move || {
                let lines = std::io::BufReader::new(writer.try_clone().unwrap()).lines();
                let _ = writer.write_all(b"220 hop\r\n");
                let mut in_data = false;
                for line in lines.map_while(Result::ok) {
                    let verb = line.split([' ', '\r']).next().unwrap_or_default();
                    let reply: &[u8] = match (in_data, verb) {
                        (true, ".") => b"250 taken\r\n",
                        (true, _) => b"",
                        (false, "DATA") => b"354 go\r\n",
                        (false, _) => b"250 ok\r\n",
                    };
                    in_data = if in_data { verb != "." } else { verb == "DATA" };
                    let _ = sender.send(line);
                    let _ = writer.write_all(reply);
                }
            });
        }
    });
    let gateway = Gateway::start(&format!("smtp:{}", path.display()), "");
    assert!(gateway.connect().deliver(&mail_with("7bit", "a.txt", "Hello")).starts_with("250 "));
    let lines: Vec<String> = arrived.try_iter().collect();
    assert!(lines.iter().any(|line| line == "RCPT TO:<b@mx.test>"), "{lines:?}");
    assert!(lines.iter().any(|line| line == "Hello"), "{lines:?}");
}
