//! Keywords about flows and transactions as a whole, lines that change actions, and keywords that are misspelt.

use crate::ids::{conversation, counts, set};
use rules::ids::{Action, Limits, Loader, Severity, capture};

const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn numbers(rules: &str, capture: &[u8]) -> Vec<u32> {
    let set = set(rules, &[]);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    counts(&set, capture).into_keys().collect()
}

#[test]
fn rules_ask_for_the_protocol_that_a_flow_has_turned_out_to_have() {
    let rules = r#"alert tcp any any -> any any (app-layer-protocol:http; content:"hello"; sid:1;)
        alert tcp any any -> any any (app-layer-protocol:!http; sid:2;)
        alert tcp any any -> any any (app-layer-protocol:!tls,final; sid:3;)
        alert tcp any any -> any any (app-layer-protocol:failed; sid:4;)
        alert tcp any any -> any any (app-layer-protocol:smb; sid:5;)
        alert tcp any any -> any any (app-layer-protocol:!smb; content:"hello"; sid:6;)
        alert tcp any any -> any any (app-layer-protocol:ssh; sid:7;)
        alert http any any -> any any (app-layer-protocol:http1; sid:8;)
        alert http any any -> any any (app-layer-protocol:http2; sid:9;)"#;
    assert_eq!(numbers(rules, &conversation(80, &[REQUEST, RESPONSE], 1400)), [1, 3, 6, 8]);
    assert_eq!(numbers(rules, &conversation(80, &["\x01\x02\x03 hello\n", "hello"], 1400)), [2, 3, 4, 6]);
    assert_eq!(numbers(rules, &conversation(22, &["SSH-2.0-a\r\n", "SSH-2.0-b\r\n"], 1400)), [2, 3, 7]);
    assert!(!set("alert tcp any any -> any any (app-layer-protocol:htp; sid:1;)", &[]).problems().is_empty());
}

#[test]
fn rules_about_packets_look_at_each_by_itself() {
    let rules = r#"alert tcp-pkt any any -> any any (content:"/a HTTP"; sid:1;)
        alert tcp any any -> any any (flow:NO_STREAM,To_Server; content:"/a HTTP"; sid:2;)
        alert tcp any any -> any any (flow:ESTABLISHED,to_server; content:"/a HTTP"; sid:3;)
        alert http any any -> any any (flow:no_stream; http.uri; content:"/a"; sid:4;)"#;
    assert_eq!(numbers(rules, &conversation(80, &[REQUEST, RESPONSE], 1400)), [1, 2, 3, 4]);
    assert_eq!(numbers(rules, &conversation(80, &[REQUEST, RESPONSE], 3)), [3, 4]);
}

#[test]
fn xbits_are_toggled_and_unset_behind_tests() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/one"; xbits:set,a,track ip_src,expire 100; sid:1;)
        alert http any any -> any any (http.uri; content:"/two"; xbits:unset,a,track ip_src; sid:2;)
        alert http any any -> any any (http.uri; content:"/two"; xbits:isset,a,track ip_src; sid:3;)
        alert http any any -> any any (http.uri; content:"/two"; xbits:toggle,b,track ip_src; sid:4;)
        alert http any any -> any any (http.uri; content:"/two"; xbits:isset,b,track ip_src; sid:5;)
        alert http any any -> any any (http.uri; content:"/two"; hostbits:toggle,c; sid:6;)
        alert http any any -> any any (http.uri; content:"/two"; hostbits:isset,c; sid:7;)"#;
    let (one, two) = (REQUEST.replace("/a", "/one"), REQUEST.replace("/a", "/two"));
    for size in [1400, 1] {
        assert_eq!(numbers(rules, &conversation(80, &[&one, RESPONSE, &two, RESPONSE], size)), [1, 2, 3, 4, 6, 7]);
    }
}

#[test]
fn streams_are_compared_by_their_sizes() {
    // As Suricata 7.0.10 has it: the opening of a connection counts one.
    let length = REQUEST.len() + 1;
    let rules = format!(
        r#"alert tcp any any -> any any (flow:to_server; content:"GET"; stream_size:client,=,{length}; sid:1;)
        alert tcp any any -> any any (flow:to_server; content:"GET"; stream_size:client,>,{length}; sid:2;)
        alert tcp any any -> any any (flow:to_server; content:"GET"; stream_size:server,=,1; sid:3;)
        alert tcp any any -> any any (flow:to_client; content:"hello"; stream_size:both,>,20; sid:4;)
        alert tcp any any -> any any (flow:to_client; content:"hello"; stream_size:either,>,900; sid:5;)
        alert tcp any any -> any any (flow:to_server; content:"GET"; stream_size:2<>900,to_server; sid:6;)
        alert http any any -> any any (http.uri; content:"/a"; stream_size:server,<,6; sid:7;)"#
    );
    assert_eq!(numbers(&rules, &conversation(80, &[REQUEST, RESPONSE], 1400)), [1, 3, 4, 6, 7]);
    for faulty in ["client,=", "peer,=,1", "client,~,1"] {
        let rule = format!("alert tcp any any -> any any (stream_size:{faulty}; sid:1;)");
        assert!(!set(&rule, &[]).problems().is_empty(), "{faulty}");
    }
}

#[test]
fn rules_ask_for_faults_of_messages() {
    let rules = r#"alert http any any -> any any (app-layer-event:http.missing_host_header; flowint:faults,+,1; sid:1;)
        alert http any any -> any any (flow:to_client; app-layer-event:http.invalid_response_chunk_len; sid:2;)
        alert http any any -> any any (flow:to_server; app-layer-event:http.response_field_missing_colon; sid:3;)
        alert http any any -> any any (app-layer-event:http.missing_host_header; http.uri; content:"/b"; sid:4;)
        alert http any any -> any any (app-layer-event:http.unable_to_match_response_to_request; sid:5;)
        alert tls any any -> any any (app-layer-event:tls.invalid_sni_length; sid:6;)"#;
    let set = set(rules, &[]);
    assert_eq!(set.census().idle.get("app-layer-event"), Some(&1));
    let faulty = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nno colon\r\n\r\nzz\r\nhello\r\n0\r\n\r\n";
    let capture = conversation(80, &["GET /a HTTP/1.1\r\nA: b\r\n\r\n", faulty], 1400);
    assert_eq!(counts(&set, &capture).into_keys().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(numbers(rules, &conversation(80, &["GET /b HTTP/1.1\r\n\r\n", RESPONSE], 1400)), [1, 4]);
    assert!(numbers(rules, &conversation(80, &[REQUEST, RESPONSE], 1400)).is_empty());
}

#[test]
fn bits_of_a_transaction_end_with_it() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/set"; xbits:set,one,track tx; sid:1;)
        alert http any any -> any any (http.stat_code; content:"200"; xbits:isset,one,track tx; sid:2;)
        alert http any any -> any any (http.stat_code; content:"200"; xbits:isnotset,one,track tx; sid:3;)"#;
    let set = set(rules, &[]);
    let next = REQUEST.replace("/a", "/set");
    let found = counts(&set, &conversation(80, &[&next, RESPONSE, REQUEST, RESPONSE, REQUEST, RESPONSE], 1400));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 2)]);
}

#[test]
fn a_rule_that_matches_often_passes_what_follows() {
    let mut loader = Loader::new(Limits::default());
    loader.file("a", b"alert http any any -> any any (http.uri; content:\"/a\"; sid:1;)");
    loader.thresholds(
        "t",
        b"rate_filter gen_id 1, sig_id 1, track by_src, count 2, seconds 60, new_action pass, timeout 9",
    );
    let set = loader.finish();
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    let capture = conversation(80, &[REQUEST, RESPONSE, REQUEST, RESPONSE, REQUEST, RESPONSE], 1400);
    assert_eq!(counts(&set, &capture).into_iter().collect::<Vec<_>>(), [(1, 2)]);
    let words = set.words(&set.rules()[0]);
    assert_eq!(words.thresholds[0].0, "pass for 9 s, after more than 2 matches in 60 s for each source");
    assert_eq!(set.rules()[0].action, Action::Alert);
    assert!(capture::observe(&set, &capture).is_some());
}

#[test]
fn rules_ask_for_the_transport_and_for_one_address() {
    let rules = r#"alert ip any any -> any any (ip_proto:6; content:"hello"; sid:1;)
        alert ip any any -> any any (ip_proto:!tcp; content:"hello"; sid:2;)
        alert ip any any -> any any (ip_proto:>5; content:"hello"; sid:3;)
        alert ip any any -> any any (ip_proto:icmp; content:"hello"; sid:4;)
        alert tcp any any -> any any (sameip; content:"hello"; sid:5;)"#;
    let capture = conversation(80, &[REQUEST, RESPONSE], 1400);
    assert_eq!(numbers(rules, &capture), [1, 3]);
    // Both ends have the address of the server.
    let mut same = capture.clone();
    for at in 0..same.len() - 4 {
        if same[at..at + 4] == [10, 0, 0, 1] {
            same[at + 3] = 2;
        }
    }
    assert_eq!(numbers(rules, &same), [1, 3, 5]);
    assert_eq!(set("alert ip any any -> any any (ip_proto:1; sid:1;)", &[]).census().idle.get("ip_proto"), Some(&1));
    assert_eq!(set("alert ip any any -> any any (ip_proto:none; sid:1;)", &[]).problems().len(), 1);
}

#[test]
fn digests_of_files_are_looked_up_in_lists() {
    // Digests of `hello`, the first with a comment.
    let lists: [(&str, &[u8]); 3] = [
        ("a.md5", b"5d41402abc4b2a76b9719d911017c592 hello.txt\n"),
        ("a.sha1", b"aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\n"),
        ("a.sha256", b"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n"),
    ];
    let rules = r#"alert http any any -> any any (filemd5:a.md5; sid:1;)
        alert http any any -> any any (flow:to_client; filesha1:a.sha1; http.uri; content:"/a"; sid:2;)
        alert http any any -> any any (filesha256:!a.sha256; sid:3;)
        alert http any any -> any any (filesha256:a.sha256; sid:4;)"#;
    let set = set(rules, &lists);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    let numbers =
        |response: &str| counts(&set, &conversation(80, &[REQUEST, response], 3)).into_keys().collect::<Vec<_>>();
    assert_eq!(numbers(RESPONSE), [1, 2, 4]);
    assert_eq!(numbers(&RESPONSE.replace("hello", "other")), [3]);
    assert_eq!(crate::ids::set("alert http any any -> any any (filemd5:b; sid:1;)", &[]).problems().len(), 1);
}

#[test]
fn a_misspelt_keyword_is_an_error_with_its_place_and_the_nearest() {
    for (keyword, nearest) in [
        ("tls.cert_sujbect; content:\"a\"", Some("tls.cert_subject")),
        ("http.urii; content:\"a\"", Some("http.uri")),
        ("contnet:\"a\"", Some("content")),
        ("dns.qurey; content:\"a\"", Some("dns.query")),
        ("to_lowercas", Some("to_lowercase")),
        ("flowbit:set,a", Some("flowbits")),
        ("nothing_like_it:1", None),
    ] {
        let set = set(&format!("\nalert tcp any any -> any any ({keyword}; sid:1;)"), &[]);
        let [problem] = set.problems() else { panic!("{keyword}: {:?}", set.problems()) };
        assert_eq!((problem.severity, problem.place.line), (Severity::Error, 2));
        let wanted =
            nearest.map_or("is not known".into(), |word| format!("is not known; the nearest keyword is {word}"));
        assert_eq!(problem.reason, wanted, "{keyword}");
    }
    // A keyword that is too new to be in the list loads.
    let set = set("alert tls any any -> any any (tls.greeting; content:\"a\"; sid:1;)", &[]);
    assert_eq!((set.problems().len(), set.census().idle.get("tls.greeting")), (0, Some(&1)));
}
