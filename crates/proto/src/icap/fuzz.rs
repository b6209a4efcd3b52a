//! Fuzz body: any bytes, cut anyhow, are the same conversation.

use alloc::vec::Vec;

use super::{Method, Request, Server, ServerEvent, Service};
use crate::http::{Fields, Limits, Response};

/// Fuzz body: a client that sends anything, cut anyhow, and ends. The first byte chooses the cut and how it is answered.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let how = seed % 4;
    let whole = serve(data, usize::MAX, how);
    assert_eq!(whole, serve(data, usize::from(seed / 4 % 13).saturating_add(1), how), "the events depend on the cut");
}

/// Requests, events but for idle and content, all content, and all that was sent.
type Conversation = (Vec<Request>, Vec<ServerEvent>, Vec<u8>, Vec<u8>);

fn serve(data: &[u8], piece: usize, how: u8) -> Conversation {
    let mut server = Server::new(Limits::default(), "tag");
    let (mut requests, mut events, mut content) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut offered) = (0_usize, 0_usize);
    loop {
        if offered == at {
            offered = data.len().min(at.saturating_add(piece));
        }
        let (taken, mut event) = server.step(data.get(at..offered).unwrap_or_default());
        if event == ServerEvent::Content {
            content.extend_from_slice(data.get(at..at.saturating_add(taken)).unwrap_or_default());
        }
        at = at.saturating_add(taken);
        if at == data.len() && taken == 0 && event == ServerEvent::Idle {
            event = server.finish();
        }
        match event {
            ServerEvent::Idle | ServerEvent::Content => continue,
            ServerEvent::Request => {
                requests.extend(server.request().cloned());
                content.clear();
                if how == 3 {
                    server.original(&Fields::default());
                }
            }
            ServerEvent::Preview if how == 0 => answer(&mut server, &content),
            ServerEvent::Preview => server.proceed(),
            ServerEvent::End => answer(&mut server, &content),
            ServerEvent::Refused(_) | ServerEvent::Closed => {}
        }
        let is_over = matches!(event, ServerEvent::Closed | ServerEvent::Refused(_));
        events.push(event);
        if is_over {
            return (requests, events, content, server.outbox().to_vec());
        }
    }
}

fn answer(server: &mut Server, content: &[u8]) {
    if server.request().is_some_and(|request| request.method == Method::Options) {
        let service =
            Service { name: "x".into(), tag: "tag".into(), preview_bytes: 1, connections_max: 1, seconds: 60 };
        return server.options(&service, "RESPMOD");
    }
    if server.unmodified(&Fields::default()) {
        return;
    }
    server.original(&Fields::default());
    server.content(content);
    server.end();
    // Where there is no head to give back, there is another answer.
    server.replace(&Response::new(403), b"no", &Fields::default());
}
