//! A configuration of squidGuard at the doors of the web.

use std::fs;

use crate::harness::Gateway;
use crate::harness::web::{Origin, response};

#[test]
fn rules_of_squidguard_decide_at_the_door_and_blocked_clients_are_redirected() {
    let origin = Origin::start(|head, _| Some(response("Content-Type: text/plain\r\n", head.as_bytes())));
    let folder = tempfile::tempdir().expect("a folder");
    let port = origin.address.port();
    for (name, text) in [
        (
            "squidGuard.conf",
            format!(
                "dbhome {}/db\nsrc desk {{\n ip 127.0.0.0/8\n}}\ndest games {{\n domainlist games\n urllist urls\n}}\n\
                 acl {{\n desk {{\n pass !games all\n redirect http://page.test/?t=%t&s=%s&url=%u\n}}\n default {{\n pass none\n}}\n}}\n",
                folder.path().display()
            ),
        ),
        ("db/games", "games.test\n".into()),
        ("db/urls", "127.0.0.1/play\n".into()),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[web]\nconfig = \"{}\"\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [80, {port}]\n",
        folder.path().display()
    ));
    let ask = |url: &str| {
        let host = url.split('/').nth(2).unwrap_or_default();
        gateway.connect().ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    };
    for url in ["http://www.games.test/x?a=b&c", &origin.url("/player")] {
        let answer = ask(url);
        assert_eq!(answer.status(), "302", "{answer:?}");
        let location = format!("\nLocation: http://page.test/?t=games&s=desk&url={url}\n");
        assert!(answer.head.contains(&location), "{answer:?}");
    }
    assert!(ask(&origin.url("/work")).text().starts_with("GET /work "));
}
