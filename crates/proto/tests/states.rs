//! The tables of states: the halves do what they say, and `docs/doors/states.md` is made from them.
//!
//! Write the page anew with `SLUICE_WRITE_PAGES=1 cargo test -p sluice-proto --test all states::`.

use std::fmt::Write;
use std::path::Path;

use proto::smtp::states::{Phase, TABLE, Turn, Verb, turn};
use proto::smtp::{Config, Extensions, Mechanisms, Reply, Server, ServerEvent};
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

#[test]
fn the_page_of_states_is_that_of_the_tables() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doors/states.md");
    if std::env::var_os("SLUICE_WRITE_PAGES").is_some() {
        std::fs::write(&path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).expect("the page is there");
    assert!(written == page(), "docs/doors/states.md is not up to date");
}

fn page() -> String {
    let mut page = String::from(
        "# Sessions and their states\n\nMade from the tables that the halves go by: \
         `SLUICE_WRITE_PAGES=1 cargo test -p sluice-proto --test all states::`.\n\n## SMTP and LMTP, the server\n\n\
         What a command leads to in each state, if the recipient, the sender and the content are taken; or how it is \
         refused. What is not offered, or not allowed to this client, is refused besides.\n\n```mermaid\n\
         stateDiagram-v2\n    [*] --> Fresh\n",
    );
    for (from, phase) in Phase::ALL.iter().enumerate() {
        for (_, name, turns) in TABLE {
            match turns[from] {
                Turn::To(Phase::Closed) if *phase == Phase::Ready => page += &format!("    Ready --> [*]: {name}\n"),
                Turn::To(next) if next != *phase && next != Phase::Closed => {
                    let _ = writeln!(page, "    {phase:?} --> {next:?}: {name}");
                }
                _ => {}
            }
        }
    }
    page += "    Recipients --> Refused: BDAT, refused\n```\n\n| command |";
    Phase::ALL.iter().for_each(|phase| page += &format!(" {phase:?} |"));
    page += "\n| --- |";
    Phase::ALL.iter().for_each(|_| page += " --- |");
    for (_, name, turns) in TABLE {
        let _ = write!(page, "\n| {name} |");
        for turn in turns {
            let _ = match turn {
                Turn::To(next) => write!(page, " → {next:?} |"),
                Turn::Stay => write!(page, " stays |"),
                Turn::No(code, _, text) => write!(page, " {code} {text} |"),
            };
        }
    }
    page + "\n"
}
