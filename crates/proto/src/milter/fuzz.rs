//! Fuzz body of the filter's half.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::server::Decision;
use super::{Server, ServerEvent};

/// Fuzz body: a mail server that says anything, cut anyhow. What is told must not depend on the cut.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    assert_eq!(tell(data, usize::MAX >> 1), tell(data, 1 + usize::from(seed) % 13), "the events depend on the cut");
}

/// All events but the body, the body, and what was answered.
fn tell(data: &[u8], piece: usize) -> (Vec<ServerEvent>, Vec<u8>, Vec<u8>) {
    let mut server = Server::new();
    let (mut events, mut body) = (Vec::new(), Vec::new());
    for piece in data.chunks(piece) {
        let mut at = 0;
        loop {
            let (taken, event) = server.step(&piece[at..]);
            at += taken;
            match &event {
                ServerEvent::Idle if taken == 0 => break,
                ServerEvent::Idle => {}
                ServerEvent::Body(count) => {
                    assert!(taken > 0, "nothing was taken, and something told");
                    body.extend_from_slice(&piece[at - count..at]);
                }
                ServerEvent::End => {
                    if server.changes().may_add_fields() {
                        server.add_field("X-Found", &events.len().to_string());
                    }
                    server.decide(&Decision::Accept);
                    events.push(event);
                }
                ServerEvent::Closed | ServerEvent::Broken(_) => {
                    events.push(event);
                    return (events, body, server.outbox().to_vec());
                }
                _ => events.push(event),
            }
        }
    }
    (events, body, server.outbox().to_vec())
}
