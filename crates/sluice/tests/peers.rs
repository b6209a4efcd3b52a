//! The gateway between real peers, and under the corpora, where they are present. Each test that lacks its peer says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::harness::postfix::Postfix;
use crate::harness::{Behaviour, Gateway, Sink, base64, eicar, files, mail_with, wait_for};

/// Whether a program is there.
fn has(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// The folder of a pack below `SLUICE_DATA`, if it is there.
fn pack(name: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join(name)).filter(|path| path.is_dir());
    if folder.is_none() {
        eprintln!("no pack: {name}");
    }
    folder
}

fn output(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn swaks_delivers_a_clean_mail_and_is_told_of_the_virus() {
    if !has("swaks") {
        return;
    }
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start(&sink.forward(), "");
    let swaks = || {
        let mut command = Command::new("swaks");
        command.args(["--from", "a@x.test", "--to", "b@y.test", "--server"]).arg(gateway.address.to_string());
        command
    };
    let (delivered, text) = output(&mut swaks());
    assert!(delivered, "{text}");
    assert_eq!(sink.wait(1)[0].to, ["b@y.test"]);
    let (delivered, text) = output(swaks().arg("--attach-body").arg(String::from_utf8(eicar()).unwrap()));
    assert!(!delivered && text.contains("554 5.7.1 Message refused: Eicar-Test-Signature"), "{text}");
    assert_eq!(sink.mails().len(), 1);
}

#[test]
fn smtp_source_sends_through_to_smtp_sink() {
    if !has("smtp-source") || !has("smtp-sink") {
        return;
    }
    let port = crate::harness::free_port();
    let mut sink = Command::new("/usr/sbin/smtp-sink")
        .args(["-u", "nobody", &format!("127.0.0.1:{port}"), "100"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok(), "smtp-sink");
    let gateway = Gateway::start(&format!("smtp://127.0.0.1:{port}"), "");
    for (length, messages) in [("4000", "200"), ("1500000", "8")] {
        let (sent, text) = output(
            Command::new("/usr/sbin/smtp-source")
                .args(["-s", "8", "-m", messages, "-l", length, "-f", "a@x.test", "-t", "b@y.test"])
                .arg(format!("inet:{}", gateway.address)),
        );
        assert!(sent, "{text}");
    }
    let _ = sink.kill();
    let _ = sink.wait();
    let passed = || gateway.log().matches("action=\"pass\"").count();
    wait_for(|| (passed() == 208).then_some(()), "208 mails in the log");
}

#[test]
fn a_real_postfix_takes_the_clean_and_never_sees_the_rest() {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
    if !has("postfix") || !is_root {
        return;
    }
    let postfix = Postfix::start("");
    let gateway = Gateway::start(&format!("smtp://127.0.0.1:{}", postfix.port), "");
    let mail = mail_with("base64", "a.bin", &base64(&[7; 100_000]));
    let reply = gateway.connect().deliver(&mail);
    assert!(reply.starts_with("250 2.0.0 Ok: ") && reply.contains("queued as"), "{reply}");
    let virus = mail_with("base64", "e.com", &base64(&eicar()));
    assert!(gateway.connect().deliver(&virus).starts_with("554 5.7.1 "));
    let arrived = wait_for(|| postfix.mail(), "delivery");
    let original = String::from_utf8(mail).unwrap().replace("\r\n", "\n");
    let arrived = String::from_utf8(arrived).unwrap();
    assert!(arrived.ends_with(&original), "the mail was changed");
    assert_eq!(arrived.matches("(Sluice) with ESMTP").count(), 1);
    assert_eq!(files(&postfix.folder.path().join("mail")).len(), 1);
}

/// A mail as it would arrive by SMTP.
fn with_crlf(mail: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(mail.len() + mail.len() / 30);
    for line in mail.split(|&byte| byte == b'\n') {
        out.extend(line.iter().filter(|&&byte| byte != b'\r'));
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[test]
fn the_corpora_pass_bit_by_bit() {
    let sink = Sink::start(Behaviour::default());
    let all = "on_infected = \"pass\"\non_limit = \"pass\"\non_ambiguous = \"pass\"\nreceived = false";
    let gateway = Gateway::start(&sink.forward(), all);
    for name in ["mail-spamassassin", "mail-mime"] {
        let Some(folder) = pack(name) else { continue };
        let mut wire = gateway.connect();
        wire.talk("S: 220 *\nC: EHLO x\nS: 250-*");
        for file in files(&folder) {
            let mail = with_crlf(&std::fs::read(&file).unwrap());
            assert_eq!(wire.transaction(&mail), "250 2.0.0 Taken", "{}", file.display());
            let arrived = sink.take().expect("the sink has it before it says so");
            assert!(arrived.content == mail, "{} was changed", file.display());
        }
    }
}

#[test]
fn the_spamassassin_corpus_is_not_refused() {
    let Some(folder) = pack("mail-spamassassin/spamassassin-corpus") else { return };
    let gateway = Gateway::start("discard:", "");
    let mut wire = gateway.connect();
    wire.talk("S: 220 *\nC: EHLO x\nS: 250-*");
    let mut refused = Vec::new();
    for file in files(&folder) {
        let reply = wire.transaction(&with_crlf(&std::fs::read(&file).unwrap()));
        if !reply.starts_with("250 ") {
            refused.push(format!("{}: {reply}", file.display()));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn nothing_is_written_to_disk_while_mail_streams() {
    if !has("strace") {
        return;
    }
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with("[resources]\nhead_window_bytes = 32768", "smtp", &sink.forward(), "");
    let trace = gateway.folder.path().join("trace");
    let mut strace = Command::new("strace")
        .args(["-f", "-e", "trace=%file,write,pwrite64,writev", "-y", "-s", "0", "-o"])
        .arg(&trace)
        .arg("-p")
        .arg(gateway.pid().to_string())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It says so when it is attached.
    let mut attached = std::io::BufReader::new(strace.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut attached, &mut line).unwrap();
    if !line.contains("attached") {
        eprintln!("skipped: {line}");
        let _ = strace.wait();
        return;
    }
    let mail = mail_with("base64", "a.bin", &base64(&[7; 2_000_000]));
    assert_eq!(gateway.connect().deliver(&mail), "250 2.0.0 Taken");
    gateway.signal("TERM");
    let _ = strace.wait();
    let calls = std::fs::read_to_string(&trace).unwrap();
    let on_disk = |line: &&str| {
        let opens =
            line.contains("open") && (line.contains("O_WRONLY") || line.contains("O_RDWR") || line.contains("O_CREAT"));
        let writes =
            line.contains("write") && line.contains("</") && !line.contains("socket:") && !line.contains("pipe:");
        opens || (writes && !line.contains("anon_inode"))
    };
    let found: Vec<&str> = calls.lines().filter(on_disk).collect();
    assert!(calls.contains("write"), "nothing was traced");
    assert!(found.is_empty(), "{found:#?}");
}
