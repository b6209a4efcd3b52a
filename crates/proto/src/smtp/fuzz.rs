//! Fuzz bodies of both halves.

use alloc::vec::Vec;

use stream::Window;

use super::{Asked, Client, ClientEvent, Config, Extensions, Mechanisms, Protocol, Reply, Server, ServerEvent};

/// Everything that the server half can offer.
const ALL: Extensions = Extensions {
    pipelining: true,
    size: Some(1 << 20),
    eight_bit_mime: true,
    smtputf8: true,
    chunking: true,
    enhanced_status_codes: true,
    dsn: true,
    starttls: true,
    require_tls: true,
    future_release: None,
    auth: Mechanisms::ALL,
    xforward: true,
    xclient: true,
};

/// Fuzz body: a client that says anything, cut anyhow. The events must not depend on the cut, content holds no bare
/// line end, and the session ends or goes on.
pub fn fuzz_server(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else {
        return;
    };
    let whole = serve(data, usize::MAX >> 1, seed & 1 == 1);
    let cut = serve(data, 1 + usize::from(seed >> 1) % 13, seed & 1 == 1);
    assert_eq!(whole, cut, "the events depend on the cut");
}

/// All events, content joined, and everything that was answered.
fn serve(data: &[u8], piece: usize, lmtp: bool) -> (Vec<ServerEvent>, Vec<u8>, Vec<u8>) {
    let protocol = if lmtp { Protocol::Lmtp } else { Protocol::Smtp };
    let mut server = Server::new(Config { extensions: ALL, protocol, ..Config::default() }, 0);
    let (mut events, mut content, mut at, mut offered) = (Vec::new(), Vec::new(), 0, 0);
    loop {
        if offered == at {
            offered = data.len().min(at + piece);
        }
        let mut window = Window::with_capacity(if piece > 64 { 4096 } else { 8 });
        let (taken, event) = server.step(0, &data[at..offered], &mut window);
        at += taken;
        content.extend_from_slice(window.filled());
        match &event {
            ServerEvent::Mail(_) | ServerEvent::Recipient(_) => server.reply(&Reply::new(250, (2, 1, 0), "Ok")),
            ServerEvent::Data => server.begin(),
            ServerEvent::End { .. } => {
                for _ in 0..if lmtp { server.recipients() } else { 1 } {
                    server.reply(&Reply::new(250, (2, 0, 0), "Ok"));
                }
            }
            ServerEvent::Auth { initial: None, .. } => server.challenge(b"Pw=="),
            ServerEvent::Auth { .. } => server.reply(&Reply::new(235, (2, 7, 0), "Ok")),
            ServerEvent::Response(secret) if secret.as_bytes().len() % 2 == 1 => {
                server.reply(&Reply::new(535, (5, 7, 8), "No"));
            }
            ServerEvent::Response(_) => server.challenge(b"Pw=="),
            ServerEvent::StartTls => server.secured(0, ALL),
            ServerEvent::Closed => break,
            ServerEvent::Idle if at == data.len() && taken == 0 => break,
            _ => {}
        }
        if !matches!(event, ServerEvent::Idle | ServerEvent::Content) {
            events.push(event);
        }
    }
    let bare = |(at, &byte): (usize, &u8)| byte == b'\n' && (at == 0 || content[at - 1] != b'\r');
    assert!(!content.iter().enumerate().any(bare), "a bare line feed in the content");
    (events, content, server.outbox().to_vec())
}

/// Fuzz body: a next hop that answers anything, cut anyhow.
pub fn fuzz_client(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else {
        return;
    };
    let whole = ask(data, usize::MAX >> 1);
    let cut = ask(data, 1 + usize::from(seed) % 13);
    assert_eq!(whole, cut, "the events depend on the cut");
}

fn ask(data: &[u8], piece: usize) -> (Vec<ClientEvent>, Vec<u8>) {
    let mut client = Client::new("client.test", Protocol::Smtp);
    let mut events = Vec::new();
    for piece in data.chunks(piece) {
        let mut at = 0;
        while at < piece.len() {
            let (taken, event) = client.step(&piece[at..]);
            at += taken;
            match &event {
                ClientEvent::Idle => continue,
                ClientEvent::Broken(_) => return (events, client.outbox().to_vec()),
                ClientEvent::Reply(Asked::Greeting, _) => client.hello(),
                ClientEvent::Reply(Asked::Hello, _) if !client.extensions().auth.is_empty() => {
                    client.auth("PLAIN", None)
                }
                ClientEvent::Reply(Asked::Auth, reply) if reply.code == 334 => client.respond(b"Pw=="),
                ClientEvent::Reply(Asked::Hello | Asked::Auth, _) => client.data(),
                ClientEvent::Reply(Asked::Data, _) => {
                    client.content(b".\r\nx");
                    client.end(1);
                }
                ClientEvent::Reply(..) => client.reset(),
            }
            events.push(event);
        }
    }
    (events, client.outbox().to_vec())
}
