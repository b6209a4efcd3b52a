//! Conversations with the spamd half, written as they stand on the wire.

use proptest::prelude::*;
use proto::spamd::{Answer, Places, Refusal, Request, Server, ServerEvent, Verb, Verdict, fuzz_server};

const SPAM: Verdict<'static> = Verdict { is_spam: true, score: "15.0", required: "5.0" };

/// Sends a request and its mail to the end of the connection; returns what was read, and the reply with this body.
fn converse(said: &str, body: &str) -> (Option<Request>, String, String) {
    let mut server = Server::default();
    let (mut request, mut mail, mut rest) = (None, Vec::new(), said.as_bytes());
    loop {
        let (taken, mut event) = server.step(rest);
        if event == ServerEvent::Content {
            mail.extend_from_slice(&rest[..taken]);
        }
        rest = &rest[taken..];
        if event == ServerEvent::Idle && rest.is_empty() {
            event = server.finish();
        }
        match event {
            ServerEvent::Asked(asked) => request = Some(asked),
            ServerEvent::End => server.answer(&Answer { verdict: SPAM, body: body.as_bytes() }),
            ServerEvent::Closed => {
                let said = String::from_utf8(server.outbox().to_vec()).unwrap();
                return (request, String::from_utf8(mail).unwrap(), said);
            }
            _ => {}
        }
    }
}

#[test]
fn a_mail_is_asked_about_and_answered_as_spamd_does() {
    for (verb, version, body, wanted) in [
        ("CHECK", "1.5", "", "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 15.0 / 5.0\r\n\r\n"),
        ("SYMBOLS", "1.5", "A,B", "SPAMD/1.1 0 EX_OK\r\nContent-length: 3\r\nSpam: True ; 15.0 / 5.0\r\n\r\nA,B"),
        ("SYMBOLS", "1.2", "A,B", "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 15.0 / 5.0\r\n\r\nA,B\r\n"),
        ("REPORT_IFSPAM", "1.3", "r", "SPAMD/1.1 0 EX_OK\r\nContent-length: 1\r\nSpam: Yes ; 15.0 / 5.0\r\n\r\nr"),
        ("PROCESS", "1.2", "m", "SPAMD/1.1 0 EX_OK\r\nContent-length: 1\r\n\r\nm"),
        ("HEADERS", "1.1", "m", "SPAMD/1.0 0 EX_OK\r\nm"),
    ] {
        let said = format!("{verb} SPAMC/{version}\r\nContent-length: 5\r\nUser: joe\r\nX: y\r\n\r\nmail\nmore");
        let (request, mail, reply) = converse(&said, body);
        let request = request.unwrap();
        assert_eq!((request.user.as_deref(), request.length, mail.as_str()), (Some("joe"), Some(5), "mail\n"));
        assert_eq!(reply, wanted);
    }
    let compressed = "CHECK SPAMC/1.5\r\nCompress: zlib\r\nContent-length: 2\r\n\r\nzzmore";
    assert_eq!(converse(compressed, "").1, "zz", "what is compressed has no lines");
    assert_eq!(converse("CHECK SPAMC/1.5\r\nContent-length: 2\r\n\r\nma", "").1, "ma");
    let (request, mail, _) = converse("CHECK SPAMC/1.0\nmail to the end", "");
    assert_eq!((request.unwrap().verb, mail.as_str()), (Verb::Check, "mail to the end"));
    let (request, ..) = converse("CHECK SPAMC/1.5\r\nCompress: zlib\r\n\r\n", "");
    assert!(request.unwrap().is_compressed);
}

#[test]
fn what_is_no_mail_is_answered_at_once_and_nonsense_refused() {
    for (said, wanted) in [
        ("PING SPAMC/1.2\r\n", "SPAMD/1.5 0 PONG\r\n"),
        ("PING SPAMC/1.5\r\n\r\n", "SPAMD/1.5 0 PONG\r\n"),
        ("SKIP SPAMC/1.5\r\n\r\n", ""),
        ("TELL SPAMC/1.5\r\nSet: local\r\n\r\n", "SPAMD/1.0 76 Bad header line: (Message-class header missing)\r\n"),
        (
            "TELL SPAMC/1.5\r\nSet: local\r\nRemove: local\r\n\r\n",
            "SPAMD/1.0 76 Bad header line: Unable to set local and remove local in the same operation.\r\n",
        ),
        (
            "TELL SPAMC/1.5\r\nMessage-class: eggs\r\n",
            "SPAMD/1.0 76 Bad header line: (Message-class header contains invalid class)\r\n",
        ),
        ("EAT SPAMC/1.5\r\n", "SPAMD/1.0 76 Bad header line: EAT SPAMC/1.5\r\n"),
        ("CHECK SPAMC/x\r\n", "SPAMD/1.0 76 Bad header line: CHECK SPAMC/x\r\n"),
        ("", "SPAMD/1.0 76 Bad header line: (closed before headers)\r\n"),
        ("CHECK SPAMC/1.5\r\nUser: a", "SPAMD/1.0 76 Bad header line: (EOF during headers)\r\n"),
        ("CHECK SPAMC/1.5\r\nuser\r\n", "SPAMD/1.0 76 Bad header line: (header not in 'Name: value' format)\r\n"),
        (
            "CHECK SPAMC/1.5\r\nContent-length: 5x\r\n",
            "SPAMD/1.0 76 Bad header line: (Content-Length contains non-numeric bytes)\r\n",
        ),
        ("CHECK SPAMC/1.5\r\nCompress: lzma\r\n", "SPAMD/1.0 76 Bad header line: (compression type not supported)\r\n"),
        (
            "CHECK SPAMC/1.5\r\nContent-length: 5\r\n\r\nmail",
            "SPAMD/1.0 76 Bad header line: (Content-Length mismatch: Expected 5 bytes, got 4 bytes)\r\n",
        ),
        (
            "CHECK SPAMC/1.5\r\nContent-length: 2\r\n\r\nmail\n",
            "SPAMD/1.0 76 Bad header line: (Content-Length mismatch: Expected 2 bytes, got more)\r\n",
        ),
    ] {
        assert_eq!(converse(said, "").2, wanted, "{said:?}");
    }
    let many = format!("CHECK SPAMC/1.5\r\n{}", "A: b\r\n".repeat(256));
    assert!(converse(&many, "").2.contains("(too many headers)"));
    assert!(converse(&"x".repeat(9_000), "").2.contains("(line too long)"));
    let mut server = Server::default();
    server.step(b"CHECK SPAMC/1.0\n");
    assert_eq!(server.refuse(&Refusal::Timeout("(late)".into())), ServerEvent::Closed);
    assert_eq!(server.outbox(), b"SPAMD/1.0 79 Timeout: (late)\r\n");
}

#[test]
fn a_mail_is_told_of_and_what_was_done_is_said() {
    let local = Places { local: true, remote: false };
    for (lines, is_spam, [set, remove], did, wanted) in [
        (
            "Message-class: spam\r\nSet: local",
            Some(true),
            [true, false],
            [local, Places::default()],
            "DidSet: local\r\n",
        ),
        ("Message-class: ham\r\nSet: local,remote", Some(false), [true, false], [Places::default(); 2], ""),
        ("Remove: local", None, [false, true], [Places::default(), local], "DidRemove: local\r\n"),
    ] {
        let said = format!("TELL SPAMC/1.5\r\n{lines}\r\nContent-length: 4\r\n\r\nmail");
        let mut server = Server::default();
        let (mut rest, mut request) = (said.as_bytes(), None);
        loop {
            let (taken, event) = server.step(rest);
            rest = &rest[taken..];
            let event = if taken == 0 && event == ServerEvent::Idle { server.finish() } else { event };
            match event {
                ServerEvent::Asked(asked) => request = Some(asked),
                ServerEvent::End => break,
                _ => {}
            }
        }
        let request = request.unwrap();
        assert_eq!(
            (request.verb, request.is_spam, request.set.local, request.remove.local),
            (Verb::Tell, is_spam, set, remove)
        );
        server.told(did[0], did[1]);
        let told = format!("SPAMD/1.1 0 EX_OK\r\n{wanted}\r\n\r\n");
        assert_eq!(String::from_utf8_lossy(server.outbox()), told);
    }
}

proptest! {
    /// The law: any cut, the same conversation.
    #[test]
    fn any_cut_is_the_same_conversation(
        seed in any::<u8>(),
        verb in prop::sample::select(vec!["CHECK", "PROCESS", "PING", "TELL", "SKIP", "SYMBOLS", "NONE"]),
        version in prop::sample::select(vec!["1.0", "1.2", "1.5", "x"]),
        lines in prop::collection::vec(prop::sample::select(vec!["Content-length: 7", "User: a", "Message-class: spam", "Set: local", "Remove: local", "Compress: zlib", "X", "Y: z"]), 0..4),
        mail in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut said = vec![seed];
        said.extend(format!("{verb} SPAMC/{version}\r\n").into_bytes());
        lines.iter().for_each(|line| said.extend(format!("{line}\r\n").into_bytes()));
        said.extend(b"\r\n");
        said.extend(mail);
        fuzz_server(&said);
    }
}
