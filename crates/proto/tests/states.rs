//! The tables of states: the halves do what they say, and `docs/doors/states.md` is made from them.
//!
//! Write the page anew with `SLUICE_WRITE_PAGES=1 cargo test -p sluice-proto --test all states::`.

use std::path::Path;

use proto::smtp::states::{Phase, TABLE, Turn, Verb, turn};
use proto::smtp::{Config, Extensions, Mechanisms, Reply, Server, ServerEvent};
use proto::{imap, pop3};
use stream::Window;

const ALL: Extensions = Extensions {
    pipelining: true,
    size: None,
    eight_bit_mime: true,
    smtputf8: true,
    chunking: true,
    enhanced_status_codes: true,
    dsn: true,
    starttls: true,
    require_tls: true,
    future_release: None,
    auth: Mechanisms::ALL,
    xforward: true,
    xclient: true,
};

/// Says lines to a server whose host agrees to everything but chunks of three bytes; the codes that it answers.
fn say(server: &mut Server, lines: &str) -> Vec<u16> {
    server.sent(server.outbox().len());
    let mut rest = lines.as_bytes();
    loop {
        let mut window = Window::with_capacity(64);
        let (taken, event) = server.step(0, rest, &mut window);
        let is_refused = rest.starts_with(b"BDAT 3");
        rest = &rest[taken..];
        match event {
            ServerEvent::Idle if taken == 0 => break,
            ServerEvent::Closed => break,
            ServerEvent::Data if is_refused => server.reply(&Reply::new(452, (4, 3, 1), "No")),
            ServerEvent::Data => server.begin(),
            ServerEvent::Mail(_) | ServerEvent::Recipient(_) | ServerEvent::End { .. } => {
                server.reply(&Reply::new(250, (2, 0, 0), "Ok"));
            }
            ServerEvent::Auth { .. } => server.reply(&Reply::new(235, (2, 7, 0), "Ok")),
            ServerEvent::StartTls => server.secured(0, ALL),
            _ => {}
        }
    }
    assert!(rest.is_empty(), "bytes are left");
    let said = String::from_utf8_lossy(server.outbox());
    said.lines().filter(|line| line.as_bytes()[3] == b' ').map(|line| line[..3].parse().expect("a code")).collect()
}

fn server_in(phase: Phase) -> Server {
    let mut server = Server::new(Config { extensions: ALL, ..Config::default() }, 0);
    let steps = ["EHLO x\r\n", "MAIL FROM:<a@b>\r\n", "RCPT TO:<c@d>\r\n"];
    let (count, last) = match phase {
        Phase::Fresh | Phase::Closed => (0, ""),
        Phase::Ready => (1, ""),
        Phase::Sender => (2, ""),
        Phase::Recipients => (3, ""),
        Phase::Chunks => (3, "BDAT 2\r\nab"),
        Phase::Refused => (3, "BDAT 3\r\nabc"),
    };
    say(&mut server, &(steps[..count].concat() + last));
    server
}

#[test]
fn the_server_of_smtp_does_what_the_table_says() {
    for phase in Phase::ALL {
        for (verb, ..) in TABLE {
            let line = match verb {
                Verb::Hello => "EHLO y\r\n",
                Verb::Mail => "MAIL FROM:<e@f>\r\n",
                Verb::Rcpt => "RCPT TO:<g@h>\r\n",
                Verb::Data => "DATA\r\n",
                Verb::Bdat => "BDAT 2\r\ncd",
                Verb::BdatLast => "BDAT 2 LAST\r\ncd",
                Verb::Rset => "RSET\r\n",
                Verb::StartTls => "STARTTLS\r\n",
                Verb::Auth => "AUTH PLAIN AGEAYg==\r\n",
                Verb::Xforward => "XFORWARD NAME=x\r\n",
                Verb::Xclient => "XCLIENT NAME=x\r\n",
                Verb::Noop => "NOOP\r\n",
                Verb::Quit => "QUIT\r\n",
            };
            let mut server = server_in(phase);
            assert_eq!(server.phase(), phase);
            let mut codes = say(&mut server, line);
            if codes == [354] {
                codes = say(&mut server, "text\r\n.\r\n");
            }
            let what = format!("{line:?} in {phase:?}: {codes:?}");
            let code = codes.last().copied().unwrap_or_default();
            match turn(phase, verb) {
                Turn::To(next) => assert!(code / 100 == 2 && server.phase() == next, "{what} to {:?}", server.phase()),
                Turn::Stay => assert!(code / 100 == 2 && server.phase() == phase, "{what} to {:?}", server.phase()),
                Turn::No(refusal, ..) => {
                    // A chunk that is refused is not forgotten.
                    let is_same = server.phase() == phase || matches!(verb, Verb::Bdat | Verb::BdatLast);
                    assert!(code == refusal && is_same, "{what} to {:?}", server.phase());
                }
            }
        }
    }
}

/// A half of POP3 whose host agrees to everything has heard these lines; what it refuses.
fn say_pop3(server: &mut pop3::Server, lines: &str) -> Option<&'static str> {
    let mut rest = lines.as_bytes();
    while !rest.is_empty() {
        let (taken, event) = server.step(0, rest);
        rest = &rest[taken..];
        match event {
            pop3::ServerEvent::Wrong(reason) => return Some(reason),
            pop3::ServerEvent::Command(command) if command.verb == pop3::Verb::Quit => {}
            event => {
                assert!(taken > 0 && event != pop3::ServerEvent::Closed, "{event:?}");
                server.answered(0, true);
            }
        }
    }
    None
}

#[test]
fn the_server_of_pop3_does_what_the_table_says() {
    use pop3::states::{Phase, TABLE, Turn, turn};
    for (phase, before) in Phase::ALL.into_iter().zip(["", "USER a\r\n", "USER a\r\nPASS b\r\n"]) {
        for (verb, _) in TABLE {
            let argument = match verb {
                pop3::Verb::User | pop3::Verb::Pass | pop3::Verb::Lang => " c",
                pop3::Verb::Apop => " c d",
                pop3::Verb::Auth => " PLAIN AGEAYg==",
                pop3::Verb::Retr | pop3::Verb::Dele => " 1",
                pop3::Verb::Top => " 1 0",
                _ => "",
            };
            let mut server = pop3::Server::new(pop3::Config::default(), 0);
            assert_eq!(say_pop3(&mut server, before), None);
            assert_eq!(server.phase(), phase);
            let refusal = say_pop3(&mut server, &format!("{}{argument}\r\n", verb.name()));
            let wanted = match turn(phase, verb) {
                Turn::To(next) => (next, None),
                Turn::Stay => (phase, None),
                Turn::No(reason) => (phase, Some(reason)),
            };
            assert_eq!((server.phase(), refusal), wanted, "{verb:?} in {phase:?}");
        }
    }
}

/// A half of IMAP whose host agrees to everything has heard these lines; what it refuses.
fn say_imap(server: &mut imap::Server, lines: &str) -> Option<&'static str> {
    let mut rest = lines.as_bytes();
    while !rest.is_empty() && !server.is_closed() {
        let (taken, event) = server.step(0, rest);
        rest = &rest[taken..];
        match event {
            imap::ServerEvent::Wrong(_, reason) => return Some(reason),
            imap::ServerEvent::Append(..) => server.accept(),
            imap::ServerEvent::Command(_) | imap::ServerEvent::AppendEnd(_) => server.answered(0, imap::Kind::Ok),
            event => assert!(taken > 0 && event != imap::ServerEvent::Closed, "{event:?}"),
        }
    }
    None
}

#[test]
fn the_server_of_imap_does_what_the_table_says() {
    use imap::states::{Phase, TABLE, Turn, turn};
    for (phase, before) in Phase::ALL.into_iter().zip(["", "a LOGIN b c\r\n", "a LOGIN b c\r\na SELECT d\r\n"]) {
        for (verb, name) in TABLE.iter().flat_map(|(verb, _)| verb.names().map(move |name| (*verb, name))) {
            let argument = match verb {
                imap::Verb::Append => " x {1+}\r\ny",
                imap::Verb::Replace => " 1 x {1+}\r\ny",
                imap::Verb::Authenticate => " PLAIN AGEAYg==",
                _ => "",
            };
            let mut server = imap::Server::new(imap::Config { keeps: true, ..imap::Config::default() }, 0);
            assert_eq!(say_imap(&mut server, before), None);
            assert_eq!(server.phase(), phase);
            let refusal = say_imap(&mut server, &format!("a {name}{argument}\r\n"));
            let wanted = match turn(phase, verb) {
                Turn::To(next) => (next, None),
                Turn::Stay => (phase, None),
                Turn::No(reason) => (phase, Some(reason)),
            };
            assert_eq!((server.phase(), refusal), wanted, "{name} in {phase:?}");
        }
    }
}

#[test]
fn the_page_of_states_is_that_of_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doors/states.md");
    if std::env::var_os("SLUICE_WRITE_PAGES").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).expect("the page is there");
    assert!(written == page(), "docs/doors/states.md is not up to date");
}

/// Result of a command, as the page says it.
#[derive(PartialEq)]
enum Cell {
    To(String),
    Stays,
    No(String),
}

/// A table: its heading and introduction, the names of its states, and the rows.
struct Chapter {
    head: &'static str,
    states: Vec<String>,
    rows: Vec<(String, Vec<Cell>)>,
}

fn page() -> String {
    let mut page = String::from(
        "# Sessions and their states\n\nThe commands that the servers allow in each state; a session begins in the first \
         one. A number is that of the refusal, below the table. Commands that are not offered, or not allowed for the \
         client, are refused too. Generated from the state tables of `proto`: `SLUICE_WRITE_PAGES=1 cargo test \
         -p sluice-proto --test all states::`.\n",
    );
    for chapter in [smtp(), pop3(), imap()] {
        page += &chapter.text();
    }
    page
}

fn smtp() -> Chapter {
    let cell = |turn: &Turn| match turn {
        Turn::To(next) => Cell::To(format!("{next:?}")),
        Turn::Stay => Cell::Stays,
        Turn::No(code, _, text) => Cell::No(format!("{code} {text}")),
    };
    Chapter {
        head: "## SMTP and LMTP\n\nThe next state after each command if sender, recipient and content are accepted, or \
               the refusal. A refused BDAT leads to Refused.",
        states: Phase::ALL.map(|phase| format!("{phase:?}")).to_vec(),
        rows: TABLE.iter().map(|(_, name, turns)| (name.to_string(), turns.iter().map(cell).collect())).collect(),
    }
}

fn pop3() -> Chapter {
    use pop3::states::{Phase, TABLE, Turn};
    let cell = |turn: &Turn| match turn {
        Turn::To(next) => Cell::To(format!("{next:?}")),
        Turn::Stay => Cell::Stays,
        Turn::No(reason) => Cell::No(format!("-ERR {reason}")),
    };
    Chapter {
        head: "## POP3\n\nThe next state after each command with the reply +OK; a failed login leads back to Authorization.",
        states: Phase::ALL.map(|phase| format!("{phase:?}")).to_vec(),
        rows: TABLE.iter().map(|(verb, turns)| (verb.name().into(), turns.iter().map(cell).collect())).collect(),
    }
}

fn imap() -> Chapter {
    use imap::states::{Phase, TABLE, Turn};
    let cell = |turn: &Turn| match turn {
        Turn::To(next) => Cell::To(format!("{next:?}")),
        Turn::Stay => Cell::Stays,
        Turn::No(reason) => Cell::No(format!("BAD {reason}")),
    };
    let row = |(verb, turns): &(imap::Verb, [Turn; 3])| {
        let names: Vec<_> = verb.names().collect();
        (names.join(", "), turns.iter().map(cell).collect())
    };
    Chapter {
        head: "## IMAP\n\nThe next state after each command with the reply OK. A session with PREAUTH begins in \
               Authenticated. A refused SELECT or EXAMINE, and deleting the selected mailbox, lead back there.",
        states: Phase::ALL.map(|phase| format!("{phase:?}")).to_vec(),
        rows: TABLE.iter().map(row).collect(),
    }
}

impl Chapter {
    fn text(&self) -> String {
        let mut rows: Vec<(String, &Vec<Cell>)> = Vec::new();
        for (name, cells) in &self.rows {
            // Commands with equal cells share a row.
            match rows.iter_mut().find(|(_, others)| *others == cells) {
                Some((names, _)) => *names += &format!(", {name}"),
                None => rows.push((name.clone(), cells)),
            }
        }
        let mut text = format!("\n{}\n\n| command |", self.head);
        self.states.iter().for_each(|state| text += &format!(" {state} |"));
        text += "\n| --- |";
        self.states.iter().for_each(|_| text += " --- |");
        let mut refusals: Vec<&String> = Vec::new();
        for (name, cells) in &rows {
            text += &format!("\n| {name} |");
            for cell in *cells {
                text += &match cell {
                    Cell::To(next) => format!(" → {next} |"),
                    Cell::Stays => " stays |".into(),
                    Cell::No(refusal) => {
                        let known = refusals.iter().position(|other| *other == refusal);
                        if known.is_none() {
                            refusals.push(refusal);
                        }
                        format!(" no ({}) |", known.map_or(refusals.len(), |at| at + 1))
                    }
                };
            }
        }
        text += "\n\n";
        for (number, refusal) in refusals.iter().enumerate() {
            text += &format!("{}. `{refusal}`\n", number + 1);
        }
        text
    }
}
