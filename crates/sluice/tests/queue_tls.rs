//! Mail that goes out to servers that have to be known: by DANE and by MTA-STS, with a DNS and mail servers of our own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;

use proto::dns::kind;
use sha2::{Digest as _, Sha256};

use crate::harness::clock::Clock;
use crate::harness::dns::{Dns, Told};
use crate::harness::imap::ask;
use crate::harness::tls::Certificate;
use crate::harness::{Behaviour, Gateway, Sink, SinkTls, Wire, base64, free_port, wait_for};
use crate::queue::send;

/// The hosts of policies are so much behind the mail servers.
const POLICIES: u8 = 20;

/// The type of records that name certificates.
const TLSA: u16 = 52;

/// Domains, each with a mail server `mx-DOMAIN` at a host of the loopback.
const DOMAINS: [(&str, u8); 12] = [
    ("enforced.test", 2),
    ("other-name.test", 3),
    ("not-listed.test", 4),
    ("testing.test", 5),
    ("dane.test", 6),
    ("dane-other.test", 7),
    ("dane-away.test", 8),
    ("not-validated.test", 9),
    ("no-starttls.test", 10),
    ("forged.test", 11),
    ("dane-hidden.test", 12),
    ("unready.test", 13),
];

fn host_of(domain: &str) -> Option<u8> {
    DOMAINS.iter().find(|(known, _)| *known == domain).map(|(_, host)| *host)
}

/// DNS of the world; `record` names the certificate of the servers with DANE.
fn world(name: &str, wanted: u16, record: &[u8]) -> Told {
    // An answer that somebody keeps back turns nothing off.
    if (name, wanted) == ("mx-dane-hidden.test", kind::AAAA) {
        return Told::Failure;
    }
    if let (Some(domain), kind::TXT) = (name.strip_prefix("_smtp._tls."), wanted) {
        return Told::Text(format!("v=TLSRPTv1; rua=mailto:tls@{domain}"));
    }
    let nothing = Told::Hosts(Vec::new());
    let is_signed = name.contains("dane");
    let domain = ["mta-sts.", "_mta-sts.", "_25._tcp.mx-", "mx-"].iter().find_map(|front| name.strip_prefix(front));
    let told = match (domain, wanted) {
        (None, kind::MX) => Told::Hosts(vec![format!("mx-{name}")]),
        (Some(domain), kind::A) if name.starts_with("mx-") => match host_of(domain) {
            Some(host) => Told::Addresses(vec![[127, 0, 0, host]]),
            None => Told::NoName,
        },
        (Some(domain), kind::A) if name.starts_with("mta-sts.") => match host_of(domain) {
            Some(host) => Told::Addresses(vec![[127, 0, 0, host + POLICIES]]),
            None => Told::NoName,
        },
        (Some(domain), kind::TXT) if !domain.contains("dane") && domain != "not-validated.test" => {
            Told::Text("v=STSv1; id=a1;".into())
        }
        _ => nothing,
    };
    if wanted == TLSA {
        return match name.split_once("._tcp.mx-").map(|(_, domain)| domain) {
            Some("dane.test") => Told::Validated(Box::new(Told::Raw(record.to_vec()))),
            Some("dane-other.test" | "dane-hidden.test") => {
                Told::Validated(Box::new(Told::Raw([&[3, 1, 1], &[7; 32][..]].concat())))
            }
            Some("dane-away.test") => Told::Failure,
            Some("not-validated.test") => Told::Raw([&[3, 1, 1], &[7; 32][..]].concat()),
            _ => Told::NoName,
        };
    }
    if is_signed { Told::Validated(Box::new(told)) } else { told }
}

/// Serves the policy of a domain by HTTPS, for as long as the test runs.
fn serve_policy(domain: &'static str, host: u8, port: u16, authority: &Certificate) {
    let name = if domain == "forged.test" { "mta-sts.other.test".into() } else { format!("mta-sts.{domain}") };
    let certificate = Certificate::issued(Some(authority), &name, (-1, 100));
    let mode = if domain == "testing.test" { "testing" } else { "enforce" };
    let mx = if domain == "not-listed.test" { "elsewhere.test".into() } else { format!("mx-{domain}") };
    let text = format!("version: STSv1\r\nmode: {mode}\r\nmx: {mx}\r\nmax_age: 86400\r\n");
    let listener = TcpListener::bind((std::net::Ipv4Addr::new(127, 0, 0, host + POLICIES), port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = certificate.server()(stream);
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                request.push(byte[0]);
            }
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", text.len());
            let _ = stream.write_all(format!("{head}{text}").as_bytes()).and_then(|()| stream.flush());
        }
    });
}

struct World {
    gateway: Gateway,
    certificate: Certificate,
    imap: SocketAddr,
    sinks: Vec<(&'static str, Sink)>,
    _dns: Dns,
    _folder: tempfile::TempDir,
}

/// A port that is free at all hosts of the loopback that are used.
fn port() -> u16 {
    loop {
        let port = free_port();
        if (2..32).all(|host| TcpListener::bind(SocketAddr::from(([127, 0, 0, host], port))).is_ok()) {
            return port;
        }
    }
}

impl World {
    fn start() -> World {
        World::start_with(&[], "")
    }

    /// Started by these words, with settings of its queue.
    fn start_with(words: &[String], settings: &str) -> World {
        let folder = tempfile::tempdir().unwrap();
        let authority = Certificate::issued(None, "authority.test", (-1, 100));
        authority.store(folder.path(), "authority");
        let (port, https) = (port(), port());
        let mut record = Vec::new();
        let sinks = DOMAINS.map(|(domain, host)| {
            let name = if domain == "other-name.test" || domain == "testing.test" {
                "wrong.test".into()
            } else {
                format!("mx-{domain}")
            };
            // The servers with DANE are known by nobody else.
            let certificate = match domain.contains("dane") {
                true => Certificate::of(&name),
                false => Certificate::issued(Some(&authority), &name, (-1, 100)),
            };
            if domain == "dane.test" {
                record = [&[3, 0, 1][..], &Sha256::digest(certificate.der())].concat();
            }
            let tls = SinkTls { certificate: Arc::new(certificate), implicit: false, injected: "" };
            let tls = Some(tls).filter(|_| domain != "no-starttls.test");
            let extensions: &[&str] = match domain {
                "no-starttls.test" => &[],
                "enforced.test" | "dane.test" => &["STARTTLS", "REQUIRETLS"],
                _ => &["STARTTLS"],
            };
            let behaviour = Behaviour { tls, extensions, ..Behaviour::default() };
            (domain, Sink::at(&format!("127.0.0.{host}:{port}"), behaviour))
        });
        for (domain, host) in DOMAINS.into_iter().filter(|(domain, _)| !domain.contains("dane")) {
            serve_policy(domain, host, https, &authority);
        }
        let certificate = Certificate::of("mx.test");
        certificate.store(folder.path(), "mx");
        let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
        add.args(["account", "--accounts"]).arg(folder.path().join("accounts")).args(["add", "ann@here.test"]);
        let mut child = add.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
        let (dns, imap) = (Dns::start(move |name, wanted| world(name, wanted, &record)), free_port());
        let at = folder.path().display();
        let text = format!(
            "hostname = \"mx.test\"\nthreads = 1\n{}[tls]\nauthorities = \"{at}/authority.crt\"\n\
             [[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n[store]\nfolder = \"FOLDER/store\"\n\
             size = \"64M\"\naccounts = \"{at}/accounts\"\nimap = [\"127.0.0.1:{imap}\"]\nrelay = \"mx\"\nmaildrop = \"FOLDER/maildrop\"\n[store.queue]\nport = {port}\nhttps_port = {https}\n\
             destinations = [\"127.0.0.0/8\"]\n{settings}[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n\
             tls = \"offer\"\nauth = \"tls\"\n",
            dns.settings()
        );
        let gateway = if words.is_empty() { Gateway::with(&text) } else { Gateway::with_words(words, &text) };
        let imap = SocketAddr::from(([127, 0, 0, 1], imap));
        World { gateway, certificate, imap, sinks: sinks.to_vec(), _dns: dns, _folder: folder }
    }

    /// A session in TLS in which ann has logged in; what is offered there.
    fn submit(&self) -> (Wire, String) {
        let mut wire = self.gateway.connect();
        wire.talk("S: 220 *");
        assert!(!wire.command("EHLO client.test").contains("REQUIRETLS"), "TLS comes first");
        wire.talk("C: STARTTLS\nS: 220 *");
        let mut wire = wire.secure(self.certificate.client("mx.test"));
        let offered = wire.command("EHLO client.test");
        let login = base64(b"\0ann@here.test\0secret");
        wire.talk(&format!("C: AUTH PLAIN {}\nS: 235 *", login.trim_end()));
        (wire, offered)
    }

    /// Mails returned to ann, once there are so many.
    fn returned(&self, count: usize) -> Vec<String> {
        let mut wire = Wire::connect(self.imap);
        wire.line();
        assert!(ask(&mut wire, "LOGIN ann@here.test secret").status.starts_with("OK"));
        let look = || {
            ask(&mut wire, "SELECT INBOX");
            let mails = ask(&mut wire, "UID FETCH 1:* BODY.PEEK[]").literals;
            let mails: Vec<String> = mails.iter().map(|mail| String::from_utf8_lossy(mail).into_owned()).collect();
            Some(mails).filter(|mails| mails.len() >= count)
        };
        wait_for(look, "what comes back")
    }

    fn send(&self, domain: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["sendmail", "-C"]).arg(self.gateway.folder.path().join("sluice.toml")).arg(format!("x@{domain}"));
        assert!(command.stdin(Stdio::null()).status().unwrap().success());
    }

    /// Does something with the mails to a domain.
    fn queue(&self, action: &str, domain: &str) {
        let volume = self.gateway.folder.path().join("store/mail");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.args(["queue", action, "--domain", domain, "--store"]).arg(volume).output().unwrap();
    }

    fn sink(&self, domain: &str) -> &Sink {
        self.sinks.iter().find(|(known, _)| *known == domain).map(|(_, sink)| sink).unwrap()
    }

    /// Why a mail to a domain waits.
    fn why(&self, domain: &str) -> String {
        let look = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
            let volume = self.gateway.folder.path().join("store/mail");
            let output = command.args(["queue", "list", "--domain", domain, "--store"]).arg(volume).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            Some(text).filter(|text| text.contains(" 1 tries"))
        };
        wait_for(look, &format!("a mail to {domain} to wait"))
    }
}

#[test]
fn servers_are_known_by_their_domains_policies_and_by_signed_records() {
    let world = World::start();
    DOMAINS.iter().for_each(|(domain, _)| world.send(domain));
    for domain in ["enforced.test", "testing.test", "dane.test", "not-validated.test", "forged.test"] {
        let mails = world.sink(domain).wait(1);
        assert_eq!(mails[0].to, [format!("x@{domain}")]);
        assert!(world.sink(domain).commands().iter().any(|line| line.eq_ignore_ascii_case("STARTTLS")), "{domain}");
    }
    for (domain, words) in [
        ("other-name.test", "not known by its certificate"),
        ("not-listed.test", "is not a mail server of the MTA-STS policy"),
        ("no-starttls.test", "STARTTLS is not offered"),
        ("dane-other.test", "not known by its certificate"),
        ("dane-hidden.test", "not known by its certificate"),
        ("dane-away.test", "the TLSA records of mx-dane-away.test cannot be looked up"),
    ] {
        let why = world.why(domain);
        assert!(why.contains(words), "{domain}: {why}");
        assert!(world.sink(domain).mails().is_empty(), "{domain}");
    }
    let log = world.gateway.log();
    assert!(log.contains("server fails its MTA-STS policy (testing)"), "{log}");
    assert!(log.contains("the MTA-STS policy cannot be fetched"), "{log}");
    // It holds through a restart.
    let kept = std::fs::read_to_string(world.gateway.folder.path().join("store/mta-sts")).unwrap();
    assert!(kept.contains("enforced.test a1 enforce ") && !kept.contains("forged.test"), "{kept}");
}

#[test]
fn a_mail_that_requires_tls_goes_to_proven_servers_that_require_it_too_or_comes_back() {
    let world = World::start();
    let (mut wire, offered) = world.submit();
    assert!(offered.contains("REQUIRETLS"), "{offered}");
    let mail = "Subject: secret\r\nTLS-Required: No\r\n\r\nbody\r\n";
    for domain in ["enforced.test", "dane.test"] {
        let to = format!("<x@{domain}>");
        assert_eq!(send(&mut wire, "<ann@here.test> REQUIRETLS RET=FULL", &[&to], mail), "250 2.0.0 Queued");
        world.sink(domain).wait(1);
        let said = world.sink(domain).commands();
        assert!(said.iter().any(|line| line.starts_with("MAIL") && line.ends_with(" REQUIRETLS")), "{said:?}");
    }
    // A server that nothing proves, that is not as its policy in testing says, that has no STARTTLS, that has another certificate.
    let cases = [
        ("forged.test", "5.7.10"),
        ("testing.test", "5.7.10"),
        ("no-starttls.test", "5.7.10"),
        ("dane-other.test", "5.7.10"),
        ("unready.test", "5.7.30"),
    ];
    for (count, (domain, status)) in cases.iter().enumerate() {
        let to = format!("<x@{domain}>");
        assert_eq!(send(&mut wire, "<ann@here.test> REQUIRETLS RET=FULL", &[&to], mail), "250 2.0.0 Queued");
        let returned = world.returned(count + 1);
        let notice = returned.last().unwrap();
        assert!(notice.contains(&format!("\r\nStatus: {status}\r\n")), "{domain}: {notice}");
        assert!(notice.contains("\r\nSubject: secret\r\n") && !notice.contains("\r\nbody\r\n"), "{notice}");
        assert!(world.sink(domain).mails().is_empty(), "{domain}");
    }
}

#[test]
fn a_mail_that_would_rather_arrive_than_be_secret_goes_to_any_server() {
    let world = World::start();
    let (mut wire, _) = world.submit();
    for domain in ["other-name.test", "no-starttls.test", "dane-other.test", "dane-away.test"] {
        let mail = "tls-required:  no\r\n\r\nbody\r\n";
        assert_eq!(send(&mut wire, "<ann@here.test>", &[&format!("<x@{domain}>")], mail), "250 2.0.0 Queued");
        world.sink(domain).wait(1);
    }
}

#[test]
fn a_day_of_tls_is_reported_to_domains_that_want_it() {
    let clock = Clock::start();
    let world = World::start_with(&clock.words(), "tls_reports = \"tls@mx.test\"\n");
    let mut keys = Command::new(env!("CARGO_BIN_EXE_sluice"));
    keys.args(["dkim", "create", "mx.test", "--config"]).arg(world.gateway.folder.path().join("sluice.toml"));
    assert!(keys.output().unwrap().status.success());
    ["enforced.test", "other-name.test"].iter().for_each(|domain| world.send(domain));
    world.sink("enforced.test").wait(1);
    world.why("other-name.test");
    world.queue("delete", "other-name.test");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let (began, end) = (now - now % 86_400, now - now % 86_400 + 86_399);
    clock.set(86_400);
    // The server that is not as its policy says gets its report all the same.
    for (domain, is_well) in [("enforced.test", true), ("other-name.test", false)] {
        let to = format!("tls@{domain}");
        // The host that was wrong rests.
        let found = || {
            world.queue("retry", domain);
            world.sink(domain).mails().into_iter().find(|mail| mail.to == [to.clone()])
        };
        let mail = wait_for(found, "a report");
        let text = mail.text();
        assert_eq!(mail.from, "tls@mx.test");
        for field in [
            format!("Subject: Report Domain: {domain} Submitter: mx.test Report-ID: <{began}.{domain}@mx.test>"),
            format!("TLS-Report-Domain: {domain}"),
            "TLS-Report-Submitter: mx.test".into(),
            "Content-Type: multipart/report; report-type=\"tlsrpt\"; boundary=\"".into(),
            "Content-Type: application/tlsrpt+gzip".into(),
        ] {
            assert!(text.contains(&format!("\r\n{field}")), "{field}: {text}");
        }
        assert!(text.contains("DKIM-Signature: ") && text.contains("d=mx.test"), "{text}");
        assert!(text.contains(&format!("filename=\"mx.test!{domain}!{began}!{end}.json.gz\"")), "{text}");
        let packed = text.split("json.gz\"\r\n\r\n").nth(1).unwrap().split("\r\n--").next().unwrap();
        let packed = text::base64::decode(packed.bytes().filter(u8::is_ascii_graphic).take_while(|&byte| byte != b'='));
        let report: serde_json::Value =
            serde_json::from_reader(flate2::read::GzDecoder::new(&packed.unwrap()[..])).unwrap();
        let policy = &report["policies"][0];
        assert_eq!(
            (&policy["policy"]["policy-domain"], &policy["policy"]["policy-type"]),
            (&domain.into(), &"sts".into())
        );
        let count = |name: &str| policy["summary"][name].as_u64().unwrap();
        let (good, bad) = (count("total-successful-session-count"), count("total-failure-session-count"));
        assert_eq!((good > 0, bad > 0), (is_well, !is_well), "{report}");
        if !is_well {
            assert_eq!(policy["failure-details"][0]["result-type"], "certificate-host-mismatch");
        }
    }
}
