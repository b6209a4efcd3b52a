//! Conversations with the HTTP halves, written as they stand on the wire.

use proptest::prelude::*;
use proto::http::{
    Client, ClientEvent, Fields, Framing, Limits, Refusal, Request, Response, Server, ServerEvent, Target, fuzz_client,
    fuzz_server,
};

/// A whole conversation: each request is answered with its path; and what the server sent.
fn serve(said: &[u8]) -> (Vec<Request>, Vec<u8>, Option<Refusal>, String) {
    let mut server = Server::default();
    let (mut requests, mut content, mut refusal, mut rest) = (Vec::new(), Vec::new(), None, said);
    loop {
        let (taken, mut event) = server.step(rest);
        if event == ServerEvent::Content {
            content.extend_from_slice(&rest[..taken]);
        }
        rest = &rest[taken..];
        if event == ServerEvent::Idle && taken == 0 && rest.is_empty() {
            event = server.finish();
        }
        match event {
            ServerEvent::Request(request) => {
                server.proceed();
                requests.push(*request);
            }
            ServerEvent::End(_) => {
                let path = requests.last().unwrap().path().to_vec();
                server.answer(&Response::with_body(200, "text/plain", path.len() as u64), &path);
            }
            ServerEvent::Refused(why) => refusal = Some(why),
            ServerEvent::Idle | ServerEvent::Content => {}
            ServerEvent::Closed | ServerEvent::Tunnel => {
                return (requests, content, refusal, String::from_utf8(server.outbox().to_vec()).unwrap());
            }
        }
    }
}

#[test]
fn requests_follow_each_other_on_a_connection() {
    let (requests, content, refusal, sent) = serve(
        b"\r\nGET /one HTTP/1.1\r\nHost: a.example\r\n\r\n\
          POST /two?x=1 HTTP/1.1\r\nhost:a.example:8080 \r\nContent-Length: 5\r\n\r\nfirst\
          PUT http://B.example?q HTTP/1.1\r\nHost: other\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
          3;name=\"v\"\r\nsec\r\n3 \r\nond\r\n0\r\nX-Sum: 1\r\n\r\n\
          GET /never HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(refusal, None);
    assert_eq!(content, b"firstsecond");
    let seen: Vec<_> =
        requests.iter().map(|request| (&*request.method, request.authority().unwrap(), request.framing)).collect();
    assert_eq!(
        seen,
        [
            ("GET", &b"a.example"[..], Framing::Empty),
            ("POST", b"a.example:8080", Framing::Length(5)),
            ("PUT", b"B.example", Framing::Chunked),
        ]
    );
    assert_eq!(
        sent,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n/one\
         HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n/two?x=1\
         HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 3\r\n\r\n/?q"
    );
}

#[test]
fn clients_of_http_1_0_are_answered_in_their_way() {
    let (requests, _, _, sent) = serve(b"GET /a HTTP/1.0\r\n\r\nGET /b HTTP/1.0\r\n\r\n");
    assert_eq!(requests.len(), 1);
    assert!(sent.contains("Connection: close\r\n"), "{sent}");
    let (requests, _, _, sent) = serve(b"GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n");
    assert_eq!(requests.len(), 2);
    assert!(sent.contains("Connection: keep-alive\r\n"), "{sent}");
}

#[test]
fn a_client_that_waits_is_told_to_go_on() {
    let (_, content, _, sent) =
        serve(b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nab");
    assert_eq!(content, b"ab");
    assert!(sent.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"), "{sent}");
}

#[test]
fn what_parsers_could_read_in_two_ways_is_refused() {
    use Refusal::*;
    let get = |fields: &str| format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let post = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let chunks = |body: &str| post("Transfer-Encoding: chunked\r\n") + body;
    for (said, refusal) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n".into(), BareNewline),
        (get("X: 1\n"), BareNewline),
        (get("X: 1\rY: 2\r\n"), BareReturn),
        (get("X: \0\r\n"), ControlByte),
        (get("X: a\r\n b\r\n"), FieldFolded),
        (get("X : a\r\n"), FieldName),
        (get("X\r\n"), FieldName),
        (get(": a\r\n"), FieldName),
        (get("X\u{e9}: a\r\n"), FieldName),
        ("GET  / HTTP/1.1\r\nHost: a\r\n\r\n".into(), StartLine),
        ("GET /\r\nHost: a\r\n\r\n".into(), StartLine),
        ("GET / http/1.1\r\nHost: a\r\n\r\n".into(), StartLine),
        ("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n".into(), StartLine),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n".into(), Version),
        ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n".into(), Method),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("CONNECT http://a:1/ HTTP/1.1\r\nHost: a\r\n\r\n".into(), Target),
        ("GET / HTTP/1.1\r\n\r\n".into(), Host),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".into(), Host),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n".into(), Host),
        (post("Content-Length: 1\r\nContent-Length: 2\r\n"), Length),
        (post("Content-Length: 1, 2\r\n"), Length),
        (post("Content-Length: +1\r\n"), Length),
        (post("Content-Length:\r\n"), Length),
        (post("Content-Length: 0x1\r\n"), Length),
        (post("Content-Length: 99999999999999999999\r\n"), Length),
        (post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), LengthWithChunks),
        (post("Transfer-Encoding: gzip\r\n"), TransferCoding),
        (post("Transfer-Encoding: gzip, chunked\r\n"), TransferCoding),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), TransferCoding),
        (post("Transfer-Encoding: \"chunked\"\r\n"), TransferCoding),
        (post("Transfer-Encoding:\r\n"), TransferCoding),
        ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".into(), TransferCoding),
        (post("Expect: something\r\n"), Expectation),
        (chunks("\r\n"), ChunkSize),
        (chunks("g\r\n"), ChunkSize),
        (chunks("0x1\r\n"), ChunkSize),
        (chunks("-1\r\n"), ChunkSize),
        (chunks(" 1\r\n"), ChunkSize),
        (chunks("1 1\r\n"), ChunkSize),
        (chunks("11111111111111111\r\n"), ChunkSize),
        (chunks("1\na\r\n0\r\n\r\n"), BareNewline),
        (chunks("1;a\rb\r\n"), ChunkSize),
        (chunks("1\r\nab\r\n"), ChunkEnd),
        (chunks("1\r\na\n0\r\n\r\n"), ChunkEnd),
        (chunks("0\r\nContent-Length: 1\r\n\r\n"), Trailer),
        (chunks("0\r\nX: 1\n\r\n"), BareNewline),
        (post("Content-Length: 3\r\n") + "ab", Incomplete),
        (chunks("1\r\na\r\n"), Incomplete),
        ("GET / HT".into(), Incomplete),
    ] {
        let (_, _, refused, sent) = serve(said.as_bytes());
        assert_eq!(refused, Some(refusal), "{said:?}");
        let status = format!("HTTP/1.1 {} ", refusal.status().0);
        assert!(sent.starts_with(&status) && sent.contains("Connection: close\r\n"), "{said:?}: {sent}");
    }
}

#[test]
fn limits_are_told_apart() {
    let limits = Limits {
        head_bytes_max: 200,
        fields_max: 3,
        target_bytes_max: 20,
        chunk_line_bytes_max: 20,
        ..Limits::default()
    };
    let refused = |said: String| {
        let mut server = Server::new(limits);
        let mut rest = said.as_bytes();
        loop {
            let (taken, event) = server.step(rest);
            rest = &rest[taken..];
            match event {
                ServerEvent::Refused(why) => return Some(why),
                ServerEvent::End(_) | ServerEvent::Closed => return None,
                _ => {}
            }
        }
    };
    let get = |path: usize, fields: usize, value: usize| {
        let (path, value) = ("a".repeat(path), "b".repeat(value));
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n{}\r\n", format!("X: {value}\r\n").repeat(fields))
    };
    assert_eq!(refused(get(19, 2, 1)), None);
    assert_eq!(refused(get(20, 2, 1)), Some(Refusal::TargetTooLong));
    assert_eq!(refused(get(1, 3, 1)), Some(Refusal::TooManyFields));
    assert_eq!(refused(get(1, 1, 200)), Some(Refusal::HeadTooLong));
    let chunk = |line: usize| {
        format!("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;{}\r\n\r\n", "x".repeat(line))
    };
    assert_eq!(refused(chunk(16)), None);
    assert_eq!(refused(chunk(17)), Some(Refusal::ChunkSize));
}

/// A server's answers to one request; events but for idle and content, the content, and whether the connection can go on.
fn ask(method: &str, said: &str) -> (Vec<ClientEvent>, String, bool) {
    let mut client = Client::default();
    let target = if method == "CONNECT" { Target::Authority(b"a:1".to_vec()) } else { Target::Origin(b"/".to_vec()) };
    let mut request = Request::new(method, target);
    request.fields.push("Host", b"a");
    assert!(client.request(&request));
    client.end(&Fields::default());
    let (mut events, mut content, mut rest) = (Vec::new(), Vec::new(), said.as_bytes());
    loop {
        let (taken, mut event) = client.step(rest);
        if event == ClientEvent::Content {
            content.extend_from_slice(&rest[..taken]);
        }
        rest = &rest[taken..];
        let reusable = client.is_reusable();
        if event == ClientEvent::Idle && taken == 0 && rest.is_empty() && !reusable {
            event = client.finish();
        }
        let is_over = reusable || matches!(event, ClientEvent::Refused(_) | ClientEvent::Closed | ClientEvent::Tunnel);
        if !matches!(event, ClientEvent::Idle | ClientEvent::Content) {
            events.push(event);
        }
        if is_over {
            return (events, String::from_utf8(content).unwrap(), reusable);
        }
    }
}

#[test]
fn a_response_ends_where_it_says() {
    let ok = "HTTP/1.1 200 OK\r\n";
    for (method, said, content, reusable) in [
        ("GET", format!("{ok}Content-Length: 2\r\n\r\nab"), "ab", true),
        ("GET", format!("{ok}Content-Length: 2, 2\r\nConnection: close\r\n\r\nab"), "ab", false),
        ("GET", format!("{ok}Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"), "ab", true),
        ("GET", format!("{ok}Content-Length : 2\r\nX-A\t: b\r\n\r\nab"), "ab", true),
        ("GET", format!("{ok}\r\nab"), "ab", false),
        (
            "GET",
            format!("{ok}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
            "ab",
            false,
        ),
        ("GET", "HTTP/1.0 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n".into(), "ab", false),
        ("GET", format!("{ok}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nab"), "ab", true),
        ("GET", "HTTP/1.1 999 Denied\r\nContent-Length: 2\r\n\r\nab".into(), "ab", true),
        ("GET", format!("{ok}X-A: b;\r\n\tc\r\n \r\nContent-Length: 2\r\n\r\nab"), "ab", true),
        ("GET", "HTTP/1.0 200\r\n\r\nab".into(), "ab", false),
        ("HEAD", format!("{ok}Content-Length: 2\r\n\r\n"), "", true),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n".into(), "", true),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n".into(), "", true),
        ("GET", format!("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{ok}Content-Length: 0\r\n\r\n"), "", true),
    ] {
        let (events, seen, goes_on) = ask(method, &said);
        assert!(!events.iter().any(|event| matches!(event, ClientEvent::Refused(_))), "{said:?}: {events:?}");
        assert_eq!((&*seen, goes_on), (content, reusable), "{said:?}");
    }
    let (events, ..) = ask("GET", &format!("{ok}X-A: b;\r\n\tc\r\nX-B: d\r\n \t\r\nContent-Length: 0\r\n\r\n"));
    let Some(ClientEvent::Response(folded)) = events.first() else { panic!("{events:?}") };
    assert_eq!((folded.fields.get("x-a"), folded.fields.get("x-b")), (Some(&b"b; c"[..]), Some(&b"d"[..])));
    let (events, ..) = ask("CONNECT", "HTTP/1.1 200 Connection established\r\n\r\nraw");
    assert!(matches!(&events[..], [ClientEvent::Response(_), ClientEvent::Tunnel]), "{events:?}");
}

#[test]
fn responses_of_sloppy_servers_are_read_as_clients_read_them() {
    let fields = [("X-A", "a"), ("Content-Length", "2"), ("X-B", "b")].map(|(name, value)| (name, value.to_owned()));
    let ok = "HTTP/1.1 200 OK\r\nX-A: a\r\nContent-Length: 2\r\nX-B: b\r\n\r\nab";
    let within = |line: &str| ok.replace("X-B", &format!("{line}\r\nX-B"));
    let head_in_lf = ok.replace("\r\n", "\n");
    for said in [
        head_in_lf.clone(),
        ok.replacen("\r\n", "\n", 1),
        ok.replace("b\r\n\r\n", "b\r\n\n"),
        ok.replace("b\r\n\r\n", "b\n\r\n"),
        ok.replace("HTTP/1.1 ", "HTTP/1.1  "),
        ok.replace("HTTP/1.1 ", "HTTP/1.1 \t "),
        within("X Y: a"),
        within("X@Y: a"),
        within("\"X\": a"),
        within("X(Y): a"),
        within("X\u{e9}: a"),
        within("X\u{1}: a"),
        within(": a"),
        within("no colon"),
        within("X Y: a\r\n more\r\n\tand more"),
    ] {
        let (events, content, reusable) = ask("GET", &said);
        let Some(ClientEvent::Response(response)) = events.first() else { panic!("{said:?}: {events:?}") };
        let seen: Vec<_> =
            response.fields.iter().map(|(name, value)| (name, String::from_utf8_lossy(value).into_owned())).collect();
        assert_eq!((&seen[..], &*content, reusable), (&fields[..], "ab", true), "{said:?}");
        assert_eq!((response.status.0, &*response.reason), (200, &b"OK"[..]), "{said:?}");
    }
    let said = ok.replace("a\r\n", "a\u{1}\u{b}b\u{7f}\r\n").replace(" OK", " O\u{2}K");
    let (events, ..) = ask("GET", &said);
    let Some(ClientEvent::Response(response)) = events.first() else { panic!("{events:?}") };
    assert_eq!((response.fields.get("x-a"), &*response.reason), (Some(&b"a  b"[..]), &b"O K"[..]));
    for codings in ["chunked, chunked", "chunked\r\nTransfer-Encoding: Chunked"] {
        let said = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {codings}\r\n\r\n2\r\nab\r\n0\r\n\r\n");
        let (events, content, reusable) = ask("GET", &said);
        assert_eq!((events.len(), &*content, reusable), (3, "ab", false), "{codings}: {events:?}");
    }
    let trailer = "Content-Length: 5\r\nX-Sum: 1\r\nContent-Encoding: gzip\r\nno colon\r\nX Y: a\r\nX-Z: 2\n";
    let said = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n{trailer}\r\n");
    let (events, content, reusable) = ask("GET", &said);
    let Some(ClientEvent::End(trailer)) = events.last() else { panic!("{events:?}") };
    assert_eq!(trailer.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["X-Sum", "X-Z"]);
    assert_eq!((&*content, reusable), ("ab", true));
}

#[test]
fn responses_that_could_be_read_in_two_ways_are_refused() {
    for (said, refusal) in [
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Refusal::TransferCoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip, chunked\r\n\r\n", Refusal::TransferCoding),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,chunkedx\r\n\r\n", Refusal::TransferCoding),
        ("HTTP/1.1 200 OK\r\nTransfer Encoding: chunked\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\r\n\"Transfer-Encoding\": chunked\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding\u{b}\u{b}x: chunked\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\r\nContent-Length= 5\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\nContent\u{1}Length: 5\n\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\r\nX Y: a\r\n Transfer-Encoding: chunked\r\n\r\n", Refusal::FieldFolded),
        ("HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n", Refusal::ControlByte),
        ("HTTP/1.1 200 OK\r\nX\0: a\r\n\r\n", Refusal::ControlByte),
        ("HTTP/1.1 200 OK\r\nX: a\rContent-Length: 0\r\n\r\n", Refusal::BareReturn),
        ("HTTP/1.1 200 OK\r\nX: a\r\r\n\r\n", Refusal::BareReturn),
        ("HTTP/1.1 200 OK\n\u{b}Content-Length: 0\n\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\r\nContent-Length\u{1}: 5\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n1\na\n0\n\n", Refusal::BareNewline),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer Encoding: x\r\n\r\n", Refusal::FieldName),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nab", Refusal::Incomplete),
        ("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", Refusal::FieldFolded),
        ("HTTP/1.1 200 OK\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n", Refusal::FieldFolded),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Refusal::Length),
        ("HTTP/1.1 200 OK\nContent-Length: 1\n\n", Refusal::Incomplete),
        ("HTTP/1.1 20 OK\r\n\r\n", Refusal::StartLine),
        ("HTTP/1.1 099 OK\r\n\r\n", Refusal::StartLine),
        ("HTTP/1.1 2000 OK\r\n\r\n", Refusal::StartLine),
        ("ICY 200 OK\r\n\r\n", Refusal::StartLine),
        ("HTTP/2.0 200 OK\r\n\r\n", Refusal::Version),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Refusal::Unexpected),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", Refusal::Incomplete),
    ] {
        let (events, ..) = ask("GET", said);
        assert_eq!(events.last(), Some(&ClientEvent::Refused(refusal)), "{said:?}");
    }
    let (events, ..) = ask("GET", &"HTTP/1.1 100 Continue\r\n\r\n".repeat(20));
    assert_eq!(events.last(), Some(&ClientEvent::Refused(Refusal::TooManyInterim)));
    let mut client = Client::default();
    assert_eq!(client.step(b"HTTP/1.1 200 OK\r\n").1, ClientEvent::Refused(Refusal::Unexpected));
}

#[test]
fn requests_are_written_in_one_form() {
    let write = |request: &Request, body: &[&[u8]]| {
        let mut client = Client::default();
        assert!(client.request(request));
        body.iter().for_each(|piece| client.content(piece));
        client.end(&Fields::default());
        (String::from_utf8(client.outbox().to_vec()).unwrap(), client)
    };
    let mut request = Request::new("GET", Target::Origin(b"/a?b".to_vec()));
    for (name, value) in
        [("X-One", "1"), ("Host", "a.example"), ("Content-Length", "7"), ("connection", "x-one"), ("X-Two", " 2 ")]
    {
        request.fields.push(name, value.as_bytes());
    }
    let (text, _) = write(&request, &[b"dropped"]);
    assert_eq!(text, "GET /a?b HTTP/1.1\r\nHost: a.example\r\nX-One: 1\r\nX-Two: 2\r\n\r\n");
    request.method = "POST".into();
    assert!(write(&request, &[]).0.ends_with("X-Two: 2\r\nContent-Length: 0\r\n\r\n"));
    request.framing = Framing::Chunked;
    let (text, _) = write(&request, &[b"abc", b"", b"0123456789abcdef"]);
    assert!(
        text.ends_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"),
        "{text}"
    );
    request.framing = Framing::Length(2);
    let (text, mut client) = write(&request, &[b"abc"]);
    assert!(
        text.ends_with("Content-Length: 2\r\n\r\nab"),
        "what is longer than promised would be another request: {text}"
    );
    assert!(!client.request(&request), "one request at a time");
    let (_, mut client) = write(&request, &[b"a"]);
    for line in ["HTTP/1.1 200 OK\r\n", "Content-Length: 0\r\n", "\r\n"] {
        client.step(line.as_bytes());
    }
    assert_eq!(client.step(b"").1, ClientEvent::End(Fields::default()));
    assert!(!client.is_reusable(), "the server waits for the rest of a request");
}

#[test]
fn a_response_before_the_end_of_its_request_ends_the_connection() {
    let mut server = Server::default();
    server.step(b"PUT / HTTP/1.1\r\n");
    server.step(b"Host: a\r\n");
    server.step(b"Content-Length: 9\r\n");
    assert!(matches!(server.step(b"\r\n").1, ServerEvent::Request(_)));
    server.answer(&Response::new(413), b"");
    assert_eq!(server.outbox(), b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert!(server.is_over());
    assert_eq!(server.step(b"rest"), (4, ServerEvent::Closed));
}

#[test]
fn a_response_to_head_has_the_length_and_not_the_body() {
    let mut server = Server::default();
    for line in ["HEAD / HTTP/1.1\r\n", "Host: a\r\n", "\r\n", ""] {
        server.step(line.as_bytes());
    }
    server.answer(&Response::with_body(200, "text/plain", 3), b"abc");
    assert!(server.outbox().ends_with(b"Content-Length: 3\r\n\r\n"));
}

/// Pieces of messages, which random bytes would never come to.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "GET / HTTP/1.1\r\n",
            "POST /x HTTP/1.0\r\n",
            "CONNECT a:1 HTTP/1.1\r\n",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 100 Continue\r\n",
            "HTTP/1.1 204 x\r\n",
            "Host: a\r\n",
            "Content-Length: 3\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive\r\n",
            "Expect: 100-continue\r\n",
            "\r\n",
            "3\r\nabc\r\n",
            "0\r\n\r\n",
            "0\r\n",
            "1;x=y\r\n",
            "\n",
            "a",
            "X: y\r\n",
            "X Y: z\r\n",
            "X: y\n",
            " fold\r\n",
            "HTTP/1.1  200 OK\n",
        ])
        .prop_map(|piece| piece.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_cut_makes_no_difference(seed in any::<u8>(), data in pieces()) {
        let data = [&[seed], &data[..]].concat();
        fuzz_server(&data);
        fuzz_client(&data);
    }
}
