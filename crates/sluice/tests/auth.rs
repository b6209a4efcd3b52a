//! `sluice auth check`: results line by line, as JSON, from a zone file and from a resolver.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output};

use proto::dns::{Data, Message, Record, class, flag, kind, rcode};
use serde_json::Value;

/// The example of RFC 8463 appendix A.
const MAIL: &str = "\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
";

const KEY: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

const POLICY: &str = "v=DMARC1; p=reject";

const ARGS: [&str; 6] = ["--client", "192.0.2.1", "--helo", "mx.example.net", "--from", "joe@football.example.com"];

fn check(mail: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(["auth", "check", "--time", "1528640000"]).args(ARGS).args(args).arg(mail);
    command.output().unwrap()
}

fn written(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_recorded_zone_answers() {
    let folder = tempfile::tempdir().unwrap();
    let zone = format!(
        "brisbane._domainkey.football.example.com. 60 IN TXT \"{KEY}\"\n\
         _dmarc.example.com TXT {POLICY}\n\
         football.example.com TXT v=spf1 ip4:192.0.2.2 -all exp=why.example.com\n\
         why.example.com TXT \"%{{i}} is not ours\"\n"
    );
    let zone = written(folder.path(), "zone", &zone);
    let args = ["--zone", zone.to_str().unwrap()];
    let mail = written(folder.path(), "mail", MAIL);
    let output = check(&mail, &args);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "spf=none (mx.example.net has no policy) smtp.helo=mx.example.net\n\
         spf=fail (-all of football.example.com) smtp.mailfrom=joe@football.example.com\n\
         dkim=pass (256-bit key) header.d=football.example.com header.i=@football.example.com header.s=brisbane \
         header.b=/gCrinpc header.a=ed25519-sha256\n\
         dmarc=pass (policy reject of example.com) header.from=football.example.com\n\
         explanation: 192.0.2.1 is not ours\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(0));

    let changed = written(folder.path(), "changed", &format!("Authentication-Results: me.example; x\n{MAIL}more\n"));
    let output = check(&changed, &["--zone", zone.to_str().unwrap(), "--json", "--receiver", "me.example"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["dkim"][0]["reason"], "body has changed");
    assert_eq!((&told["dmarc"]["result"], &told["dmarc"]["disposition"]), (&"fail".into(), &"reject".into()));
    assert_eq!(told["forged"], Value::from(vec![0]));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_is_wrong_with_a_zone_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let zone = written(folder.path(), "zone", "a.example A x\n");
    let output = check(&written(folder.path(), "mail", MAIL), &["--zone", zone.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("zone:1: not NAME"));
}

/// It answers what it is asked until its socket is gone: a key, a policy, nothing, and nothing at all.
#[test]
fn a_resolver_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let mut bytes = [0; 1_500];
        while let Ok((len, from)) = server.recv_from(&mut bytes) {
            let Ok(mut message) = Message::parse(&bytes[..len]) else { continue };
            let (name, kind, _) = message.questions[0].clone();
            let text = match name.to_string().to_ascii_lowercase().as_str() {
                "brisbane._domainkey.football.example.com" => KEY,
                "_dmarc.football.example.com" => POLICY,
                // It never answers this one.
                "mx.example.net" => continue,
                _ => "",
            };
            message.flags = flag::QR | flag::AD | if text.is_empty() { rcode::NXDOMAIN } else { 0 };
            message.additionals.clear();
            if kind == kind::TXT && !text.is_empty() {
                let data = Data::Txt([&[text.len() as u8], text.as_bytes()].concat());
                message.answers.push(Record { name, kind, class: class::IN, ttl: 60, data });
            }
            let mut out = Vec::new();
            message.write(&mut out, 1_232);
            server.send_to(&out, from).unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let mail = written(folder.path(), "mail", &MAIL.replace('\n', "\r\n"));
    let output = check(&mail, &["--resolver", &address, "--timeout", "2", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["spf"]["helo"]["result"], "temperror");
    assert_eq!(told["spf"]["mailfrom"]["result"], "none");
    assert_eq!(told["dkim"][0]["result"], "pass");
    assert_eq!(told["dmarc"]["result"], "pass");
}
