//! Fuzz bodies of both halves.

use alloc::vec::Vec;

use stream::Window;

use super::{Client, ClientEvent, Command, Config, Server, ServerEvent};

/// Fuzz body: a client that says anything, cut anyhow. The events must not depend on the cut, and every command that
/// passes is one line.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(serve(data, usize::MAX >> 1), serve(data, 1 + usize::from(seed) % 13), "the events depend on the cut");
}

fn serve(data: &[u8], piece: usize) -> Vec<ServerEvent> {
    let mut server = Server::new(Config::default(), 0);
    let mut events = Vec::new();
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(0, &piece[at..]);
            at += taken;
            match &event {
                ServerEvent::Idle if at == piece.len() => break,
                // The host decides: on with the exchange, or with commands.
                ServerEvent::Idle if taken == 0 && events.len() % 2 == 0 => server.challenge(b""),
                ServerEvent::Idle if taken == 0 => server.answered(0, events.len() % 3 == 0),
                ServerEvent::Idle => {}
                ServerEvent::Closed => return events,
                ServerEvent::Command(command) => {
                    let mut line = Vec::new();
                    command.write(&mut line);
                    assert_eq!(line.iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count(), 2);
                    events.push(event);
                }
                _ => events.push(event),
            }
        }
    }
    events
}

/// Fuzz body: a server that answers anything, cut anyhow.
pub fn fuzz_client(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(ask(data, usize::MAX >> 1), ask(data, 1 + usize::from(seed) % 13), "the events depend on the cut");
}

/// All events but content, and the content.
fn ask(data: &[u8], piece: usize) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new();
    client.pipeline();
    for line in ["CAPA", "AUTH PLAIN", "UIDL 1", "RETR 1", "LIST", "TOP 1 0", "RETR 2", "QUIT"] {
        client.command(Command::parse(line.as_bytes()).expect("a command"));
    }
    let (mut events, mut content) = (Vec::new(), Vec::new());
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let mut window = Window::with_capacity(16);
            let (taken, event) = client.step(&piece[at..], &mut window);
            at += taken;
            content.extend_from_slice(window.filled());
            match &event {
                ClientEvent::Idle if at == piece.len() => break,
                ClientEvent::Idle | ClientEvent::Content => {}
                ClientEvent::Broken(_) => {
                    events.push(event);
                    return (events, content);
                }
                _ => events.push(event),
            }
        }
    }
    (events, content)
}
