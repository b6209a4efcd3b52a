//! The HTTP door with services of ICAP that it asks: c-icap, another gateway, and services that err.

use crate::harness::services::{CIcap, Dripping, Question, Scripted, answer};
use crate::harness::web::{Answered, Origin, response};
use crate::harness::{Gateway, eicar, free_port};

const CONTINUE: &[u8] = b"ICAP/1.0 100 Continue\r\n\r\n";
const UNMODIFIED: &[u8] = b"ICAP/1.0 204 Unmodified\r\nISTag: \"s\"\r\n\r\n";

/// A gateway that asks these services.
fn gateway(origin: &Origin, more: &str) -> Gateway {
    Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
         destinations = [\"127.0.0.0/8\"]\nports = [{}]\non_infected = \"pass\"\n{more}\n",
        origin.address.port()
    ))
}

fn asking(origin: &Origin, service: &Scripted, more: &str) -> Gateway {
    gateway(origin, &format!("icap_responses = \"icap://{}/svc\"\n{more}", service.address))
}

fn large() -> Vec<u8> {
    (0..2_000_000_u32).map(|at| (at.wrapping_mul(at) >> 5) as u8).collect()
}

/// An origin whose paths say how the body comes: `/empty`, `/small`, `/large`, `/chunked`; it gives the body of a request back.
fn origin() -> Origin {
    Origin::start(|head, body| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        Some(match path {
            _ if head.starts_with("POST") => response("X-Length: 1\r\n", body),
            _ if head.starts_with("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec(),
            "/large" => response("", &large()),
            "/chunked" => {
                let mut told = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
                for piece in large().chunks(70_000) {
                    told.extend(format!("{:x}\r\n", piece.len()).bytes());
                    told.extend_from_slice(piece);
                    told.extend_from_slice(b"\r\n");
                }
                told.extend_from_slice(b"0\r\n\r\n");
                told
            }
            "/empty" => response("", b""),
            "/eicar" => response("", &eicar()),
            "/head" => response("", head.as_bytes()),
            _ => response("Content-Type: text/plain\r\n", b"hello"),
        })
    })
}

fn ask(gateway: &Gateway, origin: &Origin, method: &str, path: &str, body: &[u8]) -> Answered {
    let length = if method == "POST" { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
    let mut wire = gateway.connect();
    wire.send(format!("{method} {} HTTP/1.1\r\nHost: {}\r\n{length}\r\n", origin.url(path), origin.address).as_bytes());
    _ = wire.try_send(body);
    wire.answer(method == "HEAD")
}

#[test]
fn the_echo_of_c_icap_leaves_all_as_it_is() {
    let Some(service) = CIcap::start() else { return };
    let (origin, uri) = (origin(), format!("icap://{}/echo", service.address));
    let gateway = gateway(&origin, &format!("icap_requests = \"{uri}\"\nicap_responses = \"{uri}\"\n"));
    for _ in 0..2 {
        for (path, content) in
            [("/small", b"hello".to_vec()), ("/empty", Vec::new()), ("/large", large()), ("/chunked", large())]
        {
            let answered = ask(&gateway, &origin, "GET", path, b"");
            assert!(answered.status() == "200" && answered.is_whole, "{path}: {}", answered.head);
            assert!(answered.body == content, "{path}: {} bytes", answered.body.len());
        }
        let head = ask(&gateway, &origin, "HEAD", "/small", b"").head;
        assert!(head.starts_with("HTTP/1.1 200 OK\n") && head.contains("Content-Length: 5\n"), "{head}");
        for body in [&large()[..5], &large()[..100_000], &large()] {
            assert!(ask(&gateway, &origin, "POST", "/up", body).body == body, "{} bytes", body.len());
        }
    }
}

#[test]
fn c_icap_with_clamd_has_its_page_for_what_it_finds() {
    let Some(service) = CIcap::with_clamd() else { return };
    let (origin, uri) = (origin(), format!("icap://{}/avscan", service.address));
    let gateway = gateway(&origin, &format!("icap_requests = \"{uri}\"\nicap_responses = \"{uri}\"\n"));
    for (path, content) in [("/small", b"hello".to_vec()), ("/empty", Vec::new()), ("/large", large())] {
        assert!(ask(&gateway, &origin, "GET", path, b"").body == content, "{path}");
    }
    let before = origin.said().join("");
    for (method, body) in [("GET", Vec::new()), ("POST", eicar())] {
        let page = ask(&gateway, &origin, method, "/eicar", &body);
        assert!(page.status() == "403" && page.is_whole && page.text().contains("Test.Eicar"), "{method}: {page:?}");
    }
    assert!(!origin.said().join("")[before.len()..].contains("POST"), "the body is not sent on");
    gateway.wait_for_log("found=\"Type=0; Resolution=2; Threat=Test.Eicar");
}

#[test]
fn what_another_scanner_finds_is_its_page() {
    let other = Gateway::with(
        "hostname = \"other.test\"\nthreads = 1\n[[listener]]\nprotocol = \"icap\"\naddress = \"127.0.0.1:0\"\n",
    );
    let (origin, uri) = (origin(), format!("icap://{}/x", other.address));
    let gateway = gateway(&origin, &format!("icap_requests = \"{uri}\"\nicap_responses = \"{uri}\"\n"));
    assert_eq!(ask(&gateway, &origin, "GET", "/small", b"").text(), "hello");
    assert!(ask(&gateway, &origin, "GET", "/large", b"").body == large());
    let page = ask(&gateway, &origin, "GET", "/eicar", b"");
    assert!(page.status() == "403" && page.is_whole && page.text().contains("Blocked"), "{page:?}");
    // The body is not sent on.
    let before = origin.said().join("");
    let page = ask(&gateway, &origin, "POST", "/up", &eicar());
    assert!(page.status() == "403", "{page:?}");
    let log = gateway.wait_for_log("method=\"POST\"");
    assert!(log.contains("found=\"Type=0; Resolution=2; Threat="), "{log}");
    assert_eq!(origin.said().join(""), before);
    other.wait_for_log("client=127.0.0.1");
}

#[test]
fn a_service_is_asked_by_a_preview_and_told_the_client() {
    let origin = origin();
    let service =
        Scripted::start("Preview: 4\r\nAllow: 204\r\nOptions-TTL: 3600\r\n", |question| match question.is_whole {
            true => UNMODIFIED.to_vec(),
            false => {
                assert_eq!(question.body, b"hell");
                CONTINUE.to_vec()
            }
        });
    let gateway = asking(&origin, &service, "");
    for _ in 0..2 {
        assert_eq!(ask(&gateway, &origin, "GET", "/small", b"").text(), "hello");
    }
    let asked = service.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for part in [
        &format!("RESPMOD icap://{}/svc ICAP/1.0\r\n", service.address)[..],
        "\r\nX-Client-IP: 127.0.0.1\r\n",
        "\r\nPreview: 4\r\n",
        "\r\nAllow: 204\r\n",
        &format!("\r\n\r\nGET {} HTTP/1.1\r\n", origin.url("/small")),
        "\r\n\r\nHTTP/1.1 200 OK\r\n",
        "\r\nContent-Length: 5\r\n\r\n",
    ] {
        assert!(asked[1].contains(part), "{part}: {}", asked[1]);
    }
}

#[test]
fn messages_are_what_the_service_makes_of_them() {
    let origin = origin();
    let service = Scripted::start("Preview: 0\r\n", |question| {
        let url = question.text.split("\r\n\r\n").nth(1).unwrap().split(' ').nth(1).unwrap();
        let (root, elsewhere) = (url.rsplit_once('/').unwrap().0, "http://127.0.0.1:1/head");
        let host = url.split('/').nth(2).unwrap();
        match (&question.text[..6], url.rsplit('/').next().unwrap()) {
            ("REQMOD", "change") => reqmod(&format!("{root}/head"), host),
            ("REQMOD", "elsewhere") => reqmod(elsewhere, "127.0.0.1:1"),
            ("REQMOD", "deny") => answer("res", "HTTP/1.0 451 No\r\nConnection: close\r\n\r\n", "denied"),
            ("RESPMO", "rewrite") => answer("res", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "new"),
            ("RESPMO", "short") => answer("res", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "new"),
            _ => UNMODIFIED.to_vec(),
        }
    });
    let both = format!("icap_requests = \"icap://{}/svc\"", service.address);
    let gateway = asking(&origin, &service, &both);
    let get = |path: &str| ask(&gateway, &origin, "GET", path, b"");
    let changed = get("/change").text();
    assert!(changed.starts_with("GET /head HTTP/1.1\r\n") && changed.contains("X-New: 1\r\n"), "{changed}");
    let answered = get("/deny");
    assert!(answered.status() == "451" && answered.text() == "denied" && answered.is_whole, "{answered:?}");
    assert_eq!(get("/rewrite").text(), "new");
    let answered = get("/elsewhere");
    assert!(answered.status() == "503", "{answered:?}");
    gateway.wait_for_log("it sends the request elsewhere");
    let answered = get("/short");
    assert!(answered.status() == "502" || !answered.is_whole, "{answered:?}");
    assert_eq!(get("/small").text(), "hello");
}

#[test]
fn a_request_that_a_service_has_changed_is_asked_about_again() {
    let origin = origin();
    let service = Scripted::start("Preview: 0\r\n", |question| {
        let url = question.text.split("\r\n\r\n").nth(1).unwrap().split(' ').nth(1).unwrap();
        let (root, path) = url.rsplit_once('/').unwrap();
        let path = if path == "innocent" { "banned" } else { "head" };
        reqmod(&format!("{root}/{path}"), url.split('/').nth(2).unwrap())
    });
    let lists = tempfile::tempdir().unwrap();
    let at = |name: &str| lists.path().join(name);
    std::fs::write(at("e2guardian.conf"), "filtergroups = 1\n").unwrap();
    let group = format!("urllist = 'name=banned,messageno=501,path={}'\n", at("urls").display());
    std::fs::write(at("e2guardianf1.conf"), group).unwrap();
    std::fs::write(at("urls"), "127.0.0.1/banned\n").unwrap();
    let more =
        format!("icap_requests = \"icap://{}/svc\"\n[web]\nconfig = \"{}\"", service.address, lists.path().display());
    let gateway = gateway(&origin, &more);
    assert!(ask(&gateway, &origin, "GET", "/x", b"").text().starts_with("GET /head "));
    let before = origin.said().join("");
    let answered = ask(&gateway, &origin, "GET", "/innocent", b"");
    assert!(answered.status() == "403" && answered.is_whole, "{answered:?}");
    gateway.wait_for_log("reason=\"changed to http://127.0.0.1:");
    assert_eq!(origin.said().join(""), before);
}

#[test]
fn a_service_that_answers_drop_by_drop_is_given_up() {
    let origin = origin();
    let service = Dripping::start();
    for (more, status) in [("", "503"), ("icap_failure = \"pass\"", "200")] {
        let more = format!("icap_responses = \"icap://{}/svc\"\nicap_seconds = 1\n{more}", service.address);
        let gateway = gateway(&origin, &more);
        let answered = ask(&gateway, &origin, "GET", "/small", b"");
        assert!(answered.status() == status && answered.is_whole, "{more}: {answered:?}");
        gateway.wait_for_log("timed out");
    }
}

/// A request in the place of another.
fn reqmod(url: &str, host: &str) -> Vec<u8> {
    let head = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nX-New: 1\r\n\r\n");
    format!("ICAP/1.0 200 OK\r\nEncapsulated: req-hdr=0, null-body={}\r\n\r\n{head}", head.len()).into_bytes()
}

#[test]
fn a_changed_request_has_the_login_at_a_proxy_ahead_which_the_service_is_not_told() {
    let ahead = Origin::start(|head, _| Some(response("", head.as_bytes())));
    let service = Scripted::start("Preview: 0\r\n", |question| {
        let url = question.text.split("\r\n\r\n").nth(1).unwrap().split(' ').nth(1).unwrap();
        reqmod(url, url.split('/').nth(2).unwrap())
    });
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    let more = format!(
        "icap_requests = \"icap://{}/svc\"\nupstream = \"http://{}\"\nupstream_user = \"sluice\"\nupstream_password = \"file:{}\"",
        service.address,
        ahead.address,
        password.display()
    );
    let answered = ask(&gateway(&ahead, &more), &ahead, "GET", "/a", b"").text();
    let login = "Proxy-Authorization: Basic c2x1aWNlOnNlY3JldA==\r\n";
    assert!(answered.contains("X-New: 1\r\n") && answered.contains(login), "{answered}");
    assert!(!service.asked()[0].contains("Authorization"), "{:?}", service.asked());
}

#[test]
fn without_an_answer_nothing_passes_unless_the_settings_say_so() {
    let origin = origin();
    let erring = |question: &Question| match &question.text {
        text if text.contains("/large ") && !question.is_whole => CONTINUE.to_vec(),
        text if text.contains("/empty ") => Vec::new(),
        _ => b"ICAP/1.0 500 Error\r\n\r\n".to_vec(),
    };
    for (more, status) in [("", "503"), ("icap_failure = \"pass\"", "200")] {
        let service = Scripted::start("Preview: 100\r\n", erring);
        let gateway = asking(&origin, &service, more);
        for path in ["/small", "/empty"] {
            let answered = ask(&gateway, &origin, "GET", path, b"");
            assert!(answered.status() == status && answered.is_whole, "{path} {more}: {answered:?}");
        }
        // Too much has gone to the service to be passed on as it came.
        assert_eq!(ask(&gateway, &origin, "GET", "/large", b"").status(), "503", "{more}");
        gateway.wait_for_log("it answers 500");
    }
    for (more, status) in [("", "503"), ("icap_failure = \"pass\"", "200")] {
        let nobody = format!("icap_requests = \"icap://127.0.0.1:{}/x\"\n{more}", free_port());
        let gateway = gateway(&origin, &nobody);
        for _ in 0..2 {
            assert_eq!(ask(&gateway, &origin, "POST", "/up", b"hello").status(), status, "{more}");
        }
        gateway.wait_for_log("it could not be reached a moment ago");
    }
}

#[test]
fn a_connection_that_was_kept_and_has_ended_costs_no_answer() {
    let origin = origin();
    let count = std::sync::atomic::AtomicUsize::new(0);
    // It closes at every second question, and each begins a connection anew.
    let service = Scripted::start("Preview: 2\r\nAllow: 204\r\n", move |_| {
        let turn = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if turn % 2 == 1 { Vec::new() } else { UNMODIFIED.to_vec() }
    });
    let gateway = asking(&origin, &service, "");
    for _ in 0..4 {
        assert_eq!(ask(&gateway, &origin, "GET", "/small", b"").text(), "hello");
    }
    assert_eq!(service.asked().len(), 7);
}

#[test]
fn a_service_that_answers_an_error_on_a_kept_connection_is_asked_once() {
    let origin = origin();
    let service = Scripted::start("Preview: 2\r\nAllow: 204\r\n", |question| match &question.text {
        text if text.contains("/empty ") => b"ICAP/1.0 500 Error\r\n\r\n".to_vec(),
        _ => UNMODIFIED.to_vec(),
    });
    let gateway = asking(&origin, &service, "");
    assert_eq!(ask(&gateway, &origin, "GET", "/small", b"").text(), "hello");
    assert_eq!(ask(&gateway, &origin, "GET", "/empty", b"").status(), "503");
    assert_eq!(service.asked().len(), 2, "{:?}", service.asked());
}

#[test]
fn an_answer_without_its_end_breaks_the_response_off() {
    let origin = origin();
    let service = Scripted::start("", |question| {
        assert!(question.is_whole);
        let head = "HTTP/1.1 200 OK\r\n\r\n";
        let body = "x".repeat(2_000_000);
        let encapsulated =
            format!("ICAP/1.0 200 OK\r\nConnection: close\r\nEncapsulated: res-hdr=0, res-body={}\r\n\r\n", head.len());
        // A size that is none in the place of the end.
        format!("{encapsulated}{head}{:x}\r\n{body}\r\nz\r\n", body.len()).into_bytes()
    });
    let gateway = asking(&origin, &service, "[resources]\nhead_window_bytes = 262144");
    let answered = ask(&gateway, &origin, "GET", "/small", b"");
    assert!(answered.status() == "200" && !answered.is_whole && answered.body.len() < 2_000_000, "{}", answered.head);
}
