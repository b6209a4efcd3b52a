//! The lists of E2Guardian at the doors of the web: requests, heads and pages are decided on by them.

use std::fs;
use std::io::Write as _;

use tempfile::TempDir;

use crate::harness::Gateway;
use crate::harness::web::{Origin, response};

/// A configuration with two groups: that of addresses from 127.0.0.2 on has a higher limit and no banned sites.
fn lists() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let common = format!("weightedphraselist = '{}'\n", at("weighted"));
    for (name, text) in [
        (
            "e2guardian.conf",
            format!(
                "filtergroups = 2\nauthplugin = '{}'\niplist = 'name=ipmap,path={}'\n",
                at("ip.conf"),
                at("ipgroups")
            ),
        ),
        ("ip.conf", format!("plugname = 'ip'\nipgroups = '{}'\n", at("ipgroups"))),
        ("ipgroups", "127.0.0.2 = filter2\n".into()),
        (
            "e2guardianf1.conf",
            format!(
                "naughtynesslimit = 50\n{common}sitelist = 'name=banned,messageno=500,logmessageno=501,path={}'\n\
                 mimelist = 'name=bannedmime,messageno=800,path={}'\n\
                 regexpreplacelist = 'name=change,path={}'\n",
                at("sites"),
                at("types"),
                at("changes")
            ),
        ),
        ("e2guardianf2.conf", format!("naughtynesslimit = 500\n{common}")),
        ("sites", "#listcategory: \"Gambling\"\nbanned.test\n".into()),
        ("types", "application/x-game\n".into()),
        ("changes", "\"/search\\?\"->\"/search?safe=on&\"\n".into()),
        ("weighted", "#listcategory: \"Games\"\n<zork><40>\n<grue><30>\n".into()),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    folder
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn get(url: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", url.split('/').nth(2).unwrap_or_default())
}

#[test]
fn requests_heads_and_pages_are_decided_on() {
    let page = b"<html><p>A zork, and a grue.</p></html>";
    let origin = Origin::start(move |head, _| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/page" => response("Content-Type: text/html\r\n", page),
            "/packed" => response("Content-Type: text/html\r\nContent-Encoding: gzip\r\n", &gzip(page)),
            "/game" => response("Content-Type: application/x-game\r\n", b"binary"),
            "/binary" => response("Content-Type: application/octet-stream\r\n", page),
            path => response("Content-Type: text/plain\r\n", path.as_bytes()),
        })
    });
    let lists = lists();
    let port = origin.address.port();
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[web]\nconfig = \"{}\"\n[[listener]]\nprotocol = \"http\"\n\
         address = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [80, {port}]\n",
        lists.path().display()
    ));
    let mut wire = gateway.connect();
    let answer = wire.ask(&get("http://www.banned.test/x"));
    assert!(answer.status() == "403" && answer.text().contains("banned.test"), "{answer:?}");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/plain"))).text(), "/plain");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/search?q=1"))).text(), "/search?safe=on&q=1");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/game"))).status(), "403");
    let head = |path: &str| gateway.connect().ask(&get(&origin.url(path)).replace("GET", "HEAD"));
    assert_eq!((head("/game").status(), head("/plain").status()), ("403", "200"), "the type is that of GET");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/binary"))).status(), "200", "it says that it is no page");
    for path in ["/page", "/packed"] {
        let answer = gateway.connect().ask(&get(&origin.url(path)));
        assert_eq!(answer.status(), "403", "{path}: {answer:?}");
    }
    let log = gateway.wait_for_log("points=70");
    assert!(log.contains("categories=\"Games\"") && log.contains(" reason="), "{log}");
}
