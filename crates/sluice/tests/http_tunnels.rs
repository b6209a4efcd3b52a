//! Other ways to a server than a tunnel with TLS: HTTP in a tunnel, and URLs of https that the proxy itself is asked for.

use crate::harness::web::{Origin, response};
use crate::harness::{Gateway, eicar};
use crate::https::{Site, get};

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
