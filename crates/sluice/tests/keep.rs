//! The process of the store: what it has, and what goes on when it is killed.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::imap::ask;
use crate::harness::tls::Certificate;
use crate::harness::{Gateway, Wire, children_of, edge_of, free_port, stuffed, wait_for};
use crate::operations::get;

struct Site {
    gateway: Gateway,
    imap: SocketAddr,
    imaps: SocketAddr,
    sieve: SocketAddr,
    metrics: SocketAddr,
    certificate: Certificate,
    _folder: tempfile::TempDir,
}

impl Site {
    /// SMTP in, IMAP and scripts out, for `ann` with the password `secret`.
    fn start() -> Site {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accounts");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["account", "--accounts", path.to_str().unwrap(), "add", "ann"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
        let certificate = Certificate::of("mx.test");
        certificate.store(folder.path(), "mx");
        let [imap, imaps, sieve, metrics] = [(); 4].map(|()| free_port());
        let at = folder.path().display();
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n\
             [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{at}/accounts\"\n\
             imap = [\"127.0.0.1:{imap}\"]\nimaps = [\"127.0.0.1:{imaps}\"]\nsieve = [\"127.0.0.1:{sieve}\"]\n\
             [metrics]\naddress = \"127.0.0.1:{metrics}\"\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"discard:\"\n"
        ));
        let [imap, imaps, sieve, metrics] =
            [imap, imaps, sieve, metrics].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        Site { gateway, imap, imaps, sieve, metrics, certificate, _folder: folder }
    }

    fn keep(&self) -> Option<u32> {
        let children = children_of(self.gateway.supervisor()).into_iter();
        children.filter(|(_, name)| name == "sluice: keep").map(|(pid, _)| pid).max()
    }

    /// The status of a command after a login.
    fn messages(&self) -> String {
        let mut wire = Wire::connect(self.imap);
        assert!(wire.line().starts_with("* OK"));
        assert!(ask(&mut wire, "LOGIN ann secret").status.starts_with("OK"));
        ask(&mut wire, "STATUS INBOX (MESSAGES)").lines.join("\n")
    }
}

fn deliver(wire: &mut Wire, subject: &str) -> String {
    wire.talk("C: MAIL FROM:<a@client.test>\nS: 250 *\nC: RCPT TO:<ann@mx.test>\nS: 250 *\nC: DATA\nS: 354 *");
    wire.send(&stuffed(format!("Subject: {subject}\r\n\r\nwords\r\n").as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

#[test]
fn a_store_that_is_killed_loses_nothing_and_is_back_at_once() {
    let site = Site::start();
    let before = site.keep().expect("a process of the store");
    let edge = edge_of(site.gateway.supervisor());
    let mut other = Wire::connect(site.gateway.addresses[1]);
    other.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    for round in 1..=3 {
        let mut wire = site.gateway.connect();
        wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        assert!(deliver(&mut wire, "x").starts_with("250 "));
        let keep = site.keep().unwrap();
        let killed = Instant::now();
        assert!(Command::new("kill").arg("-KILL").arg(keep.to_string()).status().unwrap().success());
        // Who comes meanwhile waits.
        assert!(site.messages().contains(&format!("MESSAGES {round}")), "{}", site.messages());
        assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
        wait_for(|| site.keep().filter(|now| *now != keep), "another process of the store");
    }
    assert_ne!(site.keep(), Some(before));
    assert_eq!(edge_of(site.gateway.supervisor()), edge, "the edge goes on");
    assert!(deliver(&mut other, "y").starts_with("250 "), "other doors live");
}

#[test]
fn the_volume_is_open_in_the_process_of_the_store_alone() {
    let site = Site::start();
    let opens = |pid: u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.filter(|target| target.to_string_lossy().contains("/store/")).count()
    };
    assert!(opens(site.keep().unwrap()) > 0);
    assert_eq!(opens(edge_of(site.gateway.supervisor())), 0);
}

/// The filter of system calls, and the numbers of the process among those of the others.
#[test]
fn the_process_of_the_store_starts_no_program_and_is_counted() {
    let site = Site::start();
    let keep = site.keep().unwrap();
    for pid in [keep, edge_of(site.gateway.supervisor())] {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.lines().any(|line| line == "Seccomp:\t2"), "{status}");
    }
    let numbers = get(site.metrics, "/metrics").1;
    let resident = format!("sluice_process_resident_bytes{{process=\"keep\",pid=\"{keep}\"}} ");
    assert!(numbers.contains(&resident), "{numbers}");
    assert!(numbers.contains("sluice_process_starts_total{process=\"keep\"} 1\n"), "{numbers}");
    assert_eq!(numbers.matches("# HELP sluice_process_resident_bytes ").count(), 1, "{numbers}");
}

#[test]
fn clients_in_tls_are_relayed_and_end_with_their_session() {
    let site = Site::start();
    let mut wire = Wire::connect(site.imaps).secure(site.certificate.client("mx.test"));
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN ann secret").status.starts_with("OK"));
    // More than all buffers on the way hold, in both directions.
    let mail = format!("Subject: large\r\n\r\n{}", "0123456789abcdef\r\n".repeat(100_000));
    wire.send(format!("a APPEND INBOX {{{}+}}\r\n{mail}\r\n", mail.len()).as_bytes());
    assert!(wire.line().starts_with("a OK"), "APPEND");
    assert!(ask(&mut wire, "SELECT INBOX").status.starts_with("OK"));
    let fetched = ask(&mut wire, "FETCH 1 BODY.PEEK[]").literals;
    assert!(fetched.len() == 1 && fetched[0] == mail.as_bytes(), "{} mails", fetched.len());
    wire.send(b"z LOGOUT\r\n");
    assert!(wire.line().starts_with("* BYE") && wire.line().starts_with("z OK") && wire.line().is_empty());
    // A client that says no TLS is left alone.
    let mut plain = Wire::connect(site.imaps);
    plain.send(b"a LOGIN ann secret\r\n");
    assert!(!plain.line().contains("OK"));
}

#[test]
fn a_session_of_scripts_goes_on_in_tls() {
    let site = Site::start();
    let mut wire = Wire::connect(site.sieve);
    let capabilities = |wire: &mut Wire| {
        let lines: Vec<String> =
            std::iter::from_fn(|| Some(wire.line()).filter(|line| !line.starts_with("OK"))).collect();
        lines.join(" ")
    };
    assert!(capabilities(&mut wire).contains("\"STARTTLS\""));
    wire.send(b"STARTTLS\r\n");
    assert!(wire.line().starts_with("OK"));
    let mut wire = wire.secure(site.certificate.client("mx.test"));
    let told = capabilities(&mut wire);
    assert!(told.contains("PLAIN") && !told.contains("STARTTLS"), "{told}");
    wire.send(b"AUTHENTICATE \"PLAIN\" \"AGFubgBzZWNyZXQ=\"\r\nLISTSCRIPTS\r\n");
    assert!(wire.line().starts_with("OK") && wire.line().starts_with("OK"));
}

#[test]
fn a_store_that_starts_again_with_other_settings_brings_a_new_edge() {
    let site = Site::start();
    let (keep, edge) = (site.keep().unwrap(), edge_of(site.gateway.supervisor()));
    let config = site.gateway.folder.path().join("sluice.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[store]", "[store]\nsessions_max = 77")).unwrap();
    assert!(Command::new("kill").arg("-KILL").arg(keep.to_string()).status().unwrap().success());
    wait_for(|| (edge_of(site.gateway.supervisor()) != edge).then_some(()), "a new edge");
    assert!(site.messages().contains("MESSAGES 0"));
}
