//! Other ways to a server than a tunnel with TLS: HTTP in a tunnel, and URLs of https that the proxy itself is asked for.

use crate::harness::web::{Origin, response};
use crate::harness::{Gateway, eicar};
use crate::https::{Client, Site, get};

fn origin() -> Origin {
    Origin::start(|head, _| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/eicar" => response("", &eicar()),
            path => response("", path.as_bytes()),
        })
    })
}

fn connect(gateway: &Gateway, host: &str) -> crate::harness::Wire {
    let mut wire = gateway.connect();
    let answer = wire.ask(&format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(answer.status(), "200", "{answer:?}");
    wire
}

#[test]
fn http_in_a_tunnel_is_inspected() {
    let (site, origin) = (Site::new(), origin());
    let port = origin.address.port();
    let host = format!("localhost:{port}");
    for more in ["", "mismatched_names = \"refuse\""] {
        let gateway = site.gateway(&[port], more);
        let mut wire = connect(&gateway, &host);
        for path in ["/a", "/b"] {
            assert_eq!(get(&mut wire, &host, path).text(), path);
        }
        let answer = get(&mut wire, &host, "/eicar");
        assert!(answer.status() == "403" && answer.text().contains("Eicar-Test-Signature"), "{answer:?}");
        assert_eq!(get(&mut connect(&gateway, &host), "other.test", "/a").status(), "421");
        assert_eq!(get(&mut connect(&gateway, &host), "localhost", "/a").status(), "421", "another port");
        let log = gateway.wait_for_log(&format!("url=\"http://{host}/eicar\""));
        assert!(log.contains("tls=false") && log.contains("action=\"open\""), "{log}");
    }
    let used = origin.said().iter().filter(|said| !said.is_empty()).count();
    assert_eq!(used, 2, "the connection of the tunnel has the requests: {:?}", origin.said());
}

#[test]
fn a_url_of_https_is_fetched_where_tls_is_opened() {
    let site = Site::new();
    let good = site.origin();
    let stranger = crate::harness::tls::Certificate::of("localhost");
    let bad = Origin::in_tls("127.0.0.1:0", &stranger, |_, _| Some(response("", b"x")));
    let ports = [good.address.port(), bad.address.port()];
    let gateway = site.gateway(&ports, "tunnelled = [\"bank.example\"]");
    let ask = |authority: &str, path: &str| {
        let request = format!("GET https://{authority}{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        gateway.connect().ask(&request)
    };
    let host = format!("localhost:{}", ports[0]);
    let answer = ask(&host, "/plain");
    assert_eq!((answer.status(), answer.text().as_str()), ("200", "plain"));
    assert_eq!(ask(&host, "/eicar").status(), "403");
    let answer = ask(&format!("localhost:{}", ports[1]), "/");
    assert!(answer.status() == "502" && answer.text().contains("cannot be verified"), "{answer:?}");
    assert_eq!(ask("localhost:1", "/").status(), "403", "connect_ports");
    assert_eq!(ask("www.bank.example", "/").status(), "501");
    assert!(good.said().concat().contains(&format!("Host: {host}\r\n")));
}

#[test]
fn without_a_name_in_the_handshake_the_certificate_names_the_hosts() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let client = Client::trusting(site.own()).nameless();
    for more in ["", "mismatched_names = \"refuse\""] {
        let gateway = site.gateway(&[port], more);
        let open = || client.shake(connect(&gateway, &format!("127.0.0.1:{port}")), "localhost").unwrap();
        let host = format!("localhost:{port}");
        let mut wire = open();
        for path in ["/a", "/b"] {
            assert_eq!(get(&mut wire, &host, path).text(), path);
        }
        assert_eq!(get(&mut wire, &format!("127.0.0.1:{port}"), "/c").text(), "/c");
        assert_eq!(get(&mut wire, &host, "/eicar").status(), "403");
        for other in [format!("other.test:{port}"), "localhost".into()] {
            assert_eq!(get(&mut open(), &other, "/a").status(), "421", "{other}");
        }
        gateway.wait_for_log(&format!("url=\"https://{host}/eicar\""));
    }
    // A name in the handshake binds the requests.
    let gateway = site.gateway(&[port], "");
    let named = Client::trusting(site.own()).connect(&gateway, port, "localhost");
    assert_eq!(get(&mut named.unwrap(), &format!("127.0.0.1:{port}"), "/a").status(), "421");
}

#[test]
fn a_login_for_the_proxy_reaches_no_server() {
    let site = Site::new();
    let secure = site.origin();
    let plain = Origin::start(|head, _| Some(response("", head.as_bytes())));
    let ports = [secure.address.port(), plain.address.port()];
    let gateway = site.gateway(&ports, &format!("ports = {ports:?}"));
    let ask = |host: &str, target: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\r\n"
        )
    };
    let host = format!("localhost:{}", ports[0]);
    let mut wire = Client::trusting(site.own()).connect(&gateway, ports[0], "localhost").unwrap();
    assert_eq!(wire.ask(&ask(&host, "/a")).text(), "/a");
    assert_eq!(gateway.connect().ask(&ask(&host, &format!("https://{host}/b"))).text(), "/b");
    let host = format!("localhost:{}", ports[1]);
    for answer in [
        connect(&gateway, &host).ask(&ask(&host, "/c")),
        gateway.connect().ask(&ask(&host, &format!("http://{host}/d"))),
    ] {
        assert_eq!(answer.status(), "200");
    }
    let said = [secure.said().concat(), plain.said().concat()].concat();
    assert!(said.matches("GET /").count() == 4 && !said.contains("Proxy-"), "{said}");
}
