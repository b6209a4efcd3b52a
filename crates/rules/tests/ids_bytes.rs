//! Tests of numbers and places in bytes and of derived buffers, as Suricata 7.0.10 has them.

use crate::ids::{conversation, conversation_bytes, counts, set};

const BODY: &[u8] = b"\x00\x05abcde|len=0012;hex=1f;oct=017|\xff\xfe\x01\x02\x03\x04|AAAABBBBCCCC tail";

/// Options of rules that match it.
const MATCHING: &[&str] = &[
    r#"content:"|00 05|"; byte_jump:2,0; content:"|7c|"; within:1;"#,
    r#"byte_extract:2,0,n; content:"|7c|"; offset:n; depth:4;"#,
    r#"content:"len="; byte_test:4,=,12,0,relative,string,dec;"#,
    r#"content:"len="; byte_test:4,=,10,0,relative,string,oct;"#,
    r#"content:"hex="; byte_test:2,=,31,0,relative,string,hex;"#,
    r#"content:"hex="; byte_extract:2,0,h,relative,string,hex; byte_test:1,<,h,0;"#,
    r#"content:"oct="; byte_test:3,=,15,0,relative,string,oct;"#,
    r#"content:"017|7c|"; byte_test:2,=,0xfffe,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,=,0xfeff,0,relative,little;"#,
    r#"content:"017|7c|"; byte_test:2,&,0x8000,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,^,0x8000,0,relative;"#,
    r#"content:"017|7c|"; byte_test:2,!&,1,0,relative;"#,
    r#"content:"017|7c|"; byte_test:1,=,0x0f,0,relative,bitmask 0xf0;"#,
    r#"byte_math:bytes 2, offset 0, oper +, rvalue 2, result r; content:"|7c|"; offset:r; depth:1;"#,
    r#"byte_math:bytes 2, offset 0, oper -, rvalue 3, result r; isdataat:r,relative;"#,
    r#"byte_math:bytes 2, offset 0, oper -, rvalue 9, result r; content:"a";"#,
    r#"content:"len="; byte_math:bytes 4, offset 0, oper +, rvalue 1, result r, relative, string dec; byte_test:1,<,r,0;"#,
    r#"content:"len="; byte_math:bytes 4, offset 0, oper +, rvalue 1, result r, relative, string dec; content:"hex"; distance:1; within:3;"#,
    r#"content:"len="; byte_extract:4,0,x,relative,string,dec; content:"hex"; distance:1; within:3;"#,
    r#"content:"tail"; isdataat:!1,relative;"#,
    r#"content:"tai"; isdataat:1,relative;"#,
    r#"content:"tail"; isdataat:0,relative;"#,
    r#"isdataat:!60;"#,
    r#"content:"|7c|AAAA"; byte_jump:1,-9,relative,from_beginning; content:"e|7c|";"#,
    r#"byte_jump:2,0,from_end,post_offset -9; content:"tail"; within:4;"#,
    r#"byte_jump:2,0,from_end,post_offset -10; content:" tail"; distance:0; within:5;"#,
    r#"content:"BBBB"; byte_test:4,>,1000,-8,relative;"#,
    r#"content:"BBBB"; byte_test:4,=,0x41414141,-8,relative;"#,
    r#"content:"AAAA"; content:"CCCC"; distance:4; within:4;"#,
    r#"content:"CCCC"; content:"AAAA"; distance:-12; within:4;"#,
    r#"content:"AAAA"; content:!"CCCC"; within:7;"#,
    r#"content:"tail"; endswith;"#,
    r#"content:"|00 05|abc"; startswith;"#,
    r#"content:"len="; byte_extract:4,0,x,relative,string,dec,multiplier 2; content:"AAAA"; offset:x;"#,
    r#"content:"len="; byte_test:0,=,12,0,relative,string,dec;"#,
    r#"content:"len="; byte_test:8,=,12,0,relative,string,dec;"#,
    r#"content:"hex="; byte_test:5,=,31,0,relative,string,hex;"#,
    r#"byte_extract:1,1,n; content:"abcde"; content:"|7c|"; within:n;"#,
    r#"byte_extract:1,1,n; content:"ab"; content:"e|7c|"; within:n;"#,
    r#"byte_extract:1,1,n; content:"ab"; content:"|7c|l"; within:n;"#,
    r#"byte_extract:1,1,n; byte_test:1,>,n,n;"#,
    r#"pcre:"/len=(\d+)/"; byte_test:1,=,0x3b,0,relative;"#,
    r#"content:"len="; pcre:"/^\d+\x3b/R"; content:"hex"; within:3;"#,
    r#"content:"len="; base64_decode:bytes 4,relative; base64_data; content:"|d3|";"#,
    r#"byte_test:2,=,5,0; byte_test:2,!=,6,0;"#,
    r#"byte_test:2,<=,5,0; byte_test:2,>=,5,0;"#,
    r#"content:"len="; byte_jump:4,0,relative,string,dec; content:"17"; within:4;"#,
];

/// Options of rules that do not.
const OTHERS: &[&str] = &[
    r#"byte_extract:2,0,n; content:"e|7c|len"; distance:n; within:6;"#,
    r#"byte_math:bytes 2, offset 0, oper *, rvalue 2, result r; byte_test:1,=,r,0;"#,
    r#"byte_math:bytes 2, offset 0, oper <<, rvalue 1, result r; content:"len="; offset:r; depth:4;"#,
    r#"byte_math:bytes 1, offset 0, oper /, rvalue 0, result r; content:"a";"#,
    r#"content:"tai"; isdataat:!1,relative;"#,
    r#"isdataat:56;"#,
    r#"isdataat:57;"#,
    r#"isdataat:58;"#,
    r#"isdataat:59;"#,
    r#"content:"tail"; byte_jump:1,-4,relative; content:"x";"#,
    r#"byte_jump:2,0,align; content:"e|7c|"; distance:-2; within:2;"#,
    r#"byte_jump:2,0,align; content:"en="; distance:0; within:5;"#,
    r#"content:"tail"; byte_test:1,=,0,0,relative;"#,
    r#"content:"AAAA"; content:"CCCC"; distance:5;"#,
    r#"content:"CCCC"; content:"AAAA"; distance:-11; within:4;"#,
    r#"content:"AAAA"; content:!"CCCC"; distance:4; within:4;"#,
    r#"content:"abc"; startswith;"#,
    r#"content:!"tail"; endswith; content:"a";"#,
    r#"byte_extract:2,0,n,align 4; content:"de"; offset:n; depth:2;"#,
    r#"byte_extract:2,0,n,align 4; content:"|7c|"; offset:n; depth:1;"#,
    r#"byte_extract:1,1,n; byte_jump:1,n,relative; content:"x";"#,
    r#"byte_math:bytes 2, offset 0, oper +, rvalue 1, result r, bitmask 0x0004; byte_test:1,=,r,1;"#,
    r#"byte_test:2,!=,5,0;"#,
    r#"content:"hex="; byte_jump:2,0,relative,string,hex; content:"AAAA"; distance:-10;"#,
];

/// A request and its response.
const EXCHANGE: [&str; 2] = [
    "GET /Ab%20c/Long+path?q=aGVsbG8= HTTP/1.1\r\nHost: WWW.Shop.example.co.uk\r\nUser-Agent:  Agent  One\tTwo \r\n\
        X-Hex: abc\r\nReferer: http://a.test/x;y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nServer: Srv\r\n\r\nHello  World",
];

/// Options of rules that match them.
const HTTP_MATCHING: &[&str] = &[
    r#"http.uri; to_lowercase; content:"/ab c/long"; startswith;"#,
    r#"http.uri; to_uppercase; content:"AGVSBG8="; endswith;"#,
    r#"http.user_agent; compress_whitespace; content:"Agent One"; startswith;"#,
    r#"http.user_agent; compress_whitespace; bsize:13;"#,
    r#"http.user_agent; strip_whitespace; content:"AgentOneTwo"; startswith; endswith; bsize:11;"#,
    r#"http.user_agent; bsize:14;"#,
    r#"http.host; dotprefix; content:".example.co.uk"; endswith;"#,
    r#"http.host; dotprefix; content:".www.shop.example.co.uk"; startswith; endswith;"#,
    r#"http.host; content:"www.shop.example.co.uk"; startswith; endswith; bsize:22;"#,
    r#"http.host; content:!"com"; endswith;"#,
    r#"http.uri; to_sha256; bsize:32;"#,
    r#"http.uri; to_sha1; bsize:20;"#,
    r#"http.uri; to_md5; bsize:16;"#,
    r#"http.user_agent; xor:"0d0e"; content:"L"; startswith;"#,
    r#"http.uri.raw; url_decode; content:"/Ab c/Long path"; startswith;"#,
    r#"http.uri; pcrexform:"q=(.*)$"; content:"aGVsbG8="; startswith; endswith;"#,
    r#"http.uri; pcrexform:"q=(.*)$"; bsize:8;"#,
    r#"http.uri; pcrexform:"none(.*)$"; content:"/Ab"; startswith;"#,
    r#"http.uri; bsize:10<>40;"#,
    r#"http.uri; bsize:<30;"#,
    r#"http.uri; bsize:!5;"#,
    r#"http.header; header_lowercase; content:"x-hex: abc";"#,
    r#"http.header; content:"User-Agent: Agent";"#,
    r#"http.request_header; content:"X-Hex: abc"; startswith; endswith;"#,
    r#"http.request_header; content:"Host: "; startswith; content:"uk"; endswith;"#,
    r#"http.request_header; to_lowercase; content:"x-hex: abc"; startswith; bsize:10;"#,
    r#"http.response_header; content:"Server: Srv"; bsize:11;"#,
    r#"http.referer; content:"http://a.test/x\;y"; startswith; endswith;"#,
    r#"file.data; compress_whitespace; content:"Hello World"; bsize:11;"#,
    r#"file.data; strip_whitespace; to_lowercase; content:"helloworld"; startswith; endswith;"#,
    r#"file.data; to_lowercase; strip_whitespace; content:"helloworld"; isdataat:!1,relative;"#,
    r#"file.data; content:"Hello"; startswith; content:"World"; distance:2; within:5; endswith;"#,
    r#"file.data; content:"World"; content:"Hello"; distance:-12; within:5;"#,
    r#"file.data; content:"Hello"; isdataat:!8,relative; isdataat:7,relative;"#,
    r#"http.uri; content:"q="; base64_decode:relative; base64_data; content:"hello";"#,
    r#"http.uri; content:"q="; base64_decode:bytes 4,relative; base64_data; content:"hel"; bsize:3;"#,
    r#"http.uri; content:"Long"; depth:10;"#,
    r#"http.uri; content:"Long"; offset:6; depth:4;"#,
    r#"http.method; content:"GET"; http.uri; content:"c/"; content:"Long"; within:4;"#,
    r#"http.header_names; content:"|0d 0a|User-Agent|0d 0a|X-Hex|0d 0a|";"#,
    r#"http.header_names; content:!"Cookie";"#,
    r#"http.start; content:"GET /Ab%20c"; startswith; content:"|0d 0a 0d 0a|"; endswith;"#,
    r#"http.request_line; content:"HTTP/1.1"; endswith;"#,
];

/// Options of rules that do not.
const HTTP_OTHERS: &[&str] = &[
    r#"http.user_agent; bsize:15;"#,
    r#"http.host; content:!"www"; startswith;"#,
    r#"http.host; content:!"uk"; endswith;"#,
    r#"http.uri; to_md5; content:"|00|";"#,
    r#"http.uri; bsize:>=29;"#,
    r#"http.uri; bsize:28<>30;"#,
    r#"http.uri; bsize:29<>31;"#,
    r#"http.uri; bsize:29;"#,
    r#"urilen:29;"#,
    r#"urilen:31,raw;"#,
    r#"urilen:30<>32,raw;"#,
    r#"http.header; content:"User-Agent:  Agent";"#,
    r#"http.uri; content:"Long"; offset:7; depth:4;"#,
    r#"http.content_type; content:!"x";"#,
];

/// Compares which rules match.
fn compare(head: &str, capture: &[u8], matching: &[&str], others: &[&str]) {
    let all = matching.iter().map(|options| (options, 1)).chain(others.iter().map(|options| (options, 0)));
    let mut different = Vec::new();
    for (options, wanted) in all {
        let set = set(&format!("alert {head} any any -> any any ({options} sid:1;)"), &[]);
        assert!(set.problems().is_empty(), "{options}: {:?}", set.problems());
        if counts(&set, capture).len() != wanted {
            different.push((wanted, options));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn numbers_and_places_are_those_of_suricata() {
    compare("tcp", &conversation_bytes(9999, &[BODY], 1400), MATCHING, OTHERS);
}

#[test]
fn digits_are_read_as_by_strtoull_and_jumps_begin_behind_them() {
    let matching = [
        r#"content:"N1"; byte_jump:2,-1,relative,string,dec; content:"b"; within:1;"#,
        r#"content:"N"; byte_jump:2,0,relative,string,dec; content:"c"; within:1;"#,
        r#"content:"N"; byte_jump:2,0,relative,string,dec; content:"d"; within:1;"#,
        r#"content:"M"; byte_jump:4,0,relative,string,hex; content:"g"; within:1;"#,
        r#"content:"M"; byte_jump:4,0,relative,string,dec; content:"x"; within:1;"#,
        r#"content:"N1"; byte_jump:1,-1,relative,string,dec,post_offset -9; content:"N1"; within:2;"#,
        r#"content:"N"; byte_test:2,=,-5,0,relative,string,dec;"#,
        r#"content:"N"; byte_test:2,>,100,0,relative,string,dec;"#,
    ];
    let others = [r#"content:"N"; byte_jump:2,0,relative,string,dec; content:"|7c|"; within:1;"#];
    compare("tcp", &conversation(9999, &["N1abc|N-5x|N+2abd|M0x1|ghi"], 1400), &matching, &others);
}

/// A request and a response whose lines are unusual, and rules that match them.
const LINES: [&str; 2] = [
    "POST /a/b/.. JUNK\r\nHost:\r\nnocolon\r\nContent-Length: 4x\r\nContent-Length: 4x\r\n\r\nbody",
    "HTTP/1.1  200\t OK \r\nContent-Length: 2\r\n\r\nok",
];
const LINES_MATCHING: &[&str] = &[
    r#"http.uri; content:"/a"; bsize:2;"#,
    r#"http.uri.raw; content:"/a/b/.."; bsize:7;"#,
    r#"flow:to_server; http.protocol; content:"JUNK"; bsize:4;"#,
    r#"http.stat_code; content:"200"; bsize:3;"#,
    r#"http.stat_msg; content:"OK"; bsize:2;"#,
    r#"http.request_header; content:": nocolon"; bsize:9;"#,
    r#"http.content_len; bsize:2;"#,
    r#"http.start; content:"JUNK|0d 0a|Host|3a| |0d 0a 3a| nocolon|0d 0a|Content-Length|3a| 4x|0d 0a 0d 0a|"; endswith;"#,
    r#"http.request_body; content:"body"; bsize:4;"#,
];

/// The same of a body in chunks with a trailer, and of a request without a protocol.
const CHUNKS: [&str; 2] = [
    "POST http://u@Host.Test:80/p HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nTrail: er\r\n\r\n",
    "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
];
const CHUNKS_MATCHING: &[&str] = &[
    r#"http.host.raw; content:"host.test"; bsize:9;"#,
    r#"http.header; content:"chunked|0d 0a|Trail|3a| er|0d 0a|"; endswith;"#,
    r#"http.header.raw; content:"chunked"; content:"Trail"; distance:0;"#,
    r#"http.header_names; content:"|0d 0a|Transfer-Encoding|0d 0a|Trail|0d 0a 0d 0a|"; bsize:30;"#,
    r#"http.request_header; content:"Trail|3a| er"; bsize:9;"#,
];

#[test]
fn unusual_messages_are_read_as_by_suricata() {
    let others = [r#"http.host; bsize:0;"#, r#"http.stat_msg; content:" ";"#];
    compare("http", &conversation(80, &LINES, 1400), LINES_MATCHING, &others);
    let others = [r#"http.stat_msg; bsize:0;"#, r#"http.request_body; content:"Trail";"#];
    compare("http", &conversation(80, &CHUNKS, 1400), CHUNKS_MATCHING, &others);
    compare("http", &conversation(80, &CHUNKS, 1), CHUNKS_MATCHING, &others);
    let returns =
        ["GET /r HTTP/1.1\r\nX: y\rZ: z\rContent-Length: 1\r\n\r\nb", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"];
    let matching = [
        r#"http.request_header; content:"X: y|0d|Z: z"; bsize:9;"#,
        r#"http.header_names; content:"|0d 0a|X|0d 0a|Content-Length|0d 0a 0d 0a|"; bsize:23;"#,
        r#"http.request_body; content:"b"; bsize:1;"#,
    ];
    compare(
        "http",
        &conversation(80, &returns, 1400),
        &matching,
        &[r#"http.request_header; content:"Z: z"; startswith;"#],
    );
    let old = ["GET /a\r\n", "<html>"];
    let matching = [r#"http.uri; bsize:2;"#, r#"http.start; content:"GET /a|0d 0a|"; bsize:8;"#];
    compare("http", &conversation(80, &old, 1400), &matching, &[r#"http.protocol; bsize:0;"#]);
}

#[test]
fn a_response_before_the_last_one_has_its_first_line() {
    let turns = [
        "POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "b",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ];
    let matching = [
        r#"http.stat_code; content:"100"; bsize:3;"#,
        r#"http.stat_code; content:"200"; bsize:3;"#,
        r#"http.stat_msg; content:"Continue"; bsize:8;"#,
        r#"http.stat_msg; content:"OK"; bsize:2;"#,
        r#"http.response_line; content:"100 Continue"; endswith;"#,
        r#"http.request_body; content:"b"; bsize:1;"#,
    ];
    compare("http", &conversation(80, &turns, 1400), &matching, &[]);
}

#[test]
fn handshakes_have_the_keywords_of_suricata() {
    let names = "\x00\x00\x00\x0b\x00\x09\x00\x00\x06x.test";
    let (client, server) = ("r".repeat(32), "s".repeat(32));
    let hello =
        format!("\x16\x03\x01\x00\x3e\x01\x00\x00\x3a\x03\x03{client}\x00\x00\x02\x13\x01\x01\x00\x00\x0f{names}");
    let answer = format!("\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x02{server}\x00\x00\x2f\x00")
        + "\x16\x03\x03\x00\x11\x0b\x00\x00\x0d\x00\x00\x0a\x00\x00\x02ab\x00\x00\x02cd\x16\x03\x03\x00\x05\x0c\x00\x00\x01x";
    let matching = [
        "tls.version:1.2;",
        "tls.version:1.1;",
        "ssl_version:tls1.0, tls1.2;",
        "ssl_state:client_hello;",
        "ssl_state:server_hello|client_hello;",
        "ssl_state:server_keyx;",
        "tls.cert_chain_len:2;",
        "tls.cert_chain_len:>1;",
        r#"tls.random; content:"rrrr"; bsize:32;"#,
        r#"tls.random; content:"ssss"; bsize:32;"#,
        r#"tls.random_time; content:"rrrr"; bsize:4;"#,
        r#"tls.random_bytes; content:"rrrr"; bsize:28;"#,
        r#"tls.sni; content:"x.test"; tls_store;"#,
    ];
    let others =
        ["tls.version:1.3;", "ssl_version:sslv3;", "tls.cert_chain_len:>2;", "tls_cert_valid;", "tls_cert_expired;"];
    compare("tls", &conversation(443, &[&hello, &answer], 1400), &matching, &others);
}

#[test]
fn derived_buffers_are_those_of_suricata() {
    compare("http", &conversation(80, &EXCHANGE, 1400), HTTP_MATCHING, HTTP_OTHERS);
}

#[test]
fn a_text_that_its_transform_leaves_nowhere_is_an_error() {
    for options in [
        r#"http.uri; to_lowercase; content:"/Ab"; startswith;"#,
        r#"http.uri; to_uppercase; content:"AB|63|";"#,
        r#"http.uri; to_lowercase; strip_whitespace; content:"/Ab";"#,
        r#"http.user_agent; strip_whitespace; content:"Agent One";"#,
        r#"http.user_agent; compress_whitespace; content:"Agent  One";"#,
        r#"http.uri; pcrexform:"q=.*$"; content:"/a";"#,
    ] {
        let set = set(&format!("alert http any any -> any any ({options} sid:1;)"), &[]);
        assert_eq!(set.problems().len(), 1, "{options}");
    }
    for options in [
        r#"http.uri; to_lowercase; content:"/Ab"; nocase;"#,
        r#"http.uri; to_lowercase; url_decode; content:"/Ab";"#,
        r#"http.uri; to_lowercase; content:!"/ab";"#,
        r#"http.user_agent; compress_whitespace; content:"Agent One";"#,
    ] {
        let set = set(&format!("alert http any any -> any any ({options} sid:1;)"), &[]);
        assert!(set.problems().is_empty(), "{options}: {:?}", set.problems());
    }
}
