//! Signatures as OpenDKIM sees them: `opendkim-testmsg` of Debian, or below the folder that `SLUICE_OPENDKIM` names.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use proto::dns::kind;

use crate::harness::Behaviour;
use crate::harness::dns::{Dns, Told};
use crate::queue::{Site, send};

/// Verifies a mail in a mount namespace whose resolver is this server; what OpenDKIM says against it.
fn verified(root: &str, server: SocketAddr, mail: &str) -> Result<(), String> {
    let script = "set -e; echo \"nameserver $1\" >\"$2\"; mount --bind \"$2\" /etc/resolv.conf; exec \"$0\"";
    let resolver = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(format!("{root}/usr/sbin/opendkim-testmsg"));
    command.arg(server.ip().to_string()).arg(resolver.path());
    command.env("LD_LIBRARY_PATH", format!("{root}/usr/lib/x86_64-linux-gnu"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(mail.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() && said.is_empty() { Ok(()) } else { Err(said) }
}

/// The header fields of a mail with their folded lines, and its body.
fn divided(mail: &str) -> (Vec<String>, &str) {
    let (header, body) = mail.split_once("\r\n\r\n").unwrap();
    let mut fields: Vec<String> = Vec::new();
    for line in header.split("\r\n") {
        match fields.last_mut() {
            Some(field) if line.starts_with([' ', '\t']) => *field += &format!("\r\n{line}"),
            _ => fields.push(line.into()),
        }
    }
    (fields, body)
}

#[test]
fn each_signature_of_ours_is_good_for_opendkim() {
    let root = std::env::var("SLUICE_OPENDKIM").unwrap_or_default();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !Path::new(&format!("{root}/usr/sbin/opendkim-testmsg")).exists() || !is_root {
        return eprintln!("skipped: opendkim-tools is not installed, or we are not root");
    }
    let site = Site::start_with("", Behaviour::default());
    let folder = site.gateway.folder.path();
    let config = folder.join("dkim.toml");
    std::fs::write(&config, format!("[store]\nfolder = \"{}/store\"\n", folder.display())).unwrap();
    let mut create = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let created = create.args(["dkim", "create", "here.test", "--config"]).arg(&config).output().unwrap();
    let zone = String::from_utf8(created.stdout).unwrap();
    let dns = Dns::at(SocketAddr::from(([127, 53, 0, 1], 53)), move |name, wanted| {
        let line = zone.lines().find(|line| line.starts_with(&format!("{name}. IN TXT ")));
        match line.filter(|_| wanted == kind::TXT).and_then(|line| line.split_once(" IN TXT ")) {
            Some((_, text)) => Told::Text(text.trim_matches('"').replace("\" \"", "")),
            None => Told::NoName,
        }
    });
    let mail = "To: x\r\nsubject:  folded\r\n line \r\n\r\nbody \t x\r\n\r\n\r\n";
    send(&mut site.submit_as("ann@here.test"), "<ann@here.test>", &["<u@good.test>"], mail);
    let arrived = site.good.wait(1)[0].text();
    let (fields, body) = divided(&arrived);
    let is_signature = |field: &&String| field.starts_with("DKIM-Signature: ");
    let signatures: Vec<&String> = fields.iter().filter(is_signature).collect();
    assert_eq!(signatures.len(), 2, "{arrived}");
    for signature in signatures {
        let with = |body: &str| {
            let rest = fields.iter().filter(|field| !is_signature(field)).map(|field| format!("\r\n{field}"));
            format!("{signature}{}\r\n\r\n{body}", rest.collect::<String>())
        };
        assert_eq!(verified(&root, dns.address, &with(body)), Ok(()), "{signature}");
        assert!(verified(&root, dns.address, &with(&body.replace("body", "buddy"))).is_err(), "{signature}");
    }
}
