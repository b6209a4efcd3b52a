//! Certificates by ACME: got, shown, kept, renewed, and what is shown when there are none.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::harness::acme::Authority;
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, Wire, free_port, wait_for};
use tempfile::TempDir;
use tokio_rustls::rustls;

const NAME: &str = "mx.example.test";

/// An authority, and a folder with what is got from it.
struct Scene {
    authority: Authority,
    folder: TempDir,
    http_port: u16,
}

impl Scene {
    fn new() -> Scene {
        let http_port = free_port();
        Scene { authority: Authority::start(http_port), folder: tempfile::tempdir().unwrap(), http_port }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self, names: &str) -> String {
        self.authority.server.store(self.folder.path(), "server");
        format!(
            "hostname = \"{NAME}\"\nthreads = 1\n[tls]\nauthorities = \"{folder}/server.crt\"\n\
             [tls.acme]\ndirectory = \"{directory}\"\naccept_terms = true\ncontact = \"postmaster@example.test\"\n\
             folder = \"{folder}/acme\"\nhttp = \"127.0.0.1:{http}\"\n[[tls.certificate]]\nacme = [{names}]\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"discard:\"\ntls = \"implicit\"\n",
            folder = self.folder.path().display(),
            directory = self.authority.directory,
            http = self.http_port,
        )
    }

    fn gateway(&self) -> Gateway {
        Gateway::with(&self.config(&format!("\"{NAME}\"")))
    }

    /// Waits until a client that trusts this one would be content.
    fn wait_for_certificate(&self, gateway: &Gateway) {
        wait_for(|| is_shown(gateway, &self.authority.root).then_some(()), &format!("it: {}", gateway.log()));
    }
}

/// Pebble, Let's Encrypt's small authority for tests, with the server of names that it asks.
struct Pebble(Vec<Child>);

impl Pebble {
    /// Starts it from `SLUICE_PEBBLE`, the folder that `go install` has put it into; none without.
    fn start(folder: &Path, certificate: &Certificate, port: u16, http_port: u16) -> Option<Pebble> {
        let programs = std::path::PathBuf::from(std::env::var_os("SLUICE_PEBBLE")?);
        certificate.store(folder, "pebble");
        let names = format!("127.0.0.1:{}", free_port());
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{}",
                "certificate": "{path}/pebble.crt", "privateKey": "{path}/pebble.key", "httpPort": {http_port},
                "tlsPort": {}, "profiles": {{"default": {{"description": "-", "validityPeriod": 7776000}}}}}}}}"#,
            free_port(),
            free_port(),
            path = folder.display(),
        );
        let path = folder.join("pebble.json");
        std::fs::write(&path, config).unwrap();
        let management = format!("127.0.0.1:{}", free_port());
        let mut host_names = Command::new(programs.join("pebble-challtestsrv"));
        host_names.args(["-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        host_names.args(["-dnsserver", &names, "-management", &management]);
        let mut pebble = Command::new(programs.join("pebble"));
        pebble.env("PEBBLE_VA_NOSLEEP", "1").args(["-dnsserver", &names, "-config"]).arg(path);
        let started = [&mut host_names, &mut pebble]
            .map(|command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let answers = || TcpStream::connect(("127.0.0.1", port)).and(TcpStream::connect(&names)).ok();
        wait_for(answers, "pebble");
        Some(Pebble(started.into()))
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn pebble_gives_a_certificate_and_renews_it() {
    let mut scene = Scene::new();
    let (port, certificate) = (free_port(), Certificate::of("localhost"));
    let Some(_pebble) = Pebble::start(scene.folder.path(), &certificate, port, scene.http_port) else {
        return eprintln!("skipped: SLUICE_PEBBLE is not set");
    };
    scene.authority.directory = format!("https://localhost:{port}/dir");
    scene.authority.server = certificate;
    let kept = scene.path(&format!("acme/{NAME}.pem"));
    let gateway = Gateway::with(&scene.config(&format!("\"{NAME}\", \"mail.example.test\"")));
    let first = wait_for(|| std::fs::read(&kept).ok(), &format!("it: {}", gateway.log()));
    gateway.wait_for_log(&format!("Certificate {NAME} by ACME until"));
    drop(gateway);
    // With other names it is due.
    let gateway = Gateway::with(&scene.config(&format!("\"{NAME}\", \"imap.example.test\"")));
    wait_for(|| std::fs::read(&kept).ok().filter(|now| *now != first), &format!("it: {}", gateway.log()));
    let account = |line: &&str| line.contains("account opened");
    assert_eq!(gateway.log().lines().filter(account).count(), 0, "the account is kept");
}

fn is_shown(gateway: &Gateway, root: &Certificate) -> bool {
    let mut stream = gateway.connect().stream;
    root.handshake(&mut stream, NAME, rustls::ALL_VERSIONS).is_ok()
}

/// Sends a mail over TLS without looking at the certificate; what was said.
fn mail_unverified(gateway: &Gateway) -> String {
    let swaks = Command::new("swaks")
        .args(["--tlsc", "--server", &gateway.address.to_string(), "--from", "a@b.test", "--to", "c@d.test"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&swaks.stdout).into_owned()
}

#[test]
fn a_certificate_is_got_shown_at_once_and_found_again_at_the_next_start() {
    let scene = Scene::new();
    let gateway = scene.gateway();
    scene.wait_for_certificate(&gateway);
    let mut wire = gateway.connect().secure(scene.authority.root.client(NAME));
    assert_eq!(wire.deliver(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Discarded");
    let account = crate::harness::files(&scene.path("acme"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(account.len(), 2, "{account:?}");
    assert!(account.iter().all(|path| mode(path) == 0o600) && mode(&scene.path("acme")) == 0o700);
    let kept = std::fs::read_to_string(scene.path(&format!("acme/{NAME}.pem"))).unwrap();
    let key = kept.lines().nth(1).unwrap();
    assert!(kept.starts_with("-----BEGIN PRIVATE KEY") && !gateway.log().contains(key));
    assert!(TcpListener::bind(("127.0.0.1", scene.http_port)).is_ok(), "the port is open only while it is needed");
    drop(gateway);
    scene.authority.state().away = true;
    let gateway = scene.gateway();
    assert!(is_shown(&gateway, &scene.authority.root));
    assert_eq!(scene.authority.state().orders, 1);
}

#[test]
fn mail_is_taken_in_tls_while_the_authority_is_away_and_a_reload_asks_again() {
    let scene = Scene::new();
    scene.authority.state().away = true;
    let metrics = free_port();
    let config = scene.config(&format!("\"{NAME}\""));
    let gateway = Gateway::with(&format!("metrics.address = \"127.0.0.1:{metrics}\"\n{config}"));
    let line = gateway.wait_for_log("ACME: certificate not obtained");
    assert!(line.contains("a placeholder") && line.contains("retry_seconds"), "{line}");
    let said = mail_unverified(&gateway);
    assert!(said.contains("250 2.0.0 Discarded"), "{said}");
    let numbers = || {
        let mut wire = Wire::connect(([127, 0, 0, 1], metrics).into());
        wire.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        String::from_utf8(wire.rest()).unwrap()
    };
    let expires = format!("\nsluice_certificate_expires_seconds{{name=\"{NAME}\"}} ");
    assert!(numbers().contains(&format!("{expires}0\n")), "{}", numbers());
    assert!(numbers().contains("\nsluice_certificate_failures_total 1\n"), "{}", numbers());
    scene.authority.state().away = false;
    gateway.signal("HUP");
    scene.wait_for_certificate(&gateway);
    assert!(!numbers().contains(&format!("{expires}0\n")), "{}", numbers());
}

#[test]
fn a_certificate_that_is_due_is_shown_until_its_successor_comes_and_sessions_go_on() {
    let scene = Scene::new();
    scene.authority.state().away = true;
    std::fs::create_dir(scene.path("acme")).unwrap();
    let kept = scene.path(&format!("acme/{NAME}.pem"));
    std::fs::write(&kept, scene.authority.issue(NAME, -80, 10)).unwrap();
    let gateway = scene.gateway();
    let line = gateway.wait_for_log("ACME: certificate not obtained");
    assert!(line.contains("the old one"), "{line}");
    assert!(is_shown(&gateway, &scene.authority.root));
    let mut wire = gateway.connect().secure(scene.authority.root.client(NAME));
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    scene.authority.state().away = false;
    let old = std::fs::read(&kept).unwrap();
    gateway.signal("HUP");
    wait_for(|| (std::fs::read(&kept).unwrap() != old).then_some(()), "a new certificate");
    assert_eq!(wire.transaction(b"From: a\r\n\r\nHello\r\n"), "250 2.0.0 Discarded");
    assert!(is_shown(&gateway, &scene.authority.root));
}

#[test]
fn a_young_certificate_is_renewed_when_the_authority_wants_that() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("acme")).unwrap();
    std::fs::write(scene.path(&format!("acme/{NAME}.pem")), scene.authority.issue(NAME, -1, 89)).unwrap();
    scene.authority.state().window = Some((-7_200, -3_600));
    let gateway = scene.gateway();
    wait_for(|| (!scene.authority.state().replaced.is_empty()).then_some(()), &format!("it: {}", gateway.log()));
    gateway.wait_for_log(&format!("Certificate {NAME} by ACME until"));
}

#[test]
fn an_account_that_the_authority_has_forgotten_is_opened_anew() {
    let scene = Scene::new();
    let gateway = scene.gateway();
    scene.wait_for_certificate(&gateway);
    drop(gateway);
    std::fs::remove_file(scene.path(&format!("acme/{NAME}.pem"))).unwrap();
    scene.authority.state().forgetful = true;
    let gateway = scene.gateway();
    let line = gateway.wait_for_log("ACME: certificate not obtained");
    assert!(line.contains("who?"), "{line}");
    assert_eq!(scene.authority.state().accounts, 1);
    gateway.signal("HUP");
    scene.wait_for_certificate(&gateway);
    assert_eq!(scene.authority.state().accounts, 2);
}

#[test]
fn what_the_authority_says_against_a_name_stands_in_the_log() {
    let scene = Scene::new();
    let gateway = Gateway::with(&scene.config(&format!("\"{NAME}\", \"refused.example.test\"")));
    let line = gateway.wait_for_log("ACME: certificate not obtained");
    assert!(line.contains("no A record for refused.example.test"), "{line}");
}

#[test]
fn check_says_what_is_there_and_what_is_not() {
    let scene = Scene::new();
    let config = scene.path("sluice.toml");
    std::fs::write(&config, scene.config(&format!("\"{NAME}\""))).unwrap();
    let check = || {
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(check().contains(&format!("Certificate {NAME} by ACME: none yet")), "{}", check());
    std::fs::create_dir(scene.path("acme")).unwrap();
    std::fs::write(scene.path(&format!("acme/{NAME}.pem")), scene.authority.issue(NAME, -1, 89)).unwrap();
    assert!(check().contains(&format!("Certificate {NAME} by ACME until 2")), "{}", check());
    std::fs::write(scene.path(&format!("acme/{NAME}.pem")), "nothing").unwrap();
    assert!(check().contains(&format!("acme/{NAME}.pem: ")) && !check().contains("OK"), "{}", check());
    assert_eq!(scene.authority.state().orders, 0, "nobody is asked");
}
