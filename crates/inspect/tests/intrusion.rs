//! Intrusion rules: they look into mails, pages and what is packed in them, and match the same however a stream is cut.

use std::io::Write as _;
use std::sync::Arc;

use flow::{Alert, Context, Flow, Head, In, Out, Protocol, Watched};
use inspect::{Engine, Inspection, IntrusionFiles, IntrusionRules, Progress};
use scan::Database;
use stream::{ContentCoding, Fuel, Limits, Object};

const RULES: &str = r#"
alert smtp any any -> any any (smtp.mail_from; content:"a@"; file.data; content:"inner words"; sid:1;)
alert smtp any any -> any any (email.subject; content:"offer"; sid:2;)
alert smtp any any -> any any (file.name; content:"b.txt"; sid:3;)
alert tcp any any -> any any (content:"Subject|3a| offer"; sid:4;)
alert http any any -> any any (http.uri; content:"/x"; http.stat_code; content:"200"; file.data; content:"secret"; sid:5;)
alert http any any -> any any (http.response_body; content:"start"; startswith; content:"secret"; distance:0; sid:6;)
alert http any any -> any any (flow:to_client; file.data; content:"inner words"; startswith; sid:7;)
alert http any any -> any any (flow:to_server; http.uri; content:"/x"; sid:8;)
"#;

fn rules(text: &str) -> IntrusionRules {
    let files = IntrusionFiles { rules: vec![("own.rules".into(), text.into())], ..IntrusionFiles::default() };
    let bytes = flow::wire::write(&files, Vec::new());
    let rules = flow::wire::read::<IntrusionFiles>(&bytes).expect("its own form").compile();
    assert!(rules.set().problems().is_empty(), "{:?}", rules.set().problems());
    rules
}

/// The numbers of the rules that match, in order; and that a verdict comes.
fn matches(rules: &IntrusionRules, context: &Context, content: &[u8], piece: usize, fuel: u64) -> Vec<u32> {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let mut inspection = Inspection::new(engine, context.clone()).with_intrusion(Some(rules));
    let mut heard = Vec::new();
    for mut bytes in content.chunks(piece) {
        while !bytes.is_empty() {
            bytes = &bytes[inspection.tell(In::Feed(bytes))..];
            while inspection.work(&mut Fuel::new(fuel)) == Progress::Tired {}
            heard.extend(std::iter::from_fn(|| inspection.hear()));
        }
    }
    inspection.tell(In::Finish);
    while inspection.work(&mut Fuel::new(fuel)) != Progress::Done {}
    heard.extend(std::iter::from_fn(|| inspection.hear()));
    assert!(matches!(heard.last(), Some(Out::Verdict(_))));
    let sid = |out| match out {
        Out::Alert(Alert { rule, .. }) => Some(rules.set().rules()[rule as usize].sid),
        _ => None,
    };
    let mut sids: Vec<u32> = heard.into_iter().filter_map(sid).collect();
    sids.sort_unstable();
    sids
}

fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    // A stored member: local header, content, directory, its end.
    let mut out = Vec::new();
    let sizes = [(content.len() as u32).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
    let mut sum = flate2::Crc::new();
    sum.update(content);
    let common = [&[10, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &sum.sum().to_le_bytes(), &sizes].concat();
    out.extend(
        [b"PK\x03\x04", &common[..], &(name.len() as u16).to_le_bytes(), &[0, 0], name.as_bytes(), content].concat(),
    );
    let at = out.len() as u32;
    let entry =
        [b"PK\x01\x02\x0a\0", &common[..], &(name.len() as u16).to_le_bytes(), &[0; 16], name.as_bytes()].concat();
    out.extend(&entry);
    let sizes = [(entry.len() as u32).to_le_bytes(), at.to_le_bytes()].concat();
    out.extend([b"PK\x05\x06\0\0\0\0\x01\0\x01\0", &sizes[..], &[0, 0]].concat());
    out
}

fn mail() -> (Context, Vec<u8>) {
    let body: String = zip("b.txt", b"inner words").iter().map(|byte| format!("={byte:02X}")).collect();
    let body: String = body.as_bytes().chunks(60).map(|line| String::from_utf8_lossy(line) + "=\r\n").collect();
    let mail = format!(
        "From: a@b\r\nSubject: offer\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"x\"\r\n\r\n--x\r\n\r\nHello\r\n\
         --x\r\nContent-Type: application/zip; name=\"a.zip\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{body}\r\n--x--\r\n"
    );
    let flow = Flow { protocol: Protocol::Smtp, sender: "a@b".into(), ..Flow::default() };
    let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
    (Context { flow, object, watched: Some(Box::default()), ..Context::default() }, mail.into_bytes())
}

fn page(content: &[u8]) -> (Context, Vec<u8>) {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).expect("memory");
    let head = |line: &str, fields: &str| Some(Head { line: line.as_bytes().into(), fields: fields.as_bytes().into() });
    let watched = Watched {
        request: head("GET /x HTTP/1.1", "Host: a.test\r\n"),
        response: head("HTTP/1.1 200 OK", "Content-Encoding: gzip\r\n"),
        ..Watched::default()
    };
    let flow = Flow { protocol: Protocol::Http, ..Flow::default() };
    let object = Object { content_codings: [ContentCoding::Gzip].into(), ..Object::default() };
    (
        Context { flow, object, watched: Some(Box::new(watched)), ..Context::default() },
        encoder.finish().expect("memory"),
    )
}

#[test]
fn rules_match_the_same_however_a_stream_is_cut() {
    let rules = rules(RULES);
    let zipped = zip("b.txt", b"inner words");
    let long = [&b"start "[..], &b"filler ".repeat(60_000), b"secret"].concat();
    for ((context, content), wanted) in [
        (mail(), vec![1, 2, 3, 4]),
        (page(b"start of the secret"), vec![5, 6]),
        (page(&zipped), vec![7]),
        (page(&long), vec![5]),
    ] {
        for piece in [1, 7, 1000, content.len()] {
            for fuel in [1 << 12, u64::MAX] {
                let found = matches(&rules, &context, &content, piece, fuel);
                assert_eq!(found, wanted, "in pieces of {piece} with fuel {fuel}");
            }
        }
    }
    // A request of its own.
    let (mut context, _) = page(b"");
    context.watched.as_mut().expect("it is watched").response = None;
    context.object = Object::default();
    assert_eq!(matches(&rules, &context, b"", 1, u64::MAX), [8]);
}

#[test]
fn hostile_rules_and_content_end() {
    let mut text = String::new();
    for sid in 1..200 {
        text += &format!(
            "alert http any any -> any any (file.data; content:\"a\"; content:\"a\"; distance:0; content:\"a\"; distance:0; \
             content:\"b{sid}\"; distance:0; pcre:\"/(a+)+$/R\"; sid:{sid};)\n"
        );
    }
    let rules = rules(&text);
    let content = [&b"a".repeat(600_000)[..], b"b7"].concat();
    let (context, content) = page(&content);
    let before = std::time::Instant::now();
    matches(&rules, &context, &content, content.len(), u64::MAX);
    assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
}
