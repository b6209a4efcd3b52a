//! Fuzz bodies of both halves.

use alloc::vec::Vec;

use super::appended::{Head, Place, read_on};
use super::name;
use super::operation::Operation;
use super::{Client, ClientEvent, Command, Config, Fetch, Kind, Server, ServerEvent, Verb};

/// Fuzz body: a client that says anything, cut anyhow. The events must not depend on the cut, and every command that
/// passes is as many lines as it has literals, and one more.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(
        serve(data, usize::MAX >> 1, seed, false),
        serve(data, 1 + usize::from(seed) % 13, seed, false),
        "the events depend on the cut"
    );
}

/// Fuzz body: commands for a server that keeps the mail, cut anyhow. What is understood must not depend on the cut, and no
/// set, name or search may be more than the command that it was in.
pub fn fuzz_operation(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let operations = |piece| {
        let (events, _) = serve(data, piece, seed, true);
        let understood = events.iter().map(|event| match event {
            ServerEvent::Command(command) => Some(Operation::parse(command, seed & 1 == 1)),
            ServerEvent::Append(command, _) => {
                assert!(Head::read(command, true, false).is_ok() || Head::read(command, false, false).is_err());
                None
            }
            ServerEvent::Message(text, _) => {
                let _ = read_on(text, Place::Between, false);
                None
            }
            _ => None,
        });
        understood.collect::<Vec<_>>()
    };
    let whole = operations(usize::MAX >> 1);
    assert_eq!(whole, operations(1 + usize::from(seed) % 13), "what is understood depends on the cut");
    for operation in whole.iter().flatten().flatten() {
        if let Operation::Create { mailbox, .. } = operation {
            let wire = name::encode(mailbox);
            assert!(name::decode(&wire, false).as_ref() == Some(mailbox), "a name has two forms");
        }
    }
}

/// All events but content, and the content.
fn serve(data: &[u8], piece: usize, seed: u8, keeps: bool) -> (Vec<ServerEvent>, Vec<u8>) {
    let mut server = Server::new(Config { keeps, ..Config::default() }, 0);
    if seed < 0x80 {
        server.logged_in(0);
        server.step(0, b"0 SELECT x\r\n");
        server.answered(0, Kind::Ok);
    }
    let (mut events, mut content) = (Vec::new(), Vec::new());
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(0, &piece[at..]);
            let run = &piece[at..at + taken];
            at += taken;
            match &event {
                ServerEvent::Idle if at == piece.len() => break,
                ServerEvent::Idle => assert!(taken > 0, "the half waits for nobody"),
                ServerEvent::Content => {
                    content.extend_from_slice(run);
                    continue;
                }
                ServerEvent::Closed => return (events, content),
                _ => {}
            }
            decide(&mut server, &event, events.len());
            if event != ServerEvent::Idle {
                events.push(event);
            }
        }
    }
    (events, content)
}

/// Answers an event as a host might.
fn decide(server: &mut Server, event: &ServerEvent, number: usize) {
    let kind = [Kind::Ok, Kind::Ok, Kind::No, Kind::Bad][number % 4];
    match event {
        ServerEvent::Command(command) => {
            check(command);
            match command.verb {
                Verb::Authenticate => server.challenge(b""),
                Verb::Idle => server.idle(b""),
                _ => server.answered(0, kind),
            }
        }
        ServerEvent::Append(..) | ServerEvent::Message(..) => {
            if !number.is_multiple_of(3) {
                server.accept();
            } else if server.refuse() {
                server.answered(0, kind);
            }
        }
        ServerEvent::AppendEnd(_) | ServerEvent::Wrong(..) | ServerEvent::Response(_) | ServerEvent::Done => {
            server.answered(0, kind);
        }
        ServerEvent::Idle | ServerEvent::Content | ServerEvent::Closed => {}
    }
    server.sent();
}

fn check(command: &Command) {
    let mut client = Client::new();
    client.command(command);
    let literals = command.pieces.iter().filter(|piece| matches!(piece, super::Piece::Literal { .. })).count();
    for _ in 0..literals {
        assert!(client.outbox().ends_with(b"}\r\n"), "a literal that is not announced");
        client.sent();
        let mut taken = 0;
        while taken < 4 {
            taken += client.step(&b"+ \r\n"[taken..]).0;
        }
    }
    assert!(client.outbox().ends_with(b"\r\n"));
    if literals == 0 {
        assert_eq!(client.outbox().iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count(), 2);
    }
    if command.verb == Verb::Fetch
        && let Ok(fetch) = Fetch::parse(command)
    {
        let again = Fetch::parse(&Command::fetch(&fetch)).expect("what is written can be read");
        assert_eq!(again.sections, fetch.sections);
    }
}

/// Fuzz body: a server that answers anything, cut anyhow.
pub fn fuzz_client(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(ask(data, usize::MAX >> 1), ask(data, 1 + usize::from(seed) % 13), "the events depend on the cut");
}

/// All events but runs, and these.
fn ask(data: &[u8], piece: usize) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new();
    let command = Command::parse(b"a FETCH 1 BODY[]", false).expect("a command");
    let (mut events, mut runs) = (Vec::new(), Vec::new());
    client.command(&command);
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = client.step(&piece[at..]);
            let run = &piece[at..at + taken];
            at += taken;
            match &event {
                ClientEvent::Idle if at == piece.len() => break,
                ClientEvent::Idle => {}
                ClientEvent::Pass | ClientEvent::PassText | ClientEvent::Content => runs.extend_from_slice(run),
                ClientEvent::Broken(_) => {
                    events.push(event);
                    return (events, runs);
                }
                ClientEvent::Status(status) if status.tagged => {
                    events.push(event);
                    client.command(&command);
                    client.sent();
                }
                _ => events.push(event),
            }
        }
    }
    (events, runs)
}
