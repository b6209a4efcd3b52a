//! The ICAP door: with conversations as proxies have them, with c-icap's client, and behind Squid.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::thread;

use crate::harness::squid::Squid;
use crate::harness::web::{Origin, zip_of};
use crate::harness::{Gateway, Wire, base64, eicar};

fn gateway(more: &str) -> Gateway {
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n{more}\n[[listener]]\nprotocol = \"icap\"\naddress = \"127.0.0.1:0\"\n"
    ))
}

/// A request of RESPMOD about a response with this body.
fn respmod(fields: &str, body: &[u8]) -> Vec<u8> {
    let request = "GET http://o.test/a/file.bin HTTP/1.1\r\nHost: o.test\r\n\r\n";
    let response =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n", body.len());
    let (first, second) = (request.len(), request.len() + response.len());
    let mut said = format!(
        "RESPMOD icap://127.0.0.1/respmod ICAP/1.0\r\nHost: a\r\nEncapsulated: req-hdr=0, res-hdr={first}, \
         res-body={second}\r\n{fields}\r\n{request}{response}"
    )
    .into_bytes();
    for piece in body.chunks(10_000) {
        said.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        said.extend_from_slice(piece);
        said.extend_from_slice(b"\r\n");
    }
    said.extend_from_slice(b"0\r\n\r\n");
    said
}

/// Lines up to an empty one.
fn head(wire: &mut Wire) -> String {
    let mut head = String::new();
    loop {
        let line = wire.line();
        if line.is_empty() {
            return head;
        }
        head.push_str(&line);
        head.push('\n');
    }
}

/// A body of chunks; none if the connection ends within it.
fn chunks(wire: &mut Wire) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&wire.whole_line()?, 16).unwrap();
        let mut piece = vec![0; size + 2];
        wire.try_exactly(&mut piece).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(&piece[..size]);
    }
}

#[test]
fn a_small_object_passes_unchanged_or_a_page_stands_in_its_place() {
    let gateway = gateway("");
    let mut wire = gateway.connect();
    wire.send(b"OPTIONS icap://127.0.0.1/avscan ICAP/1.0\r\nHost: a\r\n\r\n");
    let options = head(&mut wire);
    for field in ["Methods: RESPMOD, REQMOD", "Preview: 4096", "Transfer-Preview: *", "Allow: 204", "ISTag: \""] {
        assert!(options.contains(field), "{options}");
    }
    for _ in 0..2 {
        wire.send(&respmod("Allow: 204\r\n", b"hello"));
        assert!(head(&mut wire).starts_with("ICAP/1.0 204 "));
        wire.send(&respmod("Allow: 204\r\n", &eicar()));
        let told = head(&mut wire);
        assert!(
            told.starts_with("ICAP/1.0 200 ") && told.contains("X-Infection-Found: Type=0; Resolution=2; Threat="),
            "{told}"
        );
        let response = head(&mut wire);
        assert!(response.starts_with("HTTP/1.1 403 Forbidden\n") && response.contains("no-store"), "{response}");
        let page = String::from_utf8(chunks(&mut wire).unwrap()).unwrap();
        assert!(page.contains("http://o.test/a/file.bin") && page.contains("Blocked"), "{page}");
    }
    let log = gateway.wait_for_log("action=\"block\"");
    assert!(log.contains("url=\"http://o.test/a/file.bin\"") && log.contains("Eicar"), "{log}");
}

#[test]
fn a_large_object_streams_and_what_is_found_in_it_breaks_it_off() {
    let gateway = gateway("[resources]\nhead_window_bytes = 131072\n");
    let clean: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    let mut wire = gateway.connect();
    // Without 204 all of it goes back.
    let said = respmod("", &clean);
    thread::scope(|scope| {
        let mut sender = wire.stream.try_clone().unwrap();
        scope.spawn(move || sender.write_all(&said));
        assert!(head(&mut wire).starts_with("ICAP/1.0 200 "));
        assert!(head(&mut wire).starts_with("HTTP/1.1 200 OK\n"));
        assert!(chunks(&mut wire).unwrap() == clean, "byte for byte");
    });
    let mut infected = clean;
    infected.extend_from_slice(&zip_of(&eicar()));
    // A client that keeps it until it is told is shown the page, another gets no end.
    for (fields, is_cut) in [("Allow: 204\r\n", false), ("", true)] {
        let mut wire = gateway.connect();
        let said = respmod(fields, &infected);
        thread::scope(|scope| {
            let mut sender = wire.stream.try_clone().unwrap();
            scope.spawn(move || _ = sender.write_all(&said));
            assert!(head(&mut wire).starts_with("ICAP/1.0 200 "));
            assert_eq!(head(&mut wire).contains("403 Forbidden"), !is_cut);
            assert_eq!(chunks(&mut wire).is_none(), is_cut);
        });
    }
    gateway.wait_for_log("action=\"cut\"");
}

#[test]
fn an_answer_begins_where_squid_stalls() {
    let gateway = gateway("");
    let (mut wire, content) = (gateway.connect(), vec![b'x'; 70_000]);
    let said = respmod("Allow: trailers\r\n", &content);
    let (first, second) = said.split_at(said.len() - 5_000);
    wire.send(first);
    assert!(head(&mut wire).starts_with("ICAP/1.0 200 "));
    assert!(head(&mut wire).starts_with("HTTP/1.1 200 OK\n"));
    wire.send(second);
    assert!(chunks(&mut wire).unwrap() == content);
}

#[test]
fn the_client_of_c_icap_is_answered() {
    let gateway = gateway("");
    let folder = tempfile::tempdir().unwrap();
    let ask = |content: &[u8]| {
        let file = folder.path().join("file");
        fs::write(&file, content).unwrap();
        let port = gateway.address.port().to_string();
        let mut client = Command::new("c-icap-client");
        client.args(["-i", "127.0.0.1", "-p", &port, "-s", "respmod", "-v", "-w", "1024", "-f"]).arg(&file);
        let Ok(output) = client.output() else {
            println!("skipped: c-icap-client is not installed");
            return None;
        };
        Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
    };
    let Some(told) = ask(b"hello") else { return };
    assert!(told.contains("204"), "{told}");
    let told = ask(&eicar()).unwrap();
    assert!(told.contains("X-Infection-Found") && told.contains("Blocked"), "{told}");
    let told = ask(&vec![b'x'; 300_000]).unwrap();
    assert!(told.contains("204"), "{told}");
}

#[test]
fn squid_gets_the_same_bytes_and_the_page() {
    let gateway = gateway("[resources]\nhead_window_bytes = 262144\n");
    let Some(squid) = Squid::start(gateway.address) else { return };
    let large: Vec<u8> = (0..2_000_000_u32).map(|at| (at.wrapping_mul(at) >> 5) as u8).collect();
    let mut infected = large.clone();
    infected.extend_from_slice(&zip_of(&eicar()));
    let objects = vec![
        ("/empty", Vec::new()),
        ("/small", b"hello".to_vec()),
        ("/middle", large[..100_000].to_vec()),
        ("/large", large.clone()),
        ("/eicar", eicar()),
        ("/infected", infected.clone()),
    ];
    let port = Origin::of_objects(objects.clone()).address.port();
    let fetch = |path: &str| {
        let mut wire = Wire::connect(squid.address);
        wire.send(format!("GET http://127.0.0.1:{port}{path} HTTP/1.0\r\n\r\n").as_bytes());
        let reply = wire.rest();
        let end = reply.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&reply[..end]).into_owned(), reply[end + 4..].to_vec())
    };
    for (path, content) in &objects[..4] {
        for _ in 0..3 {
            let (head, body) = fetch(path);
            assert!(head.starts_with("HTTP/1.1 200 OK"), "{path}: {head}");
            assert!(body == *content, "{path}: {} bytes of {}", body.len(), content.len());
        }
    }
    let (head, body) = fetch("/eicar");
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("Blocked"));
    let (_, body) = fetch("/infected");
    assert!(body.len() < infected.len(), "it is cut: {}", body.len());
}

#[test]
fn the_client_and_the_user_are_those_that_the_proxy_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (name, text) in [
        ("e2guardian.conf", format!("filtergroups = 2\nfiltergroupslist = '{}'\n", at("users"))),
        ("e2guardianf1.conf", format!("sitelist = 'name=banned,path={}'\n", at("sites"))),
        ("e2guardianf2.conf", String::new()),
        ("users", "ann=filter2\n".into()),
        ("sites", "o.test\n".into()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let gateway = gateway(&format!("[web]\nconfig = \"{}\"", folder.path().display()));
    let mut wire = gateway.connect();
    let local = base64(b"Local://ann").replace("\r\n", "");
    for (fields, status) in [
        ("X-Client-IP: 192.0.2.7\r\n".to_owned(), "200"),
        ("X-Client-IP: 192.0.2.8\r\nX-Client-Username: ann\r\n".into(), "204"),
        (format!("X-Client-IP: 192.0.2.9\r\nX-Authenticated-User: {local}\r\n"), "204"),
    ] {
        wire.send(&respmod(&format!("Allow: 204\r\n{fields}"), b"hello"));
        let told = head(&mut wire);
        assert!(told.starts_with(&format!("ICAP/1.0 {status} ")), "{fields}: {told}");
        if status == "200" {
            let page = head(&mut wire);
            assert!(page.starts_with("HTTP/1.1 403 "), "{page}");
            chunks(&mut wire).unwrap();
        }
    }
    let log = gateway.wait_for_log("client=192.0.2.9");
    let line = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(line(&["client=192.0.2.7", "action=\"block\""]), "{log}");
    assert!(line(&["client=192.0.2.8", "user=\"ann\""]) && line(&["client=192.0.2.9", "user=\"ann\""]), "{log}");
}

/// The request in the example of RFC 3507 (section 4.8.3) has a path alone.
#[test]
fn a_request_in_origin_form_is_decided_by_the_host_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (name, text) in [
        ("e2guardian.conf", String::new()),
        ("e2guardianf1.conf", format!("urllist = 'name=banned,path={}'\n", at("urls"))),
        ("urls", "o.test/banned\n".into()),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let gateway = gateway(&format!("[web]\nconfig = \"{}\"", folder.path().display()));
    let mut wire = gateway.connect();
    for (target, status) in [("/banned/x", "200"), ("http://o.test/banned/x", "200"), ("/free", "204")] {
        let head_of_request = format!("GET {target} HTTP/1.1\r\nHost: o.test\r\n\r\n");
        let encapsulated = format!("Encapsulated: req-hdr=0, null-body={}", head_of_request.len());
        let request = format!(
            "REQMOD icap://a/reqmod ICAP/1.0\r\nHost: a\r\nAllow: 204\r\n{encapsulated}\r\n\r\n{head_of_request}"
        );
        wire.send(request.as_bytes());
        let told = head(&mut wire);
        assert!(told.starts_with(&format!("ICAP/1.0 {status} ")), "{target}: {told}");
        if status == "200" {
            assert!(head(&mut wire).starts_with("HTTP/1.1 403 "));
            chunks(&mut wire).unwrap();
        }
    }
}

/// The head of the request may be left out (RFC 3507, section 4.8.2).
#[test]
fn a_response_without_its_request_is_decided_by_its_type_and_its_phrases() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let group = format!(
        "naughtynesslimit = 50\nweightedphraselist = '{}'\nmimelist = 'name=bannedmime,path={}'\n",
        at("weighted"),
        at("mime")
    );
    for (name, text) in [
        ("e2guardian.conf", ""),
        ("e2guardianf1.conf", &group),
        ("weighted", "<zork><60>\n"),
        ("mime", "application/x-bad\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let gateway = gateway(&format!("[web]\nconfig = \"{}\"", folder.path().display()));
    let mut wire = gateway.connect();
    for (kind, body, status) in
        [("text/html", "a zork b", "200"), ("application/x-bad", "x", "200"), ("text/html", "a b", "204")]
    {
        let response = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n");
        let encapsulated = format!("Encapsulated: res-hdr=0, res-body={}", response.len());
        wire.send(
            format!(
                "RESPMOD icap://a/respmod ICAP/1.0\r\nHost: a\r\nAllow: 204\r\n{encapsulated}\r\n\r\n{response}{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        );
        let told = head(&mut wire);
        assert!(told.starts_with(&format!("ICAP/1.0 {status} ")), "{kind} {body}: {told}");
        if status == "200" {
            assert!(head(&mut wire).starts_with("HTTP/1.1 403 "));
            chunks(&mut wire).unwrap();
        }
    }
}
