//! Conversations with the Rspamd half, written as they stand on the wire.

use proptest::prelude::*;
use proto::rspamd::{Answer, Command, Form, Refusal, Request, Server, ServerEvent, fuzz_server};

/// Sends a request and its mail to the end of the connection; returns what was read, and the reply.
fn converse(said: &str) -> (Option<Request>, String, String) {
    let mut server = Server::default();
    let (mut request, mut mail, mut rest) = (None, Vec::new(), said.as_bytes());
    loop {
        let (taken, mut event) = server.step(rest);
        if event == ServerEvent::Content {
            mail.extend_from_slice(&rest[..taken]);
        }
        rest = &rest[taken..];
        if event == ServerEvent::Idle && taken == 0 {
            event = server.finish();
        }
        match event {
            ServerEvent::Asked(asked) => request = Some(*asked),
            ServerEvent::End => server.answer(&Answer {
                is_spam: true,
                scores: [7.25, 5.0, 15.0],
                action: "add header",
                symbols: &["FREE", "MORE"],
                json: b"{}",
            }),
            ServerEvent::Closed => {
                let said = String::from_utf8(server.outbox().to_vec()).unwrap();
                return (request, String::from_utf8(mail).unwrap(), said);
            }
            _ => {}
        }
    }
}

fn http(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_mail_is_asked_about_by_http() {
    let head = "POST /checkv2?x HTTP/1.1\r\nHost: x\r\nip: [192.0.2.7]\r\nHelo: h.example\r\nFrom: <a@b>\r\nRcpt: <c@d>\r\n\
                RCPT: e@f\r\nUser: joe\r\nQueue-Id: Q1\r\n";
    for (rest, continues) in [
        ("Content-Length: 5\r\n\r\nmail\nmore", false),
        ("Content-Length: 5\r\nExpect: 100-continue\r\n\r\nmail\n", true),
        ("Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nmai\r\n2\r\nl\n\r\n0\r\nX: y\r\n\r\nmore", false),
    ] {
        let (request, mail, reply) = converse(&format!("{head}{rest}"));
        let request = request.unwrap();
        assert_eq!((request.form, request.ip), (Form::Http, "192.0.2.7".parse().ok()));
        assert_eq!((&*request.helo, &*request.from, request.rcpt.join(" ")), ("h.example", "a@b", "c@d e@f".into()));
        assert_eq!((request.user.as_deref(), request.queue_id.as_deref()), (Some("joe"), Some("Q1")));
        assert_eq!(mail, "mail\n");
        let before = if continues { "HTTP/1.1 100 Continue\r\n\r\n" } else { "" };
        assert_eq!(reply, before.to_string() + &http("200 OK", "application/json", "{}"));
    }
}

#[test]
fn a_mail_is_asked_about_in_the_older_form() {
    let (request, mail, reply) = converse("CHECK RSPAMC/1.3\r\nContent-length: 5\r\nFrom: <>\r\nIP: ::1\r\n\r\nmail\n");
    let request = request.unwrap();
    assert_eq!((request.form, &*request.from, request.ip), (Form::Rspamc, "", "::1".parse().ok()));
    assert_eq!(mail, "mail\n");
    assert_eq!(
        reply,
        "RSPAMD/1.3 0 EX_OK\r\nMetric: default; True; 7.25 / 5.00 / 15.00\r\nAction: add header\r\nSymbol: FREE\r\n\
         Symbol: MORE\r\n\r\n"
    );
    assert_eq!(converse("CHECK RSPAMC/1.3\r\n\r\nto the end").1, "to the end");
}

/// A request of `/checkv3`.
fn form(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /checkv3 HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=\"b-1\"\r\n{fields}\
         Content-Length: {length}\r\n\r\n{body}"
    )
}

#[test]
fn a_mail_is_asked_about_in_a_form() {
    let metadata =
        "--b-1\r\nContent-Disposition: form-data; name=\"metadata\"\r\nContent-Type: application/json\r\n\r\n";
    let message = "--b-1\r\ncontent-disposition: form-data; name=message\r\n\r\n";
    for mail in ["", "\r\n", "Subject: x\r\n\r\n--b-\r\n--b-1x-1\r\n", "\r\n--b-2--", "--b-1--"] {
        // A line that begins as the delimiter does ends the mail, whatever follows.
        let (mail, is_whole) = mail.split_once("\r\n--b-1x").map_or((mail, true), |(mail, _)| (mail, false));
        let end = if is_whole { "\r\n--b-1--\r\nepilogue" } else { "\r\n--b-1x\r\n" };
        let json = "{\"from\":\r\n\"a\"}";
        let body = format!("preamble\r\n{metadata}{json}\r\n{message}{mail}{end}");
        let (request, content, reply) = converse(&form("Queue-Id: Q\r\n", &body));
        let request = request.unwrap();
        assert_eq!((request.command, request.form), (Command::CheckParts, Form::Parts));
        assert_eq!((request.metadata.as_deref(), request.queue_id.as_deref()), (Some(json.as_bytes()), Some("Q")));
        assert_eq!(content, mail);
        let answer = "--result-of-sluice\r\nContent-Disposition: form-data; name=\"result\"\r\n\
                      Content-Type: application/json\r\n\r\n{}\r\n--result-of-sluice--\r\n";
        match is_whole {
            true => assert_eq!(reply, http("200 OK", "multipart/form-data; boundary=\"result-of-sluice\"", answer)),
            false => assert!(reply.starts_with("HTTP/1.1 400 ") && reply.contains("more parts"), "{reply}"),
        }
    }
    let body = format!("{metadata}{{}}\r\n{message}mail\r\n--b-1--");
    for (accept, wanted) in [
        ("*/*", "200 OK\r\nConnection: close\r\nContent-Type: multipart/form-data"),
        ("text/html, application/*", "200 OK\r\nConnection: close\r\nContent-Type: application/json"),
        ("application/json;q=0.5, message/rfc822", "200 OK\r\nConnection: close\r\nContent-Type: multipart/mixed"),
        ("*/*;q=0.1, multipart/form-data; q=0", "200 OK\r\nConnection: close\r\nContent-Type: multipart/mixed"),
        ("text/html, */*;q=0", "406 Not Acceptable"),
    ] {
        let reply = converse(&form(&format!("Accept: {accept}\r\n"), &body)).2;
        assert!(reply.starts_with(&format!("HTTP/1.1 {wanted}")), "{accept}: {reply}");
    }
    for (body, why) in [
        (format!("{message}mail\r\n--b-1--"), "begin with the part"),
        (format!("{metadata}{{}}\r\n--b-1--\r\n"), "has no end"),
        (format!("{metadata}{{}}\r\n{metadata}{{}}\r\n--b-1--"), "has to follow"),
        (format!("{metadata}{{}}\r\n{message}mail\r\n--b-2--"), "has no end"),
        (format!("{metadata}{{}}\r\n{message}mail\r\n--b-1\r\n"), "more parts"),
        ("no form".to_owned(), "has no end"),
        (format!("{metadata}{}\r\n{message}mail\r\n--b-1--", "x".repeat(300_000)), "too long"),
        (metadata.replace("json", "msgpack") + "x\r\n--b-1--", "encrypted requests"),
    ] {
        let reply = converse(&form("", &body)).2;
        assert!(reply.starts_with("HTTP/1.1 4") && reply.contains(why), "{why}: {reply}");
    }
    for head in ["Content-Length: 5", "Transfer-Encoding: chunked\r\nContent-Type: multipart/form-data; boundary=x"] {
        let reply = converse(&format!("POST /checkv3 HTTP/1.1\r\n{head}\r\n\r\n")).2;
        assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    }
}

#[test]
fn a_mail_that_is_to_be_learned_is_answered_in_rspamds_words() {
    for (path, command) in [("/learnspam", Command::LearnSpam), ("/learnham", Command::LearnHam)] {
        let said = format!("POST {path} HTTP/1.1\r\nPassword: q1\r\nContent-Length: 4\r\n\r\nmail");
        for (is_new, wanted) in [(true, "HTTP/1.1 200 OK\r\n"), (false, "HTTP/1.1 208 Already Reported\r\n")] {
            let mut server = Server::default();
            let (mut rest, mut request) = (said.as_bytes(), None);
            loop {
                let (taken, event) = server.step(rest);
                rest = &rest[taken..];
                match event {
                    ServerEvent::Asked(asked) => request = Some(*asked),
                    ServerEvent::End => break,
                    _ => {}
                }
            }
            let request = request.unwrap();
            assert_eq!((request.command, request.password.as_deref()), (command, Some("q1")));
            server.learned(is_new);
            assert!(server.outbox().starts_with(wanted.as_bytes()));
        }
    }
}

#[test]
fn what_is_no_mail_is_answered_at_once_and_nonsense_refused() {
    let pong = http("200 OK", "text/plain", "pong\r\n");
    assert_eq!(converse("GET /ping HTTP/1.1\r\n\r\n").2, pong);
    assert_eq!(converse("\r\nGET /ping HTTP/1.0\r\n\r\n").2, pong);
    let head = pong.strip_suffix("pong\r\n").unwrap();
    assert_eq!(converse("HEAD /ping HTTP/1.1\r\n\r\n").2, head);
    assert!(converse("HEAD /x HTTP/1.1\r\n\r\n").2.ends_with("\r\n\r\n"));
    assert_eq!(converse("PING RSPAMC/1.3\r\n\r\n").2, "RSPAMD/1.3 0 PONG\r\n\r\n");
    assert_eq!(converse("").2, "");
    for (said, status, why) in [
        ("POST /fuzzyadd HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "404 Not Found", "invalid command"),
        ("GET /checkv2 HTTP/1.1\r\n\r\n", "404 Not Found", "invalid command"),
        ("nonsense\r\n\r\n", "400 Bad Request", "malformed first line"),
        ("GET /ping HTTP/1.1\n\n", "400 Bad Request", "line ends with LF alone"),
        (
            "POST /checkv2 HTTP/1.1\r\nContent-Length: 5x\r\n\r\n",
            "400 Bad Request",
            "malformed or contradictory Content-Length",
        ),
        (
            "POST /checkv2 HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "400 Bad Request",
            "malformed or contradictory Content-Length",
        ),
        (
            "POST /checkv2 HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400 Bad Request",
            "Content-Length beside Transfer-Encoding",
        ),
        ("POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", "400 Bad Request", "unsupported transfer coding"),
        (
            "POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "400 Bad Request",
            "malformed chunk size",
        ),
        (
            "POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab",
            "400 Bad Request",
            "chunk longer than its size",
        ),
        ("POST /checkv2 HTTP/1.1\r\nContent-Length: 5\r\n\r\nmail", "400 Bad Request", "the message is incomplete"),
        ("POST /checkv2 HTT", "400 Bad Request", "the request is incomplete"),
    ] {
        let reply = converse(said).2;
        assert_eq!(reply, http(status, "application/json", &format!("{{\"error\":\"{why}\"}}")), "{said}");
    }
    let coded = converse("POST /checkv2 HTTP/1.1\r\nCompression: zstd\r\nContent-Length: 1\r\n\r\nx").2;
    assert!(coded.starts_with("HTTP/1.1 415 "), "{coded}");
    let long = format!("POST /checkv2 HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(300_000));
    assert!(converse(&long).2.contains("head too long"));
    let many = format!("POST /checkv2 HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1_300));
    assert!(converse(&many).2.contains("too many header fields"));
    let rcpt = format!("POST /checkv2 HTTP/1.1\r\n{}\r\n", "Rcpt: <a@b.example>\r\n".repeat(1_100));
    assert_eq!(converse(&rcpt).0.map(|request| request.rcpt.len()), Some(1_000));
    assert!(converse("CHECK RSPAMC/1.3\r\nno field\r\n\r\n").2.contains("malformed field name"));
    let mut server = Server::default();
    server.step(b"CHECK RSPAMC/1.3\r\n");
    assert!(matches!(server.step(b"\r\n"), (2, ServerEvent::Asked(_))));
    assert_eq!(server.refuse(&Refusal::Unavailable("a \"b\"\r\n".into())), ServerEvent::Closed);
}

proptest! {
    /// The law: any cut, the same conversation.
    #[test]
    fn any_cut_is_the_same_conversation(
        seed in any::<u8>(),
        line in prop::sample::select(vec![
            "POST /checkv2 HTTP/1.1", "CHECK RSPAMC/1.3", "GET /ping HTTP/1.1", "PING RSPAMC/1.3", "x",
        ]),
        fields in prop::collection::vec(prop::sample::select(vec![
            "Content-Length: 7", "Transfer-Encoding: chunked", "Expect: 100-continue", "X", "IP: 1.2.3.4", "Rcpt: <a>",
        ]), 0..4),
        mail in prop::collection::vec(prop::sample::select(vec!["3\r\n", "abc", "\r\n", "0\r\n", "\n", "x"]), 0..20),
    ) {
        let mut said = vec![seed];
        said.extend(format!("{line}\r\n").into_bytes());
        fields.iter().for_each(|field| said.extend(format!("{field}\r\n").into_bytes()));
        said.extend(b"\r\n");
        mail.iter().for_each(|piece| said.extend(piece.as_bytes()));
        fuzz_server(&said);
    }
}
