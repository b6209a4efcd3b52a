//! Rules over packets that carry their content in parts: fragments of IPv4 and IPv6, and DNS in streams.

use crate::ids::{conversation_bytes, counts, set};

/// A capture of raw packets of IP.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::from([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend([65_535_u32.to_le_bytes(), 101_u32.to_le_bytes()].concat());
    for packet in packets {
        file.extend([0; 8]);
        file.extend([u32::try_from(packet.len()).expect("a packet").to_le_bytes(); 2].concat());
        file.extend(packet);
    }
    file
}

fn length(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a packet").to_be_bytes()
}

/// A fragment of IPv4.
fn part4(number: u8, offset: usize, has_more: bool, content: &[u8]) -> Vec<u8> {
    let total = length(20 + content.len());
    let place = length((offset / 8) | (usize::from(has_more) << 13));
    let head = [0x45, 0, total[0], total[1], 0, number, place[0], place[1], 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&head[..], content].concat()
}

/// A fragment of IPv6, with options in front of its head.
fn part6(number: u8, offset: usize, has_more: bool, content: &[u8]) -> Vec<u8> {
    let total = length(16 + content.len());
    let place = length(offset | usize::from(has_more));
    let addresses = [&[0xfd; 16][..], &[0xfe; 16]].concat();
    let options = [44, 0, 1, 4, 0, 0, 0, 0];
    let head = [17, 0, place[0], place[1], 0, 0, 0, number];
    [&[0x60, 0, 0, 0, total[0], total[1], 0, 64][..], &addresses, &options, &head, content].concat()
}

const RULES: &str = r#"alert udp any any -> any any (content:"needle in parts"; sid:1;)
    alert udp any any -> any any (content:"replaced"; sid:2;)"#;

#[test]
fn fragments_are_put_together_and_the_first_bytes_stay() {
    let set = set(RULES, &[]);
    let datagram = [&[4, 0, 0, 99, 0, 32, 0, 0][..], b"a needle in parts, whole"].concat();
    for part in [part4 as fn(u8, usize, bool, &[u8]) -> Vec<u8>, part6] {
        let first = part(1, 0, true, &datagram[..16]);
        let second = part(1, 16, true, &datagram[16..24]);
        let last = part(1, 24, false, &datagram[24..]);
        // It comes late, and says otherwise.
        let other = part(1, 8, true, b"replacedreplaced");
        let another = part(2, 24, false, &datagram[24..]);
        for order in
            [[&first, &second, &other, &last], [&last, &another, &second, &first], [&second, &last, &first, &first]]
        {
            let found = counts(&set, &capture(&order.map(Vec::clone)));
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 1)]);
        }
        assert!(counts(&set, &capture(&[first, last])).is_empty());
    }
    // One fragment of IPv6 may be the whole packet.
    assert_eq!(counts(&set, &capture(&[part6(1, 0, false, &datagram)])).len(), 1);
}

/// A question with its length in front.
fn question(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&length(label.len())[1..], label.as_bytes()].concat());
    let message = [&[10, 10, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &labels.collect::<Vec<_>>(), &[0, 0, 1, 0, 1]].concat();
    [&length(message.len())[..], &message].concat()
}

#[test]
fn questions_in_streams_are_looked_at() {
    let rules = r#"alert dns any any -> any any (dns.query; content:"first.test"; bsize:10; sid:1;)
        alert dns any any -> any any (dns.query; content:"second.test"; endswith; sid:2;)
        alert tcp any any -> any any (app-layer-protocol:dns; content:"second"; sid:3;)"#;
    let set = set(rules, &[]);
    let client = [question("first.test"), question("www.second.test")].concat();
    for (port, size, wanted) in [(53, 1400, 3), (53, 1, 3), (53, 5, 3), (54, 1400, 0)] {
        assert_eq!(counts(&set, &conversation_bytes(port, &[&client, &[0, 12]], size)).len(), wanted, "{port} {size}");
    }
    // A length that no message has ends the reading; a message that is not whole is none.
    let short = [question("first.test"), vec![0, 3, 1, 2, 3], question("www.second.test")].concat();
    assert_eq!(counts(&set, &conversation_bytes(53, &[&short], 1400)).into_keys().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn texts_of_a_datagram_and_its_question_are_in_one_rule() {
    let rules = r#"alert dns any any -> any any (content:"|01 00 00 01|"; offset:2; depth:4; dns_query; content:"first"; sid:1;)
        alert dns any any -> any any (content:"|01 00 00 02|"; offset:2; depth:4; dns_query; content:"first"; sid:2;)
        alert udp any any -> any 53 (content:"first"; isdataat:!60; sid:3;)"#;
    let message = question("first.test")[2..].to_vec();
    let datagram = [&[4, 0, 0, 53][..], &length(8 + message.len()), &[0, 0], &message].concat();
    let found = counts(&set(rules, &[]), &capture(&[part4(1, 0, false, &datagram), part4(2, 0, false, &datagram)]));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 2), (3, 2)]);
}

/// A segment from a port to another; 1001 is the client's.
fn segment(ends: [u16; 2], flags: u8, numbers: [u32; 2], urgent: u16, bytes: &[u8]) -> Vec<u8> {
    let ports = ends.map(u16::to_be_bytes).concat();
    let numbers = numbers.map(u32::to_be_bytes).concat();
    let segment = [&ports[..], &numbers, &[0x50, flags, 255, 255, 0, 0], &urgent.to_be_bytes(), bytes].concat();
    let mut packet = part4(0, 0, false, &segment);
    packet[9] = 6;
    if ends[0] != 1001 {
        (packet[15], packet[19]) = (2, 1);
    }
    packet
}

const GET: &[u8] = b"GET /malicXious HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn urgent_bytes_are_left_out() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/malicious"; sid:1;)
        alert http any any -> any any (http.uri; content:"/malicXious"; sid:2;)"#;
    let found = |flags, urgent| {
        let packets = [segment([1001, 80], 2, [9, 0], 0, b""), segment([1001, 80], flags, [10, 0], urgent, GET)];
        counts(&set(rules, &[]), &capture(&packets)).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(found(0x38, 11), [1]);
    assert_eq!(found(0x18, 11), [2], "without the flag");
    assert_eq!(found(0x38, 0), [2]);
}

#[test]
fn data_beyond_the_window_are_left_out() {
    let rules = r#"alert tcp any any -> any any (content:"ZZZZZZ"; sid:1;)
        alert http any any -> any any (http.uri; content:"/malic"; sid:2;)"#;
    let found = |ahead: u32| {
        let packets = [
            segment([1001, 7777], 2, [9, 0], 0, b""),
            segment([7777, 1001], 0x12, [99, 10], 0, b""),
            segment([1001, 7777], 0x18, [10 + ahead, 100], 0, b"ZZZZZZ"),
            segment([1001, 7777], 0x18, [10, 100], 0, GET),
        ];
        counts(&set(rules, &[]), &capture(&packets)).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(found(100_000), [2]);
    assert_eq!(found(60_000), [1, 2]);
}

#[test]
fn a_capture_may_begin_with_a_response() {
    let rules = r#"alert http any any -> any any (flow:to_client; http.stat_code; content:"404"; sid:1;)
        alert http any any -> any 8090 (http.uri; content:"/malic"; sid:2;)"#;
    let response = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let packets = [
        segment([8090, 1001], 0x18, [99, 10], 0, response),
        segment([1001, 8090], 0x18, [10, 99], 0, GET),
        segment([8090, 1001], 0x18, [99 + 45, 10], 0, response),
    ];
    assert_eq!(counts(&set(rules, &[]), &capture(&packets)).into_iter().collect::<Vec<_>>(), [(1, 2), (2, 1)]);
}

#[test]
fn a_line_of_text_is_no_request() {
    let rules = r#"alert http any any -> any any (http.method; bsize:<20; sid:1;)
        alert tcp any any -> any any (content:"word"; sid:2;)"#;
    let found = |port, text: &str, answer: &str| {
        let capture = conversation_bytes(port, &[text.as_bytes(), answer.as_bytes()], 1400);
        counts(&set(rules, &[]), &capture).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(found(7777, "word of a text\r\n", "ok\r\n"), [2]);
    assert_eq!(found(7777, "Hi word!\r\n", "ok\r\n"), [2]);
    assert_eq!(found(80, "word of a text\r\n", "ok\r\n"), [1, 2]);
    for request in ["GET /word\r\n", "get /word\r\n", "BREW /word HTTP/1.1\r\n\r\n"] {
        assert_eq!(found(7777, request, "ok\r\n"), [1, 2], "{request}");
    }
    assert_eq!(found(7777, "word /\r\n", "HTTP/1.0 200 OK\r\n\r\nok"), [1, 2], "the answer tells");
}

#[test]
fn bits_that_contents_of_the_stream_change_are_tested_behind_them() {
    let rules = r#"alert ip any any -> any any (flowbits:set,fb1; sid:1;)
        alert ip any any -> any any (flowbits:unset,fb1; sid:7;)
        alert ip any any -> any any (flowbits:noalert; flowbits:isnotset,fb1; flowbits:set,fb1; content:"GET "; sid:8;)
        alert ip any any -> any any (flowbits:isnotset,fb1; sid:6;)
        alert ip any any -> any any (flowbits:isset,fb1; sid:5;)"#;
    let found = counts(&set(rules, &[]), &conversation_bytes(80, &[GET, b"HTTP/1.1 204 No Content\r\n\r\n"], 1400));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), [1, 5, 7]);
}
