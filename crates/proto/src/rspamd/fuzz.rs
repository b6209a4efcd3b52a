//! Fuzz body: any bytes, cut anyhow, are the same conversation.

use alloc::vec::Vec;

use super::{Answer, Server, ServerEvent};

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
    let (mut at, mut offered) = (0_usize, 0_usize);
    loop {
        if offered == at {
            offered = data.len().min(at.saturating_add(piece));
        }
        let (taken, mut event) = server.step(&data[at..offered]);
        if event == ServerEvent::Content {
            content.extend_from_slice(&data[at..at + taken]);
        }
        at += taken;
        if taken == 0 && event == ServerEvent::Idle {
            if offered < data.len() {
                offered = data.len().min(offered.saturating_add(piece));
                continue;
            }
            event = server.finish();
        }
        if event == ServerEvent::End {
            let (scores, action) = ([5.1, 5.0, 15.0], "add header");
            server.answer(&Answer { is_spam: true, scores, action, symbols: &["A"], json: &content });
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
