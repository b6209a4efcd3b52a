//! Rules over HTTP/2 in captures: buffers of both sides, the dynamic table, continuations, padding, an upgrade, and hostile frames.

use crate::ids::{conversation_bytes, counts, set};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A block of fields, each literal and put into the dynamic table.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("a short text")], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0x40], text(name), text(value)].concat()).collect()
}

fn request(method: &str, path: &str) -> Vec<u8> {
    block(&[
        (":method", method),
        (":scheme", "http"),
        (":authority", "User@Www.Test:8080"),
        (":path", path),
        ("user-agent", "agent"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("x-own", "yes"),
    ])
}

fn numbers(rules: &str, texts: &[&[u8]], size: usize) -> Vec<(u32, u32)> {
    let set = set(rules, &[]);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    counts(&set, &conversation_bytes(8080, texts, size)).into_iter().collect()
}

#[test]
fn streams_fill_the_buffers_of_http() {
    let rules = r#"
        alert http any any -> any any (http.method; content:"POST"; bsize:4; sid:1;)
        alert http any any -> any any (http.uri; content:"/a b"; startswith; http.uri.raw; content:"/a%20b?c"; sid:2;)
        alert http any any -> any any (http.host; content:"www.test"; bsize:8; sid:3;)
        alert http any any -> any any (http.user_agent; content:"agent"; bsize:5; sid:4;)
        alert http any any -> any any (http.cookie; content:"a=1\; b=2"; bsize:8; sid:5;)
        alert http any any -> any any (http.header; content:":path: /a%20b"; content:"x-own: yes|0d 0a|"; content:!"cookie"; sid:6;)
        alert http any any -> any any (http.request_body; content:"upload"; bsize:6; sid:7;)
        alert http any any -> any any (http.stat_code; content:"200"; http.response_body; content:"answer"; sid:8;)
        alert http2 any any -> any any (flow:to_client; file.data; content:"answer"; bsize:6; http.cookie; content:"c=3"; sid:9;)
        alert http any any -> any any (http.request_header; content:"x-own: yes"; bsize:10; sid:10;)
        alert http any any -> any any (http.protocol; content:"HTTP/2"; http.request_line; content:"POST /a%20b?c HTTP/2"; sid:11;)
        alert http1 any any -> any any (http.method; content:"POST"; sid:12;)
        alert http2 any any -> any any (http2.header_name; content:"x-own"; bsize:5; sid:17;)
        alert http any any -> any any (http.uri; content:"/a%20b?c"; http.host.raw; content:"User@Www.Test:8080"; bsize:18; sid:14;)
        alert http any any -> any any (flow:to_client; http.header; content:"x-trailer: t|0d 0a|"; sid:15;)
        alert http any any -> any any (http.response_header; content:"x-trailer: t"; bsize:12; sid:16;)
        alert http any any -> any any (http.header_names; content:"|0d 0a|:method|0d 0a|"; startswith; sid:13;)"#;
    let head = request("POST", "/a%20b?c");
    let (first, rest) = head.split_at(40);
    let client = [
        PREFACE,
        SETTINGS,
        // A priority, padding, and the rest of the block in another frame.
        &frame(1, 0x28, 1, &[&[2, 0, 0, 0, 0, 9], first, &[0, 0]].concat()),
        &frame(9, 4, 1, rest),
        &frame(0, 8, 1, b"\x03up---"),
        &frame(0, 1, 1, b"load"),
    ];
    let gzip = {
        use std::io::Write;
        let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        coder.write_all(b"answer").expect("bytes");
        coder.finish().expect("bytes")
    };
    let answer = block(&[(":status", "200"), ("content-encoding", "gzip"), ("set-cookie", "c=3")]);
    let interim = block(&[(":status", "100")]);
    let server = [
        SETTINGS,
        &frame(1, 4, 1, &interim),
        &frame(1, 4, 1, &answer),
        &frame(0, 0, 1, &gzip[..9]),
        &frame(0, 0, 1, &gzip[9..]),
        &frame(1, 5, 1, &block(&[("x-trailer", "t")])),
    ];
    for size in [1, 7, 1400] {
        let found = numbers(rules, &[&client.concat(), &server.concat()], size);
        let wanted: Vec<(u32, u32)> =
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17].map(|sid| (sid, 1)).to_vec();
        assert_eq!(found, wanted, "{size}");
    }
}

#[test]
fn requests_of_one_connection_share_the_dynamic_table() {
    let rules = r#"alert http any any -> any any (http.user_agent; content:"agent"; sid:1;)
        alert http any any -> any any (http.method; content:"GET"; sid:2;)
        alert http any any -> any any (http.stat_code; content:"404"; sid:3;)"#;
    // Of the second request the fields are those of the first, the last of them first in the table.
    let again: Vec<u8> = (0..8).rev().map(|at| 0x80 | (62 + at)).collect();
    let client = [PREFACE, SETTINGS, &frame(1, 5, 1, &request("GET", "/")), &frame(1, 5, 3, &again)].concat();
    let server = [SETTINGS, &frame(1, 5, 3, &[0x8d]), &frame(1, 5, 1, &[0x8d])].concat();
    assert_eq!(numbers(rules, &[&client, &server], 1400), [(1, 2), (2, 2), (3, 2)]);
    // The settings of a server may come first.
    assert_eq!(numbers(rules, &[b"", SETTINGS, &client, &server], 1400), [(1, 2), (2, 2), (3, 2)]);
}

#[test]
fn an_upgraded_request_is_answered_in_http2() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/up"; http.stat_code; content:"200"; file.data; content:"body"; sid:1;)
        alert http any any -> any any (http.uri; content:"/up"; sid:2;)
        alert http2 any any -> any any (http.uri; content:"/next"; sid:3;)
        alert http2 any any -> any any (http.uri; content:"/up"; sid:4;)"#;
    let asked = b"GET /up HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n\r\n";
    let switched = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let answer = [&switched[..], SETTINGS, &frame(1, 4, 1, &[0x88]), &frame(0, 1, 1, b"body")].concat();
    let next = [PREFACE, SETTINGS, &frame(1, 5, 3, &request("GET", "/next"))].concat();
    for size in [1, 1400] {
        assert_eq!(numbers(rules, &[asked, &answer, &next], size), [(1, 1), (2, 1), (3, 1), (4, 1)], "{size}");
    }
}

#[test]
fn frames_that_break_the_protocol_end_its_reading() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/"; sid:1;)"#;
    let good = frame(1, 5, 5, &request("GET", "/"));
    let hostile: [&[&[u8]]; 7] = [
        // A block that never ends, one of another stream between, padding beyond the frame, a table that is too large.
        &[&frame(1, 0, 1, &[0; 40_000]), &frame(9, 0, 1, &[0; 50_000]), &frame(9, 0, 1, &[0; 50_000])],
        &[&frame(1, 0, 1, &[]), &frame(1, 5, 3, &[])],
        &[&frame(1, 0xd, 1, &[9, 1])],
        &[&frame(1, 5, 1, &[0x3f, 0xff, 0xff, 0xff, 0x7f])],
        &[&frame(9, 4, 1, &[])],
        &[&frame(5, 4, 1, &[0, 0])],
        &[&frame(1, 5, 0, &[])],
    ];
    for frames in hostile {
        let client = [PREFACE, SETTINGS, &frames.concat(), &good].concat();
        assert_eq!(numbers(rules, &[&client], 1400), []);
    }
    // Streams beyond the bound end, and are read all the same; a reset ends one.
    let many: Vec<u8> = (0..1000).flat_map(|at| frame(1, 4, 2 * at + 1, &[0x82, 0x84])).collect();
    let client = [PREFACE, SETTINGS, &many, &frame(3, 0, 1999, &[0; 4]), &good].concat();
    assert_eq!(numbers(rules, &[&client], 1400), [(1, 1001)]);
}

#[test]
fn broken_conversations_are_read_to_their_end() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/a"; http.header; content:"x"; sid:1;)
        alert http any any -> any any (file.data; content:"b"; http.response_header; content:"y"; sid:2;)"#;
    let set = set(rules, &[]);
    let client = [PREFACE, SETTINGS, &frame(1, 4, 1, &request("POST", "/a")), &frame(0, 1, 1, b"body")].concat();
    let server = [SETTINGS, &frame(1, 4, 1, &[0x88, 0x5f, 0x81, 0x07]), &frame(0, 9, 1, b"\x02bytes..")].concat();
    let mut number = 1_u64;
    let mut next = |below: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(number >> 33).expect("a word") % below
    };
    for _ in 0..2000 {
        let [mut client, mut server] = [client.clone(), server.clone()];
        for _ in 0..=next(4) {
            let side = if next(2) == 0 { &mut client } else { &mut server };
            let at = next(side.len());
            side[at] = u8::try_from(next(256)).expect("a byte");
        }
        counts(&set, &conversation_bytes(8080, &[&client, &server], 1 + next(60)));
    }
}
