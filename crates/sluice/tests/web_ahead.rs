//! Servers through a proxy ahead: another gateway that wants a login, and Squid.

use std::fs;

use crate::harness::squid::Squid;
use crate::harness::tls::Certificate;
use crate::harness::web::{Origin, response};
use crate::harness::{Gateway, free_port};

/// A gateway that opens no TLS, behind this proxy.
fn behind(proxy: &str, origin: &Origin, more: &str) -> Gateway {
    let port = origin.address.port();
    Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
         destinations = [\"127.0.0.0/8\"]\nports = [80, {port}]\nconnect_ports = [{port}]\nupstream = \"http://{proxy}\"\n{more}\n"
    ))
}

/// A proxy that lets nobody but `sluice` with the password `secret` in.
fn ahead(folder: &std::path::Path, origin: &Origin) -> Gateway {
    let (accounts, port) = (folder.join("accounts"), origin.address.port());
    fs::write(&accounts, "sluice:{PLAIN}secret\n").expect("a file");
    Gateway::with(&format!(
        "hostname = \"ahead.test\"\nthreads = 1\n[web]\naccounts = \"{}\"\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [{port}]\nconnect_ports = [{port}]\nlogin = true\n",
        accounts.display()
    ))
}

fn echo() -> Origin {
    Origin::start(|head, _| Some(response("Content-Type: text/plain\r\n", head.as_bytes())))
}

fn get(url: &str) -> String {
    let host = url.split('/').nth(2).unwrap_or_default();
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[test]
fn requests_and_tunnels_go_through_the_proxy_ahead_with_its_login() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), echo());
    let ahead = ahead(folder.path(), &origin);
    let password = folder.path().join("password");
    fs::write(&password, "secret\n").expect("a file");
    let login = format!("upstream_user = \"sluice\"\nupstream_password = \"file:{}\"", password.display());
    let gateway = behind(&ahead.addresses[0].to_string(), &origin, &login);
    let mut wire = gateway.connect();
    let url = format!("http://localhost:{}/x?y", origin.address.port());
    for _ in 0..2 {
        let answer = wire.ask(&get(&url));
        assert!(answer.status() == "200" && answer.text().starts_with("GET /x?y HTTP/1.1\r\n"), "{answer:?}");
        let names = ["Via: 1.1 proxy.test\r\n", "Via: 1.1 ahead.test\r\n"];
        assert!(names.iter().all(|via| answer.text().contains(via)), "{answer:?}");
        assert!(!answer.text().contains("Authorization"), "{answer:?}");
    }
    let body = format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(wire.ask(&body).status(), "200");
    let to = format!("localhost:{}", origin.address.port());
    let connect = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n");
    let mut tunnel = gateway.connect();
    assert_eq!(tunnel.ask(&connect).status(), "200");
    assert!(tunnel.ask(&format!("GET /z HTTP/1.1\r\nHost: {to}\r\n\r\n")).text().starts_with("GET /z "));
    ahead.wait_for_log("user=\"sluice\"");
    // Without it the proxy ahead is at fault, and its question is none of the client's.
    let gateway = behind(&ahead.addresses[0].to_string(), &origin, "");
    let answer = gateway.connect().ask(&get(&url));
    assert!(answer.status() == "502" && answer.text().contains("The proxy ahead"), "{answer:?}");
    assert!(!answer.head.contains("Proxy-Authenticate"), "{answer:?}");
    assert_eq!(gateway.connect().ask(&connect).status(), "502");
    gateway.wait_for_log("the proxy ahead answers 407");
}

#[test]
fn hosts_and_networks_are_reached_without_the_proxy_ahead() {
    let origin = echo();
    let port = origin.address.port();
    let nobody = format!("127.0.0.1:{}", free_port());
    let by_name = behind(&nobody, &origin, "upstream_except = [\"localhost\"]");
    let ask = |gateway: &Gateway, host: &str| {
        gateway.connect().ask(&get(&format!("http://{host}:{port}/"))).status().to_owned()
    };
    assert_eq!((ask(&by_name, "localhost"), ask(&by_name, "127.0.0.1")), ("200".into(), "502".into()));
    let by_network = behind(&nobody, &origin, "upstream_except = [\"127.0.0.0/8\"]");
    assert_eq!((ask(&by_network, "localhost"), ask(&by_network, "127.0.0.1")), ("200".into(), "200".into()));
    assert_eq!(ask(&by_network, "169.254.169.254"), "403", "an address of this link is not asked of it");
}

#[test]
fn squid_ahead_gets_requests_and_opened_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let servers = Certificate::issued(None, "Authority of servers", (-1, 30));
    servers.store(folder.path(), "servers");
    let certificate = Certificate::issued(Some(&servers), "localhost", (-1, 20));
    let secure = Origin::in_tls("127.0.0.1:0", &certificate, |head, _| Some(response("", head.as_bytes())));
    let plain = echo();
    let Some(squid) = Squid::plain() else { return };
    let gateway = behind(&squid.address.to_string(), &plain, "");
    let url = format!("http://localhost:{}/x", plain.address.port());
    for _ in 0..2 {
        let text = gateway.connect().ask(&get(&url)).text();
        assert!(text.starts_with("GET /x HTTP/1.1\r\n") && text.contains("squid.test"), "{text}");
    }
    let at = folder.path().display();
    let made = std::process::Command::new(env!("CARGO_BIN_EXE_sluice"))
        .args(["web", "ca", "create", &format!("{at}/own.pem"), "--name", "Own"])
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let tls =
        format!("https = \"inspect\"\n[tls]\nauthorities = \"{at}/servers.crt\"\nsigning_authority = \"{at}/own.pem\"");
    let gateway = behind(&squid.address.to_string(), &secure, &tls);
    let url = format!("https://localhost:{}/y", secure.address.port());
    let mut curl = std::process::Command::new("curl");
    curl.args(["-s", "-k", "--noproxy", "", "-x", &gateway.addresses[0].to_string(), &url, &url]);
    let text = String::from_utf8_lossy(&curl.output().expect("curl").stdout).into_owned();
    assert_eq!(text.matches("GET /y HTTP/1.1\r\n").count(), 2, "{text}");
    gateway.wait_for_log("action=\"open\"");
}
