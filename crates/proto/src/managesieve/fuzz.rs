//! The fuzz body.

use alloc::vec::Vec;

use super::{Config, Server, ServerEvent};

/// Fuzz body: a client that says anything, cut anyhow. The events must not depend on the cut, and nothing is held beyond the
/// bounds.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(serve(data, usize::MAX >> 1), serve(data, 1 + usize::from(seed) % 13), "the events depend on the cut");
}

fn serve(data: &[u8], piece: usize) -> Vec<ServerEvent> {
    let config = Config { literal_bytes_max: 64, skipped_bytes_max: 256, line_bytes_max: 128, ..Config::default() };
    let mut server = Server::new(config, 0);
    let mut events = Vec::new();
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(0, &piece[at..]);
            at += taken;
            match event {
                ServerEvent::Idle if at == piece.len() => break,
                // The host decides: on with the exchange, or in with the client.
                ServerEvent::Idle if taken == 0 && events.len() % 2 == 0 => server.challenge(b""),
                ServerEvent::Idle if taken == 0 => {
                    server.logged_in(0);
                    server.resume();
                }
                ServerEvent::Idle => {}
                ServerEvent::Closed => {
                    events.push(ServerEvent::Closed);
                    return events;
                }
                event => events.push(event),
            }
        }
    }
    events
}
