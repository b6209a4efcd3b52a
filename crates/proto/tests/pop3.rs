//! Conversations with both halves of POP3, written as they stand on the wire.

use proto::pop3::{Client, ClientEvent, Command, Config, Server, ServerEvent, Verb};
use stream::Window;

/// Hears a client and answers by itself: each command with its verb, RETR with a message.
fn answer(server: &mut Server, input: &[u8], piece: usize) -> String {
    for piece in input.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(0, &piece[at..]);
            at += taken;
            match event {
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Idle => {}
                ServerEvent::Wrong(reason) => {
                    server.say(false, reason.as_bytes());
                }
                ServerEvent::Response(response) => {
                    server.say(response != b"*", &response);
                    server.answered(0, response != b"*");
                }
                ServerEvent::Command(command) => match command.verb {
                    Verb::Auth => server.challenge(b"who"),
                    Verb::Retr => {
                        server.say(true, b"7 octets");
                        server.content(b".a\r\n");
                        server.content(b"b\r\n");
                        server.end();
                    }
                    Verb::Quit => {
                        server.say(true, b"bye");
                        server.close();
                    }
                    _ => {
                        let mut line = Vec::new();
                        command.write(&mut line);
                        server.say(true, line.trim_ascii_end());
                        server.answered(0, true);
                    }
                },
                ServerEvent::Closed => break,
            }
        }
    }
    let said = String::from_utf8(server.outbox().to_vec()).unwrap();
    server.sent();
    said
}

/// Plays `C:` and `S:` lines with the half that hears a client, the client's in pieces of three bytes.
fn play(script: &str) {
    let mut server = Server::new(Config::default(), 0);
    server.say(true, b"ready");
    let mut said = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let text = line[2..].strip_prefix(' ').unwrap_or(&line[2..]);
        if line.starts_with("C:") {
            said += &answer(&mut server, format!("{text}\r\n").as_bytes(), 3);
        } else {
            said += &answer(&mut server, b"", 1);
            let (first, rest) = said.split_once("\r\n").unwrap_or_else(|| panic!("expected {text:?}, got nothing"));
            assert_eq!(first, text);
            said = rest.to_string();
        }
    }
    assert_eq!(said, "");
}

#[test]
fn a_session_from_greeting_to_farewell() {
    play(
        "S: +OK ready
         C: user  tim
         S: +OK USER tim
         C: PASS a secret with blanks
         S: +OK PASS a secret with blanks
         C: LIST
         S: +OK LIST
         C: RETR 1
         S: +OK 7 octets
         S: ..a
         S: b
         S: .
         C: QUIT
         S: +OK bye
         C: NOOP",
    );
}

#[test]
fn an_exchange_takes_responses_for_what_they_are() {
    play(
        "S: +OK ready
         C: AUTH PLAIN
         S: + who
         C: *
         S: -ERR *
         C: AUTH PLAIN
         S: + who
         C: two words
         S: -ERR *
         C: AUTH GSSAPI
         S: -ERR This mechanism cannot be used here
         C: AUTH LOGIN
         S: + who
         C: QUIT
         S: +OK QUIT
         C: NOOP
         S: +OK NOOP",
    );
}

#[test]
fn what_follows_a_login_waits_until_the_host_knows_how_it_went() {
    for (ok, told) in [(true, None), (false, Some("Log in first"))] {
        let mut server = Server::new(Config::default(), 0);
        let input = b"USER tim\r\nPASS secret\r\nSTAT\r\n";
        let mut at = server.step(0, input).0;
        at += server.step(0, &input[at..]).0;
        assert_eq!(server.step(0, &input[at..]), (0, ServerEvent::Idle));
        server.answered(0, ok);
        let event = server.step(0, &input[at..]).1;
        assert_eq!(if let ServerEvent::Wrong(reason) = event { Some(reason) } else { None }, told);
    }
}

#[test]
fn an_exchange_that_the_server_gives_up_takes_no_response() {
    let mut server = Server::new(Config::default(), 0);
    server.step(0, b"AUTH PLAIN\r\n");
    server.challenge(b"");
    server.answered(0, false);
    assert!(matches!(server.step(0, b"NOOP\r\n").1, ServerEvent::Command(_)));
}

#[test]
fn what_is_no_command_is_said_and_bounded() {
    let mut server = Server::new(Config::default(), 0);
    let long = [b"NOOP ".to_vec(), vec![b'x'; 1 << 20], b"\r\nNOOP\r\n".to_vec()].concat();
    assert_eq!(answer(&mut server, &long, 4096), "-ERR Line too long\r\n+OK NOOP\r\n");
    let said = answer(&mut server, &b"RUBBISH\r\n".repeat(1000), 100);
    assert_eq!(said.lines().count(), 18, "after 20 wrong lines it is over");
    assert!(server.is_closed());
}

#[test]
fn what_was_said_before_the_handshake_is_forgotten() {
    let mut server = Server::new(Config::default(), 0);
    let input = b"STLS\r\nUSER evil\r\n";
    let (taken, event) = server.step(0, input);
    assert!(matches!(event, ServerEvent::Command(ref command) if command.verb == Verb::Stls));
    // Nothing is taken until the host has decided, and what is there then was said by nobody knows whom.
    assert_eq!(server.step(0, &input[taken..]), (0, ServerEvent::Idle));
    server.secured(0);
    assert_eq!(answer(&mut server, b"NOOP\r\n", 1), "+OK NOOP\r\n");
}

#[test]
fn patience_grows_when_the_client_has_logged_in() {
    let mut server = Server::new(Config::default(), 0);
    assert_eq!(server.deadline(), 120_000);
    answer(&mut server, b"NOOP\r\n", 1);
    assert_eq!(server.deadline(), 120_000, "busy is not logged in");
    server.step(0, b"APOP tim 0\r\n");
    server.answered(1_000, true);
    assert_eq!(server.deadline(), 661_000);
    server.step(500_000, b"NOOP\r\n");
    assert_eq!(server.deadline(), 1_160_000);
}

/// Events of the client half for a server's words, after these commands.
fn hear(commands: &[&str], words: &[u8], piece: usize) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new();
    client.pipeline();
    commands.iter().for_each(|line| client.command(Command::parse(line.as_bytes()).unwrap()));
    let (mut events, mut content) = (Vec::new(), Vec::new());
    for piece in words.chunks(piece) {
        let mut at = 0;
        loop {
            let mut window = Window::with_capacity(16);
            let (taken, event) = client.step(&piece[at..], &mut window);
            at += taken;
            content.extend_from_slice(window.filled());
            match event {
                ClientEvent::Idle if taken == 0 => break,
                ClientEvent::Idle | ClientEvent::Content => {}
                ClientEvent::Broken(_) => {
                    events.push(event);
                    return (events, content);
                }
                event => events.push(event),
            }
        }
    }
    (events, content)
}

fn status(ok: bool, text: &str, more: bool) -> ClientEvent {
    ClientEvent::Status { ok, text: text.into(), more }
}

#[test]
fn replies_are_framed_by_what_was_asked() {
    let words = b"+OK hello\r\n+OK 2 20\r\n-ERR none\r\n+OK 9 octets\r\n..a\r\nb\r\n.\r\n+OK\r\n1 9\r\n2 11\r\n.\r\n";
    for piece in [1, 7, 1000] {
        let (events, content) = hear(&["STAT", "RETR 7", "RETR 1", "LIST"], words, piece);
        assert_eq!(
            events,
            [
                status(true, "hello", false),
                status(true, "2 20", false),
                status(false, "none", false),
                status(true, "9 octets", true),
                ClientEvent::End,
                status(true, "", true),
                ClientEvent::Line(b"1 9".to_vec()),
                ClientEvent::Line(b"2 11".to_vec()),
                ClientEvent::End,
            ]
        );
        assert_eq!(content, b".a\r\nb\r\n");
    }
}

#[test]
fn a_server_that_does_not_behave_is_left() {
    let broken = |commands: &[&str], words: &[u8]| {
        let (events, _) = hear(commands, words, 1000);
        assert!(matches!(events.last(), Some(ClientEvent::Broken(_))), "{words:?}: {events:?}");
    };
    broken(&[], b"* OK IMAP4rev1\r\n");
    broken(&[], b"+OK hello\r\n+OK nobody asked\r\n");
    broken(&["NOOP"], b"+OK hello\r\n+OK\r\n-ERR nobody asked\r\n");
    broken(&["NOOP"], b"+OK hello\r\n+ a challenge\r\n");
    broken(&[], &[b"+OK ".to_vec(), vec![b'x'; 10_000]].concat());
    broken(&["LIST"], &[b"+OK hello\r\n+OK\r\n".to_vec(), vec![b'1'; 10_000]].concat());
}
