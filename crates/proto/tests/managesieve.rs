//! Conversations with the half of ManageSieve that hears a client.

use proto::managesieve::{Answer, Command, Config, Server, ServerEvent};

/// Events, one a line; a SASL exchange has one challenge, after which the client is logged in.
fn heard(input: &[u8], piece: usize) -> Vec<String> {
    let config =
        Config { literal_bytes_max: 1_000, skipped_bytes_max: 5_000, line_bytes_max: 100, ..Config::default() };
    let mut server = Server::new(config, 0);
    let mut heard = Vec::new();
    for piece in input.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(0, &piece[at..]);
            at += taken;
            match event {
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Idle => {}
                ServerEvent::Closed => {
                    heard.push("closed".into());
                    return heard;
                }
                ServerEvent::Command(Command::PutScript { name, script }) => {
                    heard.push(format!("put {name} {}", script.len()));
                }
                ServerEvent::Command(command) => {
                    if matches!(command, Command::Authenticate { .. }) {
                        server.challenge(b"");
                    }
                    heard.push(format!("{command:?}"));
                }
                ServerEvent::Response(response) => {
                    heard.push(format!("response {}", String::from_utf8_lossy(&response)));
                    server.logged_in(0);
                    server.resume();
                }
                event => heard.push(format!("{event:?}")),
            }
        }
    }
    heard
}

#[test]
fn commands_are_the_same_however_they_are_cut() {
    let script = "keep;\r\n".repeat(10);
    let large = "x".repeat(3_000);
    let input = format!(
        "CAPABILITY\r\nAUTHENTICATE \"PLAIN\"\r\n{{4+}}\r\nAAAA\r\nPUTSCRIPT \"a\" {{70+}}\r\n{script}\r\n\
         PUTSCRIPT {{1+}}\r\nb {{0+}}\r\n\r\nPUTSCRIPT \"c\" {{3000+}}\r\n{large}\r\n\
         PUTSCRIPT \"d\"x {{6+}}\r\nLOGOUT\r\nNOOP \"tag\"\r\nPUTSCRIPT \"e\" {{4294967295+}}\r\nxxx"
    );
    let wanted = [
        "Capability",
        "Authenticate { mechanism: \"PLAIN\", initial: None }",
        "response AAAA",
        "put a 70",
        "put b 0",
        "TooLarge",
        "Wrong(\"Blanks go between arguments\")",
        "Noop(Some([116, 97, 103]))",
        "closed",
    ];
    for piece in [1, 2, 3, 7, 64, 100_000] {
        assert_eq!(heard(input.as_bytes(), piece), wanted, "pieces of {piece}");
    }
}

#[test]
fn who_is_nobody_yet_has_no_room() {
    assert_eq!(heard(b"PUTSCRIPT \"a\" {101+}\r\n", 5), ["closed"]);
    assert_eq!(heard(&[b'x'; 200], 5), Vec::<String>::new());
    assert_eq!(heard(&[&[b'x'; 200][..], b"\n"].concat(), 5), ["closed"]);
    let wrong = "NOPE\r\n".repeat(30);
    assert_eq!(heard(wrong.as_bytes(), 7).len(), 20);
}

#[test]
fn answers_hold_any_text() {
    let mut server = Server::new(Config::default(), 0);
    server.answer(Answer::No, "QUOTA/MAXSIZE", "a \"b\" \\");
    server.answer(Answer::Ok, "", "two\r\nlines");
    server.answer(Answer::Bye, "", "");
    assert_eq!(
        String::from_utf8_lossy(server.outbox()),
        "NO (QUOTA/MAXSIZE) \"a \\\"b\\\" \\\\\"\r\nOK {10}\r\ntwo\r\nlines\r\nBYE\r\n"
    );
}
