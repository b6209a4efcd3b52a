//! Fuzz body: any bytes, cut anyhow, are the same conversation.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Config, Reply, Request, Server, ServerEvent};

/// Fuzz body: a client that says anything, cut anyhow. The first byte chooses the cut and the order of the answers.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else {
        return;
    };
    let whole = serve(data, usize::MAX >> 1, seed & 1 == 1);
    let cut = serve(data, 1 + usize::from(seed >> 1) % 13, seed & 1 == 1);
    assert_eq!(whole, cut, "the events depend on the cut");
}

/// All events, content joined, and everything that was answered: at once, or as late as possible.
fn serve(data: &[u8], piece: usize, late: bool) -> (Vec<ServerEvent>, Vec<u8>, Vec<u8>) {
    let config = Config { stream_bytes_max: 1_000, requests_max: 4, ..Config::default() };
    let mut server = Server::new(config, 0);
    let (mut events, mut content, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut offered, mut streaming) = (0, 0, false);
    loop {
        if offered == at {
            offered = data.len().min(at + piece);
        }
        let (taken, mut event) = server.step(0, &data[at..offered]);
        if event == ServerEvent::Content {
            content.extend_from_slice(&data[at..at + taken]);
        }
        at += taken;
        if at == data.len() && taken == 0 && event == ServerEvent::Idle && server.is_listening() {
            event = server.finish(0);
        }
        match &event {
            ServerEvent::Asked(tag, request) => {
                streaming = *request == Request::Stream;
                waiting.push((*tag, subject(request)));
            }
            ServerEvent::StreamEnd => streaming = false,
            ServerEvent::Closed => break,
            _ => {}
        }
        if !streaming && (!late || !server.is_listening()) {
            // The last asked is answered first.
            while let Some((tag, subject)) = waiting.pop() {
                server.answer(tag, &Reply::Found(subject.as_bytes(), "Name"));
                server.done(0);
            }
        }
        if !matches!(event, ServerEvent::Idle | ServerEvent::Content) {
            events.push(event);
        }
        if server.is_closed() {
            break;
        }
    }
    (events, content, server.outbox().to_vec())
}

fn subject(request: &Request) -> String {
    match request {
        Request::Scan { path, .. } => String::from_utf8_lossy(path).into_owned(),
        other => alloc::format!("{other:?}"),
    }
}
