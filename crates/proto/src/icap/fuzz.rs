//! Fuzz bodies: any bytes, cut anyhow, are the same conversation.

use alloc::vec::Vec;

use super::{Client, ClientEvent, Method, Question, Request, Server, ServerEvent, Service};
use crate::http::{self, Fields, Limits, Response, Target};

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

/// Fuzz body: a service that sends anything, cut anyhow, and ends. The first byte chooses the cut and the question.
pub fn fuzz_client(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let how = seed % 4;
    let whole = ask(data, usize::MAX, how);
    assert_eq!(whole, ask(data, usize::from(seed / 4 % 13).saturating_add(1), how), "the events depend on the cut");
}

/// Events but for idle and content, and all content.
fn ask(data: &[u8], piece: usize, how: u8) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new(Limits::default(), "icap://a/b", "a");
    begin(&mut client, how);
    let (mut events, mut content) = (Vec::new(), Vec::new());
    let (mut at, mut offered) = (0_usize, 0_usize);
    loop {
        if offered == at {
            offered = data.len().min(at.saturating_add(piece));
        }
        let (taken, mut event) = client.step(data.get(at..offered).unwrap_or_default());
        if event == ClientEvent::Content {
            content.extend_from_slice(data.get(at..at.saturating_add(taken)).unwrap_or_default());
        }
        at = at.saturating_add(taken);
        if at == data.len() && taken == 0 && event == ClientEvent::Idle {
            event = client.finish();
        }
        match event {
            ClientEvent::Idle | ClientEvent::Content => continue,
            ClientEvent::Continue => client.end(&Fields::default()),
            _ if client.is_reusable() => begin(&mut client, how),
            _ => {}
        }
        let is_over = matches!(event, ClientEvent::Closed | ClientEvent::Failed(_));
        events.push(event);
        if is_over {
            return (events, content);
        }
    }
}

fn begin(client: &mut Client, how: u8) {
    let request = http::Request::new("GET", Target::Origin(b"/".to_vec()));
    let response = Response::new(200);
    let (fields, has_body) = (Fields::default(), how > 1);
    let response = (how % 2 == 1).then_some(&response);
    let preview = (how == 3).then_some(4);
    let (url, allows_204) = (&b"http://a/"[..], how == 2);
    match how {
        0 => client.options(),
        _ => client.ask(&Question { fields: &fields, request: &request, url, response, has_body, preview, allows_204 }),
    }
    client.content(b"body");
    if how == 3 { client.end_preview() } else { client.end(&Fields::default()) }
}
