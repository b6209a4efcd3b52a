//! Intrusion rules over conversations: counts of alerts by rule, the law of cuts, whole sets of rules and Suricata's own tests where
//! they are (`SLUICE_DATA`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rules::ids::{
    Action, App, Buffer, Change, Changes, Desk, Direction, Flow, Limits, Loader, RuleSet, Selector, Site, Transaction,
    Transport, Tuple, Watch, capture,
};

use crate::web_packs::pack;

pub type Counts = BTreeMap<u32, u32>;

pub fn set(rules: &str, data: &[(&str, &[u8])]) -> RuleSet {
    let mut loader = Loader::new(Limits::default());
    data.iter().for_each(|(name, content)| loader.data_file(name, content.to_vec()));
    loader.file("test.rules", rules.as_bytes());
    loader.finish()
}

pub fn counts(set: &RuleSet, capture: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for seen in capture::alerts(set, capture).expect("a capture") {
        *counts.entry(set.rules()[seen.rule].sid).or_default() += 1;
    }
    counts
}

/// A capture of one connection to a port: texts of the client and the server in turn, in segments of a size.
pub fn conversation(port: u16, texts: &[&str], size: usize) -> Vec<u8> {
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    conversation_bytes(port, &texts, size)
}

/// The same of texts that are bytes.
pub fn conversation_bytes(port: u16, texts: &[&[u8]], size: usize) -> Vec<u8> {
    let mut file = Vec::from([0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    file.extend([0; 8]);
    file.extend(65_535_u32.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    let mut sequences = [1000_u32, 5000];
    let mut put = |side: usize, flags: u8, bytes: &[u8]| {
        let ends: [([u8; 4], u16); 2] = [([10, 0, 0, 1], 1001), ([10, 0, 0, 2], port)];
        let (from, to) = (ends[side], ends[1 - side]);
        let mut packet = vec![2; 12];
        packet.extend([8, 0, 0x45, 0]);
        packet.extend(u16::try_from(40 + bytes.len()).expect("a segment").to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend([from.0, to.0].concat());
        packet.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        packet.extend(sequences[side].to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 255, 255, 0, 0, 0, 0]);
        packet.extend(bytes);
        sequences[side] += u32::try_from(bytes.len()).expect("a segment") + u32::from(flags & 3 != 0);
        file.extend([0; 8]);
        file.extend([u32::try_from(packet.len()).expect("a packet").to_le_bytes(); 2].concat());
        file.extend(packet);
    };
    put(0, 2, b"");
    put(1, 0x12, b"");
    for (at, text) in texts.iter().enumerate() {
        text.chunks(size).for_each(|piece| put(at % 2, 0x18, piece));
    }
    put(0, 0x11, b"");
    put(1, 0x11, b"");
    file
}

/// Requests for some paths, each with a response, on one connection.
fn paths(paths: &[&str]) -> Vec<u8> {
    let requests: Vec<String> =
        paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: Host.test\r\n\r\n")).collect();
    let texts: Vec<&str> = requests
        .iter()
        .flat_map(|request| [request.as_str(), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
        .collect();
    conversation(80, &texts, 1400)
}

fn expect(rules: &str, capture: &[u8], wanted: &[(u32, u32)]) {
    let set = set(rules, &[]);
    let problems: Vec<String> = set.problems().iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(counts(&set, capture), wanted.iter().copied().collect::<Counts>(), "{rules}");
}

#[test]
fn numbers_in_bytes_are_tested_and_move_what_follows() {
    let rules = r#"alert http any any -> any any (http.uri; content:"n="; byte_test:3,>,99,0,relative,string,dec; sid:1;)
        alert http any any -> any any (http.uri; content:"n="; byte_extract:1,0,n,relative,string,dec; content:"Z"; distance:n; within:1; sid:2;)
        alert http any any -> any any (http.uri; content:"n="; isdataat:3,relative; sid:3;)
        alert http any any -> any any (http.uri; content:"n"; bsize:>3; byte_test:1,=,9,1,relative,string,dec; sid:7;)
        alert http any any -> any any (http.uri; content:"n="; isdataat:!6,relative; sid:4;)
        alert http any any -> any any (http.uri; content:"n="; byte_jump:1,0,relative,string,dec; content:"Z"; within:1; sid:5;)
        alert http any any -> any any (http.uri; content:"n="; byte_math:bytes 1, offset 0, oper +, rvalue 1, result r, relative, string dec; content:"Z"; distance:r; within:1; sid:6;)
        alert http any any -> any any (flow:to_client; http.content_len; byte_test:0,>=,2,0,string,dec; sid:8;)
        alert http any any -> any any (http.uri; content:"n="; byte_test:0,>,99,0,relative,string,dec; sid:9;)
        alert http any any -> any any (http.uri; content:"n="; byte_jump:0,0,relative,string,dec; content:"Z"; within:1; sid:10;)"#;
    expect(
        rules,
        &paths(&["/?n=250", "/?n=2xxZ", "/?n=1xxZ", "/?n=9", "/n?n=9"]),
        &[(1, 1), (2, 1), (3, 3), (4, 5), (5, 1), (6, 1), (7, 2), (8, 5), (9, 1), (10, 1)],
    );
}

#[test]
fn bits_of_a_flow_are_set_before_they_are_asked_for() {
    let rules = r#"alert http any any -> any any (flowbits:isset,x; http.uri; content:"/a"; sid:1;)
        alert http any any -> any any (http.uri; content:"/a"; flowbits:set,x; sid:2;)
        alert http any any -> any any (http.uri; content:"/t"; flowbits:toggle,y; sid:3;)
        alert http any any -> any any (flowbits:isset,y; http.uri; content:"/c"; sid:4;)
        alert http any any -> any any (http.uri; content:"/a"; xbits:set,z,track ip_src,expire 30; noalert; sid:5;)
        alert http any any -> any any (http.uri; content:"/c"; xbits:isset,z,track ip_src; sid:6;)"#;
    expect(rules, &paths(&["/a", "/t", "/c", "/t", "/c"]), &[(1, 1), (2, 1), (3, 2), (4, 1), (6, 2)]);
}

#[test]
fn expressions_are_tried_where_their_text_stands() {
    let rules = r#"alert tcp any any -> any 25 (flow:to_server; content:"help"; nocase; pcre:"/^HELP\s[^\n]{300}/im"; sid:1;)
        alert tcp any any -> any 25 (flow:to_server; content:"help"; nocase; pcre:!"/^HELP\s[^\n]{300}/im"; sid:2;)
        alert tcp any any -> any 25 (flow:to_server; content:"name="; pcre:"/name=[^\n]*\.png/"; sid:3;)"#;
    let (long, many) = ("x".repeat(300), "name=".repeat(30_000));
    let seen = |text: &str| counts(&set(rules, &[]), &conversation(25, &[text], 1400)).into_keys().collect::<Vec<_>>();
    assert_eq!(seen(&format!("a help {long}\r\nHelp me\r\nhElp {long}")), [1]);
    assert_eq!(seen(&format!("a help {long}\r\nHelp me\r\n")), [2]);
    assert_eq!(seen(&format!("{many}\n{many}.png")), [3], "however many places fail");
    assert!(seen(&format!("{many}\n.png")).is_empty());
}

#[test]
fn heads_of_rules_and_their_revisions_decide() {
    let rules = r#"alert http [10.0.0.0/8,!10.0.0.1] any -> any any (http.uri; content:"/a"; sid:1;)
        alert http any [1:2000,!1001] -> any any (http.uri; content:"/a"; sid:2;)
        alert http any any -> any 80 (http.uri; content:!"/zz"; fast_pattern; sid:3;)
        alert http any any -> any any (http.uri; content:"/a"; sid:4; rev:1;)
        alert http any any -> any any (http.uri; content:"/zz"; sid:4; rev:2;)
        alert http any any -> any any (http.host; content:"host.test"; bsize:9; sid:5;)
        alert http any any -> any any (content:"/A"; nocase; http_uri; content:!"b"; http_uri; within:9; sid:6;)"#;
    expect(rules, &paths(&["/a"]), &[(3, 1), (5, 1), (6, 1)]);
}

#[test]
fn a_rule_that_lets_by_wins_and_rates_hold() {
    let rules = r#"pass http any any -> any any (http.uri; content:"/ok"; sid:1;)
        drop http any any -> any any (http.uri; content:"/"; sid:2;)
        alert http any any -> any any (http.uri; content:"/r"; threshold: type limit, track by_src, count 2, seconds 60; sid:3;)"#;
    expect(rules, &paths(&["/ok", "/r"]), &[]);
    expect(rules, &paths(&["/r", "/r", "/r"]), &[(2, 3), (3, 2)]);
}

#[test]
fn data_sets_are_asked_and_added_to() {
    let rules = r#"alert http any any -> any any (http.host; dataset:isset,hosts,type string,load hosts.lst; sid:1;)
        alert http any any -> any any (http.uri; dataset:isnotset,hosts; sid:2;)
        alert http any any -> any any (http.uri; dataset:set,seen,type string; sid:3;)
        alert http any any -> any any (http.host; datarep:rep,>,40,load rep.lst,type string; sid:4;)"#;
    let host = text::base64::encode(b"host.test");
    let set = set(rules, &[("hosts.lst", host.as_bytes()), ("rep.lst", format!("{host},50").as_bytes())]);
    assert_eq!(set.problems().len(), 0, "{:?}", set.problems());
    assert_eq!(counts(&set, &paths(&["/a", "/b", "/a"])), Counts::from([(1, 3), (2, 3), (3, 2), (4, 3)]));
}

#[test]
fn a_set_of_digests_has_what_a_transform_makes() {
    let rules = r#"alert http any any -> any any (http.host; to_md5; dataset:isset,m,type md5,load m.lst; sid:1;)
        alert http any any -> any any (http.host; to_sha256; dataset:isset,s,type sha256,load s.lst; sid:2;)
        alert http any any -> any any (http.host; dataset:isset,m; sid:3;)
        alert http any any -> any any (http.host; dataset:isnotset,m; sid:4;)
        alert http any any -> any any (http.uri; to_md5; dataset:isnotset,m; sid:5;)
        alert http any any -> any any (http.host; to_md5; datarep:r,>,40,load r.lst,type md5; sid:6;)
        alert http any any -> any any (http.uri; dataset:set,new,type string,state new.lst; sid:7;)
        alert http any any -> any any (http.uri; dataset:isset,missing,type string,load missing.lst; sid:8;)"#;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (md5, sha256) = (hex(&digest::md5::digest(b"host.test")), hex(&digest::sha256::digest(b"host.test")));
    let reputation = format!("{md5},50");
    let files = [("m.lst", md5.as_bytes()), ("s.lst", sha256.as_bytes()), ("r.lst", reputation.as_bytes())];
    let set = set(rules, &files);
    let problems: Vec<String> = set.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["test.rules:8: error: dataset: missing.lst cannot be read"]);
    assert_eq!(counts(&set, &paths(&["/a"])), Counts::from([(1, 1), (2, 1), (5, 1), (6, 1), (7, 1)]));
}

#[test]
fn modifiers_of_a_content_in_base64_are_its_own() {
    let request = "POST /index HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\naGVsbG8=";
    let rules = r#"alert http any any -> any any (http.request_body; base64_decode; base64_data; content:"HELLO"; nocase; sid:1;)
        alert http any any -> any any (http.uri; content:"INDEX"; http.request_body; base64_decode; base64_data; content:"hello"; startswith; sid:2;)
        alert http any any -> any any (http.uri; content:"index"; http.request_body; base64_decode; base64_data; content:"LO"; nocase; distance:0; content:"o"; endswith; sid:3;)
        alert http any any -> any any (http.uri; content:"index"; http.request_body; base64_decode; base64_data; content:"ello"; startswith; sid:4;)"#;
    expect(rules, &conversation(80, &[request, "HTTP/1.1 204 No\r\n\r\n"], 1400), &[(1, 1), (3, 1)]);
    let wrong = r#"alert http any any -> any any (http.uri; content:"index"; http.request_body; base64_decode; base64_data; nocase; sid:1;)"#;
    assert_eq!(set(wrong, &[]).problems().len(), 1);
}

#[test]
fn options_that_test_nothing_leave_a_rule_as_it_is() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/index"; prefilter; sid:1;)
        alert http any any -> any any (http.uri; content:"/index"; tag:session,5,packets; bypass; sid:2;)
        alert http any any -> any any (http.uri; content:"/index"; replace:"/xedni"; nfq_set_mark:1; sid:3;)
        alert http any any -> any any (flow:to_client; file.data; content:"ok"; filestore; sid:4;)
        alert http any any -> any any (http.uri; content:"/index"; filestore; sid:5;)
        alert http any any -> any any (filestore; sid:6;)
        alert http any any -> any any (flow:to_client; filename:"INDEX"; http.stat_code; content:"200"; sid:7;)
        alert http any any -> any any (flow:to_client; fileext:"HTML"; filesize:<3; sid:8;)
        alert http any any -> any any (flow:to_client; fileext:"tml"; sid:9;)
        alert http any any -> any any (flow:to_client; filesize:>2; sid:10;)
        alert http any any -> any any (flow:to_client; filename:!"index"; sid:11;)
        alert http any any -> any any (file.data; filesize:2; content:"k"; endswith; sid:12;)"#;
    let wanted = [1, 2, 3, 4, 6, 7, 8, 12].map(|sid| (sid, 1));
    expect(rules, &paths(&["/index.html"]), &wanted);
}

#[test]
fn keywords_of_what_nothing_here_speaks_load() {
    let keywords = "ip.src; content:\"x\"|tls_cert_notafter:<2020|ssh.hassh.server; content:\"x\"|\
        iprep:any,Bad,>,10|dns.opcode:4|tcpv4-csum:1|pktvar:a,\"b\"|mqtt.publish.topic; content:\"x\"|http_num_cookies:1|\
        http2.frametype:GOAWAY|enable:no|flow.elephant|ldap.request.operation:1|entropy:value >= 4";
    let mut rules = String::new();
    for (sid, options) in (1..).zip(keywords.split('|')) {
        rules += &format!("alert ip any any -> any any ({options}; sid:{sid};)\n");
    }
    rules += "config dns any any -> any any (dns.query; content:\"x\"; config:logging disable; sid:100;)\n\
        file_id (file_data; content:\"%PDF\"; gid:4; sid:101;)\n\
        alert tcp any any -> any !$HTTP_PORTS (content:\"GET\"; sid:102;)\n\
        alert ip6 10.0.0.0/8 any -> any any (content:\"GET\"; sid:103;)\n\
        alert igmp any any -> any any (sid:104;)\n";
    let set = set(&rules, &[]);
    let problems: Vec<String> = set.problems().iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    let active: Vec<u32> = set.rules().iter().filter(|rule| rule.idle.is_none()).map(|rule| rule.sid).collect();
    assert!(active.is_empty(), "{active:?}");
    assert_eq!(set.census().idle.get("!$HTTP_PORTS"), Some(&1));
}

#[test]
fn heads_are_read_whatever_their_case_and_version() {
    let rules = r#"ALERT TCP any any -> any any (content:"GET"; sid:1;)
        alert ip4 any any -> any any (content:"GET"; sid:2;)
        alert ip6 any any -> any any (content:"GET"; sid:3;)
        alert http ![192.168.0.0/16,!192.168.77.0/24] any -> any any (http.uri; content:"/a"; sid:4;)
        alert http any any -> [10.0.0.0/8,![10.0.0.0/24,!10.0.0.2]] any (http.uri; content:"/a"; sid:5;)
        alert http1:request_line any any -> any any (http.uri; content:"/a"; sid:7;)
        rewrite tcp any any -> any any (content:"GET"; replace:"PUT"; sid:6;)"#;
    expect(rules, &paths(&["/a"]), &[(1, 1), (2, 1), (4, 1), (5, 1), (6, 1), (7, 1)]);
}

#[test]
fn a_greeting_without_a_name_is_of_the_protocol_that_the_client_speaks() {
    let rules = r#"alert smtp any any -> any any (smtp.helo; content:"a.test"; sid:1;)
        alert ftp any any -> any any (flow:to_server; content:"USER"; sid:2;)"#;
    for size in [1, 3, 1400] {
        for (client, sid) in [("ehlo a.test\r\nMAIL FROM:<a@a.test>\r\n", 1), ("USER a\r\n", 2)] {
            expect(rules, &conversation(99, &["", "220 ready\r\n", client, "250 ok\r\n"], size), &[(sid, 1)]);
        }
    }
}

#[test]
fn rules_of_snort_3_have_lines_comments_and_parts_of_buffers() {
    let rules = "alert tcp any any -> any any\n(\n  msg:\"lines\";\n  http_uri;\n  content:\"/abc\",fast_pattern;\n  sid:1;\n)\n\
        #begin\nalert http ( http_uri; content:\"/abc\"; sid:2; )\n#end\n\
        alert http ( /* a comment; */ http_uri:path; content:\"/abc\",nocase; sid:3; )\n\
        alert http ( http_uri:query; content:\"/abc\"; sid:4; )\n\
        alert http ( http_uri:path; content:\"needle\"; sid:5; )\n\
        alert http ( http_uri:query; bufferlen:8; content:\"needle\"; sid:6; )\n\
        alert http ( http_header:field x-foo; content:\"one\"; bufferlen:3; sid:7; )\n\
        alert http ( http_header:field x-foo, request; content:\"two\"; sid:8; )\n\
        alert http ( http_header:field x-foo; content:!\"two\"; sid:9; )\n\
        alert http ( http_header:field absent; content:!\"two\"; sid:10; )\n\
        alert http ( http_raw_header:field x-bar; content:\"two\"; sid:11; )\n\
        alert http ( http_raw_request; content:\"X-Foo\"; sid:12; )\n\
        alert http ( http_raw_request; content:\"GET /abc\"; sid:13; )\n\
        alert http ( flow:to_client; http_raw_status; content:\"nginx\"; sid:14; )\n\
        alert http ( flow:to_client; http_raw_status; content:\"200 OK\"; sid:15; )\n\
        alert http ( http_uri; content:\"index\"; regex:\"/NEEDLE/i\"; sid:16; )\n\
        alert http ( http_cookie:request; content:\"a=b\"; sid:17; )\n\
        alert http ( http_uri:host; content:\"h.test\"; bufferlen:6; sid:18; )\n";
    let request = "GET /abc/index.html?q=needle HTTP/1.1\r\nHost: a\r\nX-Foo: one\r\nX-Bar: two\r\nCookie: a=b\r\n\r\n";
    let response = "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nok";
    let wanted = [1, 3, 6, 7, 9, 11, 13, 15, 16, 17].map(|sid| (sid, 1));
    expect(rules, &conversation(80, &[request, response], 1400), &wanted);
    let request = "GET http://u:p@h.test:80/x HTTP/1.1\r\nHost: b\r\n\r\n";
    expect(rules, &conversation(80, &[request, response], 1400), &[(15, 1), (18, 1)]);
}

#[test]
fn rules_of_both_notations_may_stand_in_one_file() {
    let rules = "alert tcp any any -> any any (content:\"/abc\"; http_uri; content:\"Host.test\"; sid:1;)\n\
        alert http any any -> any any (content:\"Host.test\"; http_uri; sid:2;)\n\
        alert http ( http_uri; content:\"ABC\",nocase; sid:3; )\n\
        alert http ( http_uri; content:\"/abc\"; http_header; content:\"Host\"; sid:4; )\n\
        alert tcp any any -> any any (msg:\"none of both\"; content:\"GET /abc\"; sid:5;)\n";
    expect(rules, &paths(&["/abc"]), &[(1, 1), (3, 1), (4, 1), (5, 1)]);
}

#[test]
fn lines_for_a_number_replace_the_bounds_of_a_rule() {
    let own = "threshold:type limit, track by_src, count 1, seconds 60; ";
    let alerts = |own: &str, lines: &str| {
        let mut loader = Loader::new(Limits::default());
        loader.file("r", format!("alert http any any -> any any (http.uri; content:\"/\"; {own}sid:1;)").as_bytes());
        loader.thresholds("t", lines.as_bytes());
        let set = loader.finish();
        assert!(set.problems().is_empty(), "{:?}", set.problems());
        counts(&set, &paths(&["/a", "/b", "/c", "/d"])).get(&1).copied().unwrap_or(0)
    };
    let of_rule = "threshold gen_id 1, sig_id 1, type limit, track by_src, count 2, seconds 60\n";
    let of_all = "threshold gen_id 0, sig_id 0, type threshold, track by_src, count 2, seconds 60\n";
    assert_eq!(alerts(own, of_rule), 2);
    assert_eq!(alerts(own, of_all), 1);
    assert_eq!(alerts("", of_all), 2);
    assert_eq!(alerts(own, &format!("{of_all}{of_rule}")), 2);
    assert_eq!(alerts("detection_filter:track by_src, count 9, seconds 9; ", of_rule), 2);
    assert_eq!(alerts("", "suppress gen_id 1, sig_id 1, track by_either, ip 10.0.0.2"), 0);
    assert_eq!(alerts("", "suppress gen_id 1, sig_id 1, track by_either, ip 8.8.8.8"), 4);
    assert_eq!(alerts(own, &format!("suppress gen_id 1, sig_id 1, track by_src, ip 10.0.0.1\n{of_rule}")), 0);
    let mut loader = Loader::new(Limits::default());
    loader.thresholds("t", b"config gen_id 1, sig_id 1, track by_src, count 1, seconds 1");
    assert_eq!(loader.finish().problems()[0].to_string(), "t:1: error: config is not supported");
}

#[test]
fn rules_that_only_set_bits_do_not_block_with_others() {
    let rules = r#"alert http any any -> any any (http.uri; content:"/"; flowbits:set,x; flowbits:noalert; classtype:trojan-activity; sid:1;)
        alert http any any -> any any (http.uri; content:"/"; flowbits:isset,x; classtype:trojan-activity; sid:2;)"#;
    let mut changes = Changes::default();
    changes.read(Change::Drop, "drop.conf", b"*");
    let changed = String::from_utf8(changes.apply("a.rules", rules.as_bytes())).expect("text");
    let words: Vec<&str> = changed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(words, ["alert", "drop"]);
    let actions = |selector: Selector| {
        let mut loader = Loader::new(Limits::default());
        loader.file("a.rules", rules.as_bytes());
        loader.action(selector, Some(Action::Drop));
        let rules = loader.finish();
        let mut actions: Vec<(u32, Action)> = rules.rules().iter().map(|rule| (rule.sid, rule.action)).collect();
        actions.sort();
        actions
    };
    assert_eq!(actions(Selector::Class("trojan-activity".into())), [(1, Action::Alert), (2, Action::Drop)]);
    assert_eq!(actions(Selector::Sid(1)), [(1, Action::Drop), (2, Action::Alert)]);
}

const SECRET: &str = r#"alert http any any -> any any (flow:to_client; file.data; content:"secret"; sid:1;)
    alert http any any -> any any (http.host; content:"a.test"; bsize:6; sid:2;)
    alert http any any -> any any (http.host.raw; content:"a.test"; bsize:6; sid:3;)
    alert tls any any -> any any (tls.sni; content:"x.test"; sid:4;)"#;

/// Numbers of the rules above that alert on a conversation, however it is cut.
fn seen(texts: &[&str]) -> Vec<u32> {
    let set = set(SECRET, &[]);
    let mut all =
        [1, 2, 7, 1400].map(|size| counts(&set, &conversation(80, texts, size)).into_keys().collect::<Vec<_>>());
    all.iter().for_each(|one| assert_eq!(*one, all[3], "{texts:?}"));
    std::mem::take(&mut all[3])
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
const SECRET_PAGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";

#[test]
fn requests_are_seen_behind_empty_lines_and_with_any_method() {
    for lines in ["\r\n", "\r\n\r\n", "\n\n\n"] {
        assert_eq!(seen(&[&format!("{lines}{GET}"), SECRET_PAGE]), [1, 2, 3]);
    }
    for method in ["VERSION-CONTROL", "M-SEARCH", "FOO.BAR_1", "G(T"] {
        assert_eq!(seen(&[&GET.replacen("GET", method, 1), SECRET_PAGE]), [1, 2, 3], "{method}");
    }
    assert!(seen(&["G(T x\r\n", "331 secret\r\n"]).is_empty());
    assert!(seen(&["SSH-2.0-Open SSH\r\n", SECRET_PAGE]).is_empty());
}

#[test]
fn a_host_is_neither_a_login_nor_a_line_behind_it() {
    let absolute = GET.replacen("/x", "http://u:p@a.test:80/x", 1).replacen("Host: a.test", "Host: b.test", 1);
    assert_eq!(seen(&[&absolute, SECRET_PAGE]), [1, 2, 3]);
    assert_eq!(seen(&[&GET.replacen("a.test\r\n", "a.test\r\nfoo\r\nX: y\r\n", 1), SECRET_PAGE]), [1, 2, 3]);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\nchunked\r\n\r\n3\r\nsec\r\n3\r\nret\r\n0\r\n\r\n";
    assert_eq!(seen(&[GET, chunked]), [1, 2, 3]);
}

#[test]
fn what_is_inside_a_tunnel_is_seen() {
    let connect = "CONNECT b.test:80 HTTP/1.1\r\nHost: b.test:80\r\n\r\n";
    let granted = "HTTP/1.1 200 Connection established\r\n\r\n";
    assert_eq!(seen(&[connect, granted, GET, SECRET_PAGE]), [1, 2, 3]);
    assert_eq!(seen(&[connect, granted, connect, granted, GET, SECRET_PAGE]), [1, 2, 3]);
    assert_eq!(seen(&[connect, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", GET, SECRET_PAGE]), [1, 2, 3]);
    let switched = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    assert_eq!(seen(&[GET, switched, GET, SECRET_PAGE]), [2, 3]);
}

/// The first record of a client of TLS that asks for x.test.
fn hello() -> String {
    let random = "r".repeat(32);
    let names = "\x00\x00\x00\x0b\x00\x09\x00\x00\x06x.test";
    format!("\x16\x03\x01\x00\x3e\x01\x00\x00\x3a\x03\x03{random}\x00\x00\x02\x13\x01\x01\x00\x00\x0f{names}")
}

#[test]
fn handshakes_are_seen_in_tunnels_and_behind_starttls() {
    let connect = "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n";
    assert_eq!(seen(&[connect, "HTTP/1.1 200 Yes\r\n\r\n", &hello()]), [4]);
    let greeting = ["", "220 mx ESMTP\r\n", "EHLO a\r\n", "250 STARTTLS\r\n", "STARTTLS\r\n"];
    assert_eq!(seen(&[&greeting[..], &["220 go\r\n", &hello()]].concat()), [4]);
    let refused = [&greeting[..], &["454 no\r\n", "MAIL FROM:<a@a.test>\r\n"]].concat();
    let rule = r#"alert smtp any any -> any any (smtp.mail_from; content:"a@a.test"; sid:1;)"#;
    expect(rule, &conversation(25, &refused, 2), &[(1, 1)]);
}

#[test]
fn what_is_not_known_may_stand_in_rules_that_require_it() {
    let rules = r#"alert http any any -> any any (newer:1; requires:version >= 99; sid:1;)
        alert http any any -> any any (http.uri; content:"/"; requires:keyword byte_test, keyword to_md5; sid:2;)
        alert tls any any -> any any (tls.fingerprint:"AA:bb"; tls.subject:!"CN=a"; tls.issuerdn:"CN=b"; sid:3;)
        alert http any any -> any any (http.uri; content:"/"; xbits:set,x,track ip_src,expire: 10; sid:4;)"#;
    let set = set(rules, &[]);
    let problems: Vec<String> = set.problems().iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!((set.census().active, set.census().skipped.len()), (3, 1));
}

#[test]
fn an_answer_without_a_head_is_a_file() {
    let post = GET.replacen("GET", "POST", 1);
    for request in [GET, "GET /x\r\n", &post] {
        for answer in ["secret", "a secret\r\nand more\r\n\r\n", "\r\n\r\nsecret"] {
            assert!(seen(&[request, answer]).contains(&1), "{request:?} {answer:?}");
        }
    }
    assert_eq!(seen(&[GET, &format!("junk{SECRET_PAGE}")]), [1, 2, 3]);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3\r\nret\r\n0\r\n\r\n";
    let first = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more\r\nlines\r\n";
    assert_eq!(seen(&[GET, first, GET, chunked]), [1, 2, 3]);
    assert!(seen(&["USER x\r\n\r\n", "331 secret\r\n"]).is_empty());
}

#[test]
fn a_rule_for_both_sides_alerts_on_each() {
    let rules = r#"alert http any any -> any any (http.protocol; content:"HTTP/1.1"; sid:1;)
        alert http any any -> any any (http.protocol; content:"HTTP/1.1"; http.uri; content:"/a"; sid:2;)
        alert http any any -> any any (http.header; content:"Host"; http.header; content:"Length"; sid:3;)
        alert http any any -> any any (flow:to_client; http.header; content:"Length"; sid:4;)"#;
    expect(rules, &paths(&["/a", "/b"]), &[(1, 4), (2, 1), (4, 2)]);
}

#[test]
fn a_query_is_decoded_and_a_body_has_a_name() {
    let rules = r#"alert http any any -> any any (http.uri; content:"x=union select"; sid:1;)
        alert http any any -> any any (http.uri.raw; content:"x=uni%6fn"; sid:2;)
        alert http any any -> any any (flow:to_client; file.name; content:"/d/f.exe"; bsize:8; sid:3;)"#;
    expect(rules, &paths(&["/d/%66.exe?x=uni%6fn%20select"]), &[(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn of_a_form_the_parts_with_names_are_files() {
    let form = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nsecret\r\n--x\r\n\
        Content-Disposition: form-data; name=b; filename=f.txt\r\n\r\ninvoice\r\n--x--\r\n";
    let request = format!(
        "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let rules = r#"alert http any any -> any any (file.data; content:"secret"; sid:1;)
        alert http any any -> any any (file.data; content:"invoice"; bsize:7; file.name; content:"f.txt"; sid:2;)"#;
    let texts = [request.as_str(), "HTTP/1.1 204 No Content\r\n\r\n"];
    expect(rules, &conversation(80, &texts, 9), &[(2, 1)]);
}

#[test]
fn what_one_side_says_at_a_time_is_a_stream_of_its_own() {
    let rules = r#"alert tcp any any -> any any (flow:to_server; content:"USER"; depth:4; sid:1;)
        alert tcp any any -> any any (flow:to_server; content:"end|0d 0a|"; endswith; sid:2;)
        alert tcp any any -> any any (flow:to_server; content:"first"; content:"second"; sid:3;)"#;
    let texts = ["USER first\r\n", "ok\r\n", "USER second end\r\n", "ok\r\n"];
    for size in [1, 3, 1400] {
        expect(rules, &conversation(2000, &texts, size), &[(1, 2), (2, 1)]);
    }
}

#[test]
fn rules_that_ask_for_sizes_look_at_each_packet() {
    let capture = conversation(99, &["abcdefghij", "xyz", "abc"], 4);
    let rules = r#"alert tcp any any -> any 99 (dsize:4; sid:1;)
        alert tcp any any -> any 99 (content:"cd"; dsize:4; sid:2;)
        alert tcp any any -> any 99 (dsize:>3; content:"de"; sid:3;)
        alert tcp any any -> any 99 (dsize:2; content:"j"; offset:1; content:!"x"; sid:4;)
        alert tcp any 99 -> any any (dsize:1<>4; sid:5;)
        alert tcp any any -> any 99 (dsize:!4; sid:6;)
        alert tcp any any -> any 99 (dsize:0; sid:7;)
        alert http any any -> any any (dsize:>3; http.uri; content:"/"; sid:8;)"#;
    expect(rules, &capture, &[(1, 2), (2, 1), (4, 1), (5, 1), (6, 2), (7, 2)]);
    assert_eq!(set(rules, &[]).census().idle.get("dsize"), Some(&1));
}

#[test]
fn rules_on_streams_are_for_the_ports_that_they_name() {
    let rules = r#"alert tcp any any -> any [80,21] (content:"hello"; sid:1;)
        alert tcp any any -> any 25 (content:"hello"; sid:2;)
        alert tcp any any <> any 587 (content:"hello"; sid:3;)
        alert tcp any any -> any !80 (content:"hello"; sid:4;)
        alert tcp any 9000 -> any any (flow:to_client; content:"hello"; sid:5;)
        alert tcp any any -> any any (content:"hello"; sid:6;)"#;
    for (port, wanted) in [(80, &[1, 6][..]), (21, &[1, 4, 6]), (25, &[2, 4, 6]), (587, &[3, 4, 6]), (9000, &[4, 6])] {
        let wanted: Vec<(u32, u32)> = wanted.iter().map(|sid| (*sid, 1)).collect();
        expect(rules, &conversation(port, &["hello", "yes"], 2), &wanted);
    }
    expect(rules, &conversation(9000, &["yes", "hello"], 2), &[(4, 1), (5, 1), (6, 1)]);
}

#[test]
fn what_does_not_load_is_told_with_file_line_and_keyword() {
    let rules = "# a comment\nalert http any any -> any any (http.uri; content:\"a\"; nonsense:1; sid:1;)\n\
        alert icmp any any -> any any (itype:8; sid:2;)\nalert http any any -> any any (content:\"a;b\"; sid:3;)\n\
        alert http any any -> any any (requires: version >= 99; content:\"a\"; sid:4;)\n";
    let set = set(rules, &[]);
    let problems: Vec<String> = set.problems().iter().map(ToString::to_string).collect();
    assert_eq!(problems[0], "test.rules:2: error: nonsense: is not known");
    assert!(problems[1].starts_with("test.rules:4: error: content: a quote that is not closed"), "{problems:?}");
    let census = set.census();
    assert_eq!((census.rules, census.active, census.idle["icmp"], census.skipped.len()), (4, 0, 1, 1));
}

const MAIL: &[&str] = &[
    "EHLO a.test\r\nMAIL FROM:<a@a.test>\r\nRCPT TO:<b@b.test>\r\nDATA\r\nFrom: <a@a.test>\r\nSubject: hello\r\n\
    Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Disposition: attachment; filename=f.bin\r\n\
    Content-Transfer-Encoding: base64\r\n\r\naW52b2ljZQ==\r\n--x--\r\n.\r\nQUIT\r\n",
    "220 b.test ESMTP\r\n250 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n221 bye\r\n",
];

const PAGE: &[&str] = &[
    "POST /up%6Coad?x=1 HTTP/1.1\r\nHost: A.test\r\nUser-Agent: tool\r\nContent-Length: 11\r\n\r\nname=secret",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ninvoic\r\n1\r\ne\r\n0\r\n\r\n",
];

const ALL: &str = r#"alert smtp any any -> any any (smtp.helo; content:"a.test"; bsize:6; smtp.rcpt_to; content:"b@"; sid:1;)
alert smtp any any -> any any (email.subject; content:"hello"; file.data; content:"invoice"; startswith; endswith; sid:2;)
alert http any any -> any any (http.uri; content:"/upload"; http.request_body; content:"secret"; endswith; sid:3;)
alert http any any -> any any (flow:to_client; file.data; content:"invoice"; pcre:"/^inv/"; http.stat_code; content:"200"; sid:4;)
alert tcp any any -> any any (content:"tool|0d 0a|"; content:"secret"; distance:0; sid:5;)
alert http any any -> any any (http.header_names; content:"|0d 0a|User-Agent|0d 0a|"; content:!"Referer"; sid:6;)
"#;

#[test]
fn however_a_stream_is_cut_the_alerts_are_the_same() {
    let set = set(ALL, &[]);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    let wanted = [Counts::from([(1, 1), (2, 1)]), Counts::from([(3, 1), (4, 1), (5, 1), (6, 1)])];
    for (port, texts, wanted) in [(25, MAIL, &wanted[0]), (80, PAGE, &wanted[1])] {
        for size in [1, 2, 5, 17, 1400] {
            assert_eq!(&counts(&set, &conversation(port, texts, size)), wanted, "in segments of {size}");
        }
    }
}

#[test]
fn a_body_in_which_a_rule_did_not_match_is_looked_at_again_once_there_is_more_of_it() {
    let limits = Limits { window_bytes: 64, ..Limits::default() };
    let mut loader = Loader::new(limits);
    let rule = r#"alert http any any -> any any (file.data; content:"needle"; fast_pattern; content:"other"; sid:1;)"#;
    loader.file("test.rules", rule.as_bytes());
    let (rules, mut site) = (loader.finish(), Site::default());
    let peer = |number: u8, port: u16| (IpAddr::from([10, 0, 0, number]), port);
    let tuple = Tuple { client: peer(1, 1001), server: peer(2, 80), transport: Transport::Tcp };
    let (mut flow, mut transaction) = (Flow::new(tuple, Some(App::Http), &mut site), Transaction::new());
    let mut desk = Desk { rules: &rules, site: &mut site, now_ms: 0 };
    let mut feed = |text: &str| {
        flow.feed(&mut transaction, Direction::ToClient, Buffer::FileData, text.as_bytes(), &mut desk);
        flow.inspect(&mut transaction, Direction::ToClient, &mut desk);
        flow.alerts().len()
    };
    assert_eq!(feed("a needle"), 0);
    assert_eq!(feed(&"-".repeat(100)), 0);
    assert_eq!(feed("another needle"), 1);
    assert_eq!(feed("another needle"), 0);
}

/// Numbers of rules that match a response with a body, in pieces of a size; the body is fed with the stream or beside it.
fn watched(set: &Arc<RuleSet>, body: &str, size: usize, is_one_pass: bool) -> BTreeSet<u32> {
    let head = |line: &str| Some(flow::Head { line: line.as_bytes().into(), fields: (*b"Host: a\r\n").into() });
    let flow = flow::Flow { protocol: flow::Protocol::Http, ..flow::Flow::default() };
    let (request, response) = (head("GET / HTTP/1.1"), head("HTTP/1.1 200 OK"));
    let watched = flow::Watched { request, response, ..flow::Watched::default() };
    let mut watch = Watch::new(set.clone(), &flow, &watched).expect("HTTP has rules");
    let part = watch.open(None);
    for piece in body.as_bytes().chunks(size) {
        if is_one_pass {
            watch.raw_content(part, piece, true);
        } else {
            watch.raw(piece);
            watch.content(part, piece, true);
        }
    }
    watch.close(part);
    watch.end();
    watch.alerts().iter().map(|alert| set.rules()[alert.rule as usize].sid).collect()
}

#[test]
fn a_body_is_a_stream_a_file_and_a_body_in_one_pass() {
    let rules = set(
        r#"alert tcp any any -> any any (content:"over|0d 0a 0d 0a|the hills"; sid:1;)
alert http any any -> any any (flow:to_client; file.data; content:"hills and"; content:!"stars"; sid:2;)
alert http any any -> any any (http.response_body; content:"FAR AWAY"; nocase; sid:3;)
alert http any any -> any any (http.response_body; to_sha256; content:"|1c 05 15 e0|"; startswith; sid:4;)
alert http any any -> any any (file.data; content:"hills and"; http.response_body; content:"away"; endswith; sid:5;)
alert http any any -> any any (flow:to_server; file.data; content:"hills and"; sid:6;)
alert tcp any any -> any any (content:"hills"; content:"seas"; distance:0; sid:7;)"#,
        &[],
    );
    assert!(rules.problems().is_empty(), "{:?}", rules.problems());
    let rules = Arc::new(rules);
    for size in [1, 3, 100] {
        for is_one_pass in [true, false] {
            let found = watched(&rules, "over\r\n\r\nthe hills and far away", size, is_one_pass);
            assert_eq!(found, BTreeSet::from([1, 2, 3, 4, 5]), "{size} {is_one_pass}");
        }
    }
}

#[test]
fn a_rule_that_no_text_selects_counts_from_when_its_protocol_is_known() {
    let rules = r#"alert http any any -> any any (http.stat_code; bsize:3; sid:1;)
        alert http any any -> any any (http.stat_code; bsize:4; sid:2;)
        alert http any any -> any any (http.stat_code; bsize:3; file.data; bsize:2; sid:3;)
        alert http any any -> any any (http.stat_code; bsize:3; http.request_body; bsize:2; sid:4;)
        alert smtp any any -> any any (file.data; bsize:2; sid:5;)
        alert tcp any any -> any any (pcre:"/^GET/"; sid:6;)"#;
    let set = set(rules, &[]);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    // The first request is cut, so that rules have been tried on its packets before it is known to be one.
    let capture =
        conversation(80, &["GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], 2);
    let numbers: Vec<u32> = counts(&set, &capture).into_keys().collect();
    assert_eq!(numbers, [1, 3, 6]);
}

#[test]
fn a_url_in_a_query_is_not_the_host_of_its_request() {
    let rules = r#"alert http any any -> any any (http.host; content:"evil.test"; sid:1;)
        alert http any any -> any any (http.host; content:"good.test"; bsize:9; sid:2;)"#;
    for (target, wanted) in [("/a?u=http://evil.test/x", 2), ("/http://evil.test/", 2), ("http://evil.test/a", 1)] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: Good.test\r\n\r\n");
        expect(rules, &conversation(80, &[&request, "HTTP/1.1 204 No\r\n\r\n"], 1400), &[(wanted, 1)]);
    }
}

#[test]
fn an_expression_whose_literals_are_absent_does_not_match() {
    let long = format!("<p>{}</p>\nSome\tLETTERS here</p>", "a line of text. ".repeat(40));
    let page = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let request = "GET / HTTP/1.1\r\nHost: Host.test\r\n\r\n";
    let rules = r#"
        alert http any any -> any any (flow:to_client; file.data; content:"<p>"; pcre:"/some\sletters? h/i"; sid:1;)
        alert http any any -> any any (flow:to_client; file.data; content:"<p>"; pcre:"/some\sletters? h/"; sid:2;)
        alert http any any -> any any (flow:to_client; file.data; content:"<p>"; pcre:"/absent letters?/i"; sid:3;)
        alert http any any -> any any (flow:to_client; file.data; content:"<p>"; pcre:!"/absent letters?/i"; sid:4;)
        alert http any any -> any any (flow:to_client; file.data; content:"Some"; pcre:"/letters/iR"; sid:5;)
        alert http any any -> any any (flow:to_client; file.data; content:"LETTERS"; pcre:"/letters/iR"; sid:6;)"#;
    for body in [&long[..], &long[600..]] {
        let wanted: &[(u32, u32)] = if body.contains("<p>") { &[(1, 1), (4, 1), (5, 1)] } else { &[(5, 1)] };
        expect(rules, &conversation(80, &[request, &page(body)], 1400), wanted);
    }
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    files.sort();
    files
}

#[test]
fn nearly_all_rules_of_public_sets_load() {
    let Some(sets) = pack("ids-rules") else { return };
    for name in ["et-open-2020", "snort3-community"] {
        let mut loader = Loader::new(Limits::default());
        for path in files(&sets.join(name), ".rules") {
            loader.file(&path.to_string_lossy(), &fs::read(&path).expect("a file"));
        }
        let set = loader.finish();
        let (census, refused) = (set.census(), set.census().refused.values().sum::<usize>());
        println!("{name}: {census:?}");
        assert!(census.rules > 500 && refused * 1000 <= census.rules, "{refused} of {} rules", census.rules);
        let is_snort3 = name.starts_with("snort3");
        assert!(
            if is_snort3 { census.snort3 * 10 > census.rules * 9 } else { census.snort3 == 0 },
            "{}",
            census.snort3
        );
    }
}

/// Suricata's own tests that must pass; it only rises.
const PASSING_MIN: usize = 216;

/// Tests of what Suricata alone has.
const OUT_OF_SCOPE: [(&str, &str); 3] = [
    ("bug-6109-reject-policy-ids", "a policy for streams without a beginning"),
    ("bug-7725-01", "packets of ICMP"),
    ("bug-8021-alert-max-verdict-01", "a setting of how many alerts a packet has"),
];

#[test]
fn suricatas_own_tests_pass() {
    let Some(tests) = pack("ids-suricata-verify") else { return };
    let mut results: BTreeMap<&str, usize> = BTreeMap::new();
    let mut folders = vec![tests.join("suricata-verify/tests")];
    while let Some(folder) = folders.pop() {
        folders.extend(
            fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()).filter(|path| path.is_dir()),
        );
        if let Ok(test) = fs::read_to_string(folder.join("test.yaml")) {
            let result = verify(&folder, &test);
            let kind =
                ["pass", "fail", "out of scope"].into_iter().find(|kind| result.starts_with(kind)).unwrap_or("fail");
            println!("{}: {result}", folder.strip_prefix(&tests).unwrap_or(&folder).display());
            *results.entry(kind).or_default() += 1;
        }
    }
    println!("{results:?}");
    assert!(results["pass"] >= PASSING_MIN, "{results:?}");
}

/// Stands for all rules.
const EVERY: u32 = u32::MAX;

fn verify(folder: &Path, test: &str) -> String {
    if let Some((_, reason)) = OUT_OF_SCOPE.iter().find(|(name, _)| folder.ends_with(name)) {
        return format!("out of scope: {reason}");
    }
    let wanted = match checks(test) {
        Ok(wanted) if wanted.is_empty() => return "out of scope: no check of alerts".into(),
        Ok(wanted) => wanted,
        Err(key) => return format!("out of scope: a check of {key}"),
    };
    let named = test.lines().find_map(|line| line.strip_prefix("pcap:"));
    let capture = named
        .map(|name| folder.join(name.trim()))
        .or_else(|| files(folder, "").into_iter().find(|path| path.to_string_lossy().contains(".pcap")));
    let Some(capture) = capture.and_then(|path| fs::read(path).ok()) else { return "out of scope: no capture".into() };
    let mut paths = files(folder, ".rules");
    if paths.is_empty() {
        paths = folder.parent().map(|parent| files(parent, ".rules")).unwrap_or_default();
    }
    let mut loader = Loader::new(Limits::default());
    for path in files(folder, "").into_iter().filter(|path| path.to_string_lossy().contains("list")) {
        let name = path.file_name().expect("a name").to_string_lossy();
        loader.data_file(&name, fs::read(&path).unwrap_or_default());
    }
    for path in paths {
        loader.file(&path.to_string_lossy(), &fs::read(&path).unwrap_or_default());
    }
    let set = loader.finish();
    let idle: Vec<(u32, &str)> =
        set.rules().iter().filter_map(|rule| Some((rule.sid, rule.idle.as_deref()?))).collect();
    if let Some((sid, keyword)) = idle.iter().find(|(sid, _)| wanted.get(sid).is_some_and(|count| *count > 0)) {
        return format!("out of scope: {keyword} in rule {sid}");
    }
    let Some(seen) = capture::alerts(&set, &capture) else { return "out of scope: no capture".into() };
    let mut counts = Counts::new();
    seen.iter().for_each(|seen| *counts.entry(set.rules()[seen.rule].sid).or_default() += 1);
    counts.insert(EVERY, u32::try_from(seen.len()).expect("few alerts"));
    let differs =
        |(sid, count): (&u32, &u32)| (counts.get(sid).copied().unwrap_or(0) != *count).then_some((*sid, *count));
    match wanted.iter().find_map(differs) {
        Some((sid, count)) => format!("fail: rule {sid} has {:?} alerts for {count}", counts.get(&sid)),
        None => "pass".into(),
    }
}

/// The counts of alerts that a test asks for, of the newest version; a key that is not understood is an error.
fn checks(test: &str) -> Result<Counts, String> {
    let mut counts = Counts::new();
    for block in test.split("- filter:").skip(1) {
        let fields: Vec<(&str, &str)> = block.lines().filter_map(|line| line.trim().split_once(": ")).collect();
        let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|(_, value)| value.trim());
        if field("event_type") != Some("alert") || field("lt-version").is_some() {
            continue;
        }
        let Some(count) = field("count").and_then(|count| count.parse::<u32>().ok()) else {
            return Err("a number".into());
        };
        let is_of_all = fields.iter().all(|(key, _)| ["event_type", "count", "min-version"].contains(key));
        match field("alert.signature_id").or(field("signature_id")).map(str::parse) {
            Some(Ok(sid)) => *counts.entry(sid).or_default() += count,
            None if is_of_all => counts.extend([(EVERY, count)]),
            _ => return Err("alerts without a number".into()),
        }
    }
    Ok(counts)
}
