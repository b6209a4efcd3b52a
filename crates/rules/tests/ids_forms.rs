//! Forms of rules that Suricata loads: letters in other cases, names of captures, wide and named numbers, sides of buffers, data sets of
//! addresses; and forms that it refuses, since a `;` is missing.

use crate::ids::{Counts, conversation, counts, set};
use rules::ids::Severity;

const REQUEST: &str = "GET /index?uid=7 HTTP/1.1\r\nHost: a.test\r\nContent-Type: text/json\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 5\r\n\r\nhello";

fn numbers(rules: &str, data: &[(&str, &[u8])], texts: &[&str]) -> Vec<u32> {
    let set = set(rules, data);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    let counts: Counts = counts(&set, &conversation(80, texts, 1400));
    counts.into_keys().collect()
}

#[test]
fn names_of_options_have_letters_in_any_case() {
    let rules = r#"alert http any any -> any any (Msg:"c"; Content:"INDEX"; NoCase; Classtype:bad-unknown; Sid:1;)
        alert http any any -> any any (HTTP.uri; content:"/index"; SID:2; Rev:3;)
        alert http any any -> any any (Flow:to_client; FileSize:5; sid:3;)"#;
    assert_eq!(numbers(rules, &[], &[REQUEST, RESPONSE]), [1, 2, 3]);
    let set = set(rules, &[]);
    let first = set.rules().iter().find(|rule| rule.sid == 1).expect("a rule");
    assert_eq!((&*first.message, first.priority), ("c", 2));
}

#[test]
fn names_of_captures_are_passed_over() {
    let rules = r#"alert http any any -> any any (http.uri; pcre:"/uid=(\d+)/, pkt:uid, pkt:username"; sid:1;)
        alert http any any -> any any (content:"Host"; pcre:"/(.*)\r\n/HR, flow:somecapture"; sid:2;)
        alert http any any -> any any (pcre:"/a,(t)est/W,alert:one"; sid:3;)"#;
    assert_eq!(numbers(rules, &[], &[REQUEST, RESPONSE]), [1, 2]);
    let faulty = r#"alert http any any -> any any (pcre:"/a/U, other"; sid:1;)"#;
    assert_eq!(set(faulty, &[]).problems().len(), 1);
}

#[test]
fn a_missing_semicolon_is_an_error_with_its_line() {
    for options in [
        r#"content:"index"; pcre:"/index/U" flowbits:set,zz;"#,
        r#"msg:"a" content:"index";"#,
        r#"flowbits:set,a flowbits:isset,b; content:"index";"#,
        r#"dns.query content:"index";"#,
        r#"content:"index" nocase;"#,
    ] {
        let set = set(&format!("\n\nalert ip any any -> any any ({options} sid:1;)"), &[]);
        let [problem] = set.problems() else { panic!("{options}: {:?}", set.problems()) };
        assert_eq!((problem.severity, problem.place.line), (Severity::Error, 3), "{options}");
        assert!(problem.reason.contains("a ; may be missing"), "{options}: {}", problem.reason);
    }
}

#[test]
fn numbers_of_eight_bytes_are_compared() {
    let rules = r#"alert tcp any any -> any any (content:"XX"; byte_test:6,=,0x4c454e312038,0,relative; sid:1;)
        alert tcp any any -> any any (content:"XX"; byte_test:8,<,0xffffffffffffffff,0,relative; sid:2;)
        alert tcp any any -> any any (content:"XX"; byte_test:8,>,0x8000000000000000,0,relative; sid:3;)
        alert tcp any any -> any any (byte_extract:4,0,var,dce; byte_test:4,>,var,4,little; content:"XX"; sid:4;)"#;
    assert_eq!(numbers(rules, &[], &["\x01 XXLEN1 8 and so on\n", "ok\n"]), [1, 2]);
    assert_eq!(set(rules, &[]).census().idle.get("dce"), Some(&1));
}

#[test]
fn numbers_of_flows_are_compared_with_each_other() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/max"; flowint:most,=,2; sid:1;)
        alert http any any -> any any (http.uri; content:"/a"; flowint:count,+,1; sid:2;)
        alert http any any -> any any (http.uri; content:"/a"; flowint:count,==,most; sid:3;)
        alert http any any -> any any (http.uri; content:"/a"; flowint:count,==,none; sid:4;)
        alert http any any -> any any (http.uri; content:"/a"; flowint:other,+,none; sid:5;)
        alert http any any -> any any (http.uri; content:"/end"; flowint:count,-,most; sid:6;)
        alert http any any -> any any (http.uri; content:"/end"; flowint:count,==,1; sid:7;)"#;
    let paths = ["/max", "/a", "/a", "/a", "/end"].map(|path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let texts: Vec<&str> = paths.iter().flat_map(|request| [request.as_str(), RESPONSE]).collect();
    let counts = counts(&set(rules, &[]), &conversation(80, &texts, 1400));
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 3), (3, 1), (6, 1), (7, 1)]);
}

#[test]
fn buffers_of_one_side_are_named() {
    let rules = r#"alert http any any => any any (http.content_type: to_server; content:"json"; http.content_type: to_client; content:"xml"; sid:1;)
        alert http any any => any any (http.content_type: to_server; content:"xml"; sid:2;)
        alert http any any -> any any (file.data: to_client; content:"hello"; sid:3;)
        alert http any any -> any any (file.data: to_server; content:"hello"; sid:4;)
        alert http any any => any any (http.content_type: to_server; content:"json"; file.data: to_client; content:"other"; sid:5;)"#;
    assert_eq!(numbers(rules, &[], &[REQUEST, RESPONSE]), [1, 3]);
}

#[test]
fn each_file_data_is_a_file_of_its_own() {
    let part = |name: &str, text: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=a; filename={name}\r\n\r\n{text}\r\n")
    };
    let body = [part("a.txt", "un bateau"), part("b.txt", "un minet"), "--x--\r\n".into()].concat();
    let head = "POST /a HTTP/1.1\r\nHost: a.test\r\nContent-Type: multipart/form-data; boundary=x\r\n";
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let rules = r#"alert http any any -> any any (file.data; content:"bateau"; file.data; content:"minet"; sid:1;)
        alert http any any -> any any (file.data; content:"bateau"; content:"minet"; sid:2;)
        alert http any any -> any any (file.data; content:"bateau"; file.data; content:"chat"; sid:3;)"#;
    assert_eq!(numbers(rules, &[], &[&request, RESPONSE]), [1]);
}

#[test]
fn addresses_are_looked_up_in_data_sets() {
    let data: [(&str, &[u8]); 2] = [("ip4.lst", b"10.0.0.2\n192.0.2.1\nnone\n"), ("rep.lst", b"10.0.0.1,70\n")];
    let rules = r#"alert ip any any -> any any (ip.dst; dataset:isset,one,type ip,load ip4.lst; sid:1;)
        alert ip any any -> any any (flow:to_server; ip.src; dataset:isset,one; sid:2;)
        alert http any any -> any any (http.method; content:"GET"; ip.src; dataset:isnotset,one; sid:3;)
        alert http any any -> any any (http.method; content:"GET"; ip.src; datarep:r,>,50,load rep.lst,type ipv4; sid:4;)
        alert http any any -> any any (http.method; content:"GET"; ip.dst; datarep:r,>,50; sid:5;)
        alert http any any -> any any (http.method; content:"POST"; ip.src; dataset:set,new,type ipv4; sid:6;)
        alert http any any -> any any (http.stat_code; content:"200"; ip.dst; dataset:isset,new; sid:7;)
        alert http any any -> any any (http.method; content:"GET"; ip.src; dataset:set,seen,type ipv4; sid:8;)"#;
    let texts = [REQUEST, RESPONSE, REQUEST, RESPONSE];
    let set = set(rules, &data);
    assert!(set.problems().is_empty() && set.census().idle.is_empty(), "{:?}", set.problems());
    let counts = counts(&set, &conversation(80, &texts, 1400));
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(1, 1), (3, 2), (4, 2), (8, 1)]);
}

#[test]
fn versions_of_tls_are_excluded() {
    let hello = |version: &[u8]| {
        let body = [version, &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
        let message = [&[1, 0, 0, u8::try_from(body.len()).expect("short")][..], &body].concat();
        [&[22, 3, 1, 0, u8::try_from(message.len()).expect("short")][..], &message].concat()
    };
    let rules = r#"alert tls any any -> any any (flow:to_server; ssl_version:!sslv3; sid:1;)
        alert tls any any -> any any (flow:to_server; ssl_version:!tls1.3,tls1.2; sid:2;)
        alert tls any any -> any any (flow:to_server; ssl_version:TLS1.2,sslv2; sid:3;)"#;
    let set = set(rules, &[]);
    assert!(set.problems().is_empty() && set.census().idle.is_empty(), "{:?}", set.census().idle);
    let found = |version: &[u8]| {
        let capture = crate::ids::conversation_bytes(443, &[&hello(version)], 1400);
        counts(&set, &capture).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(found(&[3, 3]), [1, 3]);
    assert_eq!(found(&[3, 1]), [1, 2]);
    assert_eq!(found(&[3, 0]), [2]);
}
