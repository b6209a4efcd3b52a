//! ICAP: conversations as proxies have them, and what is refused.

use proto::http::{self, Fields, Limits, Response};
use proto::icap::{Method, Refusal, Server, ServerEvent, Service};

const HTTP_REQUEST: &str = "GET http://o.test/small HTTP/1.1\r\nHost: o.test\r\nUser-Agent: t\r\n\r\n";
const HTTP_RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 11\r\n\r\n";

/// A request of RESPMOD with these fields and this body.
fn respmod(fields: &str, body: &str) -> String {
    let (first, second) = (HTTP_REQUEST.len(), HTTP_REQUEST.len() + HTTP_RESPONSE.len());
    let kind = if body.is_empty() { "null" } else { "res" };
    format!(
        "RESPMOD icap://127.0.0.1:1344/respmod?x=1 ICAP/1.0\r\nHost: 127.0.0.1:1344\r\n\
         Encapsulated: req-hdr=0, res-hdr={first}, {kind}-body={second}\r\n{fields}\r\n{HTTP_REQUEST}{HTTP_RESPONSE}{body}"
    )
}

/// Steps through the input until something other than idle and content is said; returns it, and the content.
fn next(server: &mut Server, input: &mut &[u8]) -> (ServerEvent, Vec<u8>) {
    let mut content = Vec::new();
    loop {
        let (taken, event) = server.step(input);
        if event == ServerEvent::Content {
            content.extend_from_slice(&input[..taken]);
        }
        *input = &input[taken..];
        if !matches!(event, ServerEvent::Idle | ServerEvent::Content) || (event == ServerEvent::Idle && taken == 0) {
            return (event, content);
        }
    }
}

fn said(server: &mut Server) -> String {
    let text = String::from_utf8(server.outbox().to_vec()).unwrap();
    server.sent();
    text
}

fn server() -> Server {
    Server::new(Limits::default(), "T1")
}

#[test]
fn options_tell_what_the_service_wants() {
    let mut server = server();
    // Without Encapsulated, as Squid sends it.
    let mut input = &b"OPTIONS icap://127.0.0.1/svc ICAP/1.0\r\nHost: 127.0.0.1\r\nAllow: 206, trailers\r\n\r\n"[..];
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request);
    let request = server.request().unwrap();
    assert_eq!((request.method, &*request.service), (Method::Options, "/svc"));
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::End);
    let service =
        Service { name: "Sluice".into(), tag: "T1".into(), preview_bytes: 4096, connections_max: 9, seconds: 3600 };
    server.options(&service, "RESPMOD");
    assert_eq!(
        said(&mut server),
        "ICAP/1.0 200 OK\r\nISTag: \"T1\"\r\nMethods: RESPMOD\r\nService: Sluice\r\nMax-Connections: 9\r\nOptions-TTL: 3600\r\n\
         Allow: 204, 206\r\nPreview: 4096\r\nTransfer-Preview: *\r\nEncapsulated: null-body=0\r\n\r\n"
    );
    assert_eq!(next(&mut server, &mut &b""[..]).0, ServerEvent::Idle);
    assert!(server.is_idle());
}

#[test]
fn a_whole_body_is_unmodified_where_that_is_allowed() {
    let body = "b\r\nhello small\r\n0\r\n\r\n";
    let mut server = server();
    let input = respmod("Allow: 204, trailers\r\n", body);
    let mut input = input.as_bytes();
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request);
    let request = server.request().unwrap();
    assert_eq!(request.http_request.as_ref().unwrap().second_word(), b"http://o.test/small");
    assert_eq!(request.http_response.as_ref().unwrap().fields.get("content-type"), Some(&b"text/html"[..]));
    assert!(!server.may_be_unmodified(), "not before the end");
    let (event, content) = next(&mut server, &mut input);
    assert_eq!((event, &content[..]), (ServerEvent::End, &b"hello small"[..]));
    assert!(server.unmodified(&Fields::default()));
    assert_eq!(
        said(&mut server),
        "ICAP/1.0 204 No Modifications Needed\r\nISTag: \"T1\"\r\nEncapsulated: null-body=0\r\n\r\n"
    );
}

#[test]
fn without_204_the_message_goes_back_as_it_came() {
    let mut server = server();
    let input = respmod("Allow: trailers\r\n", "b\r\nhello small\r\n0\r\n\r\n");
    let mut input = input.as_bytes();
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::End);
    assert!(!server.unmodified(&Fields::default()));
    server.original(&Fields::default());
    server.content(b"hello");
    server.content(b" small");
    server.end();
    let length = HTTP_RESPONSE.len();
    assert_eq!(
        said(&mut server),
        format!(
            "ICAP/1.0 200 OK\r\nISTag: \"T1\"\r\nEncapsulated: res-hdr=0, res-body={length}\r\n\r\n{HTTP_RESPONSE}\
             5\r\nhello\r\n6\r\n small\r\n0\r\n\r\n"
        )
    );
}

#[test]
fn a_preview_is_the_whole_body_or_asks_for_the_rest() {
    let whole = respmod("Preview: 11\r\n", "b\r\nhello small\r\n0; ieof\r\n\r\n");
    let (mut one, mut input) = (server(), whole.as_bytes());
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut one, &mut input), (ServerEvent::End, b"hello small".to_vec()));
    assert!(one.unmodified(&Fields::default()), "to a preview it always may be");

    let part = respmod("Preview: 5\r\n", "5\r\nhello\r\n0\r\n\r\n");
    let (mut one, mut input) = (server(), part.as_bytes());
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut one, &mut input), (ServerEvent::Preview, b"hello".to_vec()));
    one.proceed();
    assert_eq!(said(&mut one), "ICAP/1.0 100 Continue\r\n\r\n");
    let mut input = &b"6\r\n small\r\n0\r\n\r\n"[..];
    assert_eq!(next(&mut one, &mut input), (ServerEvent::End, b" small".to_vec()));
    assert!(!one.unmodified(&Fields::default()), "the client did not allow it for a whole body");

    // Answered after the preview: the next request follows.
    let (mut one, again) = (server(), part.repeat(2));
    let mut input = again.as_bytes();
    for _ in 0..2 {
        assert_eq!(next(&mut one, &mut input).0, ServerEvent::Request);
        assert_eq!(next(&mut one, &mut input).0, ServerEvent::Preview);
        one.replace(&Response::new(403), b"no", &Fields::default());
        let told = said(&mut one);
        assert!(told.contains("res-body=") && told.ends_with("2\r\nno\r\n0\r\n\r\n"), "{told}");
    }
}

#[test]
fn no_chunk_follows_where_there_is_no_body() {
    let request = "REQMOD icap://a/reqmod ICAP/1.0\r\nEncapsulated: req-hdr=0, null-body=65\r\nPreview: 0\r\n\r\n";
    let mut server = server();
    let input = format!("{request}{HTTP_REQUEST}").repeat(2);
    let mut input = input.as_bytes();
    for _ in 0..2 {
        assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request);
        assert_eq!(next(&mut server, &mut input), (ServerEvent::End, Vec::new()));
        assert!(server.unmodified(&Fields::default()));
        server.sent();
    }
    assert!(input.is_empty());
}

#[test]
fn an_answer_may_come_before_the_body_is_whole() {
    let mut server = server();
    let begun = respmod("Allow: 204\r\n", "5\r\nhello\r\n");
    let mut input = begun.as_bytes();
    assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut server, &mut input), (ServerEvent::Idle, b"hello".to_vec()));
    server.replace(&Response::new(403), b"no", &Fields::default());
    let rest = format!("6\r\n small\r\n0\r\n\r\n{}", respmod("Allow: 204\r\n", ""));
    let mut input = rest.as_bytes();
    assert_eq!(next(&mut server, &mut input), (ServerEvent::Request, Vec::new()), "the rest is passed over");
}

#[test]
fn what_is_malformed_is_refused_by_name() {
    let encapsulated = "Encapsulated: req-hdr=0, null-body=65\r\n\r\n";
    for (input, refusal) in [
        ("FOO icap://a/b ICAP/1.0\r\n\r\n".to_owned(), Refusal::Method),
        ("OPTIONS http://a/b ICAP/1.0\r\n\r\n".into(), Refusal::Target),
        ("OPTIONS icap://a/b ICAP/1.1\r\n\r\n".into(), Refusal::Version),
        ("GET / HTTP/1.1\r\n\r\n".into(), http::Refusal::StartLine.into()),
        ("REQMOD icap://a/b ICAP/1.0\r\n\r\n".into(), Refusal::Encapsulated),
        (format!("REQMOD icap://a/b ICAP/1.0\r\n{encapsulated}{}", "x".repeat(65)), Refusal::Encapsulated),
        (
            format!("REQMOD icap://a/b ICAP/1.0\r\n{encapsulated}GET / HTTP/1.1\r\nA: b\r\n\r\n{}", "x".repeat(41)),
            Refusal::Encapsulated,
        ),
        (
            format!("REQMOD icap://a/b ICAP/1.0\r\n{encapsulated}GET / HTTP/1.1\nA: b\r\n\r\n{}", "x".repeat(42)),
            http::Refusal::BareNewline.into(),
        ),
        (format!("REQMOD icap://a/b ICAP/1.0\r\nPreview: x\r\n{encapsulated}"), Refusal::Preview),
        (respmod("Preview: 4\r\n", "5\r\nhello\r\n0\r\n\r\n"), Refusal::Preview),
        (respmod("", "5\r\nhelloX"), http::Refusal::ChunkEnd.into()),
        (
            "REQMOD icap://a/b ICAP/1.0\r\nEncapsulated: req-hdr=0, null-body=999999\r\n\r\n".into(),
            http::Refusal::HeadTooLong.into(),
        ),
    ] {
        let mut server = server();
        let mut rest = input.as_bytes();
        let mut event = next(&mut server, &mut rest).0;
        if event == ServerEvent::Request {
            event = next(&mut server, &mut rest).0;
        }
        assert_eq!(event, ServerEvent::Refused(refusal), "{input}");
        let told = said(&mut server);
        assert!(
            told.starts_with(&format!("ICAP/1.0 {} ", refusal.status())) && told.contains("Connection: close"),
            "{told}"
        );
    }
}

#[test]
fn an_end_within_a_request_is_told() {
    let whole = respmod("Allow: 204\r\n", "5\r\nhello\r\n0\r\n\r\n");
    for end in 1..whole.len() {
        let mut server = server();
        let mut input = &whole.as_bytes()[..end];
        while next(&mut server, &mut input).0 == ServerEvent::Request {}
        assert_eq!(server.finish(), ServerEvent::Refused(http::Refusal::Incomplete.into()), "{end}");
    }
    assert_eq!(server().finish(), ServerEvent::Closed);
}

#[test]
fn a_client_that_holds_its_body_back_gets_206_and_else_the_trailer_with_the_copy() {
    let mut one = server();
    let input = respmod("Allow: 206\r\n", "5\r\nhello\r\n0\r\nA: b\r\n\r\n");
    let mut input = input.as_bytes();
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::End);
    assert!(one.unmodified(&Fields::default()));
    let told = said(&mut one);
    assert!(told.starts_with("ICAP/1.0 206 Partial Content\r\n"), "{told}");
    assert!(told.ends_with(&format!("{HTTP_RESPONSE}0; use-original-body=0\r\n\r\n")), "{told}");

    // Behind a preview it is for the preview alone.
    let mut one = server();
    let input = respmod("Allow: 206\r\nPreview: 0\r\n", "0\r\n\r\n");
    let mut input = input.as_bytes();
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::Request);
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::Preview);
    one.proceed();
    one.sent();
    let mut input = &b"5\r\nhello\r\n0\r\nA: b\r\n\r\n"[..];
    assert_eq!(next(&mut one, &mut input).0, ServerEvent::End);
    assert!(!one.unmodified(&Fields::default()));
    one.original(&Fields::default());
    one.content(b"hello");
    one.end();
    let told = said(&mut one);
    assert!(told.ends_with("5\r\nhello\r\n0\r\nA: b\r\n\r\n"), "{told}");
}

#[test]
fn a_body_may_come_without_a_head() {
    for (method, kind) in [("REQMOD", "req"), ("RESPMOD", "res")] {
        for (allow, wanted) in [
            (
                "Allow: 204\r\n",
                "ICAP/1.0 204 No Modifications Needed\r\nISTag: \"T1\"\r\nEncapsulated: null-body=0\r\n\r\n",
            ),
            (
                "Allow: 206\r\n",
                "ICAP/1.0 206 Partial Content\r\nISTag: \"T1\"\r\nEncapsulated: K-body=0\r\n\r\n0; use-original-body=0\r\n\r\n",
            ),
            ("", "ICAP/1.0 200 OK\r\nISTag: \"T1\"\r\nEncapsulated: K-body=0\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ] {
            let text = format!(
                "{method} icap://h/s ICAP/1.0\r\nHost: h\r\n{allow}Encapsulated: {kind}-body=0\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            );
            let (mut server, mut input) = (server(), text.as_bytes());
            assert_eq!(next(&mut server, &mut input).0, ServerEvent::Request, "{text}");
            assert!(server.request().is_some_and(|request| request.subject().is_none() && request.has_body));
            assert_eq!(next(&mut server, &mut input), (ServerEvent::End, b"hello".to_vec()));
            if !server.unmodified(&Fields::default()) {
                server.original(&Fields::default());
                server.content(b"hello");
                server.end();
            }
            assert_eq!(said(&mut server), wanted.replace("K-", &format!("{kind}-")), "{text}");
        }
    }
}
