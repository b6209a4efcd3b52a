//! IMAP through the gateway, with a server that may misbehave.

use std::sync::Arc;

use crate::harness::imap::{Imap, answer, ask};
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, SinkTls, Wire, base64, eicar, found_at_its_end, mail_with, wait_for};

const CLEAN: &[u8] = b"From: a\r\nSubject: clean\r\n\r\n.\r\nHello)\r\nt1 OK\r\n";

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// An infected mail after overwriting: the part in Base64 decodes to NULs, and nothing else is changed.
fn blanked(mail: &[u8]) -> Vec<u8> {
    let body = base64(&eicar());
    let filler: String =
        body.chars().map(|c| if c.is_ascii_alphanumeric() || "+/".contains(c) { 'A' } else { c }).collect();
    String::from_utf8(mail.to_vec()).unwrap().replacen(&body, &filler, 1).into_bytes()
}

fn gateway(server: &Imap, settings: &str) -> Gateway {
    Gateway::start_with("", "imap", &format!("imap://localhost:{}", server.start().port()), settings)
}

/// A session that is logged in.
fn login(gateway: &Gateway) -> Wire {
    let mut wire = gateway.connect();
    wire.talk("S: * OK *");
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    wire
}

/// The same with a mailbox.
fn select(gateway: &Gateway) -> Wire {
    let mut wire = login(gateway);
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    wire
}

/// An APPEND of these messages, sent without waiting for leave.
fn append(messages: &[&[u8]]) -> Vec<u8> {
    let mut command = b"a APPEND INBOX".to_vec();
    for message in messages {
        command.extend(format!(" {{{}+}}\r\n", message.len()).bytes());
        command.extend_from_slice(message);
    }
    command.extend_from_slice(b"\r\n");
    command
}

#[test]
fn a_session_passes_and_an_infected_message_is_blanked_in_place() {
    let server = Imap::with(&[CLEAN, &infected()]);
    let gateway = gateway(&server, "");
    let mut wire = select(&gateway);
    let clean = ask(&mut wire, "FETCH 1 BODY[]");
    assert_eq!(clean.lines, [format!("* 1 FETCH (UID 101 BODY[] {{{}}}", CLEAN.len()), ")".into()]);
    assert_eq!(clean.literals, [CLEAN]);
    for command in ["FETCH 2 (UID BODY.PEEK[])", "FETCH 2 RFC822"] {
        let answer = ask(&mut wire, command);
        assert_eq!(answer.literals, [blanked(&infected())], "{command}");
        assert!(answer.status.starts_with("OK"));
    }
    let bye = ask(&mut wire, "LOGOUT");
    assert!(bye.status.starts_with("OK"), "{bye:?}");
    assert!(wire.rest().is_empty());
    let log = gateway.wait_for_log("uid=\"INBOX;UIDVALIDITY=7/;UID=102\"");
    assert!(log.contains("action=\"blank\" found=\"Eicar-Test-Signature in eicar.com\""), "{log}");
    assert!(!log.contains("secret"));
}

#[test]
fn ranges_are_cut_out_of_what_was_inspected_as_a_whole() {
    let (virus, server) = (infected(), Imap::with(&[CLEAN, &infected()]));
    let gateway = gateway(&server, "");
    let mut wire = select(&gateway);
    let mut all = Vec::new();
    while all.len() < virus.len() {
        let answer = ask(&mut wire, &format!("FETCH 2 (BODY.PEEK[]<{}.100>)", all.len()));
        assert_eq!(
            answer.lines[0],
            format!("* 2 FETCH (UID 102 BODY[]<{}> {{{}}}", all.len(), answer.literals[0].len())
        );
        all.extend_from_slice(&answer.literals[0]);
    }
    assert_eq!(String::from_utf8(all).unwrap(), String::from_utf8(blanked(&virus)).unwrap());
    let commands = server.commands();
    let wholes =
        commands.iter().filter(|command| *command == "FETCH 2 (UID RFC822.SIZE INTERNALDATE BODY.PEEK[])").count();
    // Once to inspect it, and once to find its parts.
    assert_eq!(wholes, 2, "{commands:?}");
    // A clean one is fetched whole once, and then passes as it is.
    for _ in 0..3 {
        let answer = ask(&mut wire, "FETCH 1 BODY[]<6.5>");
        assert_eq!(answer.literals, [&CLEAN[6..11]]);
    }
    let wholes = server
        .commands()
        .iter()
        .filter(|command| *command == "FETCH 1 (UID RFC822.SIZE INTERNALDATE BODY.PEEK[])")
        .count();
    assert_eq!(wholes, 1);
}

#[test]
fn a_part_of_a_message_that_is_not_clean_comes_from_the_message_itself() {
    // Whatever the server would send as the part.
    let server = Imap { other: b"not what was inspected", ..Imap::with(&[CLEAN, &infected()]) };
    let gateway = gateway(&server, "");
    let mut wire = select(&gateway);
    let text = ask(&mut wire, "FETCH 2 (ENVELOPE BODY[1])");
    assert_eq!(text.literals.last().unwrap(), b"Hello.", "{text:?}");
    let part = ask(&mut wire, "FETCH 2 BODY.PEEK[2]");
    assert_eq!(
        part.literals,
        [base64(&eicar())
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "+/".contains(c) { 'A' } else { c })
            .collect::<String>()
            .into_bytes()]
    );
    let mime = ask(&mut wire, "FETCH 2 BODY.PEEK[2.MIME]");
    assert!(mime.literals[0].starts_with(b"Content-Type: application/octet-stream"));
    assert!(ask(&mut wire, "FETCH 2 BODY[7]").status.starts_with("NO [CANNOT]"));
    assert!(ask(&mut wire, "FETCH 2 BINARY[2]").status.starts_with("NO [UNKNOWN-CTE]"));
}

#[test]
fn reject_and_quarantine_do_what_they_say() {
    let server = Imap::with(&[&infected(), CLEAN]);
    let rejecting = gateway(&server, "on_infected = \"reject\"");
    let mut wire = select(&rejecting);
    for command in ["FETCH 1 BODY[]", "FETCH 1 BODY[]", "FETCH 1 BODY[1]"] {
        let refused = ask(&mut wire, command);
        assert!(refused.status.starts_with("NO Message refused: Eicar-Test-Signature in eicar.com"), "{refused:?}");
        assert!(refused.literals.is_empty());
    }
    assert_eq!(ask(&mut wire, "FETCH 2 BODY[]").literals, [CLEAN]);
    let keeping = gateway(&server, "on_infected = \"quarantine\"\nquarantine = \"FOLDER/q\"");
    let answer = ask(&mut select(&keeping), "FETCH 1 BODY[]");
    assert_eq!(answer.literals[0].len(), infected().len());
    assert_eq!(std::fs::read(&keeping.files("q")[0]).unwrap(), infected());
}

#[test]
fn a_message_of_any_size_is_kept_fetched_or_appended() {
    let folder = tempfile::tempdir().unwrap();
    let (late, head) = found_at_its_end(folder.path());
    let clean = [CLEAN, "Much of it.\r\n".repeat(10_000).as_bytes()].concat();
    let server = Imap::with(&[&late, &clean]);
    let forward = format!("imap://localhost:{}", server.start().port());
    let settings = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/q\"";
    let start = || Gateway::start_with(&head, "imap", &forward, settings);
    let kept = |gateway: &Gateway| gateway.files("q").first().map(|path| std::fs::read(path).unwrap());

    let whole = start();
    let mut wire = select(&whole);
    wire.send(b"t1 FETCH 1 BODY[]\r\n");
    assert!(wire.rest().len() < late.len(), "not cut off");
    assert!(kept(&whole).as_ref() == Some(&late));
    let again = ask(&mut select(&whole), "FETCH 1 BODY[]");
    assert!(again.literals[0].len() == late.len() && !again.literals[0].ends_with(b"--\r\n"), "it is there");
    assert_eq!(whole.files("q").len(), 2, "kept again");

    let parts = start();
    let part = ask(&mut select(&parts), "FETCH 1 BODY[2]");
    assert!(part.literals[0].iter().all(|byte| b"\0 \r\n".contains(byte)), "{}", part.status);
    assert!(kept(&parts).as_ref() == Some(&late));
    assert!(ask(&mut select(&parts), "FETCH 2 BODY[]").literals == [clean.clone()]);

    for (mail, gateway) in [(late, start()), (infected(), start())] {
        let mut wire = login(&gateway);
        wire.send(&append(&[&mail]));
        assert!(wire.line().starts_with("a NO Message refused"));
        assert!(kept(&gateway) == Some(mail));
        let facts = std::fs::read_to_string(&gateway.files("q")[1]).unwrap();
        assert!(facts.contains("\"user\": \"tim\"") && facts.contains("\"uid\": \"INBOX\""), "{facts}");
        login(&gateway).send(&append(&[&clean]));
        gateway.wait_for_log("action=\"pass\"");
        // What was written of it in case goes when it has been recorded.
        wait_for(|| (gateway.files("q").len() == 2).then_some(()), "the clean message to be nowhere");
    }
    assert_eq!(*server.appended.lock().unwrap(), [clean.clone(), clean]);
}

#[test]
fn a_uid_that_has_become_another_messages_shows_nothing_that_was_not_inspected() {
    for dates in [true, false] {
        // As large as the other.
        let mut clean = CLEAN.to_vec();
        clean.resize(infected().len(), b'x');
        let server = Imap { other: b"not what was inspected", dates, ..Imap::with(&[&clean]) };
        let gateway = gateway(&server, "");
        let wholes =
            || server.commands().iter().filter(|command| command.ends_with("INTERNALDATE BODY.PEEK[])")).count();
        let mut wire = select(&gateway);
        assert_eq!(ask(&mut wire, "FETCH 1 BODY[]").literals, [clean.clone()]);
        for _ in 0..2 {
            assert_eq!(ask(&mut wire, "FETCH 1 BODY[1]").literals, [b"not what was inspected"]);
        }
        // A reader that comes again has it without another inspection, if it is told when it came.
        let before = wholes();
        let mut wire = select(&gateway);
        assert_eq!(ask(&mut wire, "FETCH 1 BODY[1]").lines[0], "* 1 FETCH (UID 101 BODY[1] {22}");
        assert_eq!(ask(&mut wire, "FETCH 1 BODY[1]").literals, [b"not what was inspected"]);
        assert_eq!((before, wholes() - before), if dates { (0, 0) } else { (1, 1) });
        // By its UID it takes one command.
        let mut wire = select(&gateway);
        let before = server.commands().len();
        assert_eq!(ask(&mut wire, "UID FETCH 101 BODY[1]").literals, [b"not what was inspected"]);
        assert_eq!(server.commands().len() - before, if dates { 1 } else { 4 });
        server.swap(&[&infected()]);
        let shown = blanked(&infected());
        for command in [
            "UID FETCH 101 BODY[2]",
            "FETCH 1 BODY[2]",
            "FETCH 1 BODY.PEEK[]<0.10000>",
            "FETCH 1 (BODY[] BODY[2])",
            "UID FETCH 101 (BODY[] BODY[2])",
        ] {
            let answer = ask(&mut select(&gateway), command);
            for literal in answer.literals {
                let end = &literal[literal.len().saturating_sub(50)..];
                let inspected = shown.windows(end.len()).any(|run| run == end);
                assert!(inspected, "{command}: {}", String::from_utf8_lossy(end));
            }
            assert!(answer.status.starts_with("OK"), "{command}: {}", answer.status);
        }
    }
}

#[test]
fn size_and_date_are_shown_to_who_has_asked_for_them() {
    let server = Imap::with(&[CLEAN]);
    let gateway = gateway(&server, "");
    let mut wire = select(&gateway);
    let size = CLEAN.len();
    for (items, shown) in [
        ("BODY[]".to_string(), format!("UID 101 BODY[] {{{size}}}")),
        ("(RFC822.SIZE BODY[])".into(), format!("UID 101 RFC822.SIZE {size} BODY[] {{{size}}}")),
        (
            "(INTERNALDATE BODY[]<0.4>)".into(),
            "UID 101 INTERNALDATE \"22-Nov-2026 10:00:00 +0000\" BODY[]<0> {4}".into(),
        ),
    ] {
        assert_eq!(ask(&mut wire, &format!("FETCH 1 {items}")).lines[0], format!("* 1 FETCH ({shown}"));
    }
    let told = ask(&mut wire, "FETCH 1 RFC822.SIZE").lines;
    assert_eq!(told, [format!("* 1 FETCH (RFC822.SIZE {size})")]);
}

#[test]
fn capabilities_are_those_that_can_pass_wherever_they_stand() {
    let certificate = Certificate::of("mx.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "mx");
    let at = folder.path().display();
    let head = format!("[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"");
    let server = Imap::with(&[]);
    let forward = format!("imap://localhost:{}", server.start().port());
    let gateway = Gateway::start_with(&head, "imap", &forward, "tls = \"require\"\nforward_tls = \"off\"");
    let mut wire = gateway.connect();
    wire.talk("S: * OK [CAPABILITY IMAP4rev1 IDLE LITERAL+ STARTTLS LOGINDISABLED] ready");
    let listed = ask(&mut wire, "CAPABILITY");
    assert_eq!(listed.lines, ["* CAPABILITY IMAP4rev1 IDLE LITERAL+ STARTTLS LOGINDISABLED"]);
    assert_eq!(listed.status, "OK [CAPABILITY IMAP4rev1 IDLE LITERAL+ STARTTLS LOGINDISABLED] done");
    assert_eq!(ask(&mut wire, "LOGIN tim secret").status, "NO [PRIVACYREQUIRED] Say STARTTLS first");
    // What is sent in the clear behind STARTTLS is never obeyed.
    wire.send(b"a STARTTLS\r\nb LOGIN evil evil\r\n");
    assert_eq!(wire.line(), "a OK Begin TLS negotiation now");
    let mut wire = wire.secure(certificate.client("mx.test"));
    let after = ask(&mut wire, "CAPABILITY");
    assert_eq!(after.lines, ["* CAPABILITY IMAP4rev1 IDLE LITERAL+ AUTH=PLAIN"]);
    assert!(ask(&mut wire, "LOGIN tim secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "STARTTLS").status.starts_with("BAD"));
    assert!(!server.commands().iter().any(|command| command.contains("evil")), "{:?}", server.commands());
}

#[test]
fn what_does_not_fit_the_protocol_never_reaches_the_server() {
    let server = Imap::with(&[CLEAN]);
    let gateway = gateway(&server, "forward_tls = \"off\"");
    let mut wire = gateway.connect();
    wire.talk("S: * OK *");
    for (command, status) in [
        ("AUTHENTICATE GSSAPI", "NO [CANNOT] This mechanism cannot be used here"),
        ("STARTTLS", "BAD Not available"),
        ("LOGIN \"x", "BAD A quoted string without an end"),
        ("SELECT INBOX", "BAD Log in first"),
        ("APPEND x {5}", "BAD Log in first"),
        ("LOGIN tim secret", "OK *"),
        ("LOGIN tim secret", "BAD Logged in already"),
        ("STARTTLS", "BAD Logged in already"),
        ("FETCH 1 BODY[]", "BAD Select a mailbox first"),
        ("SELECT INBOX", "OK *"),
        ("COMPRESS DEFLATE", "BAD Unknown command"),
        ("NOTIFY NONE", "BAD Unknown command"),
        ("FETCH 1 (X-CONTENT)", "BAD Not an item of FETCH"),
        ("APPEND x CATENATE (URL \"/INBOX;UIDVALIDITY=7/;UID=1\")", "BAD APPEND without a message"),
        ("NOOP", "OK *"),
    ] {
        let told = ask(&mut wire, command).status;
        assert!(told == status || status.ends_with('*') && told.starts_with(&status[..2]), "{command}: {told}");
    }
    assert_eq!(server.commands(), ["LOGIN tim secret", "SELECT INBOX", "NOOP"]);
    let _ = wire.try_send(&[b'x'; 100_000]);
    assert!(["", "* BYE Cannot parse the command"].contains(&wire.line().as_str()));
    // A flood of wrong commands ends the session.
    let mut wire = login(&gateway);
    for _ in 0..20 {
        let _ = wire.try_send(b"a RUBBISH\r\n");
    }
    assert_eq!(String::from_utf8(wire.rest()).unwrap().lines().count(), 20);
    assert!(gateway.connect().stream.peer_addr().is_ok());
}

#[test]
fn pipelined_commands_are_answered_in_their_order() {
    let server = Imap::with(&[CLEAN, &infected()]);
    let gateway = gateway(&server, "");
    let mut wire = gateway.connect();
    wire.send(
        b"a LOGIN {3+}\r\ntim secret\r\nb SELECT INBOX\r\nc RUBBISH\r\nd FETCH 2 BODY[]\r\ne FETCH 1 BODY[]<0.4>\r\nf NOOP\r\ng LOGOUT\r\n",
    );
    wire.line();
    let tags = ["a", "b", "c", "d", "e", "f", "g"];
    let answers: Vec<_> = tags.iter().map(|tag| answer(&mut wire, tag)).collect();
    assert!(answers.iter().enumerate().all(|(at, answer)| answer.status.starts_with(if at == 2 {
        "BAD"
    } else {
        "OK"
    })));
    assert_eq!(answers[3].literals, [blanked(&infected())]);
    assert_eq!(answers[4].literals, [b"From"]);
}

#[test]
fn idle_and_exchanges_pass_through() {
    let server = Imap::with(&[CLEAN]);
    let gateway = gateway(&server, "");
    let mut wire = gateway.connect();
    wire.talk("S: * OK *\nC: a AUTHENTICATE PLAIN\nS: +\nC: AHRpbQB0YW5zdGFhZnRhbnN0YWFm\nS: a OK *");
    wire.talk("C: b SELECT INBOX\nS: * 2 EXISTS\nS: * OK *\nS: b OK *\nC: c IDLE\nS: +\nC: DONE\nS: c OK *");
    ask(&mut wire, "FETCH 1 BODY[]");
    assert!(gateway.wait_for_log("message retrieved").contains("user=\"tim\""));
}

#[test]
fn a_large_message_streams_and_what_is_found_in_time_is_blanked() {
    let filler = "Nothing to see here, and much of it.\r\n".repeat(80_000);
    let large = String::from_utf8(infected()).unwrap().replacen("Hello.\r\n", &filler, 1).into_bytes();
    let server = Imap::with(&[&large]);
    let gateway = gateway(&server, "");
    let mut wire = select(&gateway);
    let range = ask(&mut wire, &format!("FETCH 1 BODY.PEEK[]<{}.1000>", large.len() - 300));
    assert_eq!(range.literals, [&blanked(&large)[large.len() - 300..]]);
    assert!(ask(&mut wire, "FETCH 1 BODY[]").literals[0] == blanked(&large));
    assert!(gateway.wait_for_log("streamed=true").contains("cut=false"));
}

#[test]
fn what_is_found_too_late_is_cut_off_and_blanked_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let (mail, head) = found_at_its_end(folder.path());
    let server = Imap::with(&[&mail, CLEAN]);
    let forward = format!("imap://localhost:{}", server.start().port());
    let gateway = Gateway::start_with(&head, "imap", &forward, "");
    let mut wire = select(&gateway);
    wire.send(b"t1 FETCH 1 BODY[]\r\n");
    let cut = wire.rest();
    let announced = format!("* 1 FETCH (UID 101 BODY[] {{{}}}\r\n", mail.len());
    assert!(cut.starts_with(announced.as_bytes()), "{}", String::from_utf8_lossy(&cut[..100]));
    assert!(cut.len() > 100_000 && cut.len() < announced.len() + mail.len(), "not cut off: {} bytes", cut.len());
    gateway.wait_for_log("cut=true");
    let mut wire = select(&gateway);
    let again = &ask(&mut wire, "FETCH 1 BODY[]").literals[0];
    assert_eq!(again.len(), mail.len());
    assert!(!String::from_utf8_lossy(again).contains("repeated very often"), "the part is still there");
    // And so is each range of it.
    let range = &ask(&mut wire, "FETCH 1 BODY.PEEK[]<1000.500>").literals[0];
    assert_eq!(**range, again[1_000..1_500]);
    assert_eq!(ask(&mut wire, "FETCH 2 BODY[]").literals, [CLEAN]);
}

#[test]
fn an_infected_message_is_not_appended() {
    let server = Imap::with(&[]);
    let gateway = gateway(&server, "");
    let mut wire = login(&gateway);
    let virus = infected();
    // Announced, and sent at once.
    wire.send(format!("a APPEND INBOX (\\Seen) {{{}}}\r\n", virus.len()).as_bytes());
    assert_eq!(wire.line(), "+ Go on");
    wire.send(&[virus.as_slice(), b"\r\n"].concat());
    assert!(wire.line().starts_with("a NO Message refused: Eicar-Test-Signature in eicar.com"));
    wire.send(&[format!("b APPEND INBOX {{{}+}}\r\n", virus.len()).as_bytes(), &virus, b"\r\n"].concat());
    assert!(wire.line().starts_with("b NO Message refused"));
    // A clean one is appended as it is.
    wire.send(&[format!("c APPEND INBOX {{{}+}}\r\n", CLEAN.len()).as_bytes(), CLEAN, b"\r\n"].concat());
    assert!(wire.line().starts_with("c OK"));
    assert_eq!(*server.appended.lock().unwrap(), [CLEAN]);
    assert!(server.commands().contains(&format!("APPEND INBOX {{{}}}", CLEAN.len())));
    gateway.wait_for_log("message appended");
}

#[test]
fn names_and_messages_in_utf8_pass_and_are_inspected() {
    let listed = "* LIST () \"/\" \"Entwürfe\"";
    let server = Imap {
        capabilities: "IMAP4rev1 IMAP4rev2 UTF8=ACCEPT ENABLE LITERAL+",
        injected: Some(("LIST", "* LIST () \"/\" \"Entwürfe\"\r\n".as_bytes())),
        ..Imap::with(&[])
    };
    let gateway = gateway(&server, "");
    let mut wire = login(&gateway);
    assert!(ask(&mut wire, "CAPABILITY").lines[0].starts_with("* CAPABILITY IMAP4rev1 IMAP4rev2 UTF8=ACCEPT"));
    assert!(ask(&mut wire, "ENABLE IMAP4rev2 UTF8=ACCEPT").status.starts_with("OK"));
    assert_eq!(ask(&mut wire, "LIST \"\" \"Entwürfe\"").lines, [listed]);
    let clean = "Subject: Grüße\r\n\r\nHello\r\n".as_bytes();
    for (mail, answer) in [(clean, "a OK"), (&infected(), "a NO Message refused: Eicar-Test-Signature")] {
        let command = format!("a APPEND \"Entwürfe\" (\\Seen) UTF8 (~{{{}+}}\r\n", mail.len());
        wire.send(&[command.as_bytes(), mail, b")\r\n"].concat());
        let line = wire.line();
        assert!(line.starts_with(answer), "{line}");
    }
    assert_eq!(*server.appended.lock().unwrap(), [clean]);
    let given = server.commands();
    assert!(given.contains(&"ENABLE IMAP4rev2 UTF8=ACCEPT".into()), "{given:?}");
    assert!(given.contains(&format!("APPEND \"Entwürfe\" (\\Seen) UTF8 (~{{{}}}", clean.len())), "{given:?}");
}

#[test]
fn what_is_found_behind_the_window_breaks_the_append_off() {
    let server = Imap::with(&[]);
    let gateway = gateway(&server, "");
    let filler = "Nothing to see here, and much of it.\r\n".repeat(80_000);
    let large = String::from_utf8(infected()).unwrap().replacen("Hello.\r\n", &filler, 1).into_bytes();
    let mut wire = login(&gateway);
    let _ = wire.try_send(&[format!("a APPEND INBOX {{{}+}}\r\n", large.len()).as_bytes(), &large, b"\r\n"].concat());
    assert!(wire.line().starts_with("a NO Message refused"));
    assert!(wire.line().starts_with("* BYE"));
    // So does the second of two messages, though the first is clean.
    let mut wire = login(&gateway);
    wire.send(&append(&[CLEAN, &infected()]));
    assert!(wire.line().starts_with("a NO Message refused"));
    assert!(server.appended.lock().unwrap().is_empty());
    // Two clean ones are appended, and so is a large one.
    let clean = String::from_utf8(CLEAN.to_vec()).unwrap().replacen("Hello", &filler, 1).into_bytes();
    let mut wire = login(&gateway);
    wire.send(&append(&[CLEAN, &clean]));
    assert!(wire.line().starts_with("a OK"));
    assert!(*server.appended.lock().unwrap() == [CLEAN, &clean]);
}

#[test]
fn a_hostile_server_is_not_believed() {
    for injected in [
        &b"t9 OK injected\r\n"[..],
        b"s2 OK once\r\ns2 OK twice\r\n",
        b"* 1 FETCH (BODY[] {3}\r\nabcd\r\n",
        b"* LIST () \"/\" \"open\r\n",
        b"+ go on\r\n",
        b"* PREAUTH you are in\r\n",
        b"rubbish\r\n",
    ] {
        let server = Imap { injected: Some(("NOOP", injected)), ..Imap::with(&[CLEAN]) };
        let odd = gateway(&server, "forward_tls = \"off\"");
        let mut wire = login(&odd);
        wire.send(b"t1 NOOP\r\n");
        let heard = String::from_utf8(wire.rest()).unwrap();
        assert!(!heard.contains("injected") && !heard.contains("abcd"), "{heard}");
        assert!(heard.ends_with("Upstream protocol error\r\n") || injected[2] == b'1', "{heard}");
    }
    // Lines and words without an end.
    for injected in [&[b'x'; 1_000][..], &[b"* OK ".as_slice(), &[b'x'; 400_000]].concat()] {
        let injected: &'static [u8] = Vec::leak(injected.to_vec());
        let server = Imap { injected: Some(("NOOP", injected)), ..Imap::with(&[]) };
        let odd = gateway(&server, "forward_tls = \"off\"");
        let mut wire = login(&odd);
        wire.talk("C: a NOOP\nS: * BYE [UNAVAILABLE] Upstream protocol error");
    }
}

#[test]
fn texts_of_a_hostile_server_do_not_mislead() {
    let injected = "* 1 FETCH (ENVELOPE (NIL \"gpj\u{202e}exe\u{1b}[2J\" NIL) PREVIEW {6}\r\n\u{2066}\r\nz)\r\n\
                    * LIST () \"/\" \"a\u{202e}\"\r\n* OK [X\u{7}] \u{202e}alert\r\n";
    let server = Imap { injected: Some(("NOOP", injected.as_bytes())), ..Imap::with(&[]) };
    let odd = gateway(&server, "forward_tls = \"off\"");
    let mut wire = login(&odd);
    wire.send(b"a NOOP\r\n");
    for line in [
        "* 1 FETCH (ENVELOPE (NIL \"gpj   exe [2J\" NIL) PREVIEW {6}",
        "     z)",
        "* LIST () \"/\" \"a   \"",
        "* OK [X ]    alert",
    ] {
        assert_eq!(wire.line(), line);
    }
    assert!(wire.line().starts_with("a OK"));
}

#[test]
fn content_that_nobody_asked_for_is_inspected_all_the_same() {
    let virus: &'static [u8] = Vec::leak(
        [
            format!("* 1 FETCH (BODY[] {{{}}}\r\n", infected().len()).as_bytes(),
            &infected(),
            b" FLAGS ())\r\n* 1 FETCH (BODY[2] {3}\r\nabc UID 101)\r\n",
        ]
        .concat(),
    );
    let server = Imap { injected: Some(("NOOP", virus)), ..Imap::with(&[CLEAN]) };
    let odd = gateway(&server, "");
    let mut wire = select(&odd);
    let heard = ask(&mut wire, "NOOP");
    assert_eq!(heard.literals, [blanked(&infected())]);
    assert_eq!(heard.lines.len(), 2, "{heard:?}");
}

#[test]
fn tls_towards_the_server_hears_nothing_from_before_the_handshake() {
    let certificate = Arc::new(Certificate::of("localhost"));
    let tls = Some(SinkTls { certificate, implicit: false, injected: "" });
    let server = Imap { tls: tls.clone(), capabilities: "IMAP4rev1 STARTTLS", ..Imap::with(&[CLEAN]) };
    let fine = gateway(&server, "");
    assert_eq!(ask(&mut select(&fine), "FETCH 1 BODY[]").literals, [CLEAN]);
    assert_eq!(&server.commands()[..2], ["STARTTLS", "CAPABILITY"]);
    let evil = Imap {
        tls,
        capabilities: "IMAP4rev1 STARTTLS",
        injected: Some(("STARTTLS", b"* OK before\r\ns1 OK begin\r\n* OK [CAPABILITY X] injected\r\n")),
        ..Imap::with(&[])
    };
    let odd = gateway(&evil, "forward_tls = \"require\"\nforward_verify = \"nothing\"");
    odd.connect().talk("S: * BYE [UNAVAILABLE] The server cannot be reached now");
}

#[test]
fn tagging_is_refused_in_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sluice.toml");
    for (settings, reason) in [
        ("forward='imap://a'\non_infected='tag'", "cannot add to a message"),
        ("forward='pop3://a'", "is not a next hop for imap"),
        ("forward='imap://a'\n[[listener.rule]]\nsender=['a']", "rules go by envelopes"),
    ] {
        std::fs::write(&config, format!("[[listener]]\nprotocol='imap'\naddress='127.0.0.1:1'\n{settings}")).unwrap();
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains(reason), "{reason}");
    }
}

#[test]
fn an_unreachable_server_is_said_to_be_so() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gateway = Gateway::start_with("", "imap", &format!("imap://localhost:{}", gone.port()), "");
    gateway.connect().talk("S: * BYE [UNAVAILABLE] The server cannot be reached now");
}
