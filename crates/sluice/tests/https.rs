//! TLS that is opened on its way: what clients are shown, what is inspected within, and what is let alone.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tokio_rustls::rustls;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde_json::Value;

use crate::harness::tls::Certificate;
use crate::harness::web::{Answered, Origin, response};
use crate::harness::{Gateway, Wire, base64, eicar};

/// The certificates of a site: an authority of servers that the gateway trusts, and the one by which it signs.
pub struct Site {
    folder: tempfile::TempDir,
    pub servers: Certificate,
}

impl Site {
    pub fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        let servers = Certificate::issued(None, "Authority of servers", (-1, 30));
        servers.store(folder.path(), "servers");
        let made = sluice(&["web", "ca", "create", folder.path().join("own.pem").to_str().unwrap(), "--name", "Own"]);
        assert!(made.contains("own.pem: an authority for 1825 days"), "{made}");
        Site { folder, servers }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A gateway that opens the TLS of tunnels to this machine.
    pub fn gateway(&self, ports: &[u16], more: &str) -> Gateway {
        let folder = self.folder.path().display();
        Gateway::with(&format!(
            "hostname = \"proxy.test\"\nthreads = 1\n[tls]\nauthorities = \"{folder}/servers.crt\"\n\
             signing_authority = \"{folder}/own.pem\"\n[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n\
             destinations = [\"127.0.0.0/8\"]\nconnect_ports = {ports:?}\nhttps = \"inspect\"\n{more}\n"
        ))
    }

    /// A server in TLS, whose certificate is of the authority of servers.
    pub fn origin(&self) -> Origin {
        self.origin_as("localhost", (-1, 20))
    }

    fn origin_as(&self, name: &str, days: (i64, i64)) -> Origin {
        origin(&Certificate::issued(Some(&self.servers), name, days))
    }

    pub fn own(&self) -> CertificateDer<'static> {
        let pem = sluice(&["web", "ca", "export", self.path("own.pem").to_str().unwrap()]);
        assert!(!pem.contains("PRIVATE"), "{pem}");
        CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
    }
}

pub fn sluice(arguments: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_sluice")).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

fn origin(certificate: &Certificate) -> Origin {
    Origin::in_tls("127.0.0.1:0", certificate, |head, body| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/eicar" => response("", &eicar()),
            "/echo" => response("", body),
            "/plain" => response("Alt-Svc: h3=\":443\"\r\n", b"plain"),
            other => response("", other.as_bytes()),
        })
    })
}

/// A client that trusts this authority.
pub struct Client(Arc<ClientConfig>);

impl Client {
    pub fn trusting(authority: CertificateDer<'static>) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(authority).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Client(Arc::new(config))
    }

    /// The same client without a name in its handshakes.
    pub fn nameless(self) -> Client {
        let mut config = (*self.0).clone();
        config.enable_sni = false;
        Client(Arc::new(config))
    }

    /// Shakes hands through a tunnel to this port; the error of the handshake.
    pub fn connect(&self, gateway: &Gateway, port: u16, name: &str) -> Result<Wire, String> {
        let mut wire = gateway.connect();
        let answer = wire.ask(&format!("CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"));
        assert_eq!(answer.status(), "200", "{answer:?}");
        self.shake(wire, name)
    }

    pub fn shake(&self, wire: Wire, name: &str) -> Result<Wire, String> {
        let name = ServerName::try_from(name.to_string()).unwrap();
        let mut connection = ClientConnection::new(self.0.clone(), name).unwrap();
        let mut stream: &TcpStream = &wire.stream;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).map_err(|error| error.to_string())?;
        }
        Ok(wire.secure(Certificate::of_connection(connection)))
    }
}

pub fn get(wire: &mut Wire, host: &str, path: &str) -> Answered {
    wire.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn what_goes_through_tls_is_inspected_as_in_the_clear() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let gateway = site.gateway(&[port], "");
    let client = Client::trusting(site.own());
    let host = format!("localhost:{port}");
    let mut wire = client.connect(&gateway, port, "localhost").unwrap();
    let answer = get(&mut wire, &host, "/plain");
    assert_eq!((answer.status(), answer.text().as_str()), ("200", "plain"));
    assert_eq!(answer.head, "HTTP/1.1 200 OK\nVia: 1.1 proxy.test\nContent-Length: 5\n");
    let answer = get(&mut wire, &host, "/eicar");
    assert!(answer.status() == "403" && answer.text().contains("found in it: Eicar-Test-Signature"), "{answer:?}");
    let body = String::from_utf8(eicar()).unwrap();
    let post =
        |body: &str| format!("POST /echo HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    assert_eq!(wire.ask(&post("harmless")).text(), "harmless");
    assert_eq!(wire.ask(&post(&body)).status(), "403");
    for other in ["other.test", "localhost", "localhost:1"] {
        let answer = get(&mut client.connect(&gateway, port, "localhost").unwrap(), other, "/a");
        assert_eq!(answer.status(), "421", "{other}");
    }
    let asked = "GET http://localhost/a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(client.connect(&gateway, port, "localhost").unwrap().ask(asked).status(), "421");
    let mut again = client.connect(&gateway, port, "localhost").unwrap();
    let asked = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(again.ask(&asked).status(), "403", "no tunnel within a tunnel");
    let said = origin.said().concat();
    assert!(said.starts_with(&format!("GET /plain HTTP/1.1\r\nHost: {host}\r\nVia: 1.1 proxy.test\r\n")), "{said}");
    let log = gateway.wait_for_log("action=\"open\"");
    assert!(
        log.contains("server_name=\"localhost\"") && log.contains(&format!("url=\"https://{host}/eicar\"")),
        "{log}"
    );
}

#[test]
fn a_client_sees_what_is_wrong_with_a_server() {
    let site = Site::new();
    let stranger = Certificate::issued(None, "localhost", (-1, 30));
    let servers = [
        (site.origin_as("localhost", (-30, -2)), "certificate expired"),
        (site.origin_as("localhost", (2, 30)), "not valid yet"),
        (site.origin_as("other.test", (-1, 30)), "not valid for name"),
        (origin(&Certificate::of("localhost")), "UnknownIssuer"),
        (origin(&Certificate::issued(Some(&stranger), "localhost", (-1, 9))), "UnknownIssuer"),
        (origin(&Certificate::issued(Some(&stranger), "localhost", (-9, -1))), ""),
    ];
    let ports: Vec<u16> = servers.iter().map(|(origin, _)| origin.address.port()).collect();
    let gateway = site.gateway(&ports, "");
    let client = Client::trusting(site.own());
    for (origin, fault) in &servers {
        let error = client.connect(&gateway, origin.address.port(), "localhost").err().unwrap();
        assert!(error.contains(fault), "{fault}: {error}");
        assert!(origin.said().concat().is_empty(), "nothing was asked");
    }
    let log = gateway.wait_for_log("reason=\"received fatal alert: UnknownCA\"");
    assert!(log.contains("action=\"refuse\""), "{log}");
}

#[test]
fn where_there_is_no_server_the_page_stands_within_tls() {
    let site = Site::new();
    let gateway = site.gateway(&[443, 1], "");
    let client = Client::trusting(site.own());
    let mut wire = client.connect(&gateway, 1, "localhost").unwrap();
    let answer = get(&mut wire, "localhost:1", "/");
    assert!(answer.status() == "502" && answer.text().contains("does not answer"), "{answer:?}");
    assert_eq!(get(&mut wire, "localhost:1", "/again").status(), "502", "the connection goes on");
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    std::thread::spawn(move || {
        plain.incoming().for_each(|stream| {
            use std::io::Write;
            _ = stream.unwrap().write_all(b"220 mail.test ESMTP\r\n");
        });
    });
    let gateway = site.gateway(&[port], "");
    let mut wire = client.connect(&gateway, port, "localhost").unwrap();
    let answer = get(&mut wire, &format!("localhost:{port}"), "/");
    assert!(answer.status() == "502" && answer.text().contains("TLS handshake with the server"), "{answer:?}");
}

#[test]
fn hosts_that_are_named_are_let_alone() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let gateway = site.gateway(&[port], "tunnelled = [\"localhost\"]");
    let server = Client::trusting(site.servers.der());
    let mut wire = server.connect(&gateway, port, "localhost").unwrap();
    assert_eq!(get(&mut wire, "localhost", "/eicar").status(), "200", "its own certificate, and its own content");
    drop(wire);
    gateway.wait_for_log("action=\"pass\"");
    // One that only says that it is that host is opened, and so is one at another place.
    let mut wire = gateway.connect();
    wire.ask(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert!(server.shake(wire, "localhost").err().unwrap().contains("UnknownIssuer"));
    let tunnel = || {
        let mut wire = gateway.connect();
        wire.ask(&format!("CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n"));
        wire
    };
    let mut wire = tunnel();
    wire.send(b"SSH-2.0-x\r\n");
    assert!(wire.rest().is_empty(), "what is neither TLS nor HTTP does not pass");
    assert_eq!(get(&mut tunnel(), "localhost", "/").status(), "421", "HTTP is read, not let alone");
}

#[test]
fn a_client_that_trusts_one_certificate_alone_passes_where_that_is_allowed() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let pinning = Client::trusting(site.servers.der());
    for (how, passes) in [("refuse", false), ("tunnel", true)] {
        let gateway = site.gateway(&[port], &format!("pinned = \"{how}\""));
        assert!(pinning.connect(&gateway, port, "localhost").err().unwrap().contains("UnknownIssuer"));
        gateway.wait_for_log("reason=\"received fatal alert");
        let again = pinning.connect(&gateway, port, "localhost");
        assert_eq!(again.is_ok(), passes, "{how}");
        if let Ok(mut wire) = again {
            assert_eq!(get(&mut wire, "localhost", "/a").text(), "/a");
        }
    }
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let site = Site::new();
    let folder = site.folder.path().display();
    for (settings, words) in [
        ("https = \"inspect\"", "signing_authority"),
        ("mode = \"reverse\"\nupstream = \"127.0.0.1:1\"\nhttps = \"inspect\"", "tls = \"implicit\""),
    ] {
        let path = site.path("sluice.toml");
        let text = format!("[[listener]]\nprotocol = \"http\"\naddress = \"127.0.0.1:0\"\n{settings}\n");
        fs::write(&path, text).unwrap();
        let ran = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["check", "--config"]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(!ran.status.success() && said.contains(words), "{words}: {said}");
    }
    let again = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let ran = { again }.args(["web", "ca", "create"]).arg(site.path("own.pem")).output().unwrap();
    assert!(!ran.status.success() && String::from_utf8_lossy(&ran.stderr).contains("own.pem"), "{folder}: it stays");
}

#[test]
fn curl_speaks_http_2_where_tls_is_opened() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let gateway = site.gateway(&[port], "");
    fs::write(site.path("own.crt"), sluice(&["web", "ca", "export", site.path("own.pem").to_str().unwrap()])).unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
    fs::write(site.path("large"), &large).unwrap();
    let curl = |arguments: &[&str]| {
        let url = |path: &&str| {
            if path.starts_with('/') { format!("https://localhost:{port}{path}") } else { path.to_string() }
        };
        let told = ["-sS", "--http2", "-w", "%{http_version} %{http_code}\\n", "--cacert"];
        let ran = Command::new("curl")
            .args(told)
            .arg(site.path("own.crt"))
            .args(["--proxy", &format!("http://{}", gateway.address)])
            .args(arguments.iter().map(url))
            .current_dir(site.folder.path())
            .output();
        let ran = ran.unwrap();
        assert!(ran.status.success(), "{ran:?}");
        ran.stdout
    };
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    assert_eq!(String::from_utf8(curl(&["/plain"])).unwrap(), "plain2 200\n");
    let blocked = String::from_utf8(curl(&["/eicar"])).unwrap();
    assert!(blocked.ends_with("2 403\n") && blocked.contains("Eicar-Test-Signature"), "{blocked}");
    assert!(blocked.contains(&format!("https://localhost:{port}/eicar")), "{blocked}");
    let echoed = curl(&["--data-binary", "@large", "/echo"]);
    assert!(echoed.len() == large.len() + 6 && echoed.starts_with(&large), "{}", echoed.len());
    let many: Vec<String> = (0..40).map(|number| format!("/{number}")).collect();
    let many: Vec<&str> = ["--parallel"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let answers = String::from_utf8(curl(&many)).unwrap();
    assert_eq!(answers.matches("2 200\n").count(), 40, "{answers}");
    assert_eq!(curl(&["-I", "/plain"]).windows(6).filter(|line| line == b"HTTP/2").count(), 1);
    let log = gateway.wait_for_log("action=\"block\"");
    assert!(log.matches("action=\"open\"").count() < 12, "streams share a connection: {log}");
}

#[test]
fn intrusion_rules_look_at_streams_of_http_2_and_at_names_of_servers() {
    let site = Site::new();
    let large: Vec<u8> = [&b"x".repeat(3_000_000)[..], b"forbidden-words"].concat();
    let certificate = Certificate::issued(Some(&site.servers), "localhost", (-1, 20));
    let origin = Origin::in_tls("127.0.0.1:0", &certificate, move |head, _| {
        Some(if head.contains("/large") { response("", &large) } else { response("", b"hello") })
    });
    let rules = "alert tls any any -> any any (msg:\"name\"; tls.sni; content:\"localhost\"; sid:1;)\n\
                 drop http any any -> any any (msg:\"path\"; http.uri; content:\"/secret\"; sid:2;)\n\
                 reject http any any -> any any (msg:\"body\"; file.data; content:\"forbidden-words\"; sid:3;)\n\
                 pass http any any -> any any (msg:\"friend\"; http.user_agent; content:\"friend\"; sid:4;)\n";
    fs::write(site.path("own.rules"), rules).unwrap();
    fs::create_dir(site.path("log")).unwrap();
    let port = origin.address.port();
    let (own, eve) = (site.path("own.rules"), site.path("log/eve.json"));
    let gateway = site.gateway(&[port], &format!("[ids]\nrules = [{own:?}]\neve = {eve:?}\n"));
    fs::write(site.path("own.crt"), sluice(&["web", "ca", "export", site.path("own.pem").to_str().unwrap()])).unwrap();
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let curl = |agent: &str, path: &str| {
        let told = ["-sS", "--http2", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", "-A", agent, "--cacert"];
        let ran = Command::new("curl")
            .args(told)
            .arg(site.path("own.crt"))
            .args(["--proxy", &format!("http://{}", gateway.address), &format!("https://localhost:{port}{path}")])
            .output()
            .unwrap();
        (ran.status.success(), String::from_utf8(ran.stdout).unwrap())
    };
    assert_eq!(curl("a", "/"), (true, "2 200".into()));
    assert_eq!(curl("a", "/secret"), (true, "2 403".into()));
    assert_eq!(curl("friend", "/secret"), (true, "2 200".into()), "pass wins");
    assert!(!curl("a", "/large").0, "the stream is reset");
    let eve = fs::read_to_string(site.path("log/eve.json")).unwrap();
    for sid in 1..=3 {
        assert!(eve.contains(&format!("\"signature_id\":{sid}}}")), "{sid}: {eve}");
    }
}

#[test]
fn handshakes_are_recorded_as_far_as_they_are_seen() {
    let site = Site::new();
    let certificate = Certificate::issued(Some(&site.servers), "localhost", (-1, 20));
    certificate.store(site.folder.path(), "server");
    let origin = origin(&certificate);
    let port = origin.address.port();
    fs::write(site.path("own.rules"), "alert http any any -> any any (http.uri; content:\"/none\"; sid:1;)\n").unwrap();
    for (name, more, authority) in
        [("opened", "", site.own()), ("passed", "tunnelled = [\"localhost\"]", site.servers.der())]
    {
        let (rules, folder) = (site.path("own.rules"), site.path(name));
        fs::create_dir(&folder).unwrap();
        let eve = folder.join("eve.json");
        let ids = format!("[ids]\nrules = [{rules:?}]\neve = {eve:?}\nrecords = [\"tls\"]\n");
        let gateway = site.gateway(&[port], &format!("{more}\n{ids}"));
        let mut wire = Client::trusting(authority).connect(&gateway, port, "localhost").unwrap();
        assert_eq!(get(&mut wire, &format!("localhost:{port}"), "/a").text(), "/a");
        let lines = fs::read_to_string(&eve).unwrap();
        assert_eq!(lines.lines().count(), 1, "{lines}");
        let line: Value = serde_json::from_str(&lines).unwrap();
        assert!(line["event_type"] == "tls" && line["dest_port"] == port && line["proto"] == "TCP", "{line}");
        let tls = &line["tls"];
        assert!(tls["sni"] == "localhost" && tls["ja4"].as_str().unwrap().starts_with("t13d"), "{tls}");
        assert_eq!(tls["ja3"]["hash"].as_str().unwrap().len(), 32, "{tls}");
        if name == "passed" {
            assert!(["version", "subject", "notbefore"].iter().all(|key| tls.get(key).is_none()), "{tls}");
            continue;
        }
        let openssl = |options: &[&str]| {
            let mut command = Command::new("openssl");
            let ran =
                command.args(["x509", "-noout", "-in"]).arg(site.path("server.crt")).args(options).output().unwrap();
            let text = String::from_utf8(ran.stdout).unwrap();
            text.trim().split_once('=').unwrap().1.to_owned()
        };
        let text = |key: &str| tls[key].as_str().unwrap().to_owned();
        assert_eq!(text("version"), "TLS 1.3");
        assert_eq!(text("subject"), openssl(&["-subject"]).replace(" = ", "="));
        assert_eq!(text("issuerdn"), openssl(&["-issuer"]).replace(" = ", "="));
        assert_eq!(
            text("serial").replace(':', "").trim_start_matches('0'),
            openssl(&["-serial"]).trim_start_matches('0')
        );
        assert_eq!(text("fingerprint"), openssl(&["-fingerprint", "-sha1"]).to_lowercase());
        let time = |option| openssl(&[option, "-dateopt", "iso_8601"]).replace(' ', "T").replace('Z', "");
        assert_eq!([text("notbefore"), text("notafter")], [time("-startdate"), time("-enddate")]);
    }
}

#[test]
fn a_user_logs_in_at_the_proxy_and_is_that_user_within_the_tls_that_it_opens() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let at = |name: &str| site.path(name).display().to_string();
    let story = format!("sslmitm = on\nstoryboard = '{}'\n", at("story"));
    for (name, text) in [
        ("accounts", "ann:{PLAIN}anns:group=staff\ntim:{PLAIN}tims\n".to_owned()),
        ("e2guardian.conf", "filtergroups = 2\n".into()),
        ("e2guardianf1.conf", format!("groupname = 'pupils'\n{story}urllist = 'name=banned,path={}'\n", at("urls"))),
        ("e2guardianf2.conf", format!("groupname = 'staff'\n{story}")),
        ("story", "function(checkrequest)\nif(connect) return setgomitm\nif(urlin,banned) return setblock\n".into()),
        ("urls", "localhost/plain\n".into()),
    ] {
        fs::write(site.path(name), text).unwrap();
    }
    let web = format!(
        "login = true\n[web]\nconfig = \"{}\"\naccounts = \"{}\"",
        site.folder.path().display(),
        at("accounts")
    );
    let gateway = site.gateway(&[port], &web);
    let client = Client::trusting(site.own());
    let host = format!("localhost:{port}");
    let connect = |login: &str| {
        let login = base64(login.as_bytes()).replace("\r\n", "");
        let mut wire = gateway.connect();
        let asked = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic {login}\r\n\r\n");
        let status = wire.ask(&asked).status().to_owned();
        (status, wire)
    };
    assert_eq!(connect("ann:wrong").0, "407");
    for (login, status) in [("ann:anns", "200"), ("tim:tims", "403")] {
        let (answer, wire) = connect(login);
        assert_eq!(answer, "200");
        let mut wire = client.shake(wire, "localhost").unwrap();
        assert_eq!(get(&mut wire, &host, "/plain").status(), status, "{login}: the group of the user decides");
        assert_eq!(get(&mut wire, &host, "/eicar").status(), "403", "{login}");
    }
    let log = gateway.wait_for_log("user=\"tim\"");
    let line = |parts: &[&str]| log.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    assert!(
        line(&["action=\"open\"", "user=\"ann\""]) && line(&["/eicar", "user=\"ann\"", "action=\"block\""]),
        "{log}"
    );
    let said = origin.said().concat();
    assert!(said.contains("GET /eicar") && !said.contains("Authorization"), "{said}");
}

#[test]
fn a_link_leads_past_the_block_of_a_site_within_tls() {
    let site = Site::new();
    let origin = site.origin();
    let port = origin.address.port();
    let at = |name: &str| site.path(name).display().to_string();
    let banned = format!("sitelist = 'name=banned,messageno=500,path={}'\n", at("sites"));
    for (name, text) in [
        ("e2guardian.conf", String::new()),
        ("e2guardianf1.conf", format!("bypass = 60\nsslmitm = on\n{banned}")),
        ("sites", "localhost\n".into()),
    ] {
        fs::write(site.path(name), text).unwrap();
    }
    let gateway = site.gateway(&[port], &format!("[web]\nconfig = \"{}\"", site.folder.path().display()));
    let client = Client::trusting(site.own());
    let host = format!("localhost:{port}");
    let mut wire = client.connect(&gateway, port, "localhost").unwrap();
    let page = get(&mut wire, &host, "/x");
    assert!(page.status() == "403" && origin.said().is_empty(), "{page:?}");
    let page = page.text();
    let link = page.split("<a href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link");
    let path = link.strip_prefix(&format!("https://{host}")).expect("a link to the same place");
    let answer = get(&mut wire, &host, path);
    assert!(answer.status() == "302" && answer.head.contains(&format!("\nLocation: https://{host}/x\n")), "{answer:?}");
    let cookie = answer.head.split("Set-Cookie: ").nth(1).and_then(|rest| rest.split(';').next()).expect("a cookie");
    // The next connection has the cookie alone.
    let mut wire = client.connect(&gateway, port, "localhost").unwrap();
    assert_eq!(get(&mut wire, &host, "/y").status(), "403");
    let asked = format!("GET /z HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
    assert_eq!(wire.ask(&asked).text(), "/z");
    assert_eq!(get(&mut wire, "other.test", path).status(), "421");
    assert!(!origin.said().concat().contains("GBYPASS"));
}
