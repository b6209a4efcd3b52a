//! Fuzz body: any bytes, cut anyhow, are the same conversation.

use alloc::vec::Vec;

use super::{Answer, Server, ServerEvent, Verb, Verdict};

/// Fuzz body: a client that says anything, cut anyhow, and ends. The first byte chooses the cut.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else {
        return;
    };
    let whole = serve(data, usize::MAX >> 1);
    let cut = serve(data, 1 + usize::from(seed) % 13);
    assert_eq!(whole, cut, "the events depend on the cut");
}

/// All events, content joined, and everything that was answered.
fn serve(data: &[u8], piece: usize) -> (Vec<ServerEvent>, Vec<u8>, Vec<u8>) {
    let mut server = Server::default();
    let (mut events, mut content) = (Vec::new(), Vec::new());
    let (mut at, mut offered) = (0_usize, 0);
    loop {
        if offered == at {
            offered = data.len().min(at.saturating_add(piece));
        }
        let (taken, mut event) = server.step(&data[at..offered]);
        if event == ServerEvent::Content {
            content.extend_from_slice(&data[at..at + taken]);
        }
        at += taken;
        if at == data.len() && taken == 0 && event == ServerEvent::Idle {
            event = server.finish();
        }
        if event == ServerEvent::End {
            let verdict = Verdict { is_spam: true, score: "5.1", required: "5.0" };
            match events.last() {
                Some(ServerEvent::Asked(request)) if request.verb == Verb::Tell => {
                    server.told(request.set, request.remove)
                }
                _ => server.answer(&Answer { verdict, body: &content }),
            }
        }
        let is_over = event == ServerEvent::Closed;
        if !matches!(event, ServerEvent::Idle | ServerEvent::Content) {
            events.push(event);
        }
        if is_over {
            return (events, content, server.outbox().to_vec());
        }
    }
}
