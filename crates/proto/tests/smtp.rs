//! Conversations with the server half, written as they stand on the wire, and the two halves face to face.

use proto::smtp::{
    AUTH_LINE_BYTES_MAX, Asked, Client, ClientEvent, Config, Extensions, Faults, MailFrom, Mechanisms, Protocol,
    RcptTo, Reply, Server, ServerEvent, Unsupported,
};
use stream::Window;

const ALL: Extensions = Extensions {
    pipelining: true,
    size: Some(1000),
    eight_bit_mime: true,
    smtputf8: true,
    chunking: true,
    enhanced_status_codes: true,
    dsn: true,
    starttls: true,
    require_tls: false,
    future_release: None,
    auth: Mechanisms::NONE,
    xforward: true,
    xclient: true,
};

/// A host that says yes to everything but recipients that contain "no".
struct Host {
    server: Server,
    events: Vec<ServerEvent>,
    content: Vec<u8>,
    lmtp: bool,
}

impl Host {
    fn new(config: Config) -> Host {
        let lmtp = config.protocol == Protocol::Lmtp;
        Host { server: Server::new(config, 0), events: Vec::new(), content: Vec::new(), lmtp }
    }

    /// Hears `input`, in pieces of at most `piece` bytes, and returns what it answers.
    fn hear(&mut self, input: &[u8], piece: usize) -> String {
        'input: for piece in input.chunks(piece) {
            let mut at = 0;
            loop {
                let mut window = Window::with_capacity(64);
                let (taken, event) = self.server.step(0, &piece[at..], &mut window);
                at += taken;
                self.content.extend_from_slice(window.filled());
                match &event {
                    ServerEvent::Idle if taken == 0 => break,
                    ServerEvent::Idle | ServerEvent::Content => continue,
                    ServerEvent::Closed if self.events.last() == Some(&ServerEvent::Closed) => break,
                    ServerEvent::Mail(_) => self.server.reply(&Reply::new(250, (2, 1, 0), "Ok")),
                    ServerEvent::Recipient(rcpt) if rcpt.path.as_str().contains("no") => {
                        self.server.reply(&Reply::new(550, (5, 1, 1), "No"));
                    }
                    ServerEvent::Recipient(_) => self.server.reply(&Reply::new(250, (2, 1, 5), "Ok")),
                    ServerEvent::Data => self.server.begin(),
                    ServerEvent::Auth { initial: None, .. } => self.server.challenge(b"Pw=="),
                    ServerEvent::Auth { initial: Some(secret), .. } | ServerEvent::Response(secret) => {
                        self.server.reply(&match secret.as_bytes() {
                            b"*" => Reply::new(501, (5, 7, 0), "Authentication cancelled"),
                            b"c2VjcmV0" => Reply::new(235, (2, 7, 0), "Welcome"),
                            _ => Reply::new(535, (5, 7, 8), "Wrong"),
                        });
                    }
                    ServerEvent::End { .. } => {
                        let replies = if self.lmtp { self.server.recipients() } else { 1 };
                        (0..replies).for_each(|_| self.server.reply(&Reply::new(250, (2, 0, 0), "Taken")));
                    }
                    ServerEvent::StartTls => {
                        // The handshake, and what has come before it is gone.
                        self.server.secured(0, ALL);
                        self.events.push(event);
                        break 'input;
                    }
                    _ => {}
                }
                self.events.push(event);
            }
        }
        let said = String::from_utf8(self.server.outbox().to_vec()).unwrap();
        self.server.sent(said.len());
        said
    }
}

/// Plays `C:` and `S:` lines; `*` at the end of an expectation stands for anything.
fn play(config: Config, script: &str) -> Host {
    let mut host = Host::new(config);
    let mut said: Vec<String> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (side, text) = line.split_at(2);
        let text = text.strip_prefix(' ').unwrap_or(text);
        match side {
            "C:" => said.extend(host.hear(format!("{text}\r\n").as_bytes(), 3).lines().map(String::from)),
            "S:" => {
                if said.is_empty() {
                    said.extend(host.hear(b"", 1).lines().map(String::from));
                    said.extend(String::from_utf8_lossy(host.server.outbox()).lines().map(String::from));
                    let count = host.server.outbox().len();
                    host.server.sent(count);
                }
                let got = if said.is_empty() { String::new() } else { said.remove(0) };
                let matches = text.strip_suffix('*').map_or(got == text, |start| got.starts_with(start));
                assert!(matches, "expected {text:?}, got {got:?}, then {said:?}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(said.is_empty(), "not expected: {said:?}");
    host
}

fn smtp() -> Config {
    Config { hostname: "mx.test".into(), extensions: ALL, ..Config::default() }
}

#[test]
fn a_session_with_everything_that_is_offered() {
    let host = play(
        smtp(),
        "S: 220 mx.test ESMTP Sluice
         C: EHLO client.test
         S: 250-mx.test
         S: 250-PIPELINING
         S: 250-8BITMIME
         S: 250-SMTPUTF8
         S: 250-CHUNKING
         S: 250-ENHANCEDSTATUSCODES
         S: 250-DSN
         S: 250-STARTTLS
         S: 250-XFORWARD NAME ADDR PORT PROTO HELO SOURCE
         S: 250-XCLIENT NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT
         S: 250 SIZE 1000
         C: MAIL FROM:<a@b> SIZE=10 BODY=8BITMIME RET=HDRS ENVID=x+20y
         S: 250 2.1.0 Ok
         C: RCPT TO:<c@d> NOTIFY=success,FAILURE ORCPT=rfc822;c@d
         S: 250 2.1.5 Ok
         C: DATA
         S: 354 *
         C: Subject: x
         C:
         C: ..dot
         C: .
         S: 250 2.0.0 Taken
         C: QUIT
         S: 221 2.0.0 Bye",
    );
    assert_eq!(host.content, b"Subject: x\r\n\r\n.dot\r\n");
    let Some(ServerEvent::Recipient(rcpt)) = host.events.iter().find(|e| matches!(e, ServerEvent::Recipient(_))) else {
        panic!("{:?}", host.events)
    };
    assert_eq!(rcpt.notify.as_deref(), Some("SUCCESS,FAILURE"));
    assert_eq!(host.events.last(), Some(&ServerEvent::Closed));
}

#[test]
fn commands_out_of_order_are_refused() {
    play(
        smtp(),
        "S: 220 *
         C: MAIL FROM:<a@b>
         S: 503 5.5.1 *
         C: HELO x
         S: 250 mx.test
         C: RCPT TO:<a@b>
         S: 503 5.5.1 *
         C: DATA
         S: 503 5.5.1 *
         C: MAIL FROM:<a@b>
         S: 250 *
         C: MAIL FROM:<a@b>
         S: 503 5.5.1 *
         C: DATA
         S: 554 5.5.1 *
         C: RCPT TO:<no@d>
         S: 550 5.1.1 No
         C: DATA
         S: 554 5.5.1 *
         C: RSET
         S: 250 *
         C: RCPT TO:<c@d>
         S: 503 5.5.1 *",
    );
}

#[test]
fn starttls_begins_anew_and_is_not_offered_twice() {
    let host = play(
        Config { extensions: Extensions { starttls: true, ..Extensions::default() }, ..smtp() },
        "S: 220 *
         C: EHLO before
         S: 250-mx.test
         S: 250 STARTTLS
         C: STARTTLS
         S: 220 2.0.0 Ready to start TLS
         C: MAIL FROM:<a@b>
         S: 503 5.5.1 Send EHLO first
         C: STARTTLS
         S: 502 *
         C: EHLO after
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250 *
         C: MAIL FROM:<a@b>
         S: 250 *
         C: STARTTLS
         S: 502 *",
    );
    assert_eq!(host.events.iter().filter(|event| **event == ServerEvent::StartTls).count(), 1);
}

#[test]
fn commands_behind_starttls_in_the_clear_are_never_obeyed() {
    let mut server = Server::new(smtp(), 0);
    let injected = b"EHLO x\r\nSTARTTLS\r\nMAIL FROM:<evil@b>\r\nRCPT TO:<c@d>\r\n";
    let (mut at, mut window) = (0, Window::with_capacity(64));
    loop {
        let (taken, event) = server.step(0, &injected[at..], &mut window);
        at += taken;
        if event == ServerEvent::StartTls {
            break;
        }
    }
    assert!(injected[at..].starts_with(b"MAIL"), "taken too far");
    assert_eq!(server.step(0, &injected[at..], &mut window), (0, ServerEvent::Idle), "obeyed before the handshake");
}

#[test]
fn where_tls_is_required_nothing_is_done_before_it() {
    let extensions = Extensions { starttls: true, chunking: true, ..Extensions::default() };
    play(
        Config { tls_required: true, extensions, ..smtp() },
        "S: 220 *
         C: MAIL FROM:<a@b>
         S: 530 5.7.0 Must issue a STARTTLS command first
         C: EHLO x
         S: 250-*
         S: 250-*
         S: 250 STARTTLS
         C: MAIL FROM:<a@b>
         S: 530 *
         C: BDAT 4 LAST
         C: ab
         S: 503 *
         C: NOOP
         S: 250 *
         C: STARTTLS
         S: 220 *
         C: HELO x
         S: 250 mx.test
         C: MAIL FROM:<a@b>
         S: 250 *",
    );
}

#[test]
fn what_is_not_understood_is_said() {
    play(
        smtp(),
        "S: 220 *
         C: EHLO
         S: 501 *
         C: FOO
         S: 500 5.5.2 *
         C: HELO x
         S: 250 *
         C: MAIL FROM:<a@b
         S: 501 5.1.3 *
         C: MAIL FROM:<a@b> FOO=BAR
         S: 555 5.5.4 *
         C: MAIL FROM:<a@b> SIZE=2000
         S: 552 5.3.4 *
         C: MAIL FROM:<gr\u{fc}n@b>
         S: 553 5.6.7 *
         C: MAIL TO:<a@b>
         S: 501 *
         C: VRFY a
         S: 252 *
         C: EXPN a
         S: 502 *
         C: STARTTLS now
         S: 501 *
         C: QUIT now
         S: 501 *
         C: LHLO x
         S: 500 *",
    );
}

#[test]
fn a_client_logs_in_once_between_messages_and_a_handshake_undoes_it() {
    let extensions = Extensions { auth: Mechanisms::ALL, starttls: true, ..Extensions::default() };
    let config = Config { extensions, line_bytes_max: AUTH_LINE_BYTES_MAX, ..smtp() };
    let long = "A".repeat(AUTH_LINE_BYTES_MAX);
    play(
        config,
        &format!(
            "S: 220 *
             C: AUTH PLAIN c2VjcmV0
             S: 503 5.5.1 Send EHLO first
             C: EHLO x
             S: 250-mx.test
             S: 250-STARTTLS
             S: 250 AUTH SCRAM-SHA-512 SCRAM-SHA-256 SCRAM-SHA-1 CRAM-MD5 PLAIN LOGIN XOAUTH2 OAUTHBEARER NTLM
             C: AUTH GSSAPI
             S: 504 5.5.4 *
             C: AUTH
             S: 501 5.5.4 *
             C: auth plain
             S: 334 Pw==
             C: {long}
             S: 501 5.7.0 Authentication cancelled
             C: AUTH PLAIN =
             S: 535 5.7.8 Wrong
             C: MAIL FROM:<a@b>
             S: 250 *
             C: AUTH PLAIN c2VjcmV0
             S: 503 5.5.1 Not allowed during a mail transaction
             C: RSET
             S: 250 *
             C: AUTH LOGIN
             S: 334 Pw==
             C: c2VjcmV0
             S: 235 2.7.0 Welcome
             C: AUTH PLAIN c2VjcmV0
             S: 503 5.5.1 Already authenticated
             C: STARTTLS
             S: 220 *"
        ),
    );
    let config = Config { extensions, auth_needs_tls: true, ..smtp() };
    play(config, "S: 220 *\nC: EHLO x\nS: 250-*\nS: 250-*\nS: 250 *\nC: AUTH PLAIN c2VjcmV0\nS: 538 5.7.11 *");
}

#[test]
fn failed_logins_end_the_session() {
    let extensions = Extensions { auth: Mechanisms::ALL, ..Extensions::default() };
    let config = Config { extensions, errors_max: 2, ..smtp() };
    let wrong = "C: AUTH PLAIN AAAA\nS: 535 *\n".repeat(2);
    play(config, &format!("S: 220 *\nC: EHLO x\nS: 250-*\nS: 250 *\n{wrong}S: 421 4.7.0 *"));
}

#[test]
fn a_line_too_long_is_skipped_whole() {
    let config = Config { line_bytes_max: 50, ..smtp() };
    let long = "x".repeat(200);
    play(config, &format!("S: 220 *\nC: NOOP {long}\nS: 500 5.5.2 Line too long\nC: NOOP\nS: 250 *"));
}

#[test]
fn errors_and_idle_commands_are_bounded() {
    let config = Config { errors_max: 2, ..smtp() };
    play(config, "S: 220 *\nC: A\nS: 500 *\nC: B\nS: 500 *\nS: 421 4.7.0 *");
    let config = Config { idle_commands_max: 1, ..smtp() };
    play(config, "S: 220 *\nC: NOOP\nS: 250 *\nC: NOOP\nS: 421 4.7.0 *");
}

#[test]
fn refused_recipients_and_loops_of_commands_end_a_session() {
    let config = Config { errors_max: 3, ..smtp() };
    let refused = "C: RCPT TO:<no@d>\nS: 550 *\n";
    let begin = "S: 220 *\nC: HELO x\nS: 250 *\nC: MAIL FROM:<>\nS: 250 *\n";
    play(config, &format!("{begin}{}S: 421 4.7.0 *", refused.repeat(3)));
    // Beside one that was taken more of them are borne, and not for ever.
    let config = Config { errors_max: 3, refused_max: 5, ..smtp() };
    play(config, &format!("{begin}C: RCPT TO:<a@b>\nS: 250 *\n{}S: 421 4.7.0 *", refused.repeat(5)));
    let config = Config { recipients_max: 1, deferred_max: 2, ..smtp() };
    let deferred = "C: RCPT TO:<b@b>\nS: 452 *\n".repeat(2);
    play(config, &format!("{begin}C: RCPT TO:<a@b>\nS: 250 *\n{deferred}S: 421 4.7.0 *"));
    let config = Config { idle_commands_max: 3, ..smtp() };
    for looped in ["HELO x\r\n", "HELO x\r\nMAIL FROM:<a@b>\r\n", "MAIL FROM:<a@b>\r\nRSET\r\n", "NOOP\r\n"] {
        let said = Host::new(config.clone()).hear(format!("HELO x\r\n{}", looped.repeat(9)).as_bytes(), 100);
        assert!(said.ends_with("421 4.7.0 Too many commands without mail\r\n"), "{looped}: {said}");
    }
    let chunks = format!("HELO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n{}", "BDAT 0\r\n".repeat(9));
    let said = Host::new(config.clone()).hear(chunks.as_bytes(), 100);
    assert!(said.ends_with("421 4.7.0 Too many commands without mail\r\n"), "{said}");
    let begun = "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 1\r\nxRSET\r\n".repeat(9);
    let said = Host::new(config).hear(format!("HELO x\r\n{begun}").as_bytes(), 100);
    assert!(said.ends_with("421 4.7.0 Too many commands without mail\r\n"), "{said}");
}

#[test]
fn a_mail_that_is_taken_begins_the_count_anew() {
    let config = Config { errors_max: 3, idle_commands_max: 3, ..smtp() };
    let mail = "RSET\r\nFOO\r\nMAIL FROM:<a@b>\r\nRCPT TO:<no@d>\r\nRCPT TO:<c@d>\r\nDATA\r\n.\r\n".repeat(9);
    let said = Host::new(config).hear(format!("HELO x\r\n{mail}NOOP\r\n").as_bytes(), 100);
    assert!(said.ends_with("250 2.0.0 Taken\r\n250 2.0.0 Ok\r\n"), "{said}");
}

#[test]
fn what_another_protocol_says_ends_the_session() {
    for line in ["GET / HTTP/1.1", "post /x HTTP/1.0", "CONNECT a:25", "PUT x", "Host: a.test", "\x16\x03\x01", "{}"] {
        let said = Host::new(smtp()).hear(format!("{line}\r\nNOOP\r\n").as_bytes(), 100);
        assert!(said.ends_with("ESMTP Sluice\r\n421 4.7.0 Not SMTP, closing connection\r\n"), "{line}: {said}");
    }
    play(smtp(), "S: 220 *\nC: GETTING\nS: 500 *\nC: NOOP Host: x\nS: 250 *");
}

#[test]
fn what_no_mail_server_does_is_noticed() {
    let faults = |input: &str| {
        let mut host = Host::new(smtp());
        host.hear(input.as_bytes(), usize::MAX);
        host.server.faults()
    };
    let (none, pipelining) = (Faults::default(), Faults { pipelining: true, ..Faults::default() });
    for (input, wanted) in [
        ("EHLO x\r\n", none),
        ("EHLO x\r\nMAIL FROM:<a@b>\r\n", pipelining),
        ("HELO x\r\nMAIL FROM:<a@b>\r\n", pipelining),
        ("STARTTLS\r\nEHLO x\r\n", pipelining),
        ("NOOP\r\nNOOP\r\n", none),
        ("NOOP\n", Faults { bare_newline: true, ..none }),
        ("GET / HTTP/1.1\r\n", Faults { foreign: true, ..none }),
    ] {
        assert_eq!(faults(input), wanted, "{input:?}");
    }
    for (hello, group, wanted) in [
        ("EHLO", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n", none),
        ("EHLO", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 2 LAST\r\nx\nMAIL FROM:<a@b>\r\n", none),
        ("EHLO", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nx\r\n.\r\n", pipelining),
        ("HELO", "MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n", pipelining),
    ] {
        let mut host = Host::new(smtp());
        host.hear(format!("{hello} x\r\n").as_bytes(), usize::MAX);
        host.hear(group.as_bytes(), usize::MAX);
        assert_eq!(host.server.faults(), wanted, "{hello} {group:?}");
    }
    let mut host = Host::new(smtp());
    host.hear(b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nRCPT TO:<no@d>\r\nRCPT TO:<no@d>\r\nWHAT\r\n", 1);
    assert_eq!((host.server.errors(), host.server.faults()), (3, none), "in single bytes nothing comes early");
}

#[test]
fn parameters_stand_once_and_mean_something() {
    let wrong = [
        "BODY=7BIT BODY=8BITMIME",
        "RET=FULL RET=HDRS",
        "SIZE=1 SIZE=2",
        "SMTPUTF8 SMTPUTF8",
        "ENVID=a ENVID=b",
        "AUTH=<> AUTH=<>",
        "ENVID=x+ZZ",
        "ENVID=x+0D+0A",
        "ENVID=x+4",
        "SIZE=x",
    ];
    let wrong = wrong.map(|wrong| format!("C: MAIL FROM:<a@b> {wrong}\nS: 501 5.5.4 *\n")).concat();
    let right = "C: MAIL FROM:<a@b> ENVID=x+2By RET=FULL\nS: 250 *\n";
    let rcpt = ["NOTIFY=NEVER NOTIFY=DELAY", "ORCPT=rfc822;a+0Ab", "ORCPT=a@b", "ORCPT=rfc822;a+b@c"];
    let rcpt = rcpt.map(|wrong| format!("C: RCPT TO:<a@b> {wrong}\nS: 501 5.5.4 *\n")).concat();
    let taken = "C: RCPT TO:<a@b> ORCPT=rfc822;a+2Bb@c\nS: 250 *\nC: RCPT TO:<a@b> ORCPT=utf-8;a\\x{e9}@c\nS: 250 *\n";
    let ehlo = "S: 220 *\nC: HELO x\nS: 250 *\n";
    play(smtp(), &format!("{ehlo}{wrong}{right}{rcpt}{taken}"));
}

#[test]
fn no_recipient_comes_between_chunks() {
    let mut host = Host::new(smtp());
    let said = host
        .hear(b"HELO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 3\r\nabcRCPT TO:<late@d>\r\nBDAT 0 LAST\r\n", 100);
    assert!(said.contains("250 2.0.0 Chunk received\r\n503 5.5.1 Not allowed after BDAT\r\n250"), "{said}");
}

#[test]
fn a_command_has_its_time_from_its_beginning() {
    let mut server = Server::new(smtp(), 0);
    let mut window = Window::with_capacity(64);
    server.step(1_000, b"NO", &mut window);
    server.step(200_000, b"OP", &mut window);
    assert_eq!(server.deadline(), 300_000, "a byte now and then prolongs it");
    server.step(250_000, b"\r\n", &mut window);
    assert_eq!(server.deadline(), 550_000);
}

#[test]
fn a_hop_that_asks_for_more_in_the_wrong_place_is_left() {
    for asked in ["greeting", "hello", "mail", "data", "done"] {
        let mut client = Client::new("me.test", Protocol::Smtp);
        let wrong: &[u8] = match asked {
            "hello" => {
                client.step(b"220 hi\r\n");
                client.hello();
                b"354 go on\r\n"
            }
            "mail" => {
                client.step(b"220 hi\r\n");
                client.mail(&MailFrom::default()).unwrap();
                b"354 go on\r\n"
            }
            "data" => {
                client.step(b"220 hi\r\n");
                client.data();
                b"250 Ok\r\n"
            }
            "done" => {
                client.step(b"220 hi\r\n");
                client.data();
                client.step(b"354 go on\r\n");
                client.end(1);
                b"354 go on\r\n"
            }
            _ => b"354 go on\r\n",
        };
        assert!(matches!(client.step(wrong).1, ClientEvent::Broken(_)), "{asked}");
    }
}

#[test]
fn a_line_of_a_reply_without_end_is_not_waited_for() {
    let mut client = Client::new("me.test", Protocol::Smtp);
    let told: Vec<ClientEvent> = (0..3).map(|_| client.step(&[b'2'; 1_000]).1).collect();
    assert!(matches!(told[..], [ClientEvent::Idle, ClientEvent::Idle, ClientEvent::Broken(_)]), "{told:?}");
}

#[test]
fn recipients_beyond_the_bound_are_deferred() {
    let config = Config { recipients_max: 1, ..smtp() };
    play(
        config,
        "S: 220 *\nC: HELO x\nS: 250 *\nC: MAIL FROM:<>\nS: 250 *\nC: RCPT TO:<a@b>\nS: 250 *\nC: RCPT TO:<b@b>\nS: 452 4.5.3 *",
    );
}

#[test]
fn chunks_are_content_too() {
    let mut host = Host::new(smtp());
    let said = host.hear(
        b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 5\r\n.\r\nab\
          BDAT 6\r\n\ncd\r\n.BDAT 0 LAST\r\nNOOP\r\n",
        4,
    );
    assert!(
        said.ends_with("250 2.0.0 Chunk received\r\n250 2.0.0 Chunk received\r\n250 2.0.0 Taken\r\n250 2.0.0 Ok\r\n"),
        "{said}"
    );
    assert_eq!(host.content, b".\r\nab\r\ncd\r\n.");
    assert!(host.events.contains(&ServerEvent::End { bare_line_ends: true }));
}

#[test]
fn a_chunk_that_is_not_wanted_is_swallowed() {
    let mut host = Host::new(smtp());
    let said = host.hear(b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<no@d>\r\nBDAT 10 LAST\r\nMAIL FROM:NOOP\r\n", 5);
    assert!(said.ends_with("550 5.1.1 No\r\n554 5.5.1 No valid recipients\r\n250 2.0.0 Ok\r\n"), "{said}");
    assert!(host.content.is_empty());
}

#[test]
fn a_refusal_of_the_content_holds_for_all_chunks() {
    let mut server = Server::new(smtp(), 0);
    let mut window = Window::with_capacity(64);
    let mut input: &[u8] = b"EHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 3\r\nabcBDAT 3 LAST\r\nabcNOOP\r\n";
    loop {
        let (taken, event) = server.step(0, input, &mut window);
        input = &input[taken..];
        match event {
            ServerEvent::Data => server.reply(&Reply::new(451, (4, 3, 0), "Later")),
            ServerEvent::Mail(_) | ServerEvent::Recipient(_) => server.reply(&Reply::new(250, (2, 0, 0), "Ok")),
            ServerEvent::Idle if taken == 0 => break,
            _ => {}
        }
    }
    let said = String::from_utf8_lossy(server.outbox()).to_string();
    assert!(said.ends_with("451 4.3.0 Later\r\n503 5.5.1 An earlier chunk was refused\r\n250 2.0.0 Ok\r\n"), "{said}");
}

#[test]
fn lmtp_answers_for_each_recipient() {
    let config = Config { protocol: Protocol::Lmtp, ..smtp() };
    play(
        config,
        "S: 220 mx.test LMTP Sluice
         C: EHLO x
         S: 500 *
         C: LHLO x
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250-*
         S: 250 *
         C: MAIL FROM:<a@b>
         S: 250 *
         C: RCPT TO:<c@d>
         S: 250 *
         C: RCPT TO:<no@d>
         S: 550 *
         C: RCPT TO:<e@d>
         S: 250 *
         C: DATA
         S: 354 *
         C: .
         S: 250 2.0.0 Taken
         S: 250 2.0.0 Taken",
    );
}

#[test]
fn time_runs_out() {
    let mut server = Server::new(smtp(), 1_000);
    assert_eq!(server.deadline(), 301_000);
    server.step(2_000, b"NOOP\r\n", &mut Window::with_capacity(8));
    assert_eq!(server.deadline(), 302_000);
    server.timeout();
    assert!(server.outbox().ends_with(b"421 4.4.2 Timeout\r\n"));
    assert_eq!(server.step(0, b"x", &mut Window::with_capacity(8)), (0, ServerEvent::Closed));
}

#[test]
fn a_hop_is_greeted_learned_and_given_what_it_offers() {
    let mut client = Client::new("mx.test", Protocol::Smtp);
    assert_eq!(
        client.step(b"220 hi\r\n"),
        (8, ClientEvent::Reply(Asked::Greeting, Reply { code: 220, enhanced: None, text: "hi".into() }))
    );
    client.hello();
    let (_, event) = client.step(b"250-hop\r\n250-size 1000\r\n250 DSN\r\n");
    assert!(matches!(event, ClientEvent::Reply(Asked::Hello, _)));
    assert_eq!(*client.extensions(), Extensions { size: Some(1000), dsn: true, ..Extensions::default() });
    client.sent(client.outbox().len());
    let utf8 = MailFrom { smtputf8: true, ..MailFrom::default() };
    assert_eq!(client.mail(&utf8), Err(Unsupported::SmtpUtf8));
    client.mail(&MailFrom { size: Some(7), envid: Some("e".into()), ..MailFrom::default() }).unwrap();
    assert_eq!(client.outbox(), b"MAIL FROM:<> SIZE=7 ENVID=e\r\n");
}

#[test]
fn a_hop_without_ehlo_is_spoken_to_in_plain_smtp() {
    let mut client = Client::new("mx.test", Protocol::Smtp);
    client.step(b"220 hi\r\n");
    client.hello();
    assert_eq!(client.step(b"500 what\r\n").1, ClientEvent::Idle);
    assert_eq!(client.outbox(), b"EHLO mx.test\r\nHELO mx.test\r\n");
    assert!(matches!(client.step(b"250 hop\r\n").1, ClientEvent::Reply(Asked::Hello, Reply { code: 250, .. })));
}

#[test]
fn a_hop_that_speaks_out_of_turn_is_left() {
    for said in ["hello\r\n", "220 hi\r\n250 extra\r\n", "220-a\r\n250 b\r\n", "220 hi\r\n421 bye\r\n"] {
        let mut client = Client::new("mx.test", Protocol::Smtp);
        let (taken, first) = client.step(said.as_bytes());
        let broken = matches!(first, ClientEvent::Broken(_))
            || matches!(client.step(&said.as_bytes()[taken..]).1, ClientEvent::Broken(_));
        assert!(broken, "{said:?}");
    }
    let endless = "220-x\r\n".repeat(200);
    assert!(matches!(Client::new("x", Protocol::Smtp).step(endless.as_bytes()).1, ClientEvent::Broken(_)));
}

/// A client half and a server half in one room, the bytes between them cut into pieces.
fn face_to_face(content: &[u8], piece: usize, chunked: bool) -> Vec<u8> {
    let mut host = Host::new(smtp());
    let mut client = Client::new("client.test", Protocol::Smtp);
    let mut to_client = host.hear(b"", 1).into_bytes();
    to_client.extend_from_slice(host.server.outbox());
    host.server.sent(host.server.outbox().len());
    let mut done = false;
    for _ in 0..100 {
        if done {
            break;
        }
        let mut events = Vec::new();
        let mut at = 0;
        while at < to_client.len() {
            let (taken, event) = client.step(&to_client[at..to_client.len().min(at + piece)]);
            at += taken;
            events.push(event);
        }
        for event in events {
            match event {
                ClientEvent::Idle => {}
                ClientEvent::Broken(reason) => panic!("{reason}"),
                ClientEvent::Reply(Asked::Greeting, _) => client.hello(),
                ClientEvent::Reply(Asked::Hello, _) => {
                    client.mail(&MailFrom::default()).unwrap();
                    let (_, rcpt) = parse_rcpt();
                    client.recipient(&rcpt).unwrap();
                    if chunked {
                        for piece in content.chunks(piece) {
                            client.chunk(piece, None);
                        }
                        client.chunk(b"", Some(1));
                    } else {
                        client.data();
                    }
                }
                ClientEvent::Reply(Asked::Data, _) => {
                    content.chunks(piece).for_each(|piece| client.content(piece));
                    client.end(1);
                }
                ClientEvent::Reply(Asked::Done, reply) => {
                    assert_eq!(reply.code, 250);
                    done = true;
                }
                ClientEvent::Reply(_, reply) => assert!(reply.is_positive(), "{reply}"),
            }
        }
        let to_server = client.outbox().to_vec();
        client.sent(to_server.len());
        to_client = host.hear(&to_server, piece).into_bytes();
    }
    assert!(done, "the two halves wait for each other");
    host.content
}

fn parse_rcpt() -> (Server, RcptTo) {
    let mut server = Server::new(smtp(), 0);
    let mut input: &[u8] = b"EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<c@d>\r\n";
    loop {
        let (taken, event) = server.step(0, input, &mut Window::with_capacity(8));
        input = &input[taken..];
        match event {
            ServerEvent::Recipient(rcpt) => return (server, rcpt),
            ServerEvent::Mail(_) => server.reply(&Reply::new(250, (2, 0, 0), "Ok")),
            _ => {}
        }
    }
}

proptest::proptest! {
    #[test]
    fn content_passes_both_halves_unchanged(
        lines in proptest::collection::vec("[a.]{0,6}", 0..20), piece in 1usize..50, chunked: bool,
    ) {
        let content: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\r\n"].concat()).collect();
        proptest::prop_assert_eq!(face_to_face(&content, piece, chunked), content);
    }

    #[test]
    fn no_input_breaks_a_half(data in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        proto::smtp::fuzz_server(&data);
        proto::smtp::fuzz_client(&data);
    }
}

#[test]
fn a_trusted_client_speaks_for_its_own() {
    let host = play(
        smtp(),
        "S: 220 mx.test ESMTP Sluice
         C: XCLIENT ADDR=192.0.2.9 NAME=[UNAVAILABLE] HELO=client+2Etest LOGIN=tim
         S: 220 mx.test ESMTP Sluice
         C: MAIL FROM:<a@b>
         S: 503 5.5.1 *
         C: HELO x
         S: 250 mx.test
         C: XCLIENT SOURCE=LOCAL
         S: 501 5.5.4 Syntax: NAME=value...
         C: MAIL FROM:<a@b>
         S: 250 *
         C: XCLIENT ADDR=192.0.2.10
         S: 503 5.5.1 Not allowed during a mail transaction",
    );
    let Some(ServerEvent::Xclient(told)) = host.events.first() else { panic!("{:?}", host.events) };
    assert_eq!(proto::smtp::attribute(told, "ADDR").as_deref(), Some("192.0.2.9"));
    assert_eq!(proto::smtp::attribute(told, "HELO").as_deref(), Some("client.test"));
    assert_eq!(proto::smtp::attribute(told, "NAME"), None);
    let untrusted = Config { extensions: Extensions { xclient: false, ..ALL }, ..smtp() };
    play(untrusted, "S: 220 *\nC: XCLIENT ADDR=192.0.2.9\nS: 550 5.7.0 Insufficient authorization");
}
