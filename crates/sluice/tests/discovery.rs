//! What programs and other servers ask a site before anybody has logged in: autoconfig, autodiscover, the policy of MTA-STS, and the records
//! that lead to them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use crate::harness::tls::Certificate;
use crate::harness::{Gateway, free_port};

/// A site with doors within TLS; `settings` are of `[store]`.
struct Site {
    gateway: Gateway,
    webmail: SocketAddr,
    imaps: u16,
    submission: u16,
}

impl Site {
    fn start(settings: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let certificate = Certificate::of("mx.test");
        certificate.store(folder.path(), "mx");
        let [webmail, webmails, imaps, submission] = [(); 4].map(|()| free_port());
        let at = folder.path().display();
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n[[tls.certificate]]\nchain = \"{at}/mx.crt\"\nkey = \"{at}/mx.key\"\n\
             [store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\nrelay = \"smtp://127.0.0.1:1\"\nimaps = [\"127.0.0.1:{imaps}\"]\n\
             webmail = [\"127.0.0.1:{webmail}\"]\nwebmails = [\"127.0.0.1:{webmails}\"]\n{settings}\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:{submission}\"\nforward = \"store:\"\ntls = \"require\"\nauth = \"tls\"\n"
        ));
        let webmail = SocketAddr::from(([127, 0, 0, 1], webmail));
        Site { gateway: gateway.owning(folder), webmail, imaps, submission }
    }

    /// The head and the body of an answer.
    fn ask(&self, line: &str, host: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.webmail).unwrap();
        let length = body.len();
        let request =
            format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn domain(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let config = self.gateway.folder.path().join("sluice.toml");
        let output = command.arg("domain").args(arguments).arg("--config").arg(config).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).unwrap())
    }
}

#[test]
fn programs_learn_the_doors_of_a_site_from_a_domain() {
    let site = Site::start("");
    for (path, host) in [
        ("/mail/config-v1.1.xml?emailaddress=ann%40here.test", "mx.test"),
        ("/.well-known/autoconfig/mail/config-v1.1.xml", "autoconfig.here.test"),
    ] {
        let told = site.ask(&format!("GET {path}"), host, "");
        assert!(told.starts_with("HTTP/1.1 200 ") && told.contains("text/xml"), "{told}");
        for wanted in [
            "<emailProvider id=\"here.test\">".to_owned(),
            format!(
                "<hostname>mx.test</hostname>\n      <port>{}</port>\n      <socketType>SSL</socketType>",
                site.imaps
            ),
            format!("<port>{}</port>\n      <socketType>STARTTLS</socketType>", site.submission),
        ] {
            assert!(told.contains(&wanted), "{wanted}: {told}");
        }
    }
    let odd = site.ask("GET /mail/config-v1.1.xml?emailaddress=a%40b%22%3E%3Cx", "mx.test", "");
    assert!(odd.contains("<emailProvider id=\"mx.test\">"), "{odd}");
    let question = "<Autodiscover><Request><EMailAddress>ann@here.test</EMailAddress></Request></Autodiscover>";
    for path in ["/autodiscover/autodiscover.xml", "/Autodiscover/Autodiscover.xml"] {
        let told = site.ask(&format!("POST {path}"), "autodiscover.here.test", question);
        assert!(
            told.contains("<LoginName>ann@here.test</LoginName>") && told.contains("<Encryption>TLS</Encryption>"),
            "{told}"
        );
        assert!(told.contains(&format!(
            "<Type>IMAP</Type>\n        <Server>mx.test</Server>\n        <Port>{}</Port>",
            site.imaps
        )));
    }
    let odd = site.ask("POST /autodiscover/autodiscover.xml", "x", "<EMailAddress>a&amp;b@here.test</EMailAddress>");
    assert!(odd.starts_with("HTTP/1.1 400 "), "{odd}");
    let long = site.ask("POST /autodiscover/autodiscover.xml", "x", &"x".repeat(20 << 10));
    assert!(long.starts_with("HTTP/1.1 413 "), "{long}");
    let none = site.ask("GET /.well-known/mta-sts.txt", "mta-sts.here.test", "");
    assert!(none.starts_with("HTTP/1.1 404 "), "{none}");
}

#[test]
fn a_policy_is_served_and_the_records_that_lead_to_it_are_checked() {
    let site = Site::start("mta_sts_policy = \"testing\"");
    let told = site.ask("GET /.well-known/mta-sts.txt", "mta-sts.here.test", "");
    assert!(told.ends_with("\r\n\r\nversion: STSv1\r\nmode: testing\r\nmx: mx.test\r\nmax_age: 604800\r\n"), "{told}");
    assert!(site.ask("GET /.well-known/mta-sts.txt", "mx.test", "").starts_with("HTTP/1.1 404 "));
    let (_, zone) = site.domain(&["add", "here.test"]);
    for wanted in [
        "_mta-sts.here.test. IN TXT \"v=STSv1; id=".to_owned(),
        "mta-sts.here.test. IN CNAME mx.test.".into(),
        "autoconfig.here.test. IN CNAME mx.test.".into(),
        "autodiscover.here.test. IN CNAME mx.test.".into(),
        format!("_imaps._tcp.here.test. IN SRV 0 1 {} mx.test.", site.imaps),
        format!("_submission._tcp.here.test. IN SRV 0 1 {} mx.test.", site.submission),
        "_jmap._tcp.here.test. IN SRV 0 1 ".into(),
        "_smtp._tls.here.test. IN TXT \"v=TLSRPTv1; rua=mailto:postmaster@here.test\"".into(),
        "_25._tcp.mx.test. IN TLSA 3 1 1 ".into(),
    ] {
        assert!(zone.contains(&wanted), "{wanted}: {zone}");
    }
    let lines: Vec<&str> = zone.lines().filter(|line| !line.starts_with(';')).collect();
    let whole = format!("{}\nmx.test IN A 192.0.2.1\n", lines.join("\n"));
    let file = site.gateway.folder.path().join("records");
    let check = |zone: &str| {
        std::fs::write(&file, zone).unwrap();
        site.domain(&["check", "here.test", "--zone", file.to_str().unwrap()])
    };
    let (status, said) = check(&whole);
    assert!(status == Some(0) && !said.contains("missing") && !said.contains("other"), "{said}");
    let other =
        whole.replace(&format!("0 1 {}", site.imaps), "0 1 1").replace("id=", "id=0").replace("autoconfig", "x");
    let (status, said) = check(&other);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("\n          found: mx.test:1\n") && said.contains("missing   autoconfig.here.test."),
        "{said}"
    );
    assert!(said.contains("other     _mta-sts.here.test."), "{said}");
    // Nobody has to have these, but none that is wrong.
    let fewer: Vec<&str> = lines.iter().filter(|line| !line.contains("TLS")).copied().collect();
    let (status, said) = check(&format!("{}\nmx.test IN A 192.0.2.1\n", fewer.join("\n")));
    assert_eq!((status, said.matches("optional  ").count()), (Some(0), 2), "{said}");
    let (status, said) = check(&whole.replace("TLSA 3 1 1 ", "TLSA 3 1 1 00"));
    assert!(status == Some(1) && said.contains("other     _25._tcp.mx.test. IN TLSA 3 1 1 "), "{said}");
    let (status, zone) = site.domain(&["add", "B\u{fc}cher.test."]);
    assert!(status == Some(0) && zone.contains("\nxn--bcher-kva.test. IN TXT \"v=spf1 mx -all\""), "{zone}");
    assert_eq!(site.domain(&["add", "a b"]).0, Some(2));
}
