//! The doors of HTTP: conversations as clients and origins have them.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::harness::nginx::Nginx;
use crate::harness::tls::Certificate;
use crate::harness::web::{Origin, response, zip_of};
use crate::harness::{Gateway, Wire, eicar, free_port};

/// A proxy that may go to this machine, at any port.
fn gateway(origin: &Origin, head: &str, more: &str) -> Gateway {
    let port = origin.address.port();
    Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n{head}\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
         destinations = [\"127.0.0.0/8\"]\nports = [80, {port}]\n{more}\n"
    ))
}

fn get(url: &str, fields: &str) -> String {
    let host = url.split('/').nth(2).unwrap();
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
}

/// Bytes that no two parts of are alike, and that do not compress.
fn noise(count: u32) -> Vec<u8> {
    (0..count).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect()
}

#[test]
fn a_request_goes_on_in_one_form_and_connections_are_kept() {
    let origin = Origin::start(|head, body| {
        let path = head.split(' ').nth(1).unwrap();
        Some(match path {
            "/empty" => b"HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n".to_vec(),
            "/same" => b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".to_vec(),
            "/head" => b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n".to_vec(),
            "/chunks" => {
                b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
                Trailer: X-Sum\r\n\r\n3;a=b\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"
                    .to_vec()
            }
            "/upload" => response("", body),
            _ => {
                response("Alt-Svc: h3=\":443\"\r\nConnection: x-own\r\nX-Own: 1\r\nAccept-Ranges: bytes\r\n", b"hello")
            }
        })
    });
    let gateway = gateway(&origin, "", "");
    let mut wire = gateway.connect();
    let answer = wire.ask(&get(
        &origin.url("/a?b=1"),
        "Proxy-Connection: keep-alive\r\nRange: bytes=3-\r\nAccept-Encoding: gzip, sdch\r\n",
    ));
    assert_eq!(answer.text(), "lo");
    let head = "HTTP/1.1 206 Partial Content\nAccept-Ranges: bytes\nVia: 1.1 proxy.test\nContent-Range: bytes 3-4/5\nContent-Length: 2\n";
    assert_eq!(answer.head, head);
    let expected = format!(
        "GET /a?b=1 HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: gzip\r\nVia: 1.1 proxy.test\r\n\r\n",
        origin.address
    );
    assert_eq!(origin.said(), [expected]);
    assert_eq!(wire.ask(&get(&origin.url("/empty"), "")).status(), "204");
    assert_eq!(wire.ask(&get(&origin.url("/same"), "")).status(), "304");
    let answer = wire.ask(&get(&origin.url("/head"), "").replace("GET", "HEAD"));
    assert!(answer.head.contains("Content-Length: 7\n"), "{answer:?}");
    let hints = wire.ask(&get(&origin.url("/chunks"), ""));
    assert!(hints.head.starts_with("HTTP/1.1 103 ") && hints.head.contains("Link: </a>"), "{hints:?}");
    let answer = wire.answer(false);
    assert_eq!((answer.text().as_str(), answer.is_whole), ("abc", true));
    assert_eq!(origin.said().len(), 1, "one connection for all of them");
    // A body goes over a connection of its own.
    let url = origin.url("/upload");
    wire.send(
        format!("POST {url} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").as_bytes(),
    );
    assert_eq!(wire.answer(false).status(), "100");
    wire.send(b"data");
    assert_eq!(wire.answer(false).text(), "data");
    wire.send(
        format!("PUT {url} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n")
            .as_bytes(),
    );
    assert_eq!(wire.answer(false).text(), "abc");
    wire.send(format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/chunks")).as_bytes());
    let answer = wire.answer(false);
    assert!(answer.head.contains("Connection: close\n") && answer.text() == "abc", "{answer:?}");
    let log = gateway.wait_for_log("status=204");
    for part in ["method=\"POST\"", "door=\"http\"", "action=\"pass\"", "client=127.0.0.1"] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn what_is_found_in_a_small_response_becomes_a_page_and_a_large_one_is_cut() {
    let clean = noise(3_000_000);
    let infected = [&clean[..], &zip_of(&eicar())].concat();
    let origin = Origin::start(move |head, _| {
        let tag = "ETag: \"1\"\r\n";
        Some(match head.split(' ').nth(1).unwrap() {
            "/eicar" => response(tag, &eicar()),
            "/clean" => response(tag, &clean),
            "/large" => response(tag, &infected),
            "/endless" => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", &infected[..]].concat(),
            _ => response("", b"small"),
        })
    });
    let gateway = gateway(&origin, "[resources]\nhead_window_bytes = 131072\n", "");
    let mut wire = gateway.connect();
    let answer = wire.ask(&get(&origin.url("/eicar"), ""));
    assert!(answer.status() == "403" && answer.text().contains("Eicar"), "{answer:?}");
    assert!(answer.head.contains("Cache-Control: no-store"), "{answer:?}");
    assert_eq!(wire.ask(&get(&origin.url("/x"), "")).text(), "small", "the connection goes on");
    let answer = wire.ask(&get(&origin.url("/clean"), ""));
    assert!(answer.is_whole && answer.body == noise(3_000_000), "{}", answer.body.len());
    for path in ["/large", "/endless"] {
        let answer = gateway.connect().ask(&get(&origin.url(path), ""));
        assert!(answer.status() == "200" && !answer.is_whole && answer.body.len() > 1_000_000, "{}", answer.body.len());
        let answer = gateway.connect().ask(&get(&origin.url(path), ""));
        assert!(answer.status() == "403" && answer.is_whole, "the second time there is a page: {}", answer.head);
    }
    let mut wire = gateway.connect();
    wire.send(format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/large?2")).as_bytes());
    let log = gateway.wait_for_log("action=\"cut\"");
    assert!(log.contains("action=\"block\""), "{log}");
}

/// Content in chunks.
fn chunked(content: &[u8]) -> Vec<u8> {
    let mut said = b"HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for piece in content.chunks(50_000) {
        said.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    said.extend(b"0\r\n\r\n");
    said
}

#[test]
fn a_part_of_an_object_is_cut_out_of_the_whole() {
    let clean = noise(3_000_000);
    let infected = [&clean[..], &zip_of(&eicar())].concat();
    let content = clean.clone();
    let origin = Origin::start(move |head, _| {
        assert!(!head.to_ascii_lowercase().contains("range: "), "{head}");
        let tag = "ETag: \"1\"\r\n";
        Some(match head.split([' ', '?']).nth(1).unwrap() {
            "/clean" => response(tag, &content),
            "/closed" => [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", &content[..50_000]].concat(),
            "/chunks" => chunked(&content[..50_000]),
            "/many" => chunked(&content),
            "/coded" => response("Content-Encoding: gzip\r\n", &coded("gzip", b"hello").unwrap()),
            "/none" => response("Accept-Ranges: none\r\n", b"hello"),
            _ => response(tag, &infected),
        })
    });
    let gateway = gateway(&origin, "[resources]\nhead_window_bytes = 131072\n", "");
    let mut wire = gateway.connect();
    let mut ask = |path: &str, fields: &str| wire.ask(&get(&origin.url(path), fields));
    for (path, length) in [("/clean", 3_000_000_usize), ("/closed", 50_000), ("/chunks", 50_000)] {
        for (range, start, end) in [
            ("0-", 0, length),
            ("0-0", 0, 1),
            ("1000-41999", 1000, 42_000),
            ("300-2900000", 300, length.min(2_900_001)),
            ("-10", length - 10, length),
        ] {
            let answer = ask(path, &format!("Range: bytes={range}\r\n"));
            assert!(answer.status() == "206" && answer.is_whole, "{path} {range} {}", answer.head);
            assert!(answer.body == clean[start..end], "{path} {range} {}", answer.body.len());
            let told = format!("Content-Range: bytes {start}-{}/{length}\n", end - 1);
            assert!(answer.head.contains(&told), "{path} {range} {}", answer.head);
        }
        let answer = ask(path, &format!("Range: bytes={length}-\r\n"));
        assert_eq!((answer.status(), answer.body.len()), ("416", 0), "{path}");
        assert!(answer.head.contains(&format!("Content-Range: bytes */{length}\n")), "{}", answer.head);
    }
    for (path, fields, status) in [
        ("/clean", "Range: bytes=0-9\r\nIf-Range: \"1\"\r\n", "206"),
        ("/clean", "Range: bytes=0-9\r\nIf-Range: \"2\"\r\n", "200"),
        ("/clean", "Range: bytes=0-9, 20-29\r\n", "200"),
        ("/many", "Range: bytes=0-9\r\n", "200"),
        ("/coded", "Range: bytes=0-9\r\n", "200"),
        ("/none", "Range: bytes=0-1\r\n", "200"),
    ] {
        let answer = ask(path, fields);
        assert!(answer.status() == status && answer.is_whole, "{path} {fields} {}", answer.head);
        assert!(status == "206" || !answer.head.contains("Content-Range"), "{path} {fields} {}", answer.head);
    }
    let answer = ask("/infected?1", "Range: bytes=0-9\r\n");
    assert!(
        answer.status() == "403" && answer.text().contains("Eicar"),
        "a clean part of what is infected: {answer:?}"
    );
    let answer = gateway.connect().ask(&get(&origin.url("/infected?2"), "Range: bytes=1000000-2000000\r\n"));
    assert!(answer.status() == "206" && !answer.is_whole, "{}", answer.head);
    assert!(answer.body.len() <= 1_000_001 - (16 << 10) && clean[1_000_000..].starts_with(&answer.body));
    for fields in ["Range: bytes=5-\r\n", ""] {
        let answer = gateway.connect().ask(&get(&origin.url("/infected?2"), fields));
        assert_eq!(answer.status(), "403", "it was broken off before: {}", answer.head);
    }
    let log = gateway.wait_for_log("action=\"cut\"");
    assert!(log.contains("status=206"), "{log}");
}

#[test]
fn an_object_is_not_fetched_for_a_client_that_has_gone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let (mut stream, mut piece) = (listener.accept().unwrap().0, [0; 4096]);
        _ = stream.read(&mut piece).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").unwrap();
        done.send("begun").unwrap();
        while stream.write_all(&piece).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
        done.send("ended").unwrap();
    });
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\nmode = \"reverse\"\n\
         address = \"127.0.0.1:0\"\nupstream = \"{address}\"\n"
    ));
    let mut wire = gateway.connect();
    wire.send(b"GET /a HTTP/1.1\r\nHost: a\r\nRange: bytes=90000000-\r\n\r\n");
    assert_eq!(wait.recv_timeout(Duration::from_secs(30)), Ok("begun"));
    drop(wire);
    assert_eq!(wait.recv_timeout(Duration::from_secs(30)), Ok("ended"));
}

#[test]
fn what_is_found_in_a_request_never_reaches_the_origin_whole() {
    let origin = Origin::start(|_, body| Some(response("", format!("{}", body.len()).as_bytes())));
    let gateway = gateway(&origin, "[resources]\nhead_window_bytes = 131072\n", "");
    let url = origin.url("/up");
    let post = |body: &[u8]| {
        let mut wire = gateway.connect();
        let head = format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut sender = Wire::new(wire.stream.try_clone().unwrap());
        thread::scope(|scope| {
            scope.spawn(|| _ = sender.try_send(&[head.as_bytes(), body].concat()));
            wire.answer(false)
        })
    };
    let answer = post(&eicar());
    assert!(answer.status() == "403" && answer.text().contains("Eicar"), "{answer:?}");
    assert!(origin.said().is_empty(), "nobody has heard of it");
    let clean = noise(3_000_000);
    assert_eq!(post(&clean).text(), "3000000");
    let infected = [&clean[..], &zip_of(&eicar())].concat();
    assert_eq!(post(&infected).status(), "403");
    assert!(origin.counts()[1] < infected.len(), "its end has not gone on");
}

/// Content in a coding, by a program that reads and writes it.
fn coded(coding: &str, content: &[u8]) -> Option<Vec<u8>> {
    let python =
        |code: &str| vec!["python3".into(), "-c".into(), format!("import sys,zlib\nd=sys.stdin.buffer.read()\n{code}")];
    let words: Vec<String> = match coding {
        "gzip" => vec!["gzip".into(), "-c".into()],
        "deflate" => python("sys.stdout.buffer.write(zlib.compress(d))"),
        "raw" => python("c=zlib.compressobj(9,8,-15);sys.stdout.buffer.write(c.compress(d)+c.flush())"),
        "br" => vec!["brotli".into(), "-c".into(), "-w".into(), "18".into()],
        _ => vec!["zstd".into(), "-c".into()],
    };
    let mut command = Command::new(&words[0]);
    let started = command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = started else {
        println!("skipped: {} is not installed", words[0]);
        return None;
    };
    child.stdin.take().unwrap().write_all(content).unwrap();
    Some(child.wait_with_output().unwrap().stdout)
}

#[test]
fn codings_are_undone_in_their_order_and_go_on_as_they_came() {
    let said: Arc<Mutex<Vec<u8>>> = Arc::default();
    let answer = said.clone();
    let origin = Origin::start(move |_, _| Some(answer.lock().unwrap().clone()));
    let gateway = gateway(&origin, "", "");
    let mut wire = gateway.connect();
    let mut ask = |names: &str, body: &[u8]| {
        *said.lock().unwrap() = response(&format!("Content-Encoding: {}\r\n", names.replace("raw", "deflate")), body);
        wire.ask(&get(&origin.url("/x"), ""))
    };
    let all = ["gzip", "deflate", "raw", "br", "zstd"];
    for first in all {
        let (Some(infected), Some(clean)) = (coded(first, &eicar()), coded(first, b"hello, hello, hello")) else {
            continue;
        };
        assert_eq!(ask(first, &infected).status(), "403", "{first}");
        let answer = ask(first, &clean);
        assert!(answer.status() == "200" && answer.body == clean, "{first} {answer:?}");
        for second in all {
            let (Some(infected), Some(clean)) = (coded(second, &infected), coded(second, &clean)) else { continue };
            let names = format!("{first},  {second}");
            assert_eq!(ask(&names, &infected).status(), "403", "{names}");
            let answer = ask(&names, &clean);
            let written = format!("Content-Encoding: {first}, {second}\n").replace("raw", "deflate");
            assert!(answer.body == clean && answer.head.contains(&written), "{names} {answer:?}");
        }
        assert_eq!(ask(first, b"hello, this is plain").status(), "403", "it does not begin as {first}");
    }
    let content = eicar();
    let members = [&content[..30], &content[30..]].map(|member| coded("gzip", member).unwrap()).concat();
    assert_eq!(ask("gzip", &members).status(), "403");
    for refused in ["compress", "gzip, lzma", "gzip;q=1", "gzip, gzip, gzip, gzip"] {
        assert_eq!(ask(refused, &members).status(), "502", "{refused}");
    }
}

#[test]
fn an_origin_that_answers_early_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    thread::spawn(move || {
        let (mut stream, mut piece) = (listener.accept().unwrap().0, [0; 4096]);
        stream.read_exact(&mut piece).unwrap();
        stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch").unwrap();
        // Nothing more is read.
        _ = wait.recv();
    });
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 131072\n[[listener]]\nprotocol = \"http\"\n\
         mode = \"reverse\"\naddress = \"127.0.0.1:0\"\nupstream = \"{address}\"\n"
    ));
    let mut wire = gateway.connect();
    let body = noise(20_000_000);
    let head = format!("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut sender = Wire::new(wire.stream.try_clone().unwrap());
    let answer = thread::scope(|scope| {
        scope.spawn(|| _ = sender.try_send(&[head.as_bytes(), &body].concat()));
        wire.answer(false)
    });
    assert!(answer.status() == "413" && answer.text() == "much", "{answer:?}");
    assert!(answer.head.contains("Connection: close"), "{answer:?}");
    drop(done);
}

#[test]
fn requests_that_lead_nowhere_are_answered_by_a_page() {
    let origin = Origin::start(|head, _| match head.split(' ').nth(1).unwrap() {
        "/part" => {
            Some(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n\r\nx".to_vec())
        }
        "/whole" => {
            Some(b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/1\r\nContent-Length: 1\r\n\r\nx".to_vec())
        }
        "/options" => Some(response(if head.contains("\r\nMax-Forwards: 2\r\n") { "X: counted\r\n" } else { "" }, b"")),
        "/coded" => Some(response("Content-Encoding: lzma\r\n", b"x")),
        "/two" => Some(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx".to_vec()),
        "/short" => Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nx".to_vec()),
        _ => None,
    });
    let gateway = gateway(&origin, "", "");
    let closed = free_port();
    let ask = |request: &str| gateway.connect().ask(request);
    for (path, status) in [("/part", "502"), ("/coded", "502"), ("/two", "502"), ("/short", "502"), ("/gone", "502")] {
        let answer = ask(&get(&origin.url(path), ""));
        assert_eq!(answer.status(), status, "{path} {answer:?}");
        assert!(answer.text().contains("The "), "{answer:?}");
    }
    for (request, status) in [
        (get(&format!("http://127.0.0.1:{closed}/"), ""), "403"),
        (get("http://127.0.0.1/", ""), "502"),
        (get("http://[::1]:80/", ""), "403"),
        (get("http://169.254.169.254/", ""), "403"),
        (get("http://no-such-name.invalid/", ""), "502"),
        (get(&origin.url("/x"), "Via: 1.0 a, 1.1 proxy.test\r\n"), "508"),
        (get(&origin.url("/x"), "Connection: Upgrade\r\nUpgrade: websocket\r\n").replace("GET", "PUT"), "400"),
        (get("https://o.test/", ""), "501"),
        (get("ftp://o.test/", ""), "501"),
        (get(&origin.url("/x"), "").replace("GET", "TRACE"), "405"),
        ("GET /x HTTP/1.1\r\nHost: o.test\r\n\r\n".into(), "400"),
        ("GET http://o%2etest/ HTTP/1.1\r\nHost: o.test\r\n\r\n".into(), "400"),
        ("GET http://o.test/ HTTP/1.1\nHost: o.test\r\n\r\n".into(), "400"),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n".into(), "403"),
        ("CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n".into(), "403"),
    ] {
        let answer = ask(&request);
        assert_eq!(answer.status(), status, "{request} {answer:?}");
    }
    let answer = ask(&get(&origin.url("/whole"), ""));
    assert!(answer.status() == "200" && answer.text() == "x" && !answer.head.contains("Content-Range"), "{answer:?}");
    let options =
        |left: u8| get(&origin.url("/options"), &format!("Max-Forwards: {left}\r\n")).replace("GET", "OPTIONS");
    let answer = ask(&options(0));
    assert!(answer.status() == "200" && answer.body.is_empty() && !answer.head.contains("Via"), "{answer:?}");
    assert!(ask(&options(3)).head.contains("X: counted\n"));
    let answer = ask(&get("http://169.254.169.254/", "").replace("GET", "HEAD"));
    assert!(answer.status() == "403" && answer.body.is_empty());
    // A port that may be asked for, and where our own door is.
    let port = free_port();
    let second =
        format!("connect_ports = [{port}]\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:{port}\"\n");
    let reaches = self::gateway(&origin, "", &second);
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]"] {
        let answer = reaches.connect().ask(&format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!(answer.status(), "403", "{host}");
    }
}

/// A handshake of a client that asks for this name.
fn hello(name: &str) -> Vec<u8> {
    let vector = |bytes: usize, content: &[u8]| [&(content.len() as u32).to_be_bytes()[4 - bytes..], content].concat();
    let list = vector(2, &[&[0][..], &vector(2, name.as_bytes())].concat());
    let extensions = vector(2, &[&[0, 0][..], &vector(2, &list)].concat());
    let body = [&[3, 3][..], &[7; 32], &[0], &vector(2, &[0x13, 1]), &vector(1, &[0]), &extensions].concat();
    [&[22, 3, 1][..], &vector(2, &[&[1][..], &vector(3, &body)].concat())].concat()
}

#[test]
fn a_tunnel_goes_to_the_host_and_what_its_handshake_names_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let stream = stream.unwrap();
                std::io::copy(&mut stream.try_clone().unwrap(), &mut stream.try_clone().unwrap())
            });
        }
    });
    let origin = Origin::start(|_, _| None);
    for (how, passes) in [("log", true), ("refuse", false)] {
        let settings = format!("connect_ports = [{port}]\nmismatched_names = \"{how}\"");
        let gateway = gateway(&origin, "", &settings);
        let tunnel = |said: &[u8]| {
            let mut wire = gateway.connect();
            let answer = wire.ask(&format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n"));
            assert!(answer.head.starts_with("HTTP/1.1 200 OK\n") && !answer.head.contains(':'), "{answer:?}");
            wire.send(said);
            _ = wire.stream.shutdown(std::net::Shutdown::Write);
            wire.rest()
        };
        let long = [&hello("localhost")[..], &noise(500_000)].concat();
        assert!(tunnel(&long) == long, "byte for byte, in both directions");
        gateway.wait_for_log("server_name=\"localhost\"");
        let other = hello("other.test");
        assert_eq!(tunnel(&other) == other, passes, "{how}");
        assert_eq!(tunnel(b"SSH-2.0-x\r\n") == b"SSH-2.0-x\r\n", passes, "{how}");
        let log = gateway.wait_for_log("server_name=\"other.test\"");
        assert!(log.contains("mismatch=true") && log.contains("mismatch=false"), "{log}");
        assert_eq!(log.contains("reason=\"the TLS handshake has another name\""), !passes, "{log}");
    }
}

#[test]
fn a_server_behind_is_told_its_own_name_and_the_client() {
    let origin = Origin::start(|_, _| Some(response("", &eicar())));
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\nmode = \"reverse\"\n\
         address = \"127.0.0.1:0\"\nupstream = \"{}\"\n",
        origin.address
    ));
    let answer = gateway.connect().ask("GET /a HTTP/1.1\r\nHost: www.test:8000\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n");
    assert_eq!(answer.status(), "403");
    let said = origin.said().concat();
    assert!(said.starts_with("GET /a HTTP/1.1\r\nHost: www.test:8000\r\nX-Forwarded-For: 127.0.0.1\r\n"), "{said}");
    let answer = gateway.connect().ask("CONNECT www.test:443 HTTP/1.1\r\nHost: www.test\r\n\r\n");
    assert_eq!(answer.status(), "403", "no tunnels from there");
    // The same over TLS.
    let certificate = Certificate::of("www.test");
    let folder = tempfile::tempdir().unwrap();
    certificate.store(folder.path(), "www");
    let at = folder.path().display();
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[tls.certificate]]\nchain = \"{at}/www.crt\"\nkey = \"{at}/www.key\"\n\
         [[listener]]\nprotocol = \"http\"\nmode = \"reverse\"\naddress = \"127.0.0.1:0\"\nupstream = \"{}\"\n\
         tls = \"implicit\"\n",
        origin.address
    ));
    let mut wire = gateway.connect().secure(certificate.client("www.test"));
    assert_eq!(wire.ask("GET /b HTTP/1.1\r\nHost: www.test\r\n\r\n").status(), "403");
    assert!(origin.said().concat().contains("X-Forwarded-Proto: https\r\n"));
    // And over HTTP/2.
    let url = format!("https://{}/c", gateway.address);
    let ran = Command::new("curl")
        .args(["-sk", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", &url])
        .output();
    assert_eq!(ran.unwrap().stdout, b"2 403");
    let said = origin.said().concat();
    let asked = said.split("GET /c ").nth(1).unwrap();
    assert!(asked.contains("X-Forwarded-Proto: https\r\n"), "{asked}");
}

#[test]
fn curl_gets_through_it_what_nginx_has() {
    let text = "some text of a page, and more of it\n".repeat(20_000);
    let large = noise(3_000_000);
    let infected = [&large[..], &zip_of(&eicar())].concat();
    let files: [(&str, &[u8]); 5] = [
        ("small", b"hello"),
        ("text.txt", text.as_bytes()),
        ("large", &large),
        ("eicar", &eicar()),
        ("infected", &infected),
    ];
    let Some(nginx) = Nginx::start(&files) else { return };
    let port = nginx.address.port();
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 131072\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [{port}]\nconnect_ports = [{port}]\n"
    ));
    let folder = tempfile::tempdir().unwrap();
    let curl = |words: &[&str], path: &str| {
        let out = folder.path().join("out");
        let mut command = Command::new("curl");
        command.args(["-sS", "-x", &format!("http://{}", gateway.address), "-w", "%{http_code}", "-o"]).arg(&out);
        let output = command.args(words).arg(format!("http://{}/{path}", nginx.address)).output().unwrap();
        let body = fs::read(&out).unwrap_or_default();
        _ = fs::remove_file(&out);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), body)
    };
    for (words, path, content) in [
        (&[][..], "small", &b"hello"[..]),
        (&["--compressed"], "text.txt", text.as_bytes()),
        (&["-r", "2-3"], "text.txt", &text.as_bytes()[2..4]),
        (&["-H", "Accept-Encoding: dcb, gzip;q=0"], "text.txt", text.as_bytes()),
        (&[], "large", &large),
        (&["--http1.0"], "large", &large),
        (&["-p"], "large", &large),
        (&["-d", "a=b"], "up", b"taken"),
        (&["-H", "Transfer-Encoding: chunked", "--data-binary", "x"], "up", b"taken"),
    ] {
        let (code, status, body) = curl(words, path);
        let wanted = if words.contains(&"-r") { "206" } else { "200" };
        assert_eq!((code, status.as_str()), (Some(0), wanted), "{words:?} {path}");
        assert!(body == content, "{words:?} {path}: {} bytes of {}", body.len(), content.len());
    }
    let (_, status, body) = curl(&["--compressed"], "eicar");
    assert!(status == "403" && String::from_utf8_lossy(&body).contains("Eicar"));
    let (code, status, body) = curl(&[], "infected");
    assert!(code == Some(18) && status == "200" && body.len() < infected.len(), "{code:?} {status} {}", body.len());
    assert_eq!(curl(&[], "infected").1, "403");
    let file = folder.path().join("up");
    fs::write(&file, eicar()).unwrap();
    let upload = format!("@{}", file.display());
    assert_eq!(curl(&["--data-binary", &upload], "up").1, "403");
}

/// A frame of WebSocket; of a client with a mask.
fn frame(first: u8, mask: Option<[u8; 4]>, content: &[u8]) -> Vec<u8> {
    let bit = if mask.is_some() { 0x80 } else { 0 };
    let length = match content.len() {
        length @ 0..126 => vec![bit | length as u8],
        length @ 126..0x1_0000 => [&[bit | 126][..], &(length as u16).to_be_bytes()].concat(),
        length => [&[bit | 127][..], &(length as u64).to_be_bytes()].concat(),
    };
    let key = mask.unwrap_or_default();
    let content = content.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    [vec![first], length, mask.map_or(Vec::new(), |mask| mask.to_vec()), content].concat()
}

/// The next frame: its first byte and its content.
fn next_frame(stream: &mut impl Read) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    let mut wide = vec![
        0;
        match head[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    ];
    stream.read_exact(&mut wide).ok()?;
    let length = wide.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let length = if wide.is_empty() { usize::from(head[1] & 0x7f) } else { length };
    let mut key = [0; 4];
    if head[1] & 0x80 != 0 {
        stream.read_exact(&mut key).ok()?;
    }
    let mut content = vec![0; length];
    stream.read_exact(&mut content).ok()?;
    content.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    Some((head[0], content))
}

#[test]
fn messages_of_websocket_are_inspected_in_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let memory = said.clone();
    // It sends back what it gets; for `eicar` the test file.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let memory = memory.clone();
            thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                memory.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                              Sec-WebSocket-Accept: x\r\n\r\n";
                stream.write_all(agreed.as_bytes()).unwrap();
                while let Some((first, content)) = next_frame(&mut stream) {
                    memory
                        .lock()
                        .unwrap()
                        .push(format!("{first:x} {}", String::from_utf8_lossy(&content[..content.len().min(99)])));
                    let answer = if content == b"eicar" { eicar() } else { content };
                    stream.write_all(&frame(first, None, &answer)).unwrap();
                }
            });
        }
    });
    let origin = Origin::start(|_, _| None);
    let settings = format!("connect_ports = [{}]", address.port());
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 131072\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [{}, {}]\n{settings}\n",
        address.port(),
        origin.address.port()
    ));
    let open = || {
        let mut wire = gateway.connect();
        let fields = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a2V5\r\nSec-WebSocket-Version: 13\r\n\
                      Sec-WebSocket-Extensions: permessage-deflate\r\n";
        let answer = wire.ask(&get(&format!("http://{address}/chat"), fields));
        assert!(answer.status() == "101" && answer.head.to_lowercase().contains("upgrade: websocket"), "{answer:?}");
        wire.stream
    };
    let key = Some([1, 2, 3, 4]);
    let mut stream = open();
    stream.write_all(&[frame(1, key, b"hel"), frame(0x89, key, b"there?"), frame(0x80, key, b"lo")].concat()).unwrap();
    assert_eq!(next_frame(&mut stream).unwrap(), (0x89, b"there?".to_vec()));
    assert_eq!(next_frame(&mut stream).unwrap(), (0x81, b"hello".to_vec()), "in one frame");
    let long = noise(1_000_000);
    let mut sender = stream.try_clone().unwrap();
    let sent = frame(0x82, key, &long);
    thread::spawn(move || sender.write_all(&sent));
    let mut content = Vec::new();
    loop {
        let (first, piece) = next_frame(&mut stream).unwrap_or_else(|| panic!("{}", gateway.log()));
        content.extend(piece);
        if first & 0x80 != 0 {
            break;
        }
    }
    assert!(content == long, "{}", content.len());
    stream.write_all(&frame(0x88, key, &[3, 0xe8])).unwrap();
    assert_eq!(next_frame(&mut stream).unwrap(), (0x88, vec![3, 0xe8]), "a farewell is answered");
    let refused = (0x88, vec![3, 0xf0]);
    for message in [eicar(), b"eicar".to_vec()] {
        let mut stream = open();
        stream.write_all(&frame(0x81, key, &message)).unwrap();
        assert_eq!(next_frame(&mut stream).unwrap(), refused);
        assert!(next_frame(&mut stream).is_none());
    }
    let mut stream = open();
    stream.write_all(&frame(0x81, None, b"without a mask")).unwrap();
    assert_eq!(next_frame(&mut stream).unwrap(), refused);
    let said = said.lock().unwrap();
    assert!(said.iter().all(|said| !said.contains("EICAR") && !said.contains("without a mask")), "{said:?}");
    assert!(!said[0].contains("Extensions") && said[0].contains("Upgrade: websocket\r\n"), "{said:?}");
    let log = gateway.wait_for_log("action=\"cut\"");
    assert!(log.contains("method=\"WEBSOCKET\""), "{log}");
}

/// Inspections that processes have begun, as the metrics say.
fn inspections(metrics: u16) -> u64 {
    let mut page = String::new();
    let mut stream = TcpStream::connect(("127.0.0.1", metrics)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    stream.read_to_string(&mut page).unwrap();
    let counts = page.lines().filter(|line| line.starts_with("sluice_process_inspections_total{"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn without_signatures_only_content_of_which_more_is_asked_is_inspected() {
    let origin = Origin::start(|_, body| Some(response("", if body.is_empty() { b"hello" } else { body })));
    let large = noise(2_000_000);
    for (signatures, more, wanted) in
        [("builtin = false", "", 0), ("builtin = false", "on_encrypted = \"reject\"", 4), ("builtin = true", "", 4)]
    {
        let metrics = free_port();
        let head = format!("[metrics]\naddress = \"127.0.0.1:{metrics}\"\n[database]\n{signatures}");
        let gateway = gateway(&origin, &head, more);
        let listener = gateway.addresses.iter().find(|address| address.port() != metrics).unwrap();
        let mut wire = Wire::connect(*listener);
        let url = origin.url("/x");
        // A response, and both directions of an upload, small and large.
        assert_eq!(wire.ask(&get(&url, "")).text(), "hello");
        let post = format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", large.len());
        wire.send(&[post.as_bytes(), &large].concat());
        let answer = wire.answer(false);
        assert!(answer.is_whole && answer.body == large, "{}", answer.body.len());
        assert_eq!(wire.ask(&get(&url, "")).text(), "hello");
        assert_eq!(inspections(metrics), wanted, "{signatures} {more}");
    }
}
