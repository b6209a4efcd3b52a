//! Fuzz bodies: any bytes, cut anyhow, are the same conversation; and a message that is written again is read as the same.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Client, ClientEvent, Fields, Part, Request, Response, Server, ServerEvent, Target};

/// Fuzz body: a client that sends anything, cut anyhow, and ends. The first byte chooses the cut.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let whole = serve(data, usize::MAX);
    assert_eq!(whole, serve(data, usize::from(seed % 13).saturating_add(1)), "the events depend on the cut");
    let (requests, content, _) = whole;
    if let [Event::Request(first), ..] = &requests[..] {
        rewrite(first, &content);
        let bytes = Part::of(first).and_then(|part| part.bytes(1_000)).unwrap_or(0..1);
        assert!(bytes.start < bytes.end && bytes.end <= 1_000, "a part lies within the whole");
    }
}

/// Fuzz body: a server that answers anything to `GET` and to `HEAD`, cut anyhow, and ends. The first byte chooses the cut.
pub fn fuzz_client(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    for method in ["GET", "HEAD", "CONNECT"] {
        let whole = ask(method, data, usize::MAX);
        let cut = ask(method, data, usize::from(seed % 13).saturating_add(1));
        assert_eq!(whole, cut, "the events depend on the cut");
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Request(Box<Request>),
    Server(ServerEvent),
    Client(ClientEvent),
}

/// Events but for idle and content, all content, and all that was sent.
type Conversation = (Vec<Event>, Vec<u8>, Vec<u8>);

fn serve(data: &[u8], piece: usize) -> Conversation {
    let mut server = Server::default();
    let (mut events, mut content) = (Vec::new(), Vec::new());
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
            ServerEvent::Request(request) => {
                server.proceed();
                events.push(Event::Request(request));
                continue;
            }
            ServerEvent::End(_) => server.answer(&Response::with_body(200, "text/plain", 2), b"ok"),
            _ => {}
        }
        let is_over = matches!(event, ServerEvent::Closed | ServerEvent::Refused(_) | ServerEvent::Tunnel);
        events.push(Event::Server(event));
        if is_over {
            return (events, content, server.outbox().to_vec());
        }
    }
}

/// A request that was read and is written again is read as the same, and nothing stands behind it.
fn rewrite(request: &Request, content: &[u8]) {
    let mut client = Client::default();
    let mut forwarded = request.clone();
    forwarded.fields.remove("upgrade");
    assert!(client.request(&forwarded));
    client.content(content);
    client.end(&Fields::default());
    let (events, again, _) = serve(client.outbox(), usize::MAX);
    let [Event::Request(read), rest @ ..] = &events[..] else { panic!("no request in what was written") };
    assert!(!rest.iter().any(|event| matches!(event, Event::Request(_))), "one request became two");
    assert_eq!(
        (&read.method, read.path(), read.authority().unwrap_or_default()),
        (&request.method, request.path(), request.authority().unwrap_or_default())
    );
    assert!(content.starts_with(&again), "content that was not there");
}

fn ask(method: &str, data: &[u8], piece: usize) -> Conversation {
    let mut client = Client::default();
    let target = if method == "CONNECT" { Target::Authority(b"a:1".to_vec()) } else { Target::Origin(b"/".to_vec()) };
    client.request(&Request::new(method, target));
    client.end(&Fields::default());
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
            _ => {}
        }
        let is_over = matches!(event, ClientEvent::Closed | ClientEvent::Refused(_) | ClientEvent::Tunnel);
        events.push(Event::Client(event));
        if is_over {
            return (events, content, client.outbox().to_vec());
        }
    }
}
