//! ICAP's client half, face to face with the server half and with services that err.

use proto::http::{self, Fields, Framing, Limits, Request, Response, Target};
use proto::icap::{Client, ClientEvent, Fault, Message, Method, Question, Server, ServerEvent, Service};

fn client() -> Client {
    Client::new(Limits::default(), "icap://s.test:1344/svc", "s.test:1344")
}

fn request() -> Request {
    let mut request = Request::new("GET", Target::Origin(b"/a".to_vec()));
    request.fields.push("Host", b"o.test");
    request.fields.push("Connection", b"close, X-Hop");
    request.fields.push("X-Hop", b"1");
    request
}

/// Asks about a response with this body.
fn ask(client: &mut Client, bytes: u64, preview: Option<u64>, allows_204: bool) {
    let (mut fields, response) = (Fields::default(), Response::with_body(200, "text/plain", bytes));
    fields.push("X-Client-IP", b"192.0.2.1");
    client.ask(&Question {
        fields: &fields,
        request: &request(),
        url: b"http://o.test/a",
        response: Some(&response),
        has_body: bytes > 0,
        preview,
        allows_204,
    });
}

/// The next event that is neither idle nor content, and the content before it.
fn next(client: &mut Client, input: &mut &[u8]) -> (ClientEvent, Vec<u8>) {
    let mut content = Vec::new();
    loop {
        let (taken, event) = client.step(input);
        if event == ClientEvent::Content {
            content.extend_from_slice(&input[..taken]);
        }
        *input = &input[taken..];
        if !matches!(event, ClientEvent::Idle | ClientEvent::Content) || (event == ClientEvent::Idle && taken == 0) {
            return (event, content);
        }
    }
}

fn said(client: &mut Client) -> Vec<u8> {
    let words = client.outbox().to_vec();
    client.sent(words.len());
    words
}

/// Hears what the client says, and answers by `answer` when all of it was read.
fn serve(server: &mut Server, mut words: &[u8], mut answer: impl FnMut(&mut Server, &ServerEvent)) -> Vec<u8> {
    loop {
        let (taken, event) = server.step(words);
        words = &words[taken..];
        answer(server, &event);
        if event == ServerEvent::Idle && taken == 0 {
            let told = server.outbox().to_vec();
            server.sent();
            return told;
        }
    }
}

#[test]
fn a_service_tells_what_it_offers() {
    let (mut client, mut server) = (client(), Server::new(Limits::default(), "T1"));
    client.options();
    let service = Service { name: "x".into(), tag: "T1".into(), preview_bytes: 7, connections_max: 9, seconds: 60 };
    let told = serve(&mut server, &said(&mut client), |server, event| {
        if *event == ServerEvent::End {
            server.options(&service, "RESPMOD");
        }
    });
    let (event, _) = next(&mut client, &mut &told[..]);
    let ClientEvent::Offer(offer) = event else { panic!("{event:?}") };
    assert_eq!((&*offer.tag, offer.preview, offer.connections_max), (&b"\"T1\""[..], Some(7), Some(9)));
    assert!(offer.takes_responses && !offer.takes_requests && offer.allows_204 && offer.seconds == Some(60));
    assert!(client.is_reusable());
}

#[test]
fn a_field_of_an_answer_may_go_on_over_several_lines() {
    let mut client = client();
    ask(&mut client, 0, None, false);
    let head = "HTTP/1.1 403 No\r\n\r\n";
    let answer = format!(
        "ICAP/1.0 200 OK\r\nX-Violations-Found: 1\r\n\t-\r\n\tEicar\r\n 0\r\nEncapsulated: res-hdr=0, null-body={}\r\n\r\n{head}",
        head.len()
    );
    let (event, _) = next(&mut client, &mut answer.as_bytes());
    let ClientEvent::Answer(answer) = event else { panic!("{event:?}") };
    assert_eq!(answer.fields.get("x-violations-found"), Some(&b"1\t-\tEicar 0"[..]));
}

#[test]
fn a_question_has_the_heads_and_nothing_of_one_connection() {
    let (mut client, mut server) = (client(), Server::new(Limits::default(), "T1"));
    for _ in 0..2 {
        ask(&mut client, 5, Some(4), true);
        client.content(b"hell");
        client.end_preview();
        let told = serve(&mut server, &said(&mut client), |server, event| match event {
            ServerEvent::Request => {
                let request = server.request().unwrap();
                assert_eq!((request.method, &*request.service, request.preview), (Method::Respmod, "/svc", Some(4)));
                assert_eq!(request.fields.get("x-client-ip"), Some(&b"192.0.2.1"[..]));
                let head = request.http_request.as_ref().unwrap();
                assert_eq!(head.bytes(), b"GET http://o.test/a HTTP/1.1\r\nHost: o.test\r\n\r\n");
                let head = request.http_response.as_ref().unwrap();
                assert_eq!(head.fields.get("content-length"), Some(&b"5"[..]));
            }
            ServerEvent::Preview => server.proceed(),
            _ => {}
        });
        assert_eq!(next(&mut client, &mut &told[..]).0, ClientEvent::Continue);
        client.content(b"o");
        client.end(&Fields::default());
        let told = serve(&mut server, &said(&mut client), |server, event| {
            if *event == ServerEvent::End {
                assert!(server.unmodified(&Fields::default()));
            }
        });
        assert_eq!(next(&mut client, &mut &told[..]).0, ClientEvent::Unmodified);
        assert!(client.is_reusable());
    }
}

#[test]
fn a_page_in_the_place_of_a_message_is_read_to_its_end() {
    let (mut client, mut server) = (client(), Server::new(Limits::default(), "T1"));
    ask(&mut client, 5, Some(9), false);
    client.content(b"hello");
    client.end(&Fields::default());
    let told = serve(&mut server, &said(&mut client), |server, event| {
        if *event == ServerEvent::End {
            server.replace(&Response::new(403), b"no", &Fields::default());
        }
    });
    let mut input = &told[..];
    let (event, _) = next(&mut client, &mut input);
    let ClientEvent::Answer(answer) = event else { panic!("{event:?}") };
    let Message::Response(response) = answer.message else { panic!() };
    assert_eq!((response.status.0, response.framing, answer.has_body), (403, Framing::Length(2), true));
    assert_eq!(next(&mut client, &mut input), (ClientEvent::End(Fields::default()), b"no".to_vec()));
    assert!(client.is_reusable() && client.tag() == b"\"T1\"");
}

#[test]
fn an_answer_before_the_end_of_the_question_ends_the_connection() {
    let mut client = client();
    ask(&mut client, 5, None, true);
    client.content(b"he");
    assert_eq!(next(&mut client, &mut &b"ICAP/1.0 204 x\r\n\r\n"[..]).0, ClientEvent::Unmodified);
    assert!(!client.is_reusable());
}

#[test]
fn what_no_service_may_answer_is_a_fault_with_a_name() {
    let request = "Encapsulated: req-hdr=0, null-body=27\r\n\r\nGET / HTTP/1.1\r\nHost: o\r\n\r\n";
    for (input, fault) in [
        ("HTTP/1.1 200 OK\r\n\r\n".to_owned(), Fault::StatusLine),
        ("ICAP/1.0 20 OK\r\n\r\n".into(), Fault::StatusLine),
        ("ICAP/1.0 204 x\r\n\r\n".into(), Fault::Unexpected),
        ("ICAP/1.0 100 x\r\n\r\n".into(), Fault::Unexpected),
        ("ICAP/1.0 206 x\r\n\r\n".into(), Fault::Status(206)),
        ("ICAP/1.0 500 x\r\n\r\n".into(), Fault::Status(500)),
        ("ICAP/1.0 200 x\r\n\r\n".into(), Fault::Encapsulated),
        (format!("ICAP/1.0 200 x\r\n{request}"), Fault::Encapsulated),
        ("ICAP/1.0 200 x\r\nEncapsulated: res-hdr=0, res-body=9\r\n\r\nHTTP/1.1 ".into(), Fault::Encapsulated),
        (
            "ICAP/1.0 200 x\r\nEncapsulated: res-hdr=0, res-body=999999\r\n\r\n".into(),
            http::Refusal::HeadTooLong.into(),
        ),
        (
            "ICAP/1.0 200 x\r\nEncapsulated: res-hdr=0, res-body=19\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx".into(),
            http::Refusal::ChunkSize.into(),
        ),
    ] {
        let mut client = client();
        ask(&mut client, 5, None, false);
        let mut rest = input.as_bytes();
        let mut event = next(&mut client, &mut rest).0;
        if matches!(event, ClientEvent::Answer(_)) {
            event = next(&mut client, &mut rest).0;
        }
        assert_eq!(event, ClientEvent::Failed(fault), "{input}");
        assert!(!client.is_reusable());
    }
    let mut client = client();
    ask(&mut client, 5, None, false);
    assert_eq!(client.finish(), ClientEvent::Failed(Fault::Incomplete));
}
